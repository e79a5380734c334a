# Installs headers, the program and a config package. The package finds Highway, flatbuffers and Eigen again on
# the user's machine and compiles oneweight::kernels there, so it is the same for all architectures.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(ONEWEIGHT_PACKAGE_DIR "${CMAKE_INSTALL_DATADIR}/cmake/oneweight")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/oneweight" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/oneweightConfig.cmake.in" "${PROJECT_BINARY_DIR}/oneweightConfig.cmake"
  INSTALL_DESTINATION "${ONEWEIGHT_PACKAGE_DIR}" PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/oneweightConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/oneweightConfig.cmake" "${PROJECT_BINARY_DIR}/oneweightConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FindHeaders.cmake" "${PROJECT_SOURCE_DIR}/cmake/Kernels.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/kernels.cc.in"
        DESTINATION "${ONEWEIGHT_PACKAGE_DIR}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
if(ONEWEIGHT_BUILD_EXAMPLES)
  install(TARGETS oneweight_program RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
