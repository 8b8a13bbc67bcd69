#!/usr/bin/env bash
# pkg_config.sh <compiler> <prefix> <program>: compiles the first call with nothing but what pkg-config says of an installation.
set -euo pipefail
compiler=$1 prefix=$2 program=$3
command -v pkg-config >/dev/null || { echo "skipped: pkg-config not found" && exit 1; }
export PKG_CONFIG_PATH="$prefix/share/pkgconfig"
# The installed prefix has a space: what pkg-config prints is quoted for a shell.
eval "$compiler -std=c++20 -O0 -DATTUNE_WITHOUT_FMA '$(dirname "$0")/../../packaging/conan/test_package/first_call.cpp' -o '$program' $(pkg-config --cflags --libs attune)"
"$program"
# Nothing else may have found the headers.
"$compiler" -std=c++20 -M -I"$prefix/include" "$(dirname "$0")/../../packaging/conan/test_package/first_call.cpp" | grep "install\\\\ prefix/include/attune/attune.hpp" >/dev/null
test "$(pkg-config --modversion attune)" = "$(sed -n 's/^#define ATTUNE_VERSION_[A-Z]* \([0-9]*\)$/\1/p' "$prefix/include/attune/version.hpp" | paste -sd.)"
