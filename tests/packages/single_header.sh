#!/usr/bin/env bash
# single_header.sh <compiler> <folder>: attune as one header, alone in a folder, compiles the first call.
set -euo pipefail
compiler=$1 folder=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
rm -rf "$folder" && mkdir -p "$folder/attune"
"$root/scripts/single_header" -o "$folder/attune/attune.hpp"
if grep -nE '^ *# *include *[<"]attune/' "$folder/attune/attune.hpp"; then echo "an include of attune is left" && exit 1; fi
"$compiler" -std=c++20 -O0 -Wall -Wextra -Werror -DATTUNE_WITHOUT_FMA -I"$folder" "$root/packaging/conan/test_package/first_call.cpp" -pthread -o "$folder/first_call"
"$folder/first_call"
