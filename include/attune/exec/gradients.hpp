// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   g = vjp(reference<T>{}, op, inputs, {.out = dO});   g.of(field::q)(b, h, i, d),   g.parameter("gamma")(b, h, i, 0)
//
// The gradients of one call: a dense array for every input, parameter and table of the operator, in any scalar; or
// views of the caller's memory for those that the caller requests.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/core/distinct.hpp>
#include <attune/core/dual.hpp>
#include <attune/core/table.hpp>
#include <attune/exec/problem.hpp>
#include <attune/operators/inputs.hpp>
#include <attune/operators/listing.hpp>

namespace attune {

/// A dense gradient with the extents of its tensor; axes of extent 1 are shared.
template <class T>
struct gradient_array {
  shape extents{0, 0, 0, 0};  ///< of the tensor; extent 1: one gradient for the whole axis
  std::vector<T> values;      ///< row-major

  gradient_array() = default;
  /// Zeros of the given extents.
  explicit gradient_array(shape const& e) : extents(e), values(std::size_t(e.size()), T(0)) {}

  /// The index in `values` of an element; an index of a shared axis is ignored. Not checked.
  index_t at(index_t b, index_t h, index_t i, index_t d) const {
    shape const& e = extents;
    return (((e.batch == 1 ? 0 : b) * e.head + (e.head == 1 ? 0 : h)) * e.position + (e.position == 1 ? 0 : i)) *
               e.feature +
           (e.feature == 1 ? 0 : d);
  }
  /// The element; an index of a shared axis is ignored. Not checked.
  T& operator()(index_t b, index_t h, index_t i, index_t d) { return values[std::size_t(at(b, h, i, d))]; }
  /// The element; an index of a shared axis is ignored. Not checked.
  T const& operator()(index_t b, index_t h, index_t i, index_t d) const { return values[std::size_t(at(b, h, i, d))]; }
};

/// The gradient of one parameter of one policy, at its granularity. For a projection, also the gradients of its
/// sources.
template <class T>
struct parameter_gradient {
  std::string path;          ///< "length_scale.gamma"
  gradient_array<T> values;  ///< (1|B, 1|H, 1|Lq, 1)
  gradient_array<T> x,       ///< input of a projection; empty otherwise
      weight,                ///< weight of a projection; empty otherwise
      bias;                  ///< bias of a projection; empty otherwise
};

/// The gradient of one table of one policy.
template <class T>
struct table_gradient {
  std::string path;          ///< "kernel.metric"
  gradient_array<T> values;  ///< with the shape of the table
};

/// Gradients of a scalar objective with respect to everything an operator reads.
template <class T>
class dense_gradients {
 public:
  std::array<gradient_array<T>, field_count> fields;  ///< empty where the operator does not use a field
  std::vector<parameter_gradient<T>> parameters;  ///< one per parameter of a policy, in the order of listed_parameters
  std::vector<table_gradient<T>> tables;          ///< one per table of a policy, in the order of listed_tables

  gradient_array<T>& of(field f) { return fields[std::size_t(f)]; }              ///< gradient by an input
  gradient_array<T> const& of(field f) const { return fields[std::size_t(f)]; }  ///< gradient by an input

  /// The gradient of a parameter by its name, "gamma", or its path, "normalizer.gamma". If several policies have the
  /// name, it means one parameter that all of them read: the gradients add. Throws attune::error if there is no such
  /// parameter, or if the granularities differ.
  gradient_array<T> parameter(std::string const& name) const { return summed("parameter", parameters, name); }
  /// The same for a table.
  gradient_array<T> table(std::string const& name) const { return summed("table", tables, name); }
  /// The same for the sources of projected parameters.
  parameter_gradient<T> projected(std::string const& name) const {
    parameter_gradient<T> sum;
    for (auto const& p : parameters) {
      if (!detail::is_called(p.path, name) || p.x.extents.size() == 0) continue;
      if (sum.path.empty()) {
        sum = p;
        continue;
      }
      for (auto const part : {&parameter_gradient<T>::values, &parameter_gradient<T>::x, &parameter_gradient<T>::weight,
                              &parameter_gradient<T>::bias})
        add(sum.*part, p.*part, name);
    }
    if (sum.path.empty())
      throw error("dense_gradients", detail::text("the name ", name), "no projected parameter",
                  "one of the operator's projections");
    return sum;
  }

  /// Adds x to one element of the gradient by an input; not checked.
  void add(field f, index_t b, index_t h, index_t i, index_t d, T const& x) {
    T& to = of(f)(b, h, i, d);
    to = to + x;
  }
  /// Adds x to one element of the gradient by a table; not checked.
  void add(attune::table const& which, index_t b, index_t h, index_t i, index_t d, T const& x) {
    T& to = tables[std::size_t(which.number())].values(b, h, i, d);
    to = to + x;
  }

 private:
  static void add(gradient_array<T>& sum, gradient_array<T> const& more, std::string const& name) {
    if (!(sum.extents == more.extents))
      throw error("dense_gradients", detail::text("the name ", name),
                  detail::text("shapes ", to_string(sum.extents), " and ", to_string(more.extents)),
                  detail::text("equal ones, or the path of one of them, as \"normalizer.", name, "\""));
    for (std::size_t n = 0; n < sum.values.size(); ++n) sum.values[n] = sum.values[n] + more.values[n];
  }
  template <class List>
  static gradient_array<T> summed(char const* kind, List const& list, std::string const& name) {
    gradient_array<T> sum;
    for (auto const& entry : list) {
      if (!detail::is_called(entry.path, name)) continue;
      if (sum.values.empty()) {
        sum = entry.values;
        continue;
      }
      add(sum, entry.values, name);
    }
    if (sum.values.empty()) {
      std::string known;
      for (auto const& entry : list) known += (known.empty() ? "" : ", ") + std::string(entry.path);
      throw error("dense_gradients", detail::text("the name ", name), detail::text("no such ", kind),
                  known.empty() ? detail::text("none: the operator lists no ", kind) : "one of " + known);
    }
    return sum;
  }
};

namespace detail {

/// Zeros of these extents. Reuses the memory of `old` where it is large enough.
template <class T>
ATTUNE_NOINLINE gradient_array<T> blank_array(shape const& extents, gradient_array<T>&& old) {
  old.extents = extents;
  old.values.assign(std::size_t(extents.size()), T(0));
  return std::move(old);
}
/// Allocates zero gradients for the parameters and tables that an operator lists.
template <class T>
ATTUNE_NOINLINE void make_room(dense_gradients<T>& to, std::span<operator_parameter const> parameters,
                               std::span<operator_table const> tables) {
  to.parameters = std::vector<parameter_gradient<T>>(parameters.size());
  for (std::size_t n = 0; n < parameters.size(); ++n) {
    to.parameters[n].path = parameters[n].path();
    to.parameters[n].values = gradient_array<T>(parameters[n].at->extents());
  }
  for (operator_table const& x : tables) to.tables.push_back({x.path(), gradient_array<T>(x.at->extents())});
}

/// Zero gradients of everything an operator reads. Reuses the memory of `old` where it is large enough.
template <class T, class Op, class View>
dense_gradients<T> blank_gradients(Op const& op, inputs<Op, View> const& in, dense_gradients<T> old = {}) {
  dense_gradients<T> to;
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F)) to.of(F) = blank_array(member<F>(in).extents(), std::move(old.of(F)));
  });
  make_room(to, listed_parameters(op), listed_tables(op));
  return to;
}

/// The gradients of a projected parameter with respect to its sources. If T is float, the derivative of the activation
/// is computed in double, as the CPU and Thrust executors compute the parameter's value.
template <class T>
ATTUNE_NOINLINE void pull_projection(parameter const& p, parameter_gradient<T>& g) {
  using wide = std::conditional_t<std::is_same_v<T, float>, double, T>;
  projection const from = p.source();
  if (from.x.absent() || (p.is_average() && !p.passes_gradient())) return;
  shape const x = from.x.extents();
  g.x = gradient_array<T>(x);
  if (!from.weight.absent()) g.weight = gradient_array<T>(from.weight.extents());
  if (!from.bias.absent()) g.bias = gradient_array<T>(from.bias.extents());
  auto const pull = [&](T const& by, index_t b, index_t h, index_t i) {
    T slope(1);
    if (p.is_projected())
      slope =
          T(activate(from.activation, dual<wide, 1>::variable(p.template pre_activation<wide>(b, h, i), 0)).tangent[0]);
    T const by_pre = by * slope;
    T* const by_x = g.x.values.data() + g.x.at(b, h, i, 0);
    if (from.weight.absent()) {
      *by_x = *by_x + by_pre;
    } else {
      T* const by_weight = g.weight.values.data() + g.weight.at(0, h, 0, 0);
      for (index_t c = 0; c < x.feature; ++c) {
        by_x[c] = by_x[c] + by_pre * T(from.weight(0, h, 0, c));
        by_weight[c] = by_weight[c] + by_pre * T(from.x(b, h, i, c));
      }
    }
    if (!from.bias.absent()) g.bias(0, h, 0, 0) = g.bias(0, h, 0, 0) + by_pre;
  };
  shape const e = g.values.extents;
  bool const average = p.is_average();
  T const share = average ? T((T(1) - T(p.momentum())) / T(double(x.batch * x.position))) : T(1);
  index_t const batch = average ? x.batch : e.batch, positions = average ? x.position : e.position;
  for (index_t h = 0; h < e.head; ++h)
    for (index_t b = 0; b < batch; ++b)
      for (index_t i = 0; i < positions; ++i)
        pull(average ? T(g.values(0, h, 0, 0) * share) : g.values(b, h, i, 0), b, h, i);
}
/// The same for all parameters of an operator.
template <class T>
ATTUNE_NOINLINE void pull_projections(std::span<operator_parameter const> parameters, dense_gradients<T>& to) {
  for (std::size_t n = 0; n < parameters.size(); ++n) pull_projection(*parameters[n].at, to.parameters[n]);
}

/// Throws unless every cotangent that is given has the shape of its output. Only an absent cotangent is not given: a
/// tensor without elements is given and fails the check.
template <class Op, class View>
void check_cotangents(char const* function, cotangents<Op, View> const& d, problem_shape const& p) {
  auto const fits = [&](char const* name, auto const& x, shape const& expected) {
    if (!x.absent()) require_shape(function, name, x.extents(), expected, ", the shape of the output");
  };
  fits("the gradient of out", d.out, {p.batch, p.heads, p.queries, p.value_width});
  if constexpr (Op::has_lse) fits("the gradient of lse", d.lse, {p.batch, p.heads, p.queries, 1});
  if constexpr (Op::has_ground_weight)
    fits("the gradient of ground_weight", d.ground_weight, {p.batch, p.heads, p.queries, 1});
}

}  // namespace detail

/// Where vjp() writes gradients. Each has the shape of its input, parameter or table; an absent
/// one is not computed. The numbers of a position are adjacent (feature stride 1); the other strides are free. Old
/// contents do not matter.
template <class Op, class T>
struct gradient_outputs {
  std::array<tensor<T>, field_count> fields{};  ///< by inputs, in the order of `field`
  using number = arithmetic_t<T>;               ///< type of the gradients by parameters and tables
  /// By parameters, in the order of listed_parameters. For a projected parameter: by the projected number.
  std::array<tensor<number>, std::size_t(parameter_count<Op>)> parameters{};
  std::array<tensor<number>, std::size_t(table_count<Op>)> tables{};  ///< by tables, in the order of listed_tables

  tensor<T>& of(field f) { return fields[std::size_t(f)]; }              ///< of the gradient by an input
  tensor<T> const& of(field f) const { return fields[std::size_t(f)]; }  ///< of the gradient by an input
};

namespace detail {

/// A view of dense memory in which an index of a shared axis, of extent 1, is ignored.
template <class T>
tensor<T> shared_axes(tensor<T> const& x) {
  shape const& e = x.extents();
  strides s = x.steps();
  if (e.batch == 1) s.batch = 0;
  if (e.head == 1) s.head = 0;
  if (e.position == 1) s.position = 0;
  if (e.feature == 1) s.feature = 0;
  return {x.data(), e, s};
}

/// The gradients of one call, wherever they are. An absent view was not requested.
template <class T>
struct gradient_views {
  std::array<tensor<T>, field_count> fields;
  std::vector<tensor<arithmetic_t<T>>> parameters, tables;

  tensor<T> const& of(field f) const { return fields[std::size_t(f)]; }
};

/// Views of all gradients of `g`.
template <class T>
gradient_views<T> views_of(dense_gradients<T>& g) {
  auto const view = [](gradient_array<T>& x) { return shared_axes(tensor<T>(x.values.data(), x.extents)); };
  gradient_views<T> to;
  for (std::size_t f = 0; f < g.fields.size(); ++f)
    if (g.fields[f].extents.size() != 0) to.fields[f] = view(g.fields[f]);
  for (auto& x : g.parameters) to.parameters.push_back(view(x.values));
  for (auto& x : g.tables) to.tables.push_back(view(x.values));
  return to;
}

/// Throws unless a gradient can be written to `to`: shape, adjacent features, own memory for every element.
template <class T>
ATTUNE_NOINLINE void require_gradient(std::string const& argument, tensor<T> const& to, shape const& expected) {
  require_shape("vjp", argument.c_str(), to.extents(), expected, ", the shape of the input");
  if (to.extents().feature > 1 && to.steps().feature != 1)
    throw error("vjp", argument, text("the feature stride ", to.steps().feature), "1");
  require_distinct("vjp", argument.c_str(), to);
}

/// Checked views of the requested gradients, filled with zeros if they lie in memory of the host.
template <class T, class Op, class View>
gradient_views<T> views_of(gradient_outputs<Op, T> const& wanted, Op const& op, inputs<Op, View> const& in,
                           memory_kind where = memory_kind::host) {
  gradient_views<T> to;
  auto const use = []<class N>(std::string const& name, tensor<N> const& x, shape const& expected) {
    if (x.absent()) return tensor<N>();
    require_gradient("the gradient by " + name, x, expected);
    return shared_axes(x);
  };
  for_each_field([&]<field F>() {
    auto const n = std::size_t(F);
    if constexpr (Op::uses(F))
      to.fields[n] = use(name_of(F), wanted.fields[n], member<F>(in).extents());
    else if (!wanted.fields[n].absent())
      throw error("vjp", text("the gradient by ", name_of(F)), "a tensor", "none: the operator does not read it");
  });
  std::size_t n = 0;
  if constexpr (parameter_count<Op> != 0)
    for (operator_parameter const& x : listed_parameters(op))
      to.parameters.push_back(use(x.path(), wanted.parameters[n++], x.at->extents()));
  n = 0;
  if constexpr (table_count<Op> != 0)
    for (operator_table const& x : listed_tables(op))
      to.tables.push_back(use(x.path(), wanted.tables[n++], x.at->extents()));
  if (where != memory_kind::host) return to;
  auto const clear = []<class N>(tensor<N> const& x) {
    shape const& e = x.extents();
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i) std::fill_n(x.row(b, h, i), e.feature, N(0));
  };
  for (auto const* list : {&to.parameters, &to.tables})
    for (auto const& x : *list) clear(x);
  for (auto const& x : to.fields) clear(x);
  return to;
}

}  // namespace detail

}  // namespace attune
