# shellcheck shell=bash
# What scripts/attune and scripts/accuracy share: build/attune, configured. Sourced after common.sh, run in the repository.
configure_program() {
  need g++:g++ cmake:cmake ninja:ninja-build libxsimd-dev libeigen3-dev boost libcli11-dev nlohmann-json3-dev zlib1g-dev
  [ ! -e build/attune/build.ninja ] || return 0
  need_version g++ 12
  need_version cmake 3.25
  step "Configure" cmake -S . -B build/attune -G Ninja -DCMAKE_BUILD_TYPE=Release -DATTUNE_BUILD_TESTS=OFF \
    -DATTUNE_BUILD_EXAMPLES=OFF -DATTUNE_BUILD_BENCHMARKS=OFF -DATTUNE_INSTALL=OFF -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=100 --log-level=WARNING
}
