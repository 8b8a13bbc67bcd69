// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <attune/interop/device/mask.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

using namespace interop;

/// A node without arrays.
attune_mask_node node(int kind, std::int64_t a = 0, std::int64_t b = 0) { return {{}, {}, a, b, kind}; }
/// A node with one or two arrays of numbers.
attune_mask_node node(int kind, std::vector<std::int64_t>& x, std::vector<std::int64_t>* y = nullptr,
                      std::int64_t a = 0) {
  auto const all = [](std::vector<std::int64_t>& v) {
    auto const n = std::int64_t(v.size());
    return attune_tensor{v.data(), {1, 1, 1, n}, {n, n, n, 1}, attune_int64, 1};
  };
  return {all(x), y ? all(*y) : attune_tensor{}, a, 0, kind};
}

/// The keys that each of 6 queries sees of 6, as text: "100000 110000 ...".
template <class Form>
std::string seen(std::vector<attune_mask_node> const& nodes) {
  attune_call call{};
  call.mask = nodes.data();
  call.mask_count = std::int64_t(nodes.size());
  std::string all;
  auto const m = device_call_mask<Form>(call).mask();
  static_assert(MaskPolicy<std::remove_const_t<decltype(m)>>);
  for (index_t i = 0; i < 6; ++i, all += ' ')
    for (index_t j = 0; j < 6; ++j) all += mask::sees(m, mask_row{0, 0, i, i, 6, 6}, j) ? '1' : '0';
  return all;
}
/// What a form says about nodes that it does not read.
template <class Form>
std::string refusal(std::vector<attune_mask_node> const& nodes) {
  return error_of([&] { static_cast<void>(seen<Form>(nodes)); });
}

using on_device::band;
constexpr char causal_keys[] = "100000 110000 111000 111100 111110 111111 ";

TEST_CASE("masks on a device: bands, and bands of the same end, are one interval") {
  CHECK(seen<band>({}) == "111111 111111 111111 111111 111111 111111 ");
  CHECK(seen<band>({node(attune_mask_causal)}) == causal_keys);
  CHECK(seen<band>({node(attune_mask_causal), node(attune_mask_band, 1, -1), node(attune_mask_both, 0, 1)}) ==
        "100000 110000 011000 001100 000110 000011 ");
  CHECK(seen<band>({node(attune_mask_none), node(attune_mask_band_from_start, 0, 1), node(attune_mask_both, 0, 1)}) ==
        "110000 011000 001100 000110 000011 000001 ");
  CHECK(refusal<band>(
            {node(attune_mask_band, 1, 1), node(attune_mask_band_from_start, 1, 1), node(attune_mask_both, 0, 1)}) ==
        "attune::call: the mask has windows that count from different ends, in one band; expected both<band, band>");
}
TEST_CASE("masks on a device: lengths, documents and packed sequences") {
  std::vector<std::int64_t> lengths{4}, ids{7, 7, 3, 3, 3, 7}, ends{0, 2, 2, 6};
  using padded = on_device::both<band, on_device::one<mask::padding>>;
  CHECK(seen<padded>({node(attune_mask_causal), node(attune_mask_padding, lengths), node(attune_mask_both, 0, 1)}) ==
        "100000 110000 111000 111100 111100 111100 ");
  CHECK(seen<on_device::one<mask::documents>>({node(attune_mask_documents, ids, &ids)}) ==
        "110001 110001 001110 001110 001110 110001 ");
  CHECK(seen<on_device::ragged>({node(attune_mask_ragged, ends, &ends)}) ==
        "110000 110000 001111 001111 001111 001111 ");
  using within = on_device::ragged_within<band>;
  CHECK(seen<within>({node(attune_mask_causal), node(attune_mask_ragged_within, ends, &ends, 0)}) ==
        "100000 110000 001000 001100 001110 001111 ");
  static_assert(within::policy::form == mask_form::interval);
}
TEST_CASE("masks on a device: masks of one node, and either of two") {
  using either = on_device::either<on_device::one<mask::prefix>, on_device::one<mask::sink_window>>;
  CHECK(seen<either>({node(attune_mask_prefix, 2), node(attune_mask_sink_window, 1, 1),
                      node(attune_mask_either, 0, 1)}) == "110000 110000 111000 111100 111110 111111 ");
  unsigned char table[6][6] = {{1}, {0, 1}, {0, 0, 1}, {}, {1, 1}, {0, 0, 0, 0, 0, 1}};
  attune_mask_node shown = node(attune_mask_visible);
  shown.x = {table, {1, 1, 6, 6}, {36, 36, 6, 1}, attune_bytes, 1};
  CHECK(seen<on_device::one<mask::visible_table>>({shown}) == "100000 010000 001000 000000 110000 000001 ");
  unsigned char blocks[2][3] = {{1, 0, 1}, {0, 1, 0}};
  attune_mask_node sparse = node(attune_mask_block_sparse, 3, 2);
  sparse.x = {blocks, {1, 1, 2, 3}, {6, 6, 3, 1}, attune_bytes, 1};
  CHECK(seen<on_device::one<mask::block_sparse>>({sparse}) == "110011 110011 110011 001100 001100 001100 ");
}
TEST_CASE("masks on a device: nodes of another form are refused") {
  auto const refused = [](std::string const& text, char const* part) { return text.find(part) != std::string::npos; };
  CHECK(refused(refusal<band>({node(attune_mask_prefix, 2)}), "the kind 4 on a device; expected full, causal"));
  CHECK(refused(refusal<on_device::one<mask::padding>>({node(attune_mask_causal)}), "the mask that this library"));
  CHECK(refused(refusal<on_device::ragged>({node(attune_mask_causal)}), "sequences that follow one another"));
  CHECK(refused(refusal<on_device::ragged_within<band>>({node(attune_mask_causal)}), "a mask of each sequence"));
  CHECK(refused(refusal<on_device::both<band, band>>({node(attune_mask_causal)}), "two masks combined by &"));
  CHECK(refused(refusal<on_device::either<band, band>>({node(attune_mask_causal)}), "two masks combined by |"));
  CHECK(refused(refusal<on_device::both<band, band>>({node(attune_mask_both, 0, 5)}), "an earlier node"));
  CHECK(refused(refusal<on_device::one<mask::padding>>({}), "no value; expected the mask that this library is for"));
}

}  // namespace
}  // namespace attune::test
