// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "pictures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace attune::tool {
namespace {

constexpr std::size_t row_limit = 64, column_limit = 128;
constexpr double decades_above = 3;  ///< the scale ends at 1,000 bounds
constexpr int picture_width = 640, left = 64, top = 44;

template <class... Arguments>
std::string text(char const* format, Arguments... arguments) {
  char line[320];
  std::snprintf(line, sizeof line, format, arguments...);
  return line;
}

bool is_worse(double a, double b) { return std::isnan(a) || (!std::isnan(b) && a > b); }

std::string colour_of(double ratio) {
  if (!std::isfinite(ratio)) return "#000";
  if (ratio <= 1) return text("hsl(210,20%%,%.0f%%)", 96 - 26 * std::sqrt(std::fmax(ratio, 0)));
  double const x = std::fmin(std::log10(ratio) / decades_above, 1);
  return text("hsl(%.0f,95%%,%.0f%%)", 52 * (1 - x), 58 - 14 * x);
}

template <class Row, class Column>
grid worst_of(testing::worst_element const& e, std::size_t rows, std::size_t columns, Row const& row,
              Column const& column) {
  grid g{rows, columns, std::vector<double>(rows * columns, 0)};
  shape const& x = e.extents;
  for (std::size_t n = 0; n < e.ratios.size(); ++n) {
    index_t const k = index_t(n), d = k % x.feature, i = k / x.feature % x.position, h = k / (x.feature * x.position);
    double& to = g.values[std::size_t(row(h, i)) * columns + std::size_t(column(i, d))];
    if (is_worse(e.ratios[n], to)) to = e.ratios[n];
  }
  return g;
}

}  // namespace

std::string escaped(std::string const& raw) {
  std::string to;
  for (char const c : raw)
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
  return to;
}

grid by_head_and_position(testing::worst_element const& e) {
  return worst_of(
      e, std::size_t(e.extents.batch * e.extents.head), std::size_t(e.extents.position),
      [](index_t h, index_t) { return h; }, [](index_t i, index_t) { return i; });
}
grid by_position_and_feature(testing::worst_element const& e) {
  return worst_of(
      e, std::size_t(e.extents.position), std::size_t(e.extents.feature), [](index_t, index_t i) { return i; },
      [](index_t, index_t d) { return d; });
}

grid merged(grid const& g, std::size_t rows, std::size_t columns) {
  auto const per = [](std::size_t n, std::size_t limit) { return std::max<std::size_t>(1, (n + limit - 1) / limit); };
  std::size_t const down = per(g.rows, rows), across = per(g.columns, columns);
  grid to{(g.rows + down - 1) / down, (g.columns + across - 1) / across, {}};
  to.values.assign(to.rows * to.columns, 0);
  for (std::size_t r = 0; r < g.rows; ++r)
    for (std::size_t c = 0; c < g.columns; ++c) {
      double& x = to.values[r / down * to.columns + c / across];
      if (is_worse(g.values[r * g.columns + c], x)) x = g.values[r * g.columns + c];
    }
  return to;
}

std::string heat_map(grid const& all, std::string const& title, std::string const& down, std::string const& across) {
  if (all.values.empty()) return "";
  grid const g = merged(all, row_limit, column_limit);
  double const width = double(picture_width - left) / double(g.columns),
               height = std::clamp(360. / double(g.rows), 3., 18.), bottom = top + height * double(g.rows);
  std::string to = text("<svg class=\"heat\" viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"%s\">", picture_width,
                        bottom + 22, escaped(title).c_str());
  to += text("<text x=\"%d\" y=\"14\" class=\"title\">%s</text>", left, escaped(title).c_str());
  to += text("<text x=\"%d\" y=\"%.0f\" class=\"axis\">0</text>", left, bottom + 14);
  to += text("<text x=\"%d\" y=\"%.0f\" class=\"axis end\">%s %zu</text>", picture_width, bottom + 14,
             escaped(across).c_str(), all.columns - 1);
  to += text("<text x=\"%d\" y=\"%d\" class=\"axis end\">%s 0</text>", left - 4, top + 9, escaped(down).c_str());
  if (all.rows > 1)
    to += text("<text x=\"%d\" y=\"%.0f\" class=\"axis end\">%zu</text>", left - 4, bottom, all.rows - 1);
  for (std::size_t r = 0; r < g.rows; ++r)
    for (std::size_t c = 0; c < g.columns; ++c)
      to += text("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>%.3g</title></rect>",
                 left + width * double(c), top + height * double(r), width + 0.2, height + 0.2,
                 colour_of(g.values[r * g.columns + c]).c_str(), g.values[r * g.columns + c]);
  return to + "</svg>\n";
}

std::string bars(std::vector<double> const& values, std::string const& title) {
  if (values.empty()) return "";
  constexpr int height = 120, middle = top + height / 2;
  std::string to = text("<svg class=\"heat\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">", picture_width,
                        top + height + 22, escaped(title).c_str());
  to += text("<text x=\"%d\" y=\"14\" class=\"title\">%s</text>", left, escaped(title).c_str());
  char const* const marks[] = {"twice", "right", "missing"};
  for (int n = 0; n < 3; ++n)
    to += text("<text x=\"%d\" y=\"%d\" class=\"axis end\">%s</text><path d=\"M%d %dH%d\" class=\"line\"/>", left - 4,
               top + n * height / 2 + 4, marks[n], left, top + n * height / 2, picture_width);
  double const width = double(picture_width - left) / double(values.size());
  for (std::size_t n = 0; n < values.size(); ++n) {
    double const x = std::isfinite(values[n]) ? std::clamp(values[n], -1.2, 1.2) : 0, tall = std::fabs(x) * height / 2;
    to += text(
        "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"bar\"><title>key %zu: %+.3g</title></rect>",
        left + width * double(n), x > 0 ? middle - tall : double(middle), std::fmax(0.9 * width, 0.5), tall, n,
        values[n]);
  }
  to += text("<text x=\"%d\" y=\"%d\" class=\"axis\">0</text><text x=\"%d\" y=\"%d\" class=\"axis end\">key %zu</text>",
             left, top + height + 16, picture_width, top + height + 16, values.size() - 1);
  return to + "</svg>\n";
}

}  // namespace attune::tool
