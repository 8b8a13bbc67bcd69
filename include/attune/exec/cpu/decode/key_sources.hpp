// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   contiguous_keys   the caller's tensors
//   paged_keys        pages of a cache, found by a table
//   stored_keys       either, with 16 bits
//
// Where the decode path finds keys, values and all other inputs with a row per key. A source gives them block by block,
// as inputs in which key j is at position j. All other inputs are present for the whole call. Values come last:
// `values` belongs to the block that `block` returned, and is called after the keys were used.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include <attune/core/page_table.hpp>
#include <attune/exec/cpu/contraction/features.hpp>
#include <attune/exec/cpu/products/few_rows.hpp>
#include <attune/exec/cpu/products/widened.hpp>
#include <attune/exec/problem.hpp>

namespace attune::exec_cpu {

/// Keys [first, first + n) of a batch element, for query heads [head, last_head].
struct block_of_keys {
  index_t b, head, last_head, first, n;
};

/// The inputs as the caller gave them.
template <class Op, class E>
class contiguous_keys {
 public:
  using inputs_type = inputs<Op, tensor<E const>>;

  explicit contiguous_keys(inputs_type const& in) : in_(&in) {}

  /// The inputs outside the blocks: those without a row per key.
  inputs_type const& resident() const { return *in_; }
  /// The latest end of a block that begins with this key.
  index_t end(index_t) const { return (std::numeric_limits<index_t>::max)(); }
  inputs_type const& block(block_of_keys const&) { return *in_; }
  tensor<E const> const& values(block_of_keys const&) { return in_->v; }
  /// Rows [first, last) of field F, key head h, or fewer. For prefetch.
  template <field F>
  prefetch_range ahead(index_t b, index_t h, index_t first, index_t last) const {
    return {member<F>(*in_), b, h, first, last};
  }

 private:
  inputs_type const* in_;
};

/// Tensors with a row per key are (pages, heads, keys of a page, width). A block never crosses a page.
template <class Op, class E>
class paged_keys {
 public:
  using inputs_type = inputs<Op, tensor<E const>>;

  /// `pages`: the inputs as given. `in`: the same inputs with extents (batch, heads, keys, width).
  /// `position`: of the first key of the table.
  paged_keys(inputs_type const& pages, inputs_type const& in, page_table const& table, index_t position = 0)
      : pages_(&pages), in_(in), table_(table), size_(pages.v.extents().position), position_(position) {}

  inputs_type const& resident() const { return in_; }
  index_t end(index_t first) const { return position_ + ((first - position_) / size_ + 1) * size_; }
  inputs_type const& block(block_of_keys const& rows) {
    index_t const n = (rows.first - position_) / size_, page = table_(rows.b, n);
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F) && side_of(F) == input_side::key) {
        auto const& x = member<F>(*pages_);
        strides steps = x.steps();
        steps.batch = 0;
        auto& to = member<F>(in_);
        to = tensor<E const>(x.row(page, 0, 0) - (position_ + n * size_) * steps.position, to.extents(), steps);
      }
    });
    return in_;
  }
  tensor<E const> const& values(block_of_keys const&) { return in_.v; }
  template <field F>
  prefetch_range ahead(index_t b, index_t h, index_t first, index_t last) const {
    if (first >= last) return {};
    index_t const n = (first - position_) / size_, page = table_(b, n), begin = position_ + n * size_;
    if (page < 0 || page >= pages_->v.extents().batch) return {};  // no query sees it
    return {member<F>(*pages_), page, h, first - begin, (std::min)(last - begin, size_)};
  }

 private:
  inputs_type const* pages_;
  inputs_type in_;
  page_table table_;
  index_t size_, position_;
};

/// Inputs as floats, except for rows of features, which kernels read from `stored`.
template <class Op, class E>
struct stored_block : inputs<Op, tensor<float const>> {
  inputs<Op, tensor<E const>> const* stored = nullptr;
};

/// The 16-bit rows of another source: unchanged where contractions read rows of features, otherwise as floats.
template <class Op, class E, class Base>
class stored_keys {
 public:
  using inputs_type = inputs<Op, tensor<float const>>;

  /// `resident`: the inputs without a row per key, as floats, and the extents of the others. Allocates room for blocks
  /// of `most` keys.
  stored_keys(Base const& base, inputs_type const& resident, problem_shape const& p, index_t most)
      : base_(base), in_{resident}, p_(&p) {
    for_each_field([&]<field F>() {
      if constexpr (is_widened<F>) rows_[index_of(F)].resize(std::size_t(most * p.width_of(F) * p.heads_of(F)));
    });
  }

  inputs_type const& resident() const { return in_; }
  index_t end(index_t first) const { return base_.end(first); }
  stored_block<Op, E> const& block(block_of_keys const& rows) {
    in_.stored = &base_.block(rows);
    for_each_field([&]<field F>() {
      if constexpr (is_widened<F>) member<F>(in_) = floats<F>(member<F>(*in_.stored), rows);
    });
    return in_;
  }
  tensor<E const> const& values(block_of_keys const& rows) { return base_.values(rows); }
  template <field F>
  prefetch_range ahead(index_t b, index_t h, index_t first, index_t last) const {
    return base_.template ahead<F>(b, h, first, last);
  }

 private:
  template <field F>
  static constexpr bool is_widened = side_of(F) == input_side::key && []<class... C>(contraction::list<C...>) {
    return (false || ... || (C::uses(F) && !reads_key_rows<C>));
  }(typename Op::contractions{});
  static constexpr std::size_t index_of(field f) { return static_cast<std::size_t>(f); }

  template <field F>
  tensor<float const> floats(tensor<E const> const& from, block_of_keys const& rows) {
    index_t const heads = p_->heads_of(F);
    return widened(rows_[index_of(F)].data(), from, rows.b, p_->group(rows.head, heads),
                   p_->group(rows.last_head, heads), rows.first, rows.n);
  }

  Base base_;
  stored_block<Op, E> in_;
  problem_shape const* p_;
  std::array<std::vector<float>, field_count> rows_;
};

}  // namespace attune::exec_cpu
