# Header-only and architecture independent: everything goes under include/ and share/.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(attune_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/attune")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/attune" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(TARGETS attune EXPORT attuneTargets)
install(EXPORT attuneTargets NAMESPACE attune:: DESTINATION "${attune_package_dir}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/attuneConfig.cmake.in" "${PROJECT_BINARY_DIR}/attuneConfig.cmake"
  INSTALL_DESTINATION "${attune_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/attuneConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/attuneConfig.cmake" "${PROJECT_BINARY_DIR}/attuneConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/AttuneDependencies.cmake" "${PROJECT_SOURCE_DIR}/cmake/AttuneComponents.cmake"
  DESTINATION "${attune_package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
