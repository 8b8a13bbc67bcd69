// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   text("%.2f nats", x),   escaped("a < b"),   write_file("page.html", [](std::ostream& to) { ... })
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace apps {

/// printf into a string, cut off at 4095 characters.
[[gnu::format(printf, 1, 2)]] std::string text(char const* format, ...);

/// Text made safe for HTML.
std::string escaped(std::string const& raw);

/// Writes through a temporary name, so that a file of that name is always complete. write(std::ostream&) fills it.
/// Throws std::runtime_error where it cannot.
template <class Write>
void write_file(std::filesystem::path const& file, Write const& write) {
  auto const partial = std::filesystem::path(file) += ".part";
  std::ofstream to(partial);
  write(to);
  to.close();
  if (!to) throw std::runtime_error(partial.string() + ": could not be written");
  std::filesystem::rename(partial, file);
}

}  // namespace apps
