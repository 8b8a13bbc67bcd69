// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a parameter is one number, or a strided view p(batch, head, query) with stride 0 on the axes it does not vary along
//
// Granularity (shared, per head, per query, ...) is a property of the value at run time, not of a type: policies
// are not templates on it, and it is read only when a row is bound.
#pragma once

#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <attune/config.hpp>
#include <attune/core/tensor.hpp>

namespace attune {

/// A policy parameter. +-inf is legal where the limit makes sense (each policy says where); NaN never is.
struct parameter {
  constexpr parameter() = default;
  /// One number for every row.
  constexpr parameter(double value) : value_(value), kind_(kind::value) {}

  /// A view with extents (1 or B, 1 or H, 1 or Lq, 1); axes of extent 1 are broadcast.
  constexpr parameter(tensor<double const> view) : doubles_(view.data()), extents_(view.extents()), kind_(kind::doubles) {
    take_strides(view);
  }
  constexpr parameter(tensor<float const> view) : floats_(view.data()), extents_(view.extents()), kind_(kind::floats) {
    take_strides(view);
  }
  constexpr parameter(tensor<double> view) : parameter(tensor<double const>(view)) {}
  constexpr parameter(tensor<float> view) : parameter(tensor<float const>(view)) {}

  /// False for a default-made parameter: the policy then uses its own default (1/sqrt(D) for a scale, say).
  constexpr bool is_set() const { return kind_ != kind::unset; }
  /// True if all queries of a head share one value.
  ATTUNE_HD constexpr bool shared_by_queries() const { return query_ == 0; }
  constexpr shape const& extents() const { return extents_; }

  ATTUNE_HD constexpr double at(index_t batch, index_t head, index_t query) const {
    index_t const offset = batch * batch_ + head * head_ + query * query_;
    return kind_ == kind::doubles ? doubles_[offset] : kind_ == kind::floats ? double(floats_[offset]) : value_;
  }

 private:
  enum class kind { unset, value, doubles, floats };

  template <class E>
  constexpr void take_strides(tensor<E> const& view) {
    if (view.extents().feature != 1)
      throw error("parameter", "the view", "feature extent " + std::to_string(view.extents().feature),
                  "1: one number per (batch, head, query)");
    batch_ = view.extents().batch == 1 ? 0 : view.steps().batch;
    head_ = view.extents().head == 1 ? 0 : view.steps().head;
    query_ = view.extents().position == 1 ? 0 : view.steps().position;
  }

  double value_ = 0;
  double const* doubles_ = nullptr;
  float const* floats_ = nullptr;
  shape extents_{};
  index_t batch_ = 0, head_ = 0, query_ = 0;
  kind kind_ = kind::unset;
};

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
    throw error("per_query", "values", std::to_string(values.size()) + " numbers for " + std::to_string(heads) + " heads",
                "a positive multiple of the number of heads");
  return tensor<E const>(values, shape{1, heads, index_t(values.size()) / heads, 1});
}

template <class E>
parameter per_query(std::vector<E>&&, index_t) = delete;  // it would dangle

/// Which values of a parameter make sense. NaN never does.
enum class domain {
  real,               ///< finite
  extended,           ///< finite, -inf or +inf
  real_or_minus_inf,  ///< finite or -inf
  positive,           ///< > 0, finite
  above_one,          ///< > 1, finite
};

/// How a policy lists one of its parameters: `static constexpr auto parameters() { return std::tuple{listed("alpha", &P::alpha)}; }`
template <class Policy>
struct listed_parameter {
  char const* name;
  parameter Policy::*member;
  domain values;
};
template <class Policy>
constexpr listed_parameter<Policy> listed(char const* name, parameter Policy::*member, domain values = domain::real) {
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
  }
  return "";
}

/// Throws unless the parameter fits the problem and every value lies in its domain. Reads each stored value once.
inline void check_parameter(char const* function, std::string const& name, parameter const& p, domain d, index_t batch,
                            index_t heads, index_t queries) {
  if (!p.is_set()) return;
  shape const e = p.extents();
  if ((e.batch != 1 && e.batch != batch) || (e.head != 1 && e.head != heads) || (e.position != 1 && e.position != queries))
    throw error(
        function, "parameter " + name, "shape " + to_string(e),
        "(1 or " + std::to_string(batch) + ", 1 or " + std::to_string(heads) + ", 1 or " + std::to_string(queries) + ", 1)");
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.head; ++h)
      for (index_t i = 0; i < e.position; ++i)
        if (double const x = p.at(b, h, i); !in_domain(x, d))
          throw error(function, "parameter " + name,
                      text("the value ", x) + " at (batch, head, query) = (" + std::to_string(b) + ", " + std::to_string(h) +
                          ", " + std::to_string(i) + ")",
                      words(d));
}

}  // namespace detail
}  // namespace attune
