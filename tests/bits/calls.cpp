// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Calls that neither the registry nor tests/pairs makes: saved rows, 16-bit gradients, caches in pages of 16 and 8 bits,
// folds, mixtures, and the tiles of `cuda` on emulated warps. A line for each of them.
#include "calls.hpp"

#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/exec/cuda/host/forward.hpp>
#include <attune/float8_cache.hpp>
#include <attune/testing/drawn_problem.hpp>
#include <attune/testing/gradient_check.hpp>

#include "hash.hpp"

namespace attune::bits {
namespace {

void line(std::string const& name, char const* call, hash const& h) {
  std::printf("%s %s %s\n", name.c_str(), call, h.text().c_str());
}
template <class T>
void add_all(hash& h, dense_gradients<T> const& g) {
  for (auto const& x : g.fields) h.add(x.values);
  for (auto const& x : g.parameters)
    for (auto const* part : {&x.values, &x.x, &x.weight, &x.bias}) h.add(part->values);
  for (auto const& x : g.tables) h.add(x.values.values);
}

/// Memory for the outputs of a call.
template <class Op, class S>
struct results {
  using number = arithmetic_t<S>;
  shape extents, rows;
  std::vector<S> out;
  std::vector<number> lse, ground_weight, threshold;

  explicit results(shape const& e)
      : extents(e), rows{e.batch, e.head, e.position, 1}, out(std::size_t(e.size()), S(0)),
        lse(std::size_t(rows.size()), number(0)), ground_weight(lse), threshold(lse) {}
  outputs<Op, S> views() {
    outputs<Op, S> to{.out = tensor<S>(out, extents)};
    if constexpr (Op::has_lse) to.lse = natural_lse(tensor<number>(lse, rows));
    if constexpr (Op::has_ground_weight) to.ground_weight = tensor<number>(ground_weight, rows);
    if constexpr (Op::has_threshold) to.threshold = tensor<number>(threshold, rows);
    return to;
  }
  void add_to(hash& h) const {
    for (S const& x : out) h.add(double(number(x)));
    h.add(lse), h.add(ground_weight), h.add(threshold);
  }
};

/// A random problem of an operator, in every storage type.
template <class Op>
struct drawn {
  testing::problem_extents const& e;
  testing::detail::normal_numbers random{20261128};
  testing::drawn_problem<Op> p{e, random};
  std::string name;
  Op op;

  shape out() const { return {e.batch, e.heads, e.queries, e.value_width}; }
  template <class S>
  std::vector<S> as(testing::detail::drawn_tensor const& x) const {
    std::vector<S> to;
    for (float const y : x.floats) to.push_back(S(y));
    return to;
  }
};

template <class T, class Op>
void saved_calls(drawn<Op> const& d) {
  using view = tensor<T const>;
  std::string const name = d.name + (sizeof(T) == 4 ? " cpu<float>" : " cpu<double>");
  cpu<T> const exec{serial{}};
  auto const in = d.p.template inputs<view>();
  hash h;
  results<Op, T> r(d.out());
  std::vector<T> saved(std::size_t(saved_size(d.op, in)));
  forward_and_save(exec, d.op, in, r.views(), std::span<T>(saved));
  h.add(saved);
  r.add_to(h);
  line(name, "forward_and_save", h);
  hash g;
  auto const rows = forward_and_save(exec, d.op, in, r.views());
  add_all(g, vjp(exec, d.op, in, rows, d.p.template cotangents<view>()));
  line(name, "vjp of saved rows", g);
}

template <storage_only S, class Op>
void narrow_gradients(drawn<Op> const& d, char const* storage) {
  std::array<std::vector<S>, field_count> narrow;
  for_each_field([&]<field F>() { narrow[std::size_t(F)] = d.template as<S>(d.p.of(F)); });
  auto const in = make_inputs<Op, tensor<S const>>(
      [&]<field F>() { return tensor<S const>(narrow[std::size_t(F)], d.p.of(F).extents); });
  cpu<S> const exec{serial{}};
  results<Op, S> r(d.out());
  std::vector<float> saved(std::size_t(saved_size(d.op, in)));
  forward_and_save(exec, d.op, in, r.views(), std::span<float>(saved));
  std::vector<S> const by = d.template as<S>(d.p.by_out());
  cotangents<Op, tensor<S const>> c;
  c.out = tensor<S const>(by, d.out());
  std::array<std::vector<S>, field_count> to;
  gradient_outputs<Op, S> wanted;
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F)) {
      to[std::size_t(F)].resize(std::size_t(d.p.of(F).extents.size()));
      wanted.of(F) = tensor<S>(to[std::size_t(F)], d.p.of(F).extents);
    }
  });
  vjp(exec, d.op, in, std::span<float const>(saved), c, wanted);
  hash h;
  r.add_to(h);
  h.add(saved);
  for (auto const& x : to)
    for (S const& y : x) h.add(double(float(y)));
  line(d.name, storage, h);
}

/// The keys as pages of 4, the last page first.
template <class S, class Op>
void paged_call(drawn<Op> const& d, char const* storage) {
  index_t const size = 4, each = d.e.keys / size, pages = each * d.e.batch;
  std::vector<std::int32_t> numbers;
  for (index_t n = 0; n < pages; ++n) numbers.push_back(std::int32_t(pages - 1 - n));
  std::array<std::vector<S>, field_count> memory;
  std::array<std::vector<float>, field_count> floats;
  std::array<shape, field_count> extents;
  for_each_field([&]<field F>() {
    auto const n = std::size_t(F);
    auto const& x = d.p.of(F);
    extents[n] = x.extents;
    floats[n] = x.floats;
    memory[n] = d.template as<S>(x);
    if (side_of(F) != input_side::key || !Op::uses(F)) return;
    shape const& from = x.extents;
    extents[n] = {pages, from.head, size, from.feature};
    tensor<S> const page(memory[n], extents[n]);
    tensor<float const> const whole(x.floats, from);
    for (index_t b = 0; b < from.batch; ++b)
      for (index_t h = 0; h < from.head; ++h)
        for (index_t j = 0; j < from.position; ++j)
          for (index_t f = 0; f < from.feature; ++f)
            page(numbers[std::size_t(b * each + j / size)], h, j % size, f) = S(whole(b, h, j, f));
  });
  hash h;
  page_table const table(numbers, d.e.batch);
  if constexpr (std::is_same_v<S, float8_e4m3fn>) {
    using coded = float8_view<float, float8_e4m3fn>;
    auto const in = make_inputs<Op, coded>([&]<field F>() {
      auto const n = std::size_t(F);
      if (side_of(F) != input_side::key) return coded(tensor<float const>(floats[n], extents[n]));
      return coded(tensor<float8_e4m3fn const>(memory[n], extents[n]), 1.f);
    });
    results<Op, float> r(d.out());
    decode(cpu_float8_cache<float8_e4m3fn>(cpu<float>{serial{}}), d.op, in, table, r.views());
    r.add_to(h);
  } else {
    auto const in = make_inputs<Op, tensor<S const>>(
        [&]<field F>() { return tensor<S const>(memory[std::size_t(F)], extents[std::size_t(F)]); });
    results<Op, S> r(d.out());
    decode(cpu<S>{serial{}}, d.op, in, table, r.views());
    r.add_to(h);
  }
  line(d.name, storage, h);
}

template <class E, class Op>
void warps(drawn<Op> const& d, char const* storage) {
  std::array<std::vector<E>, field_count> narrow;
  for_each_field([&]<field F>() { narrow[std::size_t(F)] = d.template as<E>(d.p.of(F)); });
  auto const in = make_inputs<Op, tensor<E const>>(
      [&]<field F>() { return tensor<E const>(narrow[std::size_t(F)], d.p.of(F).extents); });
  results<Op, E> r(d.out());
  std::vector<float> saved(std::size_t(saved_size(d.op, in)));
  using widths = exec_cuda::widths<64>;
  testing::forward_on_host_warps<widths>(d.op, in, r.views());
  hash h;
  r.add_to(h);
  testing::forward_and_save_on_host_warps<widths>(d.op, in, r.views(), std::span<float>(saved));
  r.add_to(h);
  h.add(saved);
  line(d.name, storage, h);
}

template <class T, class Op>
void composite(drawn<Op> const& d) {
  using view = tensor<T const>;
  cpu<T> const exec{serial{}};
  std::string const name = d.name + (sizeof(T) == 4 ? " cpu<float>" : " cpu<double>");
  results<Op, T> r(d.out());
  forward(exec, d.op, d.p.template inputs<view>(), r.views());
  hash h;
  r.add_to(h);
  line(name, "forward", h);
  hash g;
  add_all(g, vjp(exec, d.op, d.p.template inputs<view>(), d.p.template cotangents<view>()));
  line(name, "vjp", g);
}
template <class T, class Op>
void folded(drawn<Op> const& d) {
  composite<T>(d);
  saved_calls<T>(d);
  using view = tensor<T const>;
  cpu<T> const exec{serial{}};
  std::string const name = d.name + (sizeof(T) == 4 ? " cpu<float>" : " cpu<double>");
  auto const in = d.p.template inputs<view>();
  results<Op, T> r(d.out());
  decode(exec, d.op, in, r.views());
  hash h;
  r.add_to(h);
  line(name, "decode", h);
  auto const moving = make_inputs<Op, moving_tensor<T>>(
      [&]<field F>() { return moving_tensor<T>(d.p.of(F).template view<view>(), d.p.of(F).template view<view>()); });
  auto const moved = jvp(exec, d.op, moving);
  hash j;
  j.add(moved.out.values), j.add(moved.out_along.values);
  line(name, "jvp", j);
  if constexpr (std::tuple_size_v<decltype(Op::operators)> == 1) {
    finish(exec, d.op, in, accumulate(exec, d.op, in, {0, d.e.keys}), r.views());
    hash s;
    r.add_to(s);
    line(name, "states", s);
  }
}

testing::problem_extents const usual{.batch = 2,
                                     .heads = 4,
                                     .queries = 19,
                                     .keys = 72,
                                     .width = 64,
                                     .value_width = 64,
                                     .gate_width = 9,
                                     .key_heads = 2,
                                     .value_heads = 4},
    one_query{.batch = 2,
              .heads = 4,
              .queries = 1,
              .keys = 72,
              .width = 32,
              .value_width = 24,
              .key_heads = 2,
              .value_heads = 2};

template <class Op>
void operator_calls(std::string const& name, Op const& op) {
  drawn<Op> const d{.e = usual, .name = name, .op = op}, one{.e = one_query, .name = name, .op = op};
  saved_calls<float>(d);
  saved_calls<double>(d);
  narrow_gradients<bfloat16>(d, "bfloat16 gradients");
  narrow_gradients<float16>(d, "float16 gradients");
  if constexpr (offers_call<cpu<>, call_kind::decode, Op>) {
    paged_call<float>(one, "float pages");
    paged_call<bfloat16>(one, "bfloat16 pages");
    paged_call<float16>(one, "float16 pages");
    paged_call<float8_e4m3fn>(one, "float8 pages");
  }
}
template <class Op>
void warp_calls(std::string const& name, Op const& op) {
  drawn<Op> const d{.e = usual, .name = name, .op = op};
  warps<bfloat16>(d, "warps of bfloat16");
  warps<float>(d, "warps of float");
}
template <class Op>
void fold_calls(std::string const& name, Op const& op) {
  drawn<Op> const d{.e = usual, .name = name, .op = op};
  folded<float>(d);
  folded<double>(d);
  narrow_gradients<bfloat16>(d, "bfloat16 gradients");
  drawn<Op> const one{.e = one_query, .name = name, .op = op};
  paged_call<double>(one, "double pages");
  paged_call<bfloat16>(one, "bfloat16 pages");
}
template <class Op>
void mixture_calls(std::string const& name, Op const& op) {
  drawn<Op> const d{.e = usual, .name = name, .op = op};
  composite<float>(d);
  composite<double>(d);
}

}  // namespace

void print_calls() {
  auto const principled = principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{});
  auto const sparse = attention(kernel::dot_product{}, normalizer::entmax15{}, mask::causal{});
  auto const adjusted =
      attention(kernel::dot_product{}, normalizer::self_adjusted<normalizer::adjusted_form::product>{});
  operator_calls("softmax", softmax_attention(mask::causal{}));
  operator_calls("principled", principled);
  operator_calls("sparse", sparse);
  operator_calls("adjusted", adjusted);
  warp_calls("softmax", softmax_attention(mask::causal{}));
  warp_calls("principled", principled);
  warp_calls("sigmoid", attention(kernel::dot_product{}, normalizer::sigmoid{}, mask::causal_window{20}));
  warp_calls("adjusted", adjusted);
  std::vector<double> const weights{0.2, -0.4, 0.8, 0.1};
  fold_calls("fold of heads", fold(softmax_attention(mask::causal{}), {1.0, per_head(weights)}));
  fold_calls("fold of operators", fold({1.0, -0.3}, softmax_attention(mask::causal{}), principled));
  std::vector<index_t> const which{1, 0, 1, 0};
  mixture_calls("mixture", mixture(which, softmax_attention(mask::causal{}), sparse));
  mixture_calls("mixture of grounds", mixture(which, principled, softmax_attention()));
}

}  // namespace attune::bits
