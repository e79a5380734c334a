# Every header compiles alone (and twice in one file) as users of oneweight::kernels include it, without exceptions
# and RTTI: a file for each. Not part of an ordinary build: the test builds them, and so does
# `cmake --build BUILD --target headers_alone`.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/include/*.h")
set(sources)
foreach(header ${headers})
  if(header MATCHES "-inl\\.h$")
    continue()  # parts of others, once for each target
  endif()
  if(header STREQUAL "oneweight/kernels.h")
    continue()  # compiled by oneweight::kernels
  endif()
  string(MAKE_C_IDENTIFIER "${header}" name)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cc")
  file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
  list(APPEND sources "${source}")
endforeach()
add_library(headers_alone OBJECT EXCLUDE_FROM_ALL ${sources})
target_link_libraries(headers_alone PRIVATE oneweight::oneweight)
target_compile_definitions(headers_alone PRIVATE ONEWEIGHT_EXTERN_KERNELS=1)
target_compile_options(headers_alone PRIVATE ${ONEWEIGHT_WARNINGS})
if(NOT MSVC)
  target_compile_options(headers_alone PRIVATE -O0 -fno-exceptions -fno-rtti)
endif()
if(NOT ONEWEIGHT_SANITIZE)
  add_test(NAME "headers compile alone" COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target headers_alone)
  set_tests_properties("headers compile alone" PROPERTIES TIMEOUT 1500)
endif()
