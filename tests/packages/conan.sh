#!/usr/bin/env bash
# conan.sh <work folder>: PyPI's conan makes attune's package twice, without and with Eigen and Boost, and builds and runs a consumer of each.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
work=$1
if [ ! -x "$work/bin/conan" ]; then
  rm -rf "$work"
  { python3 -m venv "$work" && "$work/bin/pip" -q install 'conan>=2.5,<3'; } >&2 || {
    rm -rf "$work"
    echo "skipped: conan cannot be installed from PyPI"
    exit 1
  }
fi
export CONAN_HOME="$work/home"
rm -rf "$CONAN_HOME"
conan() { "$work/bin/conan" "$@"; }
conan profile detect
sed -i 's/^compiler.cppstd=.*/compiler.cppstd=20/' "$CONAN_HOME/profiles/default"

# The versions that this machine has.
version() { dpkg-query -W -f='${source:Upstream-Version}' "$1" | grep -oE '^[0-9.]+[0-9]'; }
boost=$(sed -n 's/^#define BOOST_LIB_VERSION "\(.*\)"/\1/p' /usr/include/boost/version.hpp | tr _ .)
for library in "xsimd $(version libxsimd-dev)" "eigen $(version libeigen3-dev)" "boost $boost.0"; do
  conan create "$here/conan_system" --name "${library% *}" --version "${library#* }" --no-remote
done
for reference in False True; do
  conan create "$repository/packaging/conan" -c tools.cmake.cmake_layout:test_folder="$work/test" -o "&:reference=$reference" --no-remote
done
