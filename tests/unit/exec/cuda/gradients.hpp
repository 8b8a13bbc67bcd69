// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Gradients of tiles on emulated warps: how they are called, and held to the bound of gradients in 16 bits.
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <attune/certify/gradient_bound.hpp>
#include <attune/exec/cuda/host/vjp.hpp>

namespace attune::test {

/// Extents of a call.
struct gradient_extents {
  index_t batch = 1, heads = 1, key_heads = 1, value_heads = 1, queries = 70, keys = 150, width = 64, value_width = 64;
  std::optional<index_t> offset = {};  ///< of the queries
  shape pairs = {0, 0, 0, 0};          ///< of inputs with a number for each pair; 0: as many as there are
};

/// A call with random numbers of E, what its forward pass saved, and its gradients.
template <class Op, class E>
class gradient_problem {
 public:
  gradient_problem(Op const& op, gradient_extents const& n) : op_(op), n_(n) {
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) {
        shape const e = extents(F);
        for (index_t k = 0; k < e.size(); ++k) numbers(F).push_back(draw());
      }
    });
    for (index_t k = 0; k < rows(n.value_width).size(); ++k) by_out_.push_back(draw());
    for (index_t k = 0; k < rows(1).size(); ++k) {
      by_lse_.push_back(float(draw()));
      by_ground_.push_back(float(draw()));
    }
  }
  gradient_problem(gradient_problem const&) = delete;

  std::vector<E>& numbers(field f) { return numbers_[std::size_t(f)]; }
  std::vector<E>& by_out() { return by_out_; }
  shape extents(field f) const {
    switch (side_of(f)) {
      case input_side::key:
        return f == field::v || f == field::value_gate
                   ? shape{n_.batch, n_.value_heads, n_.keys, n_.value_width}
                   : shape{n_.batch, n_.key_heads, n_.keys, f == field::key_bias ? 1 : n_.width};
      case input_side::ground:
        return {1, n_.heads, 1, n_.value_width};
      case input_side::pair:
        return {n_.pairs.batch != 0 ? n_.pairs.batch : n_.batch, n_.pairs.head != 0 ? n_.pairs.head : n_.heads,
                n_.pairs.position != 0 ? n_.pairs.position : n_.queries, n_.keys};
      default:
        return {n_.batch, n_.heads, n_.queries, f == field::output_gate ? n_.value_width : n_.width};
    }
  }
  shape rows(index_t width) const { return {n_.batch, n_.heads, n_.queries, width}; }
  /// Makes row `n` of a field NaN in every head.
  void spoil(field f, index_t n) {
    shape const e = extents(f);
    for (index_t h = 0; h < e.batch * e.head; ++h)
      for (index_t d = 0; d < e.feature; ++d) numbers(f)[std::size_t((h * e.position + n) * e.feature + d)] = none();
  }
  static E none() { return E(std::numeric_limits<float>::quiet_NaN()); }

  inputs<Op, tensor<E const>> in() {
    return make_inputs<Op, tensor<E const>>([&]<field F>() { return tensor<E const>(numbers(F).data(), extents(F)); },
                                            n_.offset);
  }
  cotangents<Op, tensor<E const>> by() const {
    cotangents<Op, tensor<E const>> d{.out = tensor<E const>(by_out_.data(), rows(n_.value_width))};
    if constexpr (Op::has_lse) d.lse = tensor<float const>(by_lse_, rows(1));
    if constexpr (Op::has_ground_weight) d.ground_weight = tensor<float const>(by_ground_, rows(1));
    return d;
  }
  /// What forward_and_save() of tiles saves.
  template <class Widths>
  std::vector<float> saved() {
    std::vector<E> out(by_out_.size());
    std::vector<float> to(std::size_t(saved_size(op_, in())));
    testing::forward_and_save_on_host_warps<Widths>(
        op_, in(), outputs<Op, E>{.out = tensor<E>(out.data(), rows(n_.value_width))}, std::span<float>(to));
    return to;
  }

  struct arrays : std::array<std::vector<E>, field_count> {
    std::vector<std::vector<float>> parameters, tables;
  };
  /// The gradients that tiles have, which call(inputs, cotangents, to) writes.
  template <class Call>
  arrays gradients(Call const& call) {
    arrays all;
    gradient_outputs<Op, E> to;
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F))
        if (exec_cuda::has_gradient<Op>(F)) {
          all[std::size_t(F)].assign(std::size_t(extents(F).size()), none());
          to.of(F) = tensor<E>(all[std::size_t(F)].data(), extents(F));
        }
    });
    auto const named = [](auto const& list, std::vector<std::vector<float>>& numbers, auto& views) {
      numbers.resize(list.size());
      for (std::size_t n = 0; n < list.size(); ++n) {
        shape const e = list[n].at->extents();
        numbers[n].assign(std::size_t(e.size()), std::numeric_limits<float>::quiet_NaN());
        views[n] = tensor<float>(numbers[n].data(), e);
      }
    };
    if constexpr (exec_cuda::has_parameter_gradients<Op>) named(listed_parameters(op_), all.parameters, to.parameters);
    if constexpr (table_count<Op> != 0)
      if (with_tables) named(listed_tables(op_), all.tables, to.tables);
    call(in(), by(), to);
    return all;
  }
  template <class Widths>
  arrays on_host() {
    auto const rows = saved<Widths>();
    return gradients([&](auto const& in, auto const& d, auto const& to) {
      testing::vjp_on_host_warps<Widths>(op_, in, std::span<float const>(rows), d, to);
    });
  }

  /// Where gradients leave `loose` times their bound or are NaN where the reference is not; "" nowhere.
  std::string beyond_bound(arrays const& got, double loose = 1) {
    std::array<std::vector<double>, field_count> wide;
    auto const widened = [&](std::vector<E> const& x, std::vector<double>& to) {
      for (E const y : x) to.push_back(double(float(y)));
    };
    auto const exact = make_inputs<Op, any_tensor>(
        [&]<field F>() {
          widened(numbers(F), wide[std::size_t(F)]);
          return any_tensor(tensor<double const>(wide[std::size_t(F)].data(), extents(F)));
        },
        n_.offset);
    std::vector<double> out, lse(by_lse_.begin(), by_lse_.end()), ground(by_ground_.begin(), by_ground_.end());
    widened(by_out_, out);
    cotangents<Op, any_tensor> d{.out = tensor<double const>(out, rows(n_.value_width))};
    if constexpr (Op::has_lse) d.lse = tensor<double const>(lse, rows(1));
    if constexpr (Op::has_ground_weight) d.ground_weight = tensor<double const>(ground, rows(1));
    auto const bound = certify::gradient_error_bound(op_, exact, d, format());
    std::string wrong;
    auto const named = [&](auto const& numbers, auto const& bounds) {
      for (std::size_t n = 0; n < numbers.size(); ++n)
        for (std::size_t k = 0; k < numbers[n].size() && wrong.empty(); ++k) {
          auto const& right = bounds[n].numbers[k];
          double const x = numbers[n][k];
          ++compared;
          if (std::isnan(x) != std::isnan(right.value) || std::fabs(x - right.value) > loose * right.bound)
            wrong = attune::detail::text(bounds[n].path, " [", k, "]: ", x, ", not ", right.value, " +- ", right.bound);
        }
    };
    named(got.parameters, bound.parameters);
    named(got.tables, bound.tables);
    for (std::size_t f = 0; f < got.size(); ++f) {
      double error = 0, size = 0;
      for (std::size_t k = 0; k < got[f].size() && wrong.empty(); ++k) {
        auto const& right = bound.fields[f][k];
        double const x = double(float(got[f][k]));
        bool const right_nan = std::isnan(right.value);
        ++compared;
        if (std::isfinite(right.value))
          error += (x - right.value) * (x - right.value), size += right.value * right.value;
        if (std::isnan(x) != right_nan ||
            (!right_nan && x != right.value && !(std::fabs(x - right.value) <= loose * right.bound)))
          wrong =
              attune::detail::text(name_of(field(f)), " [", k, "]: ", x, ", not ", right.value, " +- ", right.bound);
      }
      if (error > 0) norm = std::fmax(norm, std::sqrt(error / size));
    }
    return wrong;
  }
  long compared = 0;
  double norm = 0;           ///< the largest relative error of the numbers of a field, in the norm of Frobenius
  bool with_tables = false;  ///< the gradients by all tables, too

 private:
  static certify::precision format() {
    if constexpr (std::is_same_v<E, float>)
      return certify::precision::split_products();
    else
      return std::is_same_v<E, bfloat16> ? certify::storage::bf16 : certify::storage::fp16;
  }
  E draw() { return E(normal_(random_)); }

  Op op_;
  gradient_extents n_;
  std::mt19937 random_{11};
  std::normal_distribution<float> normal_;
  std::array<std::vector<E>, field_count> numbers_;
  std::vector<E> by_out_;
  std::vector<float> by_lse_, by_ground_;
};

/// The gradients of a call against their bound; "" if they keep it. loose: for operands that are rounded once more.
template <class E, int Width, class Op>
std::string gradients_of(Op const& op, gradient_extents n, double loose = 1, bool with_tables = false) {
  gradient_problem<Op, E> p(op, n);
  p.with_tables = with_tables;
  std::string const wrong = p.beyond_bound(p.template on_host<exec_cuda::widths<Width>>(), loose);
  return p.compared == 0 ? "nothing was compared" : wrong;
}

/// Whether two calls wrote the same bits. NaN is not equal to NaN, but its bits are.
template <class Arrays>
bool same_bits(Arrays const& a, Arrays const& b) {
  auto const same = [](auto const& x, auto const& y) {
    if (x.size() != y.size()) return false;
    for (std::size_t n = 0; n < x.size(); ++n)
      if (x[n].size() != y[n].size() ||
          (!x[n].empty() && std::memcmp(x[n].data(), y[n].data(), sizeof(x[n][0]) * x[n].size()) != 0))
        return false;
    return true;
  };
  return same(a, b) && same(a.parameters, b.parameters) && same(a.tables, b.tables);
}

}  // namespace attune::test
