# `cmake --install` gives find_package(ptxgen) with the target ptxgen::ptxgen.
include(CMakePackageConfigHelpers)

set(PTXGEN_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/ptxgen)
install(TARGETS ptxgen EXPORT ptxgenTargets)
install(DIRECTORY include/ptxgen DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT ptxgenTargets NAMESPACE ptxgen:: DESTINATION ${PTXGEN_PACKAGE_DIR})
configure_package_config_file(cmake/ptxgenConfig.cmake.in ${PROJECT_BINARY_DIR}/ptxgenConfig.cmake
  INSTALL_DESTINATION ${PTXGEN_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ptxgenConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ptxgenConfig.cmake ${PROJECT_BINARY_DIR}/ptxgenConfigVersion.cmake
  DESTINATION ${PTXGEN_PACKAGE_DIR})
