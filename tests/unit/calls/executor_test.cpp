// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The table of an executor, and a new executor: the CPU behind a log.
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/calls/executor.hpp>
#include <attune/testing/drawn_problem.hpp>

#include "../check.hpp"

namespace attune::test {

namespace logging {
struct engine {};
}  // namespace logging

/// cpu<T>, whose calls of rows are logged.
template <class T>
struct logged_cpu {
  using value_type = T;
  using view = tensor<T const>;
  using engine = logging::engine;
  using instead = cpu<T>;
  static constexpr bool reads_saved_rows = true;
  static constexpr call_table offers{
      .forward = every_operator, .forward_and_save = without(every_operator, &offer::mixtures), .vjp = every_operator};
  cpu<T> inner;
  std::vector<std::string>* log;
};

namespace logging {

template <class T, class Op>
void forward_rows(engine, logged_cpu<T> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                  problem_shape const& p, outputs<Op, T> const& out, attune::detail::heads_served const& serves) {
  exec.log->push_back("forward");
  forward_rows(exec_cpu::engine{}, exec.inner, op, in, p, out, serves);
}
template <class T, class Op, class Saved>
void save_rows(engine, logged_cpu<T> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
               problem_shape const& p, outputs<Op, T> const* out, Saved& rows,
               attune::detail::heads_served const& serves) {
  exec.log->push_back("save");
  save_rows(exec_cpu::engine{}, exec.inner, op, in, p, out, rows, serves);
}
template <class T, class Op>
void vjp_rows(engine, logged_cpu<T> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
              problem_shape const& p, attune::detail::saved_view<T const, Op> const& saved,
              cotangents<Op, tensor<T const>> const& d, attune::detail::gradient_views<T> const& to,
              attune::detail::heads_served const& serves) {
  exec.log->push_back("vjp");
  vjp_rows(exec_cpu::engine{}, exec.inner, op, in, p, saved, d, to, serves);
}
template <class T>
std::vector<T> numbers_for(engine, logged_cpu<T> const&, index_t n, T) {
  return std::vector<T>(std::size_t(n));
}
template <class T, Fold Op>
void add_terms(engine, logged_cpu<T> const& exec, Op const& folded, attune::detail::fold_layout<Op> const& layout,
               T const* terms, tensor<T> const& out) {
  exec.log->push_back("add");
  add_terms(exec_cpu::engine{}, exec.inner, folded, layout, terms, out);
}
template <class T, Fold Op>
std::vector<double> spread_terms(engine, logged_cpu<T> const& exec, Op const& folded,
                                 attune::detail::fold_layout<Op> const& layout, T const* terms,
                                 tensor<T const> const& by_out, T* spread) {
  exec.log->push_back("spread");
  return spread_terms(exec_cpu::engine{}, exec.inner, folded, layout, terms, by_out, spread);
}
template <class T>
void fill_rows(engine, logged_cpu<T> const& exec, problem_shape const& p, attune::detail::heads_served const& serves,
               tensor<T> const& to, T value) {
  fill_rows(exec_cpu::engine{}, exec.inner, p, serves, to, value);
}

}  // namespace logging

namespace {

using texts = std::vector<std::string>;
using view = tensor<double const>;

template <class Op>
struct problem {
  testing::problem_extents extents{.batch = 2, .heads = 2, .queries = 3, .keys = 5, .width = 4, .value_width = 3};
  testing::detail::normal_numbers random{7};
  testing::drawn_problem<Op> drawn{extents, random};
  shape out{2, 2, 3, 3};
};
template <class Op>
auto outputs_of(std::vector<double>& memory, shape const& e) {
  memory.resize(std::size_t(e.size()));
  return outputs<Op, double>{.out = tensor<double>(memory, e)};
}
std::vector<double> all_of(dense_gradients<double> const& g) {
  std::vector<double> to;
  for (auto const& x : g.fields) to.insert(to.end(), x.values.begin(), x.values.end());
  for (auto const& x : g.parameters) to.insert(to.end(), x.values.values.begin(), x.values.values.end());
  return to;
}

/// Every call of the logged executor has the bits of the CPU's.
template <class Op>
void check_bits(Op const& op, texts const& of_forward, texts const& of_vjp) {
  problem<Op> const p;
  texts log;
  logged_cpu<double> const exec{cpu<double>{serial{}}, &log};
  std::vector<double> got, expected;
  auto const in = p.drawn.template inputs<view>();
  forward(exec, op, in, outputs_of<Op>(got, p.out));
  forward(cpu<double>{serial{}}, op, in, outputs_of<Op>(expected, p.out));
  CHECK(got == expected);
  CHECK(log == of_forward);
  log.clear();
  auto const by = p.drawn.template cotangents<view>();
  CHECK(all_of(vjp(exec, op, in, by)) == all_of(vjp(cpu<double>{serial{}}, op, in, by)));
  CHECK(log == of_vjp);
}

TEST_CASE("executor: an engine of a few functions has every call of its table") {
  auto const plain = softmax_attention(mask::causal{});
  check_bits(plain, {"forward"}, {"save", "vjp"});
  check_bits(fold(plain, {1.0, -0.5}), {"forward", "add"}, {"save", "spread", "vjp"});
  std::vector<index_t> const which{1, 0};
  check_bits(mixture(which, plain, sparsemax_attention()), {"forward", "forward"}, {"save", "vjp", "save", "vjp"});
}
TEST_CASE("executor: saved rows and gradients in the caller's memory follow") {
  auto const op = softmax_attention();
  using Op = std::remove_const_t<decltype(op)>;
  problem<Op> const p;
  texts log;
  logged_cpu<double> const exec{cpu<double>{serial{}}, &log};
  auto const in = p.drawn.inputs<view>();
  std::vector<double> out, saved(std::size_t(saved_size(op, in))), dq(std::size_t(p.drawn.of(field::q).extents.size()));
  forward_and_save(exec, op, in, outputs_of<Op>(out, p.out), std::span<double>(saved));
  gradient_outputs<Op, double> to;
  to.of(field::q) = tensor<double>(dq, p.drawn.of(field::q).extents);
  vjp(exec, op, in, std::span<double const>(saved), p.drawn.cotangents<view>(), to);
  CHECK(dq == vjp(cpu<double>{serial{}}, op, in, p.drawn.cotangents<view>()).of(field::q).values);
  CHECK(log == texts{"save", "vjp"});
}
TEST_CASE("executor: the table knows operators, folds and mixtures") {
  using softmax = decltype(softmax_attention());
  using sparse = decltype(sparsemax_attention());
  using scores = decltype(attention(kernel::given_scores{}));
  using sums = decltype(fold(softmax_attention(), {1.0, 2.0}));
  CHECK(Executor<cpu<>>);
  CHECK(offers_call<cpu<>, call_kind::decode, softmax>);
  CHECK(offers_call<cpu<>, call_kind::decode, sums>);
  CHECK(!offers_call<cpu<>, call_kind::decode, sparse>);
  CHECK(!offers_call<cpu<>, call_kind::decode, mixture_operator<softmax, softmax>>);
  CHECK(offers_call<cpu<>, call_kind::vjp, mixture_operator<softmax, sparse>>);
  CHECK(!offers_call<cpu<>, call_kind::jvp, sparse>);
  CHECK(offers_call<cpu<>, call_kind::forward, scores>);
  CHECK(!offers_call<cpu<bfloat16>, call_kind::forward, scores>);
  CHECK(offers_call<cpu<bfloat16>, call_kind::vjp, scores>);
  CHECK(!offers_call<cpu<bfloat16>, call_kind::statistics, softmax>);
  CHECK(!offers_call<cpu_bf16_products<>, call_kind::forward, sums>);
  CHECK(!offers_call<logged_cpu<double>, call_kind::decode, softmax>);
}

}  // namespace
}  // namespace attune::test
