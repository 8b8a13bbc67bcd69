// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a parameter is one number; a strided view p(batch, head, query), with stride 0 on the axes where it is constant; or
//   a projection of activations:  p = activation(<weight_h, x_i> + bias_h)
//
// Granularity (shared, per head, per query, ...) is a run-time property of the value, not of a type. Policies are not
// templates on it; it is read only when a row is bound.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include <attune/config.hpp>
#include <attune/core/activation.hpp>
#include <attune/core/stored_view.hpp>

namespace attune {

/// A parameter learned from activations: value = activation(<weight_h, x_i> + bias_h). Principled Attention, section 4
/// ("functions of q_i"); Affine-Scaled Attention, equation 7. Without a weight, x is the pre-activation itself.
struct projection {
  stored_view x = {};                                    ///< (1|B, 1|H, 1|Lq, C)
  stored_view weight = {};                               ///< (1, 1|H, 1, C); absent: C = 1 and x is the pre-activation
  stored_view bias = {};                                 ///< (1, 1|H, 1, 1); absent: 0
  attune::activation activation = activation::identity;  ///< the map from pre-activation to value
};

/// Whether the gradient of a moving average reaches the averaged values.
enum class average_gradient { stopped, passed };

/// A parameter of a policy. +-inf is legal where the limit makes sense (each policy says where); NaN never is.
struct parameter {
  constexpr parameter() = default;
  /// One number for every row.
  constexpr parameter(double value) : value_(value), kind_(kind::value) {}

  /// A view with extents (1 or B, 1 or H, 1 or Lq, 1); axes of extent 1 are broadcast. Throws attune::error if the last
  /// extent is not 1.
  constexpr parameter(stored_view view)
      : view_(view), extents_(view.extents()), steps_(view.steps()), kind_(kind::view) {
    if (view.extents().feature != 1)
      throw error("parameter", "the view", detail::text("feature extent ", view.extents().feature),
                  "1: one number per (batch, head, query)");
  }
  /// From a view of double numbers.
  constexpr parameter(tensor<double const> view) : parameter(stored_view(view)) {}
  /// From a view of float numbers.
  constexpr parameter(tensor<float const> view) : parameter(stored_view(view)) {}
  /// From a view of mutable double numbers.
  constexpr parameter(tensor<double> view) : parameter(stored_view(view)) {}
  /// From a view of mutable float numbers.
  constexpr parameter(tensor<float> view) : parameter(stored_view(view)) {}

  /// Values computed from activations: C multiplications per query and head.
  constexpr parameter(projection const& from)
      : view_(from.x), weight_(from.weight), bias_(from.bias), extents_(from.x.extents()), steps_(from.x.steps()),
        weight_feature_step_(from.weight.steps().feature), activation_(from.activation), kind_(kind::projected) {
    if (from.x.absent()) throw error("parameter", "projection.x", "no data", "a view (1 or B, 1 or H, 1 or Lq, C)");
    shape const x = from.x.extents(), w = from.weight.extents(), b = from.bias.extents();
    if (from.weight.absent() ? x.feature != 1 : w.feature != x.feature || w.batch != 1 || w.position != 1)
      throw error("parameter", "projection.weight", detail::text("shape ", to_string(w)),
                  detail::text("(1, 1 or H, 1, ", x.feature, ")"));
    if (!from.bias.absent() && (b.batch != 1 || b.position != 1 || b.feature != 1))
      throw error("parameter", "projection.bias", detail::text("shape ", to_string(b)), "(1, 1 or H, 1, 1)");
  }

  /// The mean of another parameter over all batches and queries, as a moving average: momentum previous + (1 -
  /// momentum) mean, one value per head (or shared). This is alpha_ma of Affine-Scaled Attention during training.
  /// `previous` is one number or one per head. The CPU executor computes the average once per call; the reference
  /// computes it whenever a row is bound, from B Lq values each time. `gradient` says whether gradients pass through
  /// the mean to the averaged values (the paper does not say). No gradient passes to `previous`.
  static parameter moving_average(parameter const& of, parameter const& previous, double momentum,
                                  average_gradient gradient = average_gradient::stopped) {
    if (of.kind_ != kind::view && of.kind_ != kind::projected)
      throw error("parameter::moving_average", "of", "no values per query", "a view or a projection");
    if (!(momentum >= 0 && momentum < 1))
      throw error("parameter::moving_average", "momentum", detail::text("the value ", momentum), "a number in [0, 1)");
    if (previous.kind_ != kind::value && previous.kind_ != kind::view)
      throw error("parameter::moving_average", "previous", "no stored value", "a number or a view (1, 1 or H, 1, 1)");
    if (shape const e = previous.extents(); e.batch != 1 || e.position != 1)
      throw error("parameter::moving_average", "previous", detail::text("shape ", to_string(e)), "(1, 1 or H, 1, 1)");
    parameter p = of;
    p.kind_ = of.kind_ == kind::view ? kind::averaged_view : kind::averaged_projection;
    p.value_ = previous.value_;
    if (previous.kind_ == kind::view) p.previous_ = per_head_numbers(previous.own_view());
    p.momentum_ = momentum;
    p.passes_gradient_ = gradient == average_gradient::passed;
    return p;
  }

  /// False for a default-constructed parameter: the policy then uses its own default, for example 1/sqrt(D) for a
  /// scale.
  ATTUNE_HD constexpr bool is_set() const { return kind_ != kind::unset; }
  /// True for one number for every row, stored inside.
  ATTUNE_HD constexpr bool is_number() const { return kind_ == kind::value; }
  /// True if all queries of a head share one value.
  ATTUNE_HD constexpr bool shared_by_queries() const { return is_average() || steps_.position == 0; }
  /// (1|B, 1|H, 1|Lq, 1): the granularity of the values.
  ATTUNE_HD constexpr shape extents() const {
    shape s{1, 1, 1, 1};
    if (kind_ == kind::unset || kind_ == kind::value) return s;
    s = extents_;
    s.feature = 1;
    for (per_head_numbers const* x : {&weight_, &bias_, &previous_})
      if (x->heads > 1) s.head = x->heads;
    if (is_average()) s.batch = s.position = 1;
    return s;
  }
  /// The activations and weights of a projected parameter, or the values of an average; else null views.
  constexpr projection source() const {
    if (!is_projected() && !is_average()) return {};
    return {own_view(), weight_.view(extents_.feature, weight_feature_step_), bias_.view(1, 0), activation_};
  }
  /// True if the values come from a projection, averaged or not.
  ATTUNE_HD constexpr bool is_projected() const {
    return kind_ == kind::projected || kind_ == kind::averaged_projection;
  }
  /// True for a moving average.
  ATTUNE_HD constexpr bool is_average() const {
    return kind_ == kind::averaged_view || kind_ == kind::averaged_projection;
  }
  /// For a moving average: its momentum. Otherwise 0.
  ATTUNE_HD constexpr double momentum() const { return momentum_; }
  /// For a moving average: whether its gradient reaches the averaged values.
  ATTUNE_HD constexpr bool passes_gradient() const { return passes_gradient_; }

  /// The value of one row as a double; 0 if the parameter is not set.
  ATTUNE_HD ATTUNE_NOINLINE constexpr double at(index_t batch, index_t head, index_t query) const {
    if (kind_ == kind::view) return view_[at_of(batch, head, query, 0)];
    return kind_ == kind::value ? value_ : value<double>(batch, head, query);
  }

  /// The value in any scalar. Anything computed from stored numbers is computed in T.
  template <class T>
  ATTUNE_HD constexpr T value(index_t batch, index_t head, index_t query) const {
    if (kind_ == kind::view) return T(view_[at_of(batch, head, query, 0)]);
    if (kind_ == kind::value || kind_ == kind::unset) return T(value_);
    return computed<T>(batch, head, query);
  }
  /// <weight_h, x_i> + bias_h of a projected parameter.
  template <class T>
  ATTUNE_HD ATTUNE_NOINLINE constexpr T pre_activation(index_t batch, index_t head, index_t query) const {
    T sum(0);
    if (weight_.absent())
      sum = T(view_[at_of(batch, head, query, 0)]);
    else
      for (index_t c = 0; c < extents_.feature; ++c)
        sum = sum +
              T(weight_.data[head * weight_.step + c * weight_feature_step_]) * T(view_[at_of(batch, head, query, c)]);
    return bias_.absent() ? sum : T(sum + T(bias_.of(head)));
  }

  /// Number of this parameter in its operator (operators/numbering.hpp). Copies keep it. -1: belongs to no operator.
  ATTUNE_HD constexpr int number() const { return number_; }
  /// Sets that number, which must fit 16 bits.
  constexpr void number(int n) { number_ = std::int16_t(n); }

 private:
  /// A projection or a moving average. Rare and long, so it is a call, on host and device.
  template <class T>
  ATTUNE_HD ATTUNE_NOINLINE constexpr T computed(index_t batch, index_t head, index_t query) const {
    if (kind_ == kind::projected) return activate(activation_, pre_activation<T>(batch, head, query));
    T sum(0);
    shape const e = extents_;
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t i = 0; i < e.position; ++i)
        sum = sum + (kind_ == kind::averaged_view ? T(view_[at_of(b, head, i, 0)])
                                                  : activate(activation_, pre_activation<T>(b, head, i)));
    T const previous = T(previous_.absent() ? value_ : previous_.of(head));
    if (e.batch * e.position == 0) return previous;
    T const momentum = T(momentum_);
    return momentum * previous + (T(1) - momentum) * (sum / T(double(e.batch * e.position)));
  }

  /// Numbers stored as double or float.
  struct numbers {
    double const* doubles = nullptr;
    float const* floats = nullptr;
    constexpr numbers() = default;
    constexpr numbers(stored_view const& x) : doubles(x.doubles()), floats(x.floats()) {}
    ATTUNE_HD constexpr double operator[](index_t at) const {
      return doubles != nullptr ? doubles[at] : double(floats[at]);
    }
    constexpr stored_view view(shape const& e, strides const& s) const {
      return doubles != nullptr  ? stored_view(tensor<double const>(doubles, e, s))
             : floats != nullptr ? stored_view(tensor<float const>(floats, e, s))
                                 : stored_view();
    }
  };
  /// (1, heads, 1, features), or nothing.
  struct per_head_numbers {
    numbers data;
    index_t heads = 0, step = 0;
    constexpr per_head_numbers() = default;
    constexpr explicit per_head_numbers(stored_view const& x)
        : data(x), heads(x.extents().head), step(x.steps().head) {}
    ATTUNE_HD constexpr bool absent() const { return heads == 0; }
    ATTUNE_HD constexpr double of(index_t head) const { return data[head * step]; }
    constexpr stored_view view(index_t features, index_t feature_step) const {
      return data.view({1, heads, 1, features}, {0, step, 0, feature_step});
    }
  };
  enum class kind : std::int8_t { unset, value, view, projected, averaged_view, averaged_projection };

  ATTUNE_HD constexpr index_t at_of(index_t b, index_t h, index_t i, index_t d) const {
    return b * steps_.batch + h * steps_.head + i * steps_.position + d * steps_.feature;
  }
  constexpr stored_view own_view() const { return view_.view(extents_, steps_); }

  numbers view_;
  per_head_numbers weight_, bias_, previous_;
  shape extents_{0, 0, 0, 0};
  strides steps_{};
  index_t weight_feature_step_ = 0;
  double value_ = 0, momentum_ = 0;
  attune::activation activation_ = activation::identity;
  std::int16_t number_ = -1;
  kind kind_ = kind::unset;
  bool passes_gradient_ = false;
};
static_assert(sizeof(parameter) <= 216);

/// One value per head: `values` holds H numbers and must outlive the operator.
template <class E>
parameter per_head(std::vector<E> const& values) {
  return tensor<E const>(values, shape{1, index_t(values.size()), 1, 1});
}

template <class E>
parameter per_head(std::vector<E>&&) = delete;  // it would dangle

/// One value per head and query: `values` holds H x Lq numbers, row-major, and must outlive the operator.
template <class E>
parameter per_query(std::vector<E> const& values, index_t heads) {
  if (heads <= 0 || index_t(values.size()) % heads != 0)
    throw error("per_query", "values", detail::text(values.size(), " numbers for ", heads, " heads"),
                "a positive multiple of the number of heads");
  return tensor<E const>(values, shape{1, heads, index_t(values.size()) / heads, 1});
}

template <class E>
parameter per_query(std::vector<E>&&, index_t) = delete;  // it would dangle

/// Which values of a parameter are legal. NaN never is.
enum class domain {
  real,               ///< finite
  extended,           ///< finite, -inf or +inf
  real_or_minus_inf,  ///< finite or -inf
  positive,           ///< > 0, finite
  above_one,          ///< > 1, finite
  one_to_four,        ///< in [1, 4]
};

/// How a policy lists one of its parameters: `static constexpr auto parameters() { return std::array{listed("alpha",
/// &P::alpha)}; }`
template <class Policy>
struct listed_parameter {
  char const* name;            ///< the name in error messages and directions
  parameter Policy::* member;  ///< the member of the policy
  domain values;               ///< the legal values
};
/// One entry of the list that a policy returns from parameters().
template <class Policy>
constexpr listed_parameter<Policy> listed(char const* name, parameter Policy::* member, domain values = domain::real) {
  return {name, member, values};
}

namespace detail {

constexpr bool in_domain(double x, domain d) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (x != x) return false;
  switch (d) {
    case domain::real:
      return x > -inf && x < inf;
    case domain::extended:
      return true;
    case domain::real_or_minus_inf:
      return x < inf;
    case domain::positive:
      return x > 0 && x < inf;
    case domain::above_one:
      return x > 1 && x < inf;
    case domain::one_to_four:
      return x >= 1 && x <= 4;
  }
  return false;
}
constexpr char const* words(domain d) {
  switch (d) {
    case domain::real:
      return "a finite number";
    case domain::extended:
      return "a number, -inf or +inf";
    case domain::real_or_minus_inf:
      return "a finite number or -inf";
    case domain::positive:
      return "a finite number > 0";
    case domain::above_one:
      return "a finite number > 1";
    case domain::one_to_four:
      return "a number in [1, 4]";
  }
  return "";
}

/// Throws unless the parameter fits the problem and every value lies in its domain. Reads each stored value once. T is
/// the executor's type: in float, 1e-50 is not positive and 1e300 is not finite. Values in device memory are not read.
template <class T = double>
void check_parameter(char const* function, std::string_view name, parameter const& p, domain d, index_t batch,
                     index_t heads, index_t queries, memory_kind where = memory_kind::host) {
  if (!p.is_set()) return;
  shape const e = p.extents();
  if ((e.batch != 1 && e.batch != batch) || (e.head != 1 && e.head != heads) ||
      (e.position != 1 && e.position != queries))
    throw error(function, text("parameter ", name), text("shape ", to_string(e)),
                text("(1 or ", batch, ", 1 or ", heads, ", 1 or ", queries, ", 1)"));
  if (where == memory_kind::device && !p.is_number()) return;
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.head; ++h)
      for (index_t i = 0; i < e.position; ++i)
        if (double const x = p.at(b, h, i); !in_domain(double(T(x)), d))
          throw error(function, text("parameter ", name),
                      text("the value ", x, " at (batch, head, query) = (", b, ", ", h, ", ", i, ")"),
                      text(words(d), in_domain(x, d) ? ", in the precision of the executor" : ""));
}

}  // namespace detail
}  // namespace attune
