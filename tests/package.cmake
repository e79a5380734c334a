# Projects outside this one, built and run against a model of the repository: find_package on an installed tree,
# add_subdirectory, FetchContent from a local path, and a compiler call without CMake.

set(ONEWEIGHT_PACKAGE_MODEL "${ONEWEIGHT_TEST_DATA}/models/tflm_hello_world_float/model.tflite")
set(installed "${PROJECT_BINARY_DIR}/tests/package/installed")

add_test(NAME "package: install" COMMAND "${CMAKE_COMMAND}" --install "${PROJECT_BINARY_DIR}" --prefix "${installed}")
set_tests_properties("package: install" PROPERTIES FIXTURES_SETUP installed)

set(ONEWEIGHT_PACKAGE_OPTIONS
  "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}"
  -DCMAKE_BUILD_TYPE=Release -DONEWEIGHT_STATIC_DISPATCH=ON "-DCMAKE_PREFIX_PATH=${installed}" "-DONEWEIGHT_SOURCE=${PROJECT_SOURCE_DIR}"
  "-DONEWEIGHT_HWY_INCLUDE_DIR=${ONEWEIGHT_HWY_INCLUDE_DIR}" "-DONEWEIGHT_FLATBUFFERS_INCLUDE_DIR=${ONEWEIGHT_FLATBUFFERS_INCLUDE_DIR}"
  "-DONEWEIGHT_EIGEN_INCLUDE_DIR=${ONEWEIGHT_EIGEN_INCLUDE_DIR}")

# A project of tests/package whose program `program` is built and must run well. Kernels for one target only: quick.
function(oneweight_package_test folder program)
  add_test(NAME "package: ${folder}, ${program}"
           COMMAND "${CMAKE_CTEST_COMMAND}"
             --build-and-test "${CMAKE_CURRENT_SOURCE_DIR}/package/${folder}" "${PROJECT_BINARY_DIR}/tests/package/${folder}"
             --build-generator "${CMAKE_GENERATOR}" --build-makeprogram "${CMAKE_MAKE_PROGRAM}" --build-target ${program}
             --build-noclean --build-options ${ONEWEIGHT_PACKAGE_OPTIONS}
             --test-command "${program}" "${ONEWEIGHT_PACKAGE_MODEL}")
  set_tests_properties("package: ${folder}, ${program}" PROPERTIES TIMEOUT 1500 LABELS package RESOURCE_LOCK "package ${folder}")
endfunction()
oneweight_package_test(find_package headers_only)
oneweight_package_test(find_package with_kernels)
set_tests_properties("package: find_package, headers_only" "package: find_package, with_kernels" PROPERTIES FIXTURES_REQUIRED installed)
oneweight_package_test(add_subdirectory headers_only)
oneweight_package_test(fetch_content headers_only)

# Every example as a project of its own, against the installed tree.
if(ONEWEIGHT_BUILD_EXAMPLES)
  add_test(NAME "package: examples alone"
           COMMAND "${CMAKE_COMMAND}" -D "EXAMPLES=${PROJECT_SOURCE_DIR}/examples" -D "BINARY=${PROJECT_BINARY_DIR}/tests/package"
                   -D "GENERATOR=${CMAKE_GENERATOR}" -D "MODEL=${ONEWEIGHT_PACKAGE_MODEL}"
                   -P "${CMAKE_CURRENT_SOURCE_DIR}/package/examples_alone.cmake" -- ${ONEWEIGHT_PACKAGE_OPTIONS}
                   "-DONEWEIGHT_CLI11_INCLUDE_DIR=${ONEWEIGHT_CLI11_INCLUDE_DIR}" "-DONEWEIGHT_JSON_INCLUDE_DIR=${ONEWEIGHT_JSON_INCLUDE_DIR}"
                   "-DONEWEIGHT_STB_INCLUDE_DIR=${ONEWEIGHT_STB_INCLUDE_DIR}")
  set_tests_properties("package: examples alone" PROPERTIES FIXTURES_REQUIRED installed TIMEOUT 1500 LABELS package
                                                            RESOURCE_LOCK "package find_package")
endif()

# Without CMake, for all processor targets: what README.md says.
if(NOT MSVC)
  set(plain "${PROJECT_BINARY_DIR}/tests/package/plain_include")
  add_test(NAME "package: plain include"
           COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 -O2 -DHEADERS_ONLY "-I${PROJECT_SOURCE_DIR}/include"
                   "-I${CMAKE_CURRENT_SOURCE_DIR}/package" "-I${ONEWEIGHT_HWY_INCLUDE_DIR}" "-I${ONEWEIGHT_FLATBUFFERS_INCLUDE_DIR}"
                   "${CMAKE_CURRENT_SOURCE_DIR}/package/main.cc" -o "${plain}")
  set_tests_properties("package: plain include" PROPERTIES FIXTURES_SETUP plain_include LABELS package)
  add_test(NAME "package: plain include runs" COMMAND "${plain}" "${ONEWEIGHT_PACKAGE_MODEL}")
  # What a program does not name is not in it: no kernel of another operator.
  add_test(NAME "package: one operator brings no other" COMMAND sh -c "! nm -C '${plain}' | grep -iE 'conv_?2d|softmax|pool|reshape'")
  set_tests_properties("package: plain include runs" "package: one operator brings no other" PROPERTIES FIXTURES_REQUIRED plain_include)
endif()
