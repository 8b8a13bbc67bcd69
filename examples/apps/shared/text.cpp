// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "text.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace apps {

std::string text(char const* format, ...) {
  char buffer[4096];
  std::va_list arguments;
  va_start(arguments, format);
  int const size = std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return std::string(buffer, std::size_t(std::clamp(size, 0, int(sizeof buffer) - 1)));
}

std::string escaped(std::string const& raw) {
  std::string to;
  for (char const c : raw) {
    if (c == '&')
      to += "&amp;";
    else if (c == '<')
      to += "&lt;";
    else if (c == '>')
      to += "&gt;";
    else if (c == '"')
      to += "&quot;";
    else
      to += c;
  }
  return to;
}

}  // namespace apps
