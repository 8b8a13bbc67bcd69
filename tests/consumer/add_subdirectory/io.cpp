// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Compiled where the test asks for the component io; linked to zlib where that is installed.
#include <span>

#include <attune/io/zlib.hpp>

bool inflate([[maybe_unused]] std::span<unsigned char const> from, [[maybe_unused]] std::span<unsigned char> to) {
#if __has_include(<zlib.h>)
  return attune::io::zlib_inflate(from, to);
#else
  return false;
#endif
}
