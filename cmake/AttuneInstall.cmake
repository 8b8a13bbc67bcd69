# Header-only and architecture independent: everything goes under include/ and share/.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The xsimd of this build, for a package that must not depend on the system's. attuneConfig.cmake then uses it. The package of
# Python takes it "where its license is".
if(ATTUNE_INSTALL_XSIMD)
  attune_xsimd_folder(attune_xsimd_headers)
  find_file(ATTUNE_XSIMD_LICENSE NAMES LICENSE copyright NO_DEFAULT_PATH DOC "xsimd's license"
    PATHS "${attune_xsimd_headers}/.." "${attune_xsimd_headers}/../share/doc/libxsimd-dev" "${attune_xsimd_headers}/../share/licenses/xsimd")
  if(attune_xsimd_headers AND ATTUNE_XSIMD_LICENSE)
    set(ATTUNE_INSTALL_XSIMD ON)
  elseif(ATTUNE_INSTALL_XSIMD STREQUAL "where its license is")
    set(ATTUNE_INSTALL_XSIMD OFF)
  else()
    message(FATAL_ERROR "attune: ATTUNE_INSTALL_XSIMD copies xsimd's headers and license. Headers: '${attune_xsimd_headers}'; license: "
      "'${ATTUNE_XSIMD_LICENSE}'. Set ATTUNE_XSIMD_LICENSE to the license's file, or ATTUNE_INSTALL_XSIMD to OFF.")
  endif()
endif()

set(attune_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/attune")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/attune" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" PATTERN "*.cuh")
install(TARGETS attune EXPORT attuneTargets INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT attuneTargets NAMESPACE attune:: DESTINATION "${attune_package_dir}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/attuneConfig.cmake.in" "${PROJECT_BINARY_DIR}/attuneConfig.cmake"
  INSTALL_DESTINATION "${attune_package_dir}" PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/attuneConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/attuneConfig.cmake" "${PROJECT_BINARY_DIR}/attuneConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/AttuneDependencies.cmake" "${PROJECT_SOURCE_DIR}/cmake/AttuneComponents.cmake"
  DESTINATION "${attune_package_dir}")
# For pkg-config. The file finds its prefix from where it lies; an xsimd without a .pc file of its own must be on the compiler's path.
set(attune_pc_dir "${CMAKE_INSTALL_DATADIR}/pkgconfig")
string(REGEX REPLACE "[^/]+" ".." attune_pc_up "${attune_pc_dir}")
set(attune_pc_requires "xsimd >= ${ATTUNE_XSIMD_MINIMUM}")
if(ATTUNE_INSTALL_XSIMD)
  set(attune_pc_requires "")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/attune.pc.in" "${PROJECT_BINARY_DIR}/attune.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/attune.pc" DESTINATION "${attune_pc_dir}")

# What a user reads and copies. The site is made from docs/ and is not part of it.
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}")
if(NOT SKBUILD)  # a package of Python has neither: pages and data are 6 MB
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DOCDIR}" PATTERN site EXCLUDE PATTERN contributing EXCLUDE)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${CMAKE_INSTALL_DOCDIR}" PATTERN __pycache__ EXCLUDE)
endif()

if(ATTUNE_INSTALL_XSIMD)
  install(DIRECTORY "${attune_xsimd_headers}/xsimd" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
  install(FILES "${ATTUNE_XSIMD_LICENSE}" DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME LICENSE.xsimd)
endif()

include("${PROJECT_SOURCE_DIR}/cmake/AttunePackages.cmake")
