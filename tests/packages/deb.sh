#!/usr/bin/env bash
# deb.sh <build folder> <work folder>: cpack's DEB, installed by apt into a fresh root of Debian; a consumer is built there by CMake and one by pkg-config.
set -euo pipefail
build=$1 work=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
skip() { echo "skipped: $*" && exit 1; }
[ "$(id -u)" -eq 0 ] || skip "chroot needs root"
command -v debootstrap >/dev/null || skip "debootstrap not found"
rm -rf "$work/packages" && mkdir -p "$work/packages"
(cd "$build" && cpack -B "$work/packages")
ls "$work"/packages/attune-*.tar.gz
system="$work/root"
rm -rf "$system"
debootstrap --variant=minbase --include=g++,cmake,make,pkgconf trixie "$system" http://deb.debian.org/debian >"$work/debootstrap.log"
mkdir "$system/consumer"
cp "$work"/packages/*.deb "$root"/packaging/conan/test_package/{CMakeLists.txt,first_call.cpp} "$system/consumer/"
inside() { chroot "$system" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -euc "cd /consumer; $1"; }
inside 'apt-get -qq update; apt-get -qq install -y --no-install-recommends ./*.deb >/dev/null'
inside 'cmake -S . -B build -DCMAKE_BUILD_TYPE=Debug >/dev/null; cmake --build build; build/first_call'
# shellcheck disable=SC2016
inside 'g++ -std=c++20 first_call.cpp $(pkg-config --cflags --libs attune) -o by_pkg_config; ./by_pkg_config; test -r /usr/share/doc/attune/README.md'
inside 'apt-get -qq remove -y libattune-dev >/dev/null; test ! -e /usr/include/attune'
