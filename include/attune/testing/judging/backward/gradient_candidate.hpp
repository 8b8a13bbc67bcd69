// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   gradient_candidate().with(field::q, tensor(dq, s)).with(field::k, tensor(dk, s)).with("normalizer.logit", g)
//
// The gradients of the kernel under test, read into doubles.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <attune/certify/gradient_bound.hpp>
#include <attune/testing/candidate.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing {

/// Whose gradient: of an input, or of a parameter or table of a policy. A short name, "gamma", means all parameters
/// of that name together, as in dense_gradients.
struct gradient_name {
  field input = field::q;  ///< if `path` is empty
  std::string path;        ///< of a parameter or table; empty: `input` counts

  gradient_name(field f) : input(f) {}                             ///< an input
  explicit gradient_name(std::string of) : path(std::move(of)) {}  ///< a parameter or table
  bool is_input() const { return path.empty(); }                   ///< not a parameter, not a table
  bool is(field f) const { return is_input() && input == f; }      ///< the gradient by that input
  std::string text() const { return "d" + (is_input() ? std::string(name_of(input)) : path); }  ///< "dq"
  /// Inputs first.
  friend bool operator<(gradient_name const& a, gradient_name const& b) {
    return std::make_tuple(!a.is_input(), int(a.input), a.path) < std::make_tuple(!b.is_input(), int(b.input), b.path);
  }
  friend bool operator==(gradient_name const&, gradient_name const&) = default;
};

/// The gradients from the kernel under test, by input, parameter and table, read into doubles.
class gradient_candidate {
 public:
  /// The gradient by one of them.
  struct one {
    storage stored;              ///< the format that the kernel wrote
    shape extents;               ///< of the input, parameter or table
    std::vector<double> values;  ///< row-major
  };

  /// A gradient as double, float, bfloat16 or float16, with the extents of the input and any strides.
  template <class E>
  gradient_candidate& with(field f, tensor<E> const& x) {
    return with(gradient_name(f), candidate(x));
  }
  /// The same of a parameter or table by its name, "logit", or its path, "normalizer.logit".
  template <class E>
  gradient_candidate& with(std::string const& name, tensor<E> const& x) {
    return with(gradient_name(name), candidate(x));
  }
  /// Numbers that were already read into doubles. `stored` is the format that the kernel wrote.
  gradient_candidate& with(gradient_name const& of, tensor<double const> const& x, storage stored) {
    return with(of, candidate(x, stored));
  }

  std::map<gradient_name, one> const& all() const { return all_; }  ///< those that were given

 private:
  gradient_candidate& with(gradient_name const& of, candidate const& x) {
    all_[of] = {x.stored(), x.extents(), x.out()};
    return *this;
  }
  std::map<gradient_name, one> all_;
};

namespace detail {

/// The array that a name means.
template <class T>
gradient_array<T> array_of(dense_gradients<T> const& g, gradient_name const& name) {
  if (name.is_input()) return g.of(name.input);
  for (auto const& t : g.tables)
    if (attune::detail::is_called(t.path, name.path)) return g.table(name.path);
  return g.parameter(name.path);
}

/// The bounds of one gradient; of a name that several policies share, of the sum.
struct bounds_of_gradient {
  shape extents{0, 0, 0, 0};
  std::vector<bounded_number> numbers;
  std::vector<double> spreads, counts = {};  ///< counts: of inputs alone
};
inline bounds_of_gradient bounds_of(certify::gradient_bounds const& b, gradient_name const& name) {
  if (name.is_input()) {
    std::size_t const f = std::size_t(name.input);
    return {b.shapes[f], b.fields[f], b.spreads[f], b.counts[f]};
  }
  bounds_of_gradient to;
  std::string known;
  for (auto const* list : {&b.parameters, &b.tables})
    for (auto const& x : *list) {
      known += (known.empty() ? "" : ", ") + x.path;
      if (!attune::detail::is_called(x.path, name.path)) continue;
      if (to.numbers.empty()) {
        to = {x.extents, x.numbers, x.spreads};
        continue;
      }
      for (std::size_t n = 0; n < to.numbers.size() && to.extents == x.extents; ++n) {
        bounded_number& sum = to.numbers[n];
        sum.value += x.numbers[n].value;
        sum.bound += x.numbers[n].bound;
        sum.drift += x.numbers[n].drift;
        sum.scatter = std::hypot(sum.scatter, x.numbers[n].scatter);
        to.spreads[n] = std::hypot(to.spreads[n], x.spreads[n]);
      }
    }
  if (to.numbers.empty())
    throw error("testing::gradient_verdict", name.text(), "no such parameter or table",
                known.empty() ? "none: the operator has no parameters" : "one of " + known);
  return to;
}

}  // namespace detail

}  // namespace attune::testing
