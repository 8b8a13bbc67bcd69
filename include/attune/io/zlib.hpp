// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   io::npz_file file("x.npz", io::zlib_inflate);   link with -lz (Debian, Ubuntu: zlib1g-dev)
//
// Compressed members of .npz files. This is a separate header, so that other code does not need zlib. It is empty if
// zlib is not installed.
#pragma once

#if __has_include(<zlib.h>)

#include <algorithm>
#include <limits>
#include <span>

#include <zlib.h>

namespace attune::io {

/// Fills `to` from a raw deflate stream. False unless the stream is complete, fills `to` exactly and ends there.
inline bool zlib_inflate(std::span<unsigned char const> from, std::span<unsigned char> to) {
  z_stream z{};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return false;
  unsigned char beyond = 0;  // one more byte than `to` has room for: if it is written, the stream is too long
  std::size_t read = 0, written = 0;
  int state = Z_OK;
  bool too_long = false;
  while (state == Z_OK && !too_long) {
    constexpr std::size_t most = (std::numeric_limits<uInt>::max)() / 2;
    std::size_t const in = (std::min)(from.size() - read, most), out = (std::min)(to.size() - written, most);
    bool const full = out == 0;
    z.next_in = const_cast<unsigned char*>(from.data() + read);
    z.avail_in = uInt(in);
    z.next_out = full ? &beyond : to.data() + written;
    z.avail_out = full ? 1 : uInt(out);
    state = inflate(&z, Z_NO_FLUSH);
    read += in - z.avail_in;
    too_long = full && z.avail_out == 0;
    if (!full) written += out - z.avail_out;
  }
  inflateEnd(&z);
  return state == Z_STREAM_END && !too_long && read == from.size() && written == to.size();
}

}  // namespace attune::io

#endif
