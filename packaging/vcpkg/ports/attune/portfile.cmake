# The form of vcpkg's registry. A release fills in REPO and SHA512 (scripts/release prints the latter).
vcpkg_from_github(
  OUT_SOURCE_PATH SOURCE_PATH
  REPO attune/attune
  REF "v${VERSION}"
  SHA512 0
  HEAD_REF main
)
set(VCPKG_BUILD_TYPE release) # header-only
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DATTUNE_BUILD_TESTS=OFF
    -DATTUNE_BUILD_EXAMPLES=OFF
    -DATTUNE_BUILD_BENCHMARKS=OFF
    -DATTUNE_BUILD_TOOLS=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/attune)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug" "${CURRENT_PACKAGES_DIR}/lib" "${CURRENT_PACKAGES_DIR}/share/doc")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
