// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   regions all;   int const out = all.add("", {B, H, Lq, 1}, "query", "head");   all.of(out, b, h, i, ids)
//   all.words({ids})                                                              "in heads 3, 7..9"
//
// Parts of tensors that a verdict looks at one by one: each head, each batch element, blocks of positions in two sizes,
// and the halves of tiles of 8 to 64 positions. A defect of one part is diluted in a statistic of all.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/tensor.hpp>
#include <attune/testing/judging/evidence/index_words.hpp>

namespace attune::testing::detail {

/// Regions of the rows (batch, head, position) of one or more tensors. Region 0 has all rows.
class regions {
 public:
  /// How a tensor is divided. Regions of one kind do not overlap.
  enum class kind { all, tensor, batch, head, block, fine, tile8, tile16, tile32, tile64 };
  static constexpr int kinds = 10;
  static constexpr index_t most_blocks = 12, fine_per_block = 4;

  /// The positions of a block: a power of two, as tiles have.
  static constexpr index_t block_of(index_t positions, kind by = kind::block) {
    index_t size = 1;
    while (size * most_blocks < positions) size *= 2;
    return by == kind::block ? size : (std::max<index_t>)(1, size / fine_per_block);
  }
  /// Whether regions of this kind are ranges of positions.
  static constexpr bool is_range(kind by) { return by == kind::block || by == kind::fine; }

  /// One region.
  struct part {
    int tensor;
    kind by;
    index_t member;  ///< batch element, head, block, or half of a tile
  };

  regions() : parts_{{0, kind::all, 0}} {}

  /// Adds a tensor. name: in front of the words ("dk"), or "". position: "query" or "key"; head: "head" or
  /// "key head". Returns its number.
  int add(std::string name, shape const& rows, char const* position, char const* head) {
    tensor_place t{
        std::move(name), rows, position, head, block_of(rows.position), block_of(rows.position, kind::fine), {}};
    int const number = int(tensors_.size());
    auto const divide = [&](kind by, index_t members, bool useful) {
      t.first[std::size_t(by)] = useful ? int(parts_.size()) : -1;
      for (index_t n = 0; n < members && useful; ++n) parts_.push_back({number, by, n});
    };
    std::fill(std::begin(t.first), std::end(t.first), -1);
    divide(kind::tensor, 1, true);
    divide(kind::batch, rows.batch, rows.batch > 1);
    divide(kind::head, rows.head, rows.head > 1);
    index_t const size = block_of(rows.position), fine = block_of(rows.position, kind::fine);
    divide(kind::block, (rows.position + size - 1) / size, rows.position > 1);
    divide(kind::fine, (rows.position + fine - 1) / fine, fine < size);
    for (int n = 0; n < 4; ++n) {
      index_t const tile = index_t(8) << n;
      divide(kind(int(kind::tile8) + n), 2, rows.position >= tile);
    }
    tensors_.push_back(std::move(t));
    return number;
  }
  /// Whether a tensor's positions are keys.
  bool is_of_keys(int tensor) const { return tensors_[std::size_t(tensor)].position == std::string("key"); }
  /// The number of regions.
  int count() const { return int(parts_.size()); }
  /// A region.
  part const& at(int id) const { return parts_[std::size_t(id)]; }
  /// Appends the regions that contain a row.
  void of(int tensor, index_t b, index_t h, index_t i, std::vector<int>& ids) const {
    tensor_place const& t = tensors_[std::size_t(tensor)];
    auto const add = [&](kind by, index_t member) {
      if (t.first[std::size_t(by)] >= 0) ids.push_back(t.first[std::size_t(by)] + int(member));
    };
    ids.push_back(0);
    add(kind::tensor, 0);
    add(kind::batch, b);
    add(kind::head, h);
    add(kind::block, i / t.block);
    add(kind::fine, i / t.fine);
    for (int n = 0; n < 4; ++n) {
      index_t const tile = index_t(8) << n;
      add(kind(int(kind::tile8) + n), 2 * (i % tile) / tile);
    }
  }
  /// "head", "batch element", "block of 8 queries": of batch elements, heads and blocks.
  std::string kind_in_words(int id) const {
    tensor_place const& t = tensors_[std::size_t(at(id).tensor)];
    if (at(id).by == kind::batch) return "batch element";
    if (at(id).by == kind::head) return t.head;
    index_t const size = at(id).by == kind::fine ? t.fine : t.block;
    bool const queries = t.position == std::string("query");
    return attune::detail::text("block of ", size,
                                queries ? (size == 1 ? " query" : " queries") : (size == 1 ? " key" : " keys"));
  }
  /// The words for some regions: "in head 3"; "" for all. They must be of one kind.
  std::string words(std::vector<int> const& ids) const {
    std::string all;
    for (int n = 0; n < int(tensors_.size()); ++n) {
      std::vector<int> of;
      for (int id : ids)
        if (at(id).tensor == n) of.push_back(id);
      std::string const one = words_of_tensor(of);
      if (!one.empty()) all += (all.empty() ? "" : " and ") + one;
    }
    return all;
  }

 private:
  std::string words_of_tensor(std::vector<int> const& ids) const {
    if (ids.empty() || ids.front() == 0) return "";
    part const& one = at(ids.front());
    tensor_place const& t = tensors_[std::size_t(one.tensor)];
    std::string const of = t.name.empty() ? "" : " of " + t.name;
    auto const listed = [&](char const* what, index_t members) {
      std::vector<bool> has(std::size_t(members), false);
      for (int id : ids) has[std::size_t(at(id).member)] = true;
      std::string const which = testing::detail::ranges(has.size(), [&](std::size_t n) { return has[n]; });
      return "in " + std::string(what) + (ids.size() > 1 ? "s " : " ") + which + of;
    };
    switch (one.by) {
      case kind::all:
        return "";
      case kind::tensor:
        return t.name.empty() ? "" : "in " + t.name;
      case kind::batch:
        return listed("batch element", t.rows.batch);
      case kind::head:
        return listed(t.head, t.rows.head);
      case kind::block:
      case kind::fine: {
        index_t const size = one.by == kind::fine ? t.fine : t.block;
        std::vector<bool> has(std::size_t(t.rows.position), false);
        for (int id : ids)
          for (index_t i = at(id).member * size; i < (std::min)((at(id).member + 1) * size, t.rows.position); ++i)
            has[std::size_t(i)] = true;
        return "in " + std::string(t.position == std::string("query") ? "queries" : "keys") + " " +
               testing::detail::ranges(has.size(), [&](std::size_t n) { return has[n]; }) + of;
      }
      default: {
        index_t const tile = index_t(8) << (int(one.by) - int(kind::tile8));
        if (ids.size() > 1) return "";
        return attune::detail::text("in each ", t.position, " i with i mod ", tile, " in ", one.member * tile / 2, "..",
                                    (one.member + 1) * tile / 2 - 1, of);
      }
    }
  }

  struct tensor_place {
    std::string name;
    shape rows;
    char const *position, *head;
    index_t block, fine;  ///< positions of a block
    int first[kinds];     ///< the first region of each kind; -1: none
  };
  std::vector<tensor_place> tensors_;
  std::vector<part> parts_;
};

}  // namespace attune::testing::detail
