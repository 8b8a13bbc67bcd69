// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "masks.hpp"

#include <doctest/doctest.h>

#include <attune/io/npy.hpp>
#include <attune/policies/mask/band.hpp>
#include <attune/policies/mask/causal.hpp>
#include <attune/policies/mask/combine.hpp>
#include <attune/policies/mask/documents.hpp>
#include <attune/policies/mask/padding.hpp>
#include <attune/policies/mask/prefix.hpp>
#include <attune/policies/mask/sink_window.hpp>
#include <attune/policies/mask/sliding_window.hpp>

#include "files.hpp"
#include "unit/io/files.hpp"

using namespace attune;
using tool::make_mask;

namespace {

mask_shape const square{2, 2, 5, 5}, wide{2, 2, 3, 5};

/// Whether words and policy show the same keys to every row.
template <class Mask>
bool same(std::vector<std::string> const& words, Mask const& m, mask_shape const& of) {
  index_t const offset = of.keys - of.queries;
  auto const made = make_mask(words, of, offset);
  mask::check(made.view, of);
  for (index_t b = 0; b < of.batch; ++b)
    for (index_t h = 0; h < of.heads; ++h)
      for (index_t i = 0; i < of.queries; ++i)
        for (index_t j = 0; j < of.keys; ++j) {
          mask_row const r{b, h, i, i + offset, of.queries, of.keys};
          if (mask::sees(made.view, r, j) != mask::sees(m, r, j)) return false;
        }
  return true;
}
std::string refused(std::string const& word, mask_shape const& of = square) {
  try {
    make_mask({word}, of, of.keys - of.queries);
  } catch (std::exception const& e) {
    return e.what();
  }
  return "";
}
bool says(std::string const& text, std::string const& part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE(text);
  return false;
}

}  // namespace

TEST_CASE("Masks in words are the library's masks") {
  for (auto const& of : {square, wide}) {
    CHECK(same({"causal"}, mask::causal{}, of));
    CHECK(same({"window=1:1"}, mask::window{1}, of));
    CHECK(same({"window=1:0"}, mask::causal_window{2}, of));
    CHECK(same({"window=-1:0"}, mask::causal{}, of));
    CHECK(same({"window=0:-1"}, mask::band{0, mask::band::no_limit}, of));
    CHECK(same({"prefix=3"}, mask::prefix{3}, of));
    CHECK(same({"sink_window=1:2"}, mask::sink_window{1, 2}, of));
    std::vector<index_t> const lengths{4, 0};
    CHECK(same({"padding=4,0"}, mask::padding(lengths), of));
    CHECK(same({"causal", "padding=4,0"}, mask::causal{} & mask::padding(lengths), of));
    CHECK(same({"sink_window=1:2", "padding=4,0"}, mask::sink_window{1, 2} & mask::padding(lengths), of));
  }
  CHECK(make_mask({"none"}, square, 0).view.hulls == nullptr);
  CHECK(make_mask({"causal"}, square, 0).visible.empty());  // no table for what is an interval
}

TEST_CASE("Masks from files") {
  io_tests::folder const folder;
  auto const at = [&](char const* name) { return (folder.path / name).string(); };
  io::write_npy(at("ids.npy"),
                {io::element_type::int64, {5}, io_tests::raw(std::vector<std::int64_t>{7, 7, 8, 7, 9}), "ids"});
  std::vector<index_t> const ids{7, 7, 8, 7, 9};
  CHECK(same({"documents=" + at("ids.npy")}, mask::documents(ids), square));
  CHECK(same({"documents=" + at("ids.npy"), "causal"}, mask::documents(ids) & mask::causal{}, square));
  CHECK(says(refused("documents=" + at("ids.npy"), wide), "of different number"));

  std::vector<unsigned char> table(2 * 5 * 5);
  for (std::size_t n = 0; n < table.size(); ++n) table[n] = n % 3 == 0;
  io::write_npy(at("table.npy"), {io::element_type::boolean, {2, 1, 5, 5}, table, "table"});
  mask::runtime m;
  m.visible = table.data();
  m.visible_shape = {2, 1, 5, 5};
  CHECK(same({"visible=" + at("table.npy")}, m, square));
  CHECK(same({"visible=" + at("table.npy"), "causal"}, m & mask::causal{}, square));
  CHECK(says(refused("visible=" + at("table.npy"), wide), "shape (2, 1, 5, 5); expected (1 or 2, 1 or 2, 3, 5)"));
  io::write_npy(at("floats.npy"), io::make_array<float>(std::vector<float>(25), {5, 5}));
  CHECK(says(refused("visible=" + at("floats.npy")), "expected integers or booleans"));
  table[0] = 2;
  io::write_npy(at("two.npy"), {io::element_type::uint8, {2, 1, 5, 5}, table, "table"});
  CHECK(says(refused("visible=" + at("two.npy")), "an entry 2; expected 0 and 1"));
  io::write_npy(at("lengths.npy"),
                {io::element_type::int32, {2}, io_tests::raw(std::vector<std::int32_t>{4, 0}), "lengths"});
  std::vector<index_t> const lengths{4, 0};
  CHECK(same({"padding=" + at("lengths.npy")}, mask::padding(lengths), wide));
}

TEST_CASE("Words that are no mask") {
  CHECK(says(refused("diagonal"), "--mask: the value 'diagonal'; expected one of causal, window=LEFT:RIGHT"));
  CHECK(says(refused("causal=1"), "--mask: the value 'causal=1'"));
  CHECK(says(refused("window"), "--mask: the value 'window'"));
  CHECK(says(refused("window=x:0"), "--mask window=x:0: the value 'x'; expected a whole number"));
  CHECK(says(refused("window=-2:0"), "the value '-2'; expected a number of at least 0, or -1 for no limit"));
  CHECK(says(refused("window=9"), "--mask: the value 'window=9'; expected window=LEFT:RIGHT"));
  CHECK(says(refused("causal_window=9"), "expected window=8:0, which are 9 keys with the query's own"));
  CHECK(says(refused("sink_window=4"), "sink_window=SINKS:WIDTH"));
  CHECK(says(refused("padding=1"), "lengths has 1 entries; expected 2"));
  CHECK(says(refused("padding=1,9"), "lengths[1] has the value 9"));
  CHECK(says(refused("window=99999999999999999999:0"), "expected a whole number"));
}
