// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Gradients of tiles on emulated warps: how they are called, and held to the bound of gradients in 16 bits.
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <attune/certify/gradient_bound.hpp>
#include <attune/exec/cuda/host/vjp.hpp>

#include "../../../exec_cuda/check.hpp"

namespace attune::test {

/// How the rows of the tensors of a call lie: one after the other; with gaps of 8 or of 3 numbers; head next to head.
enum class rows_in_memory { dense, apart, odd, heads_together };

/// A tensor of E in memory that it may share with numbers of nobody, which are NaN.
template <class E>
class laid_out {
 public:
  laid_out(std::vector<E> const& numbers, shape const& e, rows_in_memory how) : e_(e), how_(how) {
    if (how == rows_in_memory::dense) {
      memory_ = numbers;
      return;
    }
    memory_.assign(std::size_t(e.batch * e.head * e.position * row()), none());
    tensor<E> const to = view();
    each([&](std::size_t n, index_t b, index_t h, index_t i, index_t d) { to(b, h, i, d) = numbers[n]; });
  }
  static E none() { return E(std::numeric_limits<float>::quiet_NaN()); }
  tensor<E> view() {
    index_t const r = row();
    strides const s = how_ == rows_in_memory::heads_together
                          ? strides{e_.head * e_.position * r, r, e_.head * r, 1}
                          : strides{e_.head * e_.position * r, e_.position * r, r, 1};
    return {memory_.data(), e_, s};
  }
  /// The numbers of the tensor, row-major.
  std::vector<E> numbers() {
    std::vector<E> all(std::size_t(e_.size()));
    tensor<E> const from = view();
    each([&](std::size_t n, index_t b, index_t h, index_t i, index_t d) { all[n] = from(b, h, i, d); });
    return all;
  }
  /// Whether the numbers between the rows are still NaN.
  bool gaps_are_intact() {
    std::vector<E> outside = memory_;
    tensor<E> const to(outside.data(), e_, view().steps());
    each([&](std::size_t, index_t b, index_t h, index_t i, index_t d) { to(b, h, i, d) = none(); });
    for (E const x : outside)
      if (!std::isnan(float(x))) return false;
    return true;
  }

 private:
  index_t row() const { return e_.feature + (how_ == rows_in_memory::apart ? 8 : how_ == rows_in_memory::odd ? 3 : 0); }
  template <class Visit>
  void each(Visit const& visit) const {
    std::size_t n = 0;
    for (index_t b = 0; b < e_.batch; ++b)
      for (index_t h = 0; h < e_.head; ++h)
        for (index_t i = 0; i < e_.position; ++i)
          for (index_t d = 0; d < e_.feature; ++d) visit(n++, b, h, i, d);
  }
  shape e_;
  rows_in_memory how_;
  std::vector<E> memory_;
};

/// Extents of a call.
struct gradient_extents {
  index_t batch = 1, heads = 1, key_heads = 1, value_heads = 1, queries = 70, keys = 150, width = 64, value_width = 64;
  std::optional<index_t> offset = {};  ///< of the queries
  shape pairs = {0, 0, 0, 0};          ///< of inputs with a number for each pair; 0: as many as there are
  index_t gate_width = 64;             ///< of gate vectors
  unsigned seed = 11;
  rows_in_memory rows = rows_in_memory::dense;
};

/// A call with random numbers of E, what its forward pass saved, and its gradients.
template <class Op, class E>
class gradient_problem {
 public:
  gradient_problem(Op const& op, gradient_extents const& n) : op_(op), n_(n), random_(n.seed) {
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) {
        shape const e = extents(F);
        for (index_t k = 0; k < e.size(); ++k) {
          E const x = draw();
          numbers(F).push_back(F == field::spread ? E(1 + std::fabs(float(x))) : x);
        }
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
    if (side_of(f) == input_side::pair)
      return {n_.pairs.batch != 0 ? n_.pairs.batch : n_.batch, n_.pairs.head != 0 ? n_.pairs.head : n_.heads,
              n_.pairs.position != 0 ? n_.pairs.position : n_.queries, n_.keys};
    return cuda_check::extents_of(f, {.batch = n_.batch,
                                      .heads = n_.heads,
                                      .key_heads = n_.key_heads,
                                      .value_heads = n_.value_heads,
                                      .queries = n_.queries,
                                      .keys = n_.keys,
                                      .width = n_.width,
                                      .value_width = n_.value_width,
                                      .gate_width = n_.gate_width});
  }
  Op const& op() const { return op_; }
  shape rows(index_t width) const { return {n_.batch, n_.heads, n_.queries, width}; }
  /// Makes row `n` of a field NaN in every head.
  void spoil(field f, index_t n) {
    shape const e = extents(f);
    for (index_t h = 0; h < e.batch * e.head; ++h)
      for (index_t d = 0; d < e.feature; ++d) numbers(f)[std::size_t((h * e.position + n) * e.feature + d)] = none();
  }
  static E none() { return laid_out<E>::none(); }

  /// The inputs, in memory that lives as long as the problem or until the next call.
  inputs<Op, tensor<E const>> in() {
    return make_inputs<Op, tensor<E const>>([&]<field F>() { return placed(F, numbers(F), extents(F)); }, n_.offset);
  }
  cotangents<Op, tensor<E const>> by() {
    return cotangents_of<tensor<E const>>(placed(field(field_count), by_out_, rows(n_.value_width)),
                                          tensor<float const>(by_lse_, rows(1)),
                                          tensor<float const>(by_ground_, rows(1)));
  }
  /// Which cotangents are given, and which gradients are asked for: by field f of bit f, and by all parameters.
  struct {
    bool by_out = true, by_lse = true, by_ground = true;
    unsigned fields = ~0u;
    bool parameters = true;
  } asked;
  /// What forward_and_save() of tiles saves.
  template <class Widths>
  std::vector<float> saved() {
    std::vector<E> out(by_out_.size());
    auto const from = in();
    std::vector<float> to(std::size_t(saved_size(op_, from)));
    testing::forward_and_save_on_host_warps<Widths>(
        op_, from, outputs<Op, E>{.out = tensor<E>(out.data(), rows(n_.value_width))}, std::span<float>(to));
    return to;
  }

  struct arrays : std::array<std::vector<E>, field_count> {
    std::vector<std::vector<float>> parameters, tables;
  };
  /// The gradients that tiles have, which call(inputs, cotangents, to) writes.
  template <class Call>
  arrays gradients(Call const& call) {
    arrays all;
    std::deque<std::pair<field, laid_out<E>>> places;
    gradient_outputs<Op, E> to;
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F))
        if (exec_cuda::has_gradient<Op>(F) && (asked.fields >> int(F) & 1u) != 0) {
          std::vector<E> const nothing(std::size_t(extents(F).size()), none());
          to.of(F) = places.emplace_back(F, laid_out<E>(nothing, extents(F), n_.rows)).second.view();
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
    if constexpr (exec_cuda::has_parameter_gradients<Op>)
      if (asked.parameters) named(listed_parameters(op_), all.parameters, to.parameters);
    if constexpr (table_count<Op> != 0)
      if (with_tables) named(listed_tables(op_), all.tables, to.tables);
    call(in(), by(), to);
    for (auto& [f, x] : places) {
      all[std::size_t(f)] = x.numbers();
      if (!x.gaps_are_intact())
        throw error("vjp", name_of(f), "numbers written between its rows", "numbers of its rows alone");
    }
    return all;
  }
  template <class Widths>
  arrays on_host() {
    auto const rows = saved<Widths>();
    return gradients([&](auto const& in, auto const& d, auto const& to) {
      testing::vjp_on_host_warps<Widths>(op_, in, std::span<float const>(rows), d, to);
    });
  }

  /// visit(inputs, cotangents) of the same numbers in double.
  template <class Visit>
  auto in_double(Visit const& visit) {
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
    return visit(exact,
                 cotangents_of<any_tensor>(tensor<double const>(out, rows(n_.value_width)),
                                           tensor<double const>(lse, rows(1)), tensor<double const>(ground, rows(1))));
  }
  /// Where gradients leave `loose` times their bound or are NaN where the reference is not; "" nowhere.
  std::string beyond_bound(arrays const& got, double loose = 1) {
    auto const bound =
        in_double([&](auto const& in, auto const& d) { return certify::gradient_error_bound(op_, in, d, format()); });
    std::string wrong;
    auto const compare = [&](std::string const& name, std::size_t k, double x, certify::bounded_number const& right) {
      bool const right_nan = std::isnan(right.value);
      ++compared;
      if (!right_nan && std::isfinite(right.bound) && std::fabs(x - right.value) > worst * right.bound)
        worst = std::fabs(x - right.value) / right.bound;
      bool const agrees =
          right_nan ? std::isnan(x) : x == right.value || std::fabs(x - right.value) <= loose * right.bound;
      if (wrong.empty() && !agrees)
        wrong = attune::detail::text(name, " [", k, "]: ", x, ", not ", right.value, " +- ", right.bound);
    };
    auto const named = [&](auto const& numbers, auto const& bounds) {
      for (std::size_t n = 0; n < numbers.size(); ++n)
        for (std::size_t k = 0; k < numbers[n].size(); ++k)
          compare(bounds[n].path, k, double(numbers[n][k]), bounds[n].numbers[k]);
    };
    named(got.parameters, bound.parameters);
    named(got.tables, bound.tables);
    for (std::size_t f = 0; f < got.size(); ++f) {
      double error = 0, size = 0;
      for (std::size_t k = 0; k < got[f].size(); ++k) {
        double const x = double(float(got[f][k])), right = bound.fields[f][k].value;
        if (std::isfinite(right)) error += (x - right) * (x - right), size += right * right;
        compare(name_of(field(f)), k, x, bound.fields[f][k]);
      }
      if (error > 0) norm = std::fmax(norm, std::sqrt(error / size));
    }
    return wrong;
  }
  double worst = 0;  ///< the largest error, as a share of its bound
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
  tensor<E const> placed(field f, std::vector<E> const& numbers, shape const& e) {
    if (n_.rows == rows_in_memory::dense) return tensor<E const>(numbers.data(), e);
    auto& place = places_[std::size_t(f)];
    place.emplace(numbers, e, n_.rows);
    return place->view();
  }
  template <class View, class Out, class Number>
  cotangents<Op, View> cotangents_of(Out const& out, Number const& lse, Number const& ground) const {
    cotangents<Op, View> d;
    if (asked.by_out) d.out = out;
    if constexpr (Op::has_lse)
      if (asked.by_lse) d.lse = lse;
    if constexpr (Op::has_ground_weight)
      if (asked.by_ground) d.ground_weight = ground;
    return d;
  }

  Op op_;
  gradient_extents n_;
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
  std::array<std::vector<E>, field_count> numbers_;
  std::vector<E> by_out_;
  std::vector<float> by_lse_, by_ground_;
  std::array<std::optional<laid_out<E>>, field_count + 1> places_;
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
