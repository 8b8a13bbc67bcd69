// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Compiled where the consumer asked for the component io; linked to zlib where that is installed.
#include <attune/io.hpp>
#include <attune/io/zlib.hpp>

attune::io::inflate_function inflate() {
#if __has_include(<zlib.h>)
  return attune::io::zlib_inflate;
#else
  return nullptr;
#endif
}
