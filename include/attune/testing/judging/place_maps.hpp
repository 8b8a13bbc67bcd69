// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for (place_map const& m : place_maps({B, H, Lq, Dv}, "head", "query")) m.from({b, h, i, d})      "of the next head"
//
// The places to which a kernel may write right numbers by mistake.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/tensor.hpp>

namespace attune::testing::detail {

/// An element of a tensor.
struct element_place {
  index_t batch, head, row, feature;
};
/// Each element holds the number that belongs to another one.
struct place_map {
  std::string name;  ///< "of the next head"; of features: "with features exchanged by halves"
  std::function<element_place(element_place)> from;
  bool features = false;  ///< rows stay, features move
};

/// The usual mistakes. head: "head" or "key head"; row: "query" or "key".
inline std::vector<place_map> place_maps(shape const& e, std::string const& head, std::string const& row) {
  std::vector<place_map> all;
  auto const rows = [&](bool exists, std::string name, auto const& move) {
    if (exists) all.push_back({std::move(name), [=](element_place x) { return move(x), x; }, false});
  };
  index_t const B = e.batch, H = e.head, L = e.position, D = e.feature;
  std::string const rows_of = row == "query" ? "queries" : "keys";
  rows(H > 1, "of the next " + head, [=](element_place& x) { x.head = (x.head + 1) % H; });
  rows(H > 1, "of the " + head + " before", [=](element_place& x) { x.head = (x.head + H - 1) % H; });
  rows(H > 2, "of the " + head + "s in reverse order", [=](element_place& x) { x.head = H - 1 - x.head; });
  rows(B > 1, "of the next batch element", [=](element_place& x) { x.batch = (x.batch + 1) % B; });
  rows(L > 1, "of the next " + row, [=](element_place& x) { x.row = (std::min)(x.row + 1, L - 1); });
  rows(L > 1, "of the " + row + " before", [=](element_place& x) { x.row = (std::max<index_t>)(x.row - 1, 0); });
  rows(L > 2, "of the " + rows_of + " in reverse order", [=](element_place& x) { x.row = L - 1 - x.row; });
  rows(H > 1 && H % 2 == 0, "of " + head + "s exchanged in pairs", [=](element_place& x) { x.head ^= 1; });
  rows(B > 1 && B % 2 == 0, "of batch elements exchanged in pairs", [=](element_place& x) { x.batch ^= 1; });
  rows(L > 1, "of the first " + row + " in all rows", [=](element_place& x) { x.row = 0; });
  for (index_t n : {1, 2, 4, 8, 16, 32, 64, 128})
    rows(L >= 2 * n, attune::detail::text("with ", rows_of, " exchanged in groups of ", n), [=](element_place& x) {
      if ((x.row / (2 * n) + 1) * 2 * n <= L) x.row ^= n;
    });
  auto const features = [&](bool exists, std::string name, auto const& from) {
    if (exists) all.push_back({std::move(name), [=](element_place x) { return x.feature = from(x.feature), x; }, true});
  };
  bool const even = D > 1 && D % 2 == 0;
  features(D > 2, "with features in reverse order", [=](index_t d) { return D - 1 - d; });
  features(D > 2, "with features shifted by 1", [=](index_t d) { return (d + 1) % D; });
  features(D > 2, "with features shifted by -1", [=](index_t d) { return (d + D - 1) % D; });
  features(even, "with features exchanged by halves", [=](index_t d) { return (d + D / 2) % D; });
  features(even, "with features exchanged in pairs", [](index_t d) { return d ^ 1; });
  features(even, "with features interleaved from two halves", [=](index_t d) { return d % 2 * (D / 2) + d / 2; });
  features(even, "with features in another order: the even ones first",
           [=](index_t d) { return d < D / 2 ? 2 * d : 2 * (d - D / 2) + 1; });
  for (index_t n : {2, 4, 8, 16})
    features(D > n, attune::detail::text("with features shifted by ", n), [=](index_t d) { return (d + n) % D; });
  for (index_t n : {2, 4, 8, 16, 32})
    features(D % (2 * n) == 0, attune::detail::text("with features exchanged in groups of ", n),
             [=](index_t d) { return d ^ n; });
  if (L > 1 && L == D)
    all.push_back({"transposed, " + rows_of + " and features exchanged",
                   [](element_place x) { return std::swap(x.row, x.feature), x; }, true});
  return all;
}

}  // namespace attune::testing::detail
