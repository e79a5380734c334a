# What a step costs beside its kernel, in instructions: counted, so the same on every machine and under any load.
if(MSVC OR ONEWEIGHT_SANITIZE)
  return()
endif()
find_program(ONEWEIGHT_VALGRIND valgrind)
mark_as_advanced(ONEWEIGHT_VALGRIND)
if(NOT ONEWEIGHT_VALGRIND)
  message(STATUS "oneweight: no valgrind: instructions a step are not counted")
endif()
add_executable(overhead overhead/main.cc)
target_link_libraries(overhead PRIVATE oneweight::oneweight)
target_include_directories(overhead PRIVATE "${PROJECT_SOURCE_DIR}")
target_compile_options(overhead PRIVATE ${ONEWEIGHT_WARNINGS} -UONEWEIGHT_STATIC_DISPATCH -DONEWEIGHT_STATIC_DISPATCH=1)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")  # the newest instructions are not known to valgrind
  target_compile_options(overhead PRIVATE -march=x86-64 -mtune=generic)
endif()
set_target_properties(overhead PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
# The bar for a step of an operator that does nothing, and for the smallest of ours with its work.
foreach(bar "nothing;60" "abs;150")
  list(GET bar 0 kind)
  list(GET bar 1 most)
  add_test(NAME "overhead: at most ${most} instructions a step of ${kind}"
           COMMAND "${CMAKE_COMMAND}" -D "VALGRIND=${ONEWEIGHT_VALGRIND}" -D "PROGRAM=$<TARGET_FILE:overhead>" -D KIND=${kind} -D MOST=${most}
                   -D "OPTIMISED=$<IF:$<CONFIG:Debug>,0,1>" -P "${CMAKE_CURRENT_SOURCE_DIR}/overhead/count.cmake")
  set_tests_properties("overhead: at most ${most} instructions a step of ${kind}" PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: " LABELS overhead)
endforeach()
