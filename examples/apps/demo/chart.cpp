// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "chart.hpp"

#include "shared/text.hpp"

namespace demo {
namespace {

using apps::text;

constexpr int width = 600, height = 250, left = 50, right = 10, top = 14, bottom = 40;

/// Mark number n around (x, y): the shapes differ as well as the colours.
std::string mark(std::size_t n, double x, double y) {
  char const* const shapes[] = {"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\" class=\"s0\"/>",
                                "<path d=\"M%.1f %.1fm-3.5 -3.5h7v7h-7z\" class=\"s1\"/>",
                                "<path d=\"M%.1f %.1fm0 -4.6l4.4 7.8h-8.8z\" class=\"s2\"/>",
                                "<path d=\"M%.1f %.1fm0 4.6l4.4 -7.8h-8.8z\" class=\"s3\"/>",
                                "<path d=\"M%.1f %.1fm0 -5l5 5l-5 5l-5 -5z\" class=\"s4\"/>"};
  std::string to = shapes[n % 5];
  for (double const value : {x, y}) to.replace(to.find("%.1f"), 4, text("%.1f", value));
  return to;
}

}  // namespace

std::string chart(std::vector<series> const& all, chart_axis const& axis, std::string const& title) {
  std::size_t const heads = all.front().values.size();
  double const column = double(width - left - right) / double(heads);
  auto const y = [&](double value) { return top + (height - top - bottom) * (1 - value / axis.highest); };
  std::string to =
      text("<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">", width, height, title.c_str());
  for (std::size_t h = 0; h < heads; h += 2)
    to += text("<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" class=\"band\"/>", left + column * double(h),
               top, column, height - top - bottom);
  for (double value = 0; value <= axis.highest * 1.0001; value += axis.step)
    to += text(
        "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"rule\"/><text x=\"%d\" y=\"%.1f\" "
        "class=\"tick\">%g</text>",
        left, width - right, y(value), y(value), left - 7, y(value), value);
  if (axis.line >= 0)
    to += text(
        "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"bound\"/><text x=\"%d\" y=\"%.1f\" "
        "class=\"bound-name\">%s</text>",
        left, width - right, y(axis.line), y(axis.line), width - right - 4, y(axis.line) - 9, axis.line_name.c_str());
  for (std::size_t h = 0; h < heads; ++h) {
    double const middle = left + column * (double(h) + 0.5), step = column * 0.8 / double(all.size());
    to += text("<text x=\"%.1f\" y=\"%d\" class=\"head\">%zu</text>", middle, height - bottom + 15, h);
    for (std::size_t n = 0; n < all.size(); ++n) {
      double const value = all[n].values[h];
      to += text("<g><title>%s, head %zu: %.3f</title>", all[n].name.c_str(), h, value) +
            mark(n, middle + step * (double(n) - 0.5 * double(all.size() - 1)), y(value)) + "</g>";
    }
  }
  to += text("<text x=\"%d\" y=\"%d\" class=\"head\">head</text>", (left + width - right) / 2, height - 6);
  to += text("<text transform=\"translate(12 %d) rotate(-90)\" class=\"head\">%s</text>", (top + height - bottom) / 2,
             axis.title.c_str());
  return to + "</svg>";
}

std::string chart_legend(std::vector<series> const& all) {
  std::string to = "<p class=\"key-list\">";
  for (std::size_t n = 0; n < all.size(); ++n)
    to += "<span><svg viewBox=\"0 0 14 14\">" + mark(n, 7, 7) + "</svg>" + all[n].name + "</span>";
  return to + "</p>\n";
}

}  // namespace demo
