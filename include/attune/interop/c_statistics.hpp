// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_C_MAKE(mine, attention(kernel::dot_product{}, normalizer::softmax{}, m))
//   ATTUNE_C_COMPANION(statistics, run_statistics<make_mine>)
//
// Statistics of an operator's rows and keys for other languages, as a separate library: c_abi.h, attune_statistics.
#pragma once

#include <optional>
#include <vector>

#include <attune/exec/cpu/forward.hpp>
#include <attune/exec/cpu/gradients.hpp>
#include <attune/interop/bound_call.hpp>
#include <attune/interop/c_library.hpp>

namespace attune::interop {

/// Writes numbers of (B, H, positions) to a tensor of the caller. Throws unless it has these extents.
template <class From, class To>
void write_numbers(char const* name, std::vector<From> const& from, shape const& wanted, attune_tensor const& x) {
  tensor<To> const to = view<To>(name, x);
  if (to.absent()) return;
  if (!(to.extents() == wanted)) throw error("statistics", name, to_string(to.extents()), to_string(wanted));
  std::size_t n = 0;
  for (index_t b = 0; b < wanted.batch; ++b)
    for (index_t h = 0; h < wanted.head; ++h)
      for (index_t i = 0; i < wanted.position; ++i) to(b, h, i, 0) = To(from[n++]);
}

/// attune_companion::run of statistics. More: attune_statistics.
template <class Make>
int run_statistics(attune_call const* c, void const* more, attune_text text) {
  return guarded(text, [&] {
    bound_call<Make> const call(*c);
    auto const& to = *static_cast<attune_statistics const*>(more);
    with_type(*c, [&]<class T>(T) {
      if constexpr (storage_only<T>) {
        throw error("statistics", "the element type", name_of_type(c->type), "float32 or float64");
      } else {
        cpu<T> const exec(c->threads);
        auto const in = call.template in<T>();
        shape const e = attune::detail::output_shape(in);
        std::vector<T> unread(std::size_t(e.size()));  // the forward pass finds what the rows are
        auto const saved = forward_and_save(exec, call.op, in, {.out = tensor<T>(unread.data(), e)});
        row_statistics<T> const s =
            attune::statistics(exec, call.op, in, saved,
                               {.entropy = to.entropy.given || to.effective_keys.given,
                                .columns = to.columns.given != 0,
                                .above = to.above.given ? std::optional<double>(to.threshold) : std::nullopt});
        shape const rows{s.extents.batch, s.extents.heads, s.extents.queries, 1};
        shape const keys{s.extents.batch, s.extents.heads, s.extents.keys, 1};
        auto const write = [&](char const* name, std::vector<T> const& from, attune_tensor const& x) {
          write_numbers<T, T>(name, from, rows, x);
        };
        write("highest_logit", s.highest_logit, to.highest_logit);
        write("mean_logit", s.mean_logit, to.mean_logit);
        write("highest_weight", s.highest_weight, to.highest_weight);
        write("mass", s.mass, to.mass);
        write("first_key", s.first_key, to.first_key);
        write("ground_weight", s.ground_weight, to.ground_weight);
        write("entropy", s.entropy, to.entropy);
        if (to.effective_keys.given) {
          std::vector<T> effective;
          for (index_t row = 0; row < index_t(s.mass.size()); ++row) effective.push_back(s.effective_keys(row));
          write("effective_keys", effective, to.effective_keys);
        }
        write_numbers<index_t, std::int64_t>("scored", s.scored, rows, to.scored);
        write_numbers<index_t, std::int64_t>("above", s.above, rows, to.above);
        write_numbers<T, T>("columns", s.columns, keys, to.columns);
      }
    });
  });
}

}  // namespace attune::interop
