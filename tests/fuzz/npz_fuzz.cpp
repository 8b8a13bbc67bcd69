// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Any bytes: read or refused by attune::error, nothing else.
#include <attune/io/npz.hpp>
#include <attune/io/zlib.hpp>

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  try {
    attune::io::npz_file file({data, size}, "memory", attune::io::zlib_inflate);
    for (auto const& name : file.names()) try {
        (void)file.read(name);
      } catch (attune::error const&) {
      }
  } catch (attune::error const&) {
  }
  return 0;
}
