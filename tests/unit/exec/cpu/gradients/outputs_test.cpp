// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Gradients and saved rows in the caller's memory, all of them or some; 16-bit tensors.
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <attune/exec/cpu/forward.hpp>
#include <attune/exec/cpu/gradients.hpp>
#include <attune/operators/attention.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../../../check.hpp"
#include "../../operators.hpp"

namespace attune::test {
namespace {

constexpr index_t heads = 4, queries = 37, keys = 41, width = 5;
constexpr shape rows{2, heads, queries, width}, columns{2, 2, keys, width}, row_numbers{2, heads, queries, 1};

/// Arrays of one type for every input of the operators below.
template <class T>
struct call_arrays {
  std::array<std::vector<T>, field_count> of;
  std::vector<T> by_out;
  template <class Op>
  inputs<Op, tensor<T const>> inputs_of(Op const&) {
    return make_inputs<Op, tensor<T const>>([&]<field F>() {
      shape const e = F == field::bias                ? shape{1, heads, queries, keys}
                      : F == field::v0                ? shape{1, heads, 1, width}
                      : side_of(F) == input_side::key ? columns
                                                      : rows;
      auto& x = of[std::size_t(F)];
      for (float const n : numbers(e.size(), unsigned(F) + 1)) x.push_back(T(n));
      return tensor<T const>(x, e);
    });
  }
  tensor<T const> cotangent() {
    for (float const n : numbers(rows.size(), 77)) by_out.push_back(T(n));
    return {by_out, rows};
  }
};

/// Memory with gaps, full of NaN, for one gradient.
template <class T>
struct gapped {
  std::vector<T> memory;
  tensor<T> view;
  explicit gapped(shape const& e)
      : memory(std::size_t(e.batch * e.head * e.position * (e.feature + 3)),
               T(std::numeric_limits<float>::quiet_NaN())),
        view(memory.data(), e, strides::dense({e.batch, e.head, e.position, e.feature + 3})) {}
  /// Whether the elements of the view are the given numbers, and the gaps are untouched.
  template <class U>
  bool holds(gradient_array<U> const& expected) const {
    shape const& e = view.extents();
    if (!(e == expected.extents)) return false;
    std::size_t untouched = 0;
    for (T const x : memory) untouched += float(x) != float(x);
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i)
          for (index_t d = 0; d < e.feature; ++d)
            if (float(view(b, h, i, d)) != float(T(expected(b, h, i, d)))) return false;
    return untouched == memory.size() - std::size_t(e.size());
  }
};

/// Every gradient alone, and all together, against vjp() into memory of its own.
template <class Op>
void some_and_all(Op const& op) {
  call_arrays<float> arrays;
  auto const in = arrays.inputs_of(op);
  cotangents<Op, tensor<float const>> const d{.out = arrays.cotangent()};
  cpu<float> const exec{2};
  std::vector<float> out(std::size_t(rows.size())), same(out.size());
  std::vector<float> memory(std::size_t(saved_size(op, in)), std::numeric_limits<float>::quiet_NaN());
  saved_rows<float, Op> const saved = forward_and_save(exec, op, in, {.out = tensor(out, rows)});
  forward_and_save(exec, op, in, {.out = tensor(same, rows)}, std::span(memory));
  CHECK(out == same);
  dense_gradients<float> const all = vjp(exec, op, in, saved, d);
  auto const check = [&](auto const& wanted) {
    std::array<std::optional<gapped<float>>, field_count> fields;
    std::vector<gapped<float>> parameters, tables;
    gradient_outputs<Op, float> to;
    for_each_field([&]<field F>() {
      auto const n = std::size_t(F);
      if constexpr (Op::uses(F))
        if (wanted(int(n))) to.fields[n] = fields[n].emplace(member<F>(in).extents()).view;
    });
    for (auto const& x : all.parameters) parameters.emplace_back(x.values.extents);
    for (auto const& x : all.tables) tables.emplace_back(x.values.extents);
    for (std::size_t n = 0; n < parameters.size(); ++n)
      if (wanted(100 + int(n))) to.parameters[n] = parameters[n].view;
    for (std::size_t n = 0; n < tables.size(); ++n)
      if (wanted(200 + int(n))) to.tables[n] = tables[n].view;
    vjp(exec, op, in, std::span<float const>(memory), d, to);
    for (std::size_t n = 0; n < field_count; ++n)
      if (fields[n]) CHECK_MESSAGE(fields[n]->holds(all.fields[n]), name_of(field(n)));
    for (std::size_t n = 0; n < parameters.size(); ++n)
      if (wanted(100 + int(n))) CHECK_MESSAGE(parameters[n].holds(all.parameters[n].values), all.parameters[n].path);
    for (std::size_t n = 0; n < tables.size(); ++n)
      if (wanted(200 + int(n))) CHECK_MESSAGE(tables[n].holds(all.tables[n].values), all.tables[n].path);
  };
  check([](int) { return true; });
  for (int alone = 0; alone < 210; ++alone) {
    bool const exists = alone < 100   ? alone < int(field_count) && Op::uses(field(alone))
                        : alone < 200 ? alone - 100 < parameter_count<Op>
                                      : alone - 200 < table_count<Op>;
    if (exists) check([&](int n) { return n == alone; });
  }
}

TEST_CASE("vjp into the caller's memory: all gradients, and each alone, have the bits of vjp()") {
  some_and_all(principled_attention({-1.0, 0.2, 0.05}, mask::causal{}));
  some_and_all(attention(kernel::dot_product{} + kernel::bias{}, normalizer::entmax15{}, gate::sigmoid_value{},
                         gate::sigmoid_output{}));
  std::vector<float> const metric = numbers(heads * width, 5);
  some_and_all(attention(kernel::elliptical{tensor(metric, {1, heads, 1, width})}, normalizer::softmax{}));
}

TEST_CASE("vjp into the caller's memory: what does not fit is refused") {
  auto const op = attention(kernel::dot_product{}, normalizer::softmax{});
  using Op = std::remove_const_t<decltype(op)>;
  call_arrays<float> arrays;
  auto const in = arrays.inputs_of(op);
  cotangents<Op, tensor<float const>> const d{.out = arrays.cotangent()};
  std::vector<float> memory(std::size_t(rows.size()) + 1), out(memory.size());
  auto const refused = [&](field f, tensor<float> const& to) {
    gradient_outputs<Op, float> wanted;
    wanted.of(f) = to;
    return error_of([&] { vjp(cpu<float>{}, op, in, d, wanted); });
  };
  float* const at = memory.data();
  CHECK(refused(field::k, {at, rows}) ==
        "attune::vjp: the gradient by k has shape (2, 4, 37, 5); expected (2, 2, 41, 5), the shape of the input");
  CHECK(refused(field::q, {at, rows, {0, 185, 5, 1}}) ==
        "attune::vjp: the gradient by q has strides (0, 185, 5, 1) for the shape (2, 4, 37, 5); expected elements that "
        "share no memory: rows of an output would overwrite each other");
  CHECK(refused(field::q, {at, rows, {740, 185, 1, 37}}) ==
        "attune::vjp: the gradient by q has the feature stride 37; expected 1");
  CHECK(refused(field::bias, {at, rows}) ==
        "attune::vjp: the gradient by bias has a tensor; expected none: the operator does not read it");
  std::string const sizes =
      " has a span of 7 numbers; expected " + std::to_string(saved_size(op, in)) + ", as saved_size() says";
  std::span<float> const few(memory.data(), 7);
  CHECK(error_of([&] { forward_and_save(cpu<float>{}, op, in, {.out = {out.data(), rows}}, few); }) ==
        "attune::forward_and_save: memory" + sizes);
  CHECK(error_of([&] { vjp(cpu<float>{}, op, in, std::span<float const>(few), d, gradient_outputs<Op, float>{}); }) ==
        "attune::vjp: memory" + sizes);
}

/// Both passes of 16-bit tensors against the passes of the same numbers as floats.
template <class S, class Op>
void rounds_once(Op const& op) {
  call_arrays<S> arrays;
  auto const in = arrays.inputs_of(op);
  cotangents<Op, tensor<S const>> d{.out = arrays.cotangent()};
  detail::float_copies copies;
  inputs<Op, tensor<float const>> const wide = copies.of(in);
  cotangents<Op, tensor<float const>> wide_d{.out = copies.of(d.out)};
  std::vector<float> const by_lse = numbers(row_numbers.size(), 3);
  if constexpr (Op::has_lse) d.lse = wide_d.lse = tensor(by_lse, row_numbers);
  dense_gradients<float> const expected = vjp(cpu<float>{}, op, wide, wide_d);
  std::vector<float> memory(std::size_t(saved_size(op, in))), wide_out(std::size_t(rows.size()));
  std::vector<S> out(wide_out.size());
  forward(cpu<float>{}, op, wide, {.out = tensor(wide_out, rows)});
  forward_and_save(cpu<S>{}, op, in, {.out = tensor(out, rows)}, std::span(memory));
  for (std::size_t n = 0; n < out.size(); ++n) CHECK(float(out[n]) == float(S(wide_out[n])));
  std::array<std::optional<gapped<S>>, field_count> fields;
  std::vector<gapped<float>> parameters;
  auto const check = [&](bool saved) {
    gradient_outputs<Op, S> to;
    parameters.clear();
    parameters.reserve(expected.parameters.size());
    for_each_field([&]<field F>() {
      auto const n = std::size_t(F);
      if constexpr (Op::uses(F)) to.fields[n] = fields[n].emplace(member<F>(in).extents()).view;
    });
    for (std::size_t n = 0; n < expected.parameters.size(); ++n)
      to.parameters[n] = parameters.emplace_back(expected.parameters[n].values.extents).view;
    if (saved)
      vjp(cpu<S>{}, op, in, std::span<float const>(memory), d, to);
    else
      vjp(cpu<S>{}, op, in, d, to);
    for (std::size_t n = 0; n < field_count; ++n)
      if (fields[n]) CHECK_MESSAGE(fields[n]->holds(expected.fields[n]), name_of(field(n)));
    for (std::size_t n = 0; n < parameters.size(); ++n)
      CHECK_MESSAGE(parameters[n].holds(expected.parameters[n].values), expected.parameters[n].path);
  };
  check(true);
  check(false);
}

TEST_CASE("16-bit tensors: the gradients of the same numbers as floats, rounded once") {
  rounds_once<bfloat16>(principled_attention({-1.0, 0.2, 0.05}, mask::causal{}));
  rounds_once<float16>(attention(kernel::dot_product{} + kernel::bias{}, normalizer::entmax15{}, gate::sigmoid_value{},
                                 gate::sigmoid_output{}));
}

}  // namespace
}  // namespace attune::test
