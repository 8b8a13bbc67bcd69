// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   mask::expression e = mask::causal{};   e = e & mask::padding(lengths);   attention(kernel, normalizer, e.mask())
//
// A mask that a program composes at run time: one instance of an operator serves all masks. The host reads it.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/policies/mask/band.hpp>
#include <attune/policies/mask/block_sparse.hpp>
#include <attune/policies/mask/causal.hpp>
#include <attune/policies/mask/concepts.hpp>
#include <attune/policies/mask/documents.hpp>
#include <attune/policies/mask/none.hpp>
#include <attune/policies/mask/padding.hpp>
#include <attune/policies/mask/prefix.hpp>
#include <attune/policies/mask/ragged.hpp>
#include <attune/policies/mask/runtime.hpp>
#include <attune/policies/mask/sink_window.hpp>
#include <attune/policies/mask/sliding_window.hpp>
#include <attune/policies/mask/visible_table.hpp>

namespace attune::mask {

struct expression_node;

/// The mask policy of an expression: the last node of an array, which must outlive the mask. It gives the bits of the
/// same mask composed at compile time. Cost: a few branches per interval and node.
struct composed {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::intervals;
  static constexpr bool checks_shape = true;
  expression_node const* nodes = nullptr;  ///< every pair after its two nodes; the last node is the mask
  index_t count = 0;                       ///< number of nodes; 0: every key is visible

  key_interval next(mask_row const& r, index_t from) const;
  /// Throws attune::error on a device, on a node that names itself or a later one, and where a mask does not fit.
  void(check)(mask_shape const& s) const;

 private:
  /// The first interval of node n that ends after `from`, within [from, until).
  key_interval of(index_t n, mask_row const& r, index_t from, index_t until) const;
  /// Whether node n scans its keys one by one.
  bool scans(index_t n) const;
  /// The same as of() for keys of both nodes.
  key_interval common(index_t a, index_t b, mask_row const& r, index_t from, index_t until) const;
  /// The same for keys of at least one node.
  key_interval joined(index_t a, index_t b, mask_row const& r, index_t from, index_t until) const;
};

/// How a node of an expression combines two earlier nodes.
enum class combination { both, either };

/// A node of an expression: a mask, or a combination of two earlier nodes. ragged<composed> shows of each sequence the
/// keys that another expression shows, which must have no arrays.
struct expression_node {
  /// Two earlier nodes, by their index.
  struct pair {
    combination how;  ///< keys of both nodes, or of at least one of them
    index_t first,    ///< the index of one
        second;       ///< the index of the other
  };
  /// The mask, or the combination.
  std::variant<none, causal, causal_window, window, band, prefix, sink_window, padding, documents, ragged<>,
               ragged<composed>, block_sparse, runtime, visible_table, pair>
      is;
};

inline key_interval composed::next(mask_row const& r, index_t from) const {
  from = detail::at_least(from, 0);
  return count == 0 ? key_interval{from, r.keys} : of(count - 1, r, from, r.keys);
}
inline void(composed::check)(mask_shape const& s) const {
  if (s.memory == memory_kind::device)
    throw error("mask::composed", "memory", "a device", "the host: compose the mask at compile time");
  for (index_t n = 0; n < count; ++n)
    std::visit(
        [&]<class M>(M const& m) {
          if constexpr (std::is_same_v<M, expression_node::pair>) {
            if (m.first < 0 || m.first >= n || m.second < 0 || m.second >= n)
              throw error("mask::composed", attune::detail::text("node ", n),
                          attune::detail::text("the indices ", m.first, " and ", m.second),
                          attune::detail::text("two numbers in [0, ", n, ")"));
          } else {
            (mask::check)(m, s);
          }
        },
        nodes[n].is);
}
inline key_interval composed::of(index_t n, mask_row const& r, index_t from, index_t until) const {
  return std::visit(
      [&]<class M>(M const& m) -> key_interval {
        if constexpr (std::is_same_v<M, expression_node::pair>) {
          return m.how == combination::both ? common(m.first, m.second, r, from, until)
                                            : joined(m.first, m.second, r, from, until);
        } else if constexpr (M::form == mask_form::predicate) {
          return detail::first_run(
              from, [&](index_t at) { return key_interval{at, until}; }, [&](index_t j) { return m.visible(r, j); });
        } else {
          key_interval const k = mask::next(m, r, from);
          return {k.first, detail::at_most(k.last, until)};
        }
      },
      nodes[n].is);
}
inline bool composed::scans(index_t n) const {
  return std::visit(
      []<class M>(M const&) {
        if constexpr (std::is_same_v<M, expression_node::pair>)
          return false;
        else
          return M::form == mask_form::predicate;
      },
      nodes[n].is);
}
inline key_interval composed::common(index_t a, index_t b, mask_row const& r, index_t from, index_t until) const {
  bool const swapped = scans(a);  // a mask that scans looks only at what the other one shows
  index_t const first = swapped ? b : a, second = swapped ? a : b;
  for (;;) {
    key_interval const x = of(first, r, from, until);
    if (x.empty()) return {};
    if (key_interval const y = of(second, r, x.first, x.last); !y.empty()) return y;
    from = x.last;
  }
}
inline key_interval composed::joined(index_t first, index_t second, mask_row const& r, index_t from,
                                     index_t until) const {
  key_interval const a = of(first, r, from, until), b = of(second, r, from, until);
  if (a.empty()) return b;
  if (b.empty()) return a;
  key_interval u = a.first <= b.first ? a : b;
  for (bool grown = true; grown;) {  // the masks may extend the interval in turn
    grown = false;
    for (index_t const n : {first, second})
      if (key_interval const x = of(n, r, u.last, until); !x.empty() && x.first == u.last)
        u.last = x.last, grown = true;
  }
  return u;
}

/// Masks combined at run time; owns the nodes, not the arrays that masks point to. The masks of `expression_node` are
/// its leaves.
class expression {
 public:
  /// Every key is visible.
  expression() : nodes_{{none{}}} {}
  /// One mask.
  template <class M>
    requires MaskPolicy<M> && std::is_constructible_v<decltype(expression_node::is), M>
  expression(M const& m) : nodes_{{m}} {}

  /// The policy for an operator. The expression must outlive it and must not change.
  composed mask() const { return {nodes_.data(), index_t(nodes_.size())}; }

  /// Keys that both masks show.
  friend expression operator&(expression a, expression const& b) {
    return combined(std::move(a), b, combination::both);
  }
  /// Keys that at least one of the masks shows.
  friend expression operator|(expression a, expression const& b) {
    return combined(std::move(a), b, combination::either);
  }

 private:
  static expression combined(expression a, expression const& b, combination how) {
    index_t const first = index_t(a.nodes_.size());
    for (expression_node x : b.nodes_) {
      if (auto* const both = std::get_if<expression_node::pair>(&x.is)) both->first += first, both->second += first;
      a.nodes_.push_back(x);
    }
    a.nodes_.push_back({expression_node::pair{how, first - 1, index_t(a.nodes_.size()) - 1}});
    return a;
  }

  std::vector<expression_node> nodes_;
};

}  // namespace attune::mask
