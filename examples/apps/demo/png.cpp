// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "png.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace demo {
namespace {

std::string big_endian(std::uint32_t x) { return {char(x >> 24), char(x >> 16), char(x >> 8), char(x)}; }

std::uint32_t crc32(std::string const& bytes) {
  std::uint32_t c = ~0u;
  for (char const byte : bytes) {
    c ^= std::uint8_t(byte);
    for (int k = 0; k < 8; ++k) c = (c >> 1) ^ (0xEDB88320u & (0u - (c & 1)));
  }
  return ~c;
}

std::uint32_t adler32(std::string const& bytes) {
  std::uint32_t a = 1, b = 0;
  for (char const byte : bytes) {
    a = (a + std::uint8_t(byte)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

std::string chunk(std::string const& type, std::string const& data) {
  return big_endian(std::uint32_t(data.size())) + type + data + big_endian(crc32(type + data));
}

/// A zlib stream of one stored block: no compression, no library.
std::string stored(std::string const& bytes) {
  if (bytes.size() > 65535) throw std::invalid_argument("png_address: at most 65535 bytes of pixels");
  auto const size = std::uint16_t(bytes.size()), complement = std::uint16_t(~size);
  std::string const header{
      '\x78', '\x01', '\x01', char(size & 255), char(size >> 8), char(complement & 255), char(complement >> 8)};
  return header + bytes + big_endian(adler32(bytes));
}

palette interpolated(std::vector<std::uint32_t> const& anchors) {
  palette p{};
  for (std::size_t n = 0; n < p.size(); ++n) {
    double const at = double(n) * double(anchors.size() - 1) / 255;
    std::size_t const left = std::min(std::size_t(at), anchors.size() - 2);
    for (std::size_t k = 0; k < 3; ++k) {
      auto const part = [&](std::uint32_t colour) { return double(colour >> (16 - 8 * k) & 255); };
      p[n][k] = std::uint8_t(
          std::lround(part(anchors[left]) + (at - double(left)) * (part(anchors[left + 1]) - part(anchors[left]))));
    }
  }
  return p;
}

}  // namespace

palette const& violet_to_yellow() {
  static palette const p = interpolated(
      {0x440154, 0x482878, 0x3e4989, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779, 0x6ece58, 0xb5de2b, 0xfde725});
  return p;
}

palette const& black_to_cream() {
  static palette const p = interpolated(
      {0x000004, 0x180f3d, 0x440f76, 0x721f81, 0x9e2f7f, 0xcd4071, 0xf1605d, 0xfd9668, 0xfeca8d, 0xfcfdbf});
  return p;
}

std::string base64(std::string const& bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string to;
  for (std::size_t n = 0; n < bytes.size(); n += 3) {
    auto const at = [&](std::size_t k) { return n + k < bytes.size() ? std::uint32_t(std::uint8_t(bytes[n + k])) : 0; };
    std::uint32_t const three = at(0) << 16 | at(1) << 8 | at(2);
    for (std::size_t k = 0; k < 4; ++k) to += n + k <= bytes.size() ? digits[three >> (18 - 6 * k) & 63] : '=';
  }
  return to;
}

std::string png_address(std::vector<std::uint8_t> const& pixels, std::size_t width, palette const& p) {
  std::size_t const height = pixels.size() / width;
  std::string rows, colours;
  for (std::size_t y = 0; y < height; ++y) {
    rows += '\0';  // no filter
    rows.append(pixels.begin() + std::ptrdiff_t(y * width), pixels.begin() + std::ptrdiff_t((y + 1) * width));
  }
  for (auto const& colour : p) colours.append(colour.begin(), colour.end());
  std::string const header = big_endian(std::uint32_t(width)) + big_endian(std::uint32_t(height)) +
                             std::string{8, 3, 0, 0, 0};  // 8 bits, palette
  return "data:image/png;base64," + base64("\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("PLTE", colours) +
                                           chunk("IDAT", stored(rows)) + chunk("IEND", ""));
}

}  // namespace demo
