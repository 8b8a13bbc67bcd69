// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "heatmap.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "png.hpp"
#include "shared/text.hpp"

namespace demo {
namespace {

using apps::escaped;
using apps::text;

constexpr int cell = 12, left = 80, top = 80, gap = 8, ground_width = 18;
constexpr int decades = 4;  ///< the scale ends at 10^-4

/// Keys: 0 up to 10^-4, 255 for 1, logarithmic between.
std::uint8_t shade(float weight) {
  double const x = weight > 0 ? 1 + std::log10(double(weight)) / decades : 0;
  return std::uint8_t(std::lround(255 * std::clamp(x, 0.0, 1.0)));
}

/// The ground's share is large or small, seldom tiny: linear.
std::uint8_t ground_shade(float weight) {
  return std::uint8_t(std::lround(255 * std::clamp(double(weight), 0.0, 1.0)));
}

std::string image(int x, int y, int width, int height, std::string const& address) {
  return text("<image x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" preserveAspectRatio=\"none\" href=\"", x, y, width,
              height) +
         address + "\"/>";
}

std::string scale(std::string const& title, palette const& colours, std::vector<std::string> const& names) {
  constexpr int width = 512, margin = 40;
  std::vector<std::uint8_t> ramp;
  for (int n = 0; n < 256; ++n) ramp.push_back(std::uint8_t(n));
  std::string to = text(
      "<svg class=\"legend\" viewBox=\"0 0 %d 48\" role=\"img\" aria-label=\"colour scale\"><text x=\"%d\" "
      "y=\"8\">%s</text>",
      width + 2 * margin, width / 2 + margin, title.c_str());
  to += image(margin, 17, width, 14, png_address(ramp, 256, colours));
  for (std::size_t n = 0; n < names.size(); ++n)
    to += text("<text x=\"%d\" y=\"41\">%s</text>", margin + int(n) * width / int(names.size() - 1), names[n].c_str());
  return to + "</svg>\n";
}

}  // namespace

std::string heatmap_labels(std::vector<std::string> const& tokens, std::size_t count) {
  std::string to = "<svg width=\"0\" height=\"0\" class=\"hidden\" aria-hidden=\"true\"><defs><g id=\"labels\">";
  for (std::size_t n = 0; n < count; ++n) {
    int const middle = cell * int(n) + cell / 2;
    std::string const word = escaped(tokens[n]);
    to += text("<text x=\"%d\" y=\"%d\" class=\"query\">%s</text>", left - 5, top + middle, word.c_str());
    to += text("<text transform=\"translate(%d %d) rotate(-90)\" class=\"key\">%s</text>", left + middle, top - 5,
               word.c_str());
  }
  to += text("<text transform=\"translate(%d %d) rotate(-90)\" class=\"key ground\">ground</text>",
             left + cell * int(count) + gap + ground_width / 2, top - 5);
  return to + "</g></defs></svg>\n";
}

std::string heatmap(std::vector<float> const& weights, std::size_t count, bool has_ground, std::string const& title) {
  std::vector<std::uint8_t> keys, ground;
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    float const* const row = weights.data() + i * (count + 1);
    ground.push_back(ground_shade(row[0]));
    for (std::size_t j = 0; j < count; ++j) keys.push_back(shade(row[1 + j]));
    all += char(ground.back());
    all.append(keys.end() - std::ptrdiff_t(count), keys.end());
  }
  int const side = cell * int(count), ground_left = left + side + gap;
  std::string to = text("<svg class=\"heat\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\" data-weights=\"",
                        ground_left + ground_width + 2, top + side + 2, escaped(title).c_str());
  to += base64(all) + "\"><use href=\"#labels\"/>" +
        image(left, top, side, side, png_address(keys, count, violet_to_yellow()));
  if (has_ground)
    return to + image(ground_left, top, ground_width, side, png_address(ground, 1, black_to_cream())) + "</svg>";
  return to +
         text(
             "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"empty\"/><text transform=\"translate(%d %d) "
             "rotate(-90)\" class=\"note\">none</text></svg>",
             ground_left, top, ground_width, side, ground_left + ground_width / 2, top + side / 2);
}

std::string heatmap_legend() {
  return "<div class=\"legends\">" +
         scale("weight of a key (logarithmic)", violet_to_yellow(), {"≤ 0.0001", "0.001", "0.01", "0.1", "1"}) +
         scale("ground weight (linear)", black_to_cream(), {"0", "0.25", "0.5", "0.75", "1"}) + "</div>\n";
}

}  // namespace demo
