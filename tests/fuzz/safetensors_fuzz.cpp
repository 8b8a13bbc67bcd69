// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Any bytes: read or refused by attune::error, nothing else.
#include <attune/io/safetensors.hpp>

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  try {
    attune::io::safetensors_file file({data, size}, "memory");
    for (auto const& name : file.names()) try {
        (void)file.read(name);
      } catch (attune::error const&) {
      }
  } catch (attune::error const&) {
  }
  return 0;
}
