// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   write_table<double>("reference", "scores", x, extents, get);   write_gradients<op_type, double>("reference", to, g)
//   vjp(exec, op, in, saved, d, gradient_outputs_of<op_type, float>(g))
//
// Results of attune as tensors of the caller: copied from memory of a function, or written by the executor.
#pragma once

#include <cstddef>

#include <attune/core/error.hpp>
#include <attune/exec/gradients.hpp>
#include <attune/interop/c_abi.h>
#include <attune/interop/c_arguments.hpp>

namespace attune::interop {

/// Writes the numbers get(b, h, i, d) to a tensor of the caller, if it is given. Throws unless it has these extents.
template <class E, class Get>
void write_table(char const* function, char const* name, attune_tensor const& x, shape const& wanted, Get const& get) {
  tensor<E> const to = view<E>(name, x);
  if (to.absent()) return;
  if (!(to.extents() == wanted)) throw error(function, name, to_string(to.extents()), to_string(wanted));
  for (index_t b = 0; b < wanted.batch; ++b)
    for (index_t h = 0; h < wanted.head; ++h)
      for (index_t i = 0; i < wanted.position; ++i)
        for (index_t d = 0; d < wanted.feature; ++d) to(b, h, i, d) = static_cast<E>(get(b, h, i, d));
}

/// Writes gradients to the tensors of E that the caller gives. Throws unless these have the extents of the gradients.
template <class Op, class E, class T>
void write_gradients(char const* function, attune_gradients const& to, dense_gradients<T> const& all) {
  auto const write = [&](char const* name, attune_tensor const& x, gradient_array<T> const& from) {
    write_table<E>(function, name, x, from.extents,
                   [&](index_t b, index_t h, index_t i, index_t d) { return from(b, h, i, d); });
  };
  std::size_t n = 0;
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F)) write(name_of(F), to.fields[n++], all.of(F));
  });
  for (n = 0; n < all.parameters.size(); ++n)
    write(all.parameters[n].path.c_str(), to.parameters[n], all.parameters[n].values);
  for (n = 0; n < all.tables.size(); ++n) write(all.tables[n].path.c_str(), to.tables[n], all.tables[n].values);
}

/// The tensors of the caller that gradients are written to.
template <class Op, class E>
gradient_outputs<Op, E> gradient_outputs_of(attune_gradients const& g) {
  using number = arithmetic_t<E>;
  gradient_outputs<Op, E> to;
  std::size_t n = 0;
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F)) to.of(F) = view<E>(name_of(F), g.fields[n++]);
  });
  n = 0;
  for (tensor<number>& x : to.parameters) x = view<number>("a parameter", g.parameters[n++]);
  n = 0;
  for (tensor<number>& x : to.tables) x = view<number>("a table", g.tables[n++]);
  return to;
}

}  // namespace attune::interop
