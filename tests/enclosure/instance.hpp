// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The operators of tests/instances on intervals: `add(registry, policies...)` puts correctly rounded results in the
// place of the reference in 50 digits, whose results have to lie in enclosures of fewer digits, and holds the CPU, or
// what a program put in its place (tests/thrust), to its error bounds. The sources that tests/CMakeLists.txt generates
// compile with this header where ATTUNE_INSTANCES_ENCLOSURE is defined.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <attune/certify/enclosure.hpp>
#include <attune/certify/error_bound.hpp>
#include <attune/certify/gradient_bound.hpp>

#include "../instances/digits.hpp"
#include "../instances/policies.hpp"
#include "../instances/views.hpp"
#include "../support/within_bounds.hpp"

namespace attune::instances {

namespace detail {

inline certify::storage format_of(backend on) {
  return on == backend::cpu_float ? certify::storage::fp32 : certify::storage::fp64;
}

using certify::enclosed_number;
using certify::interval;

/// Fewer than the 168 bits of 50 digits, by more than either loses.
constexpr long coarse_bits = 100;

/// A number of 50 digits, exactly, but for what is below the smallest double.
inline interval exactly(digits x) {
  certify::working_precision const exact(512);
  interval sum;
  for (int part = 0; part < 4; ++part) {
    double const head = double(x);
    if (!std::isfinite(head)) return interval(head);
    sum = sum + interval(head);
    x = x - digits(head);
  }
  return sum;
}

/// Throws unless the number lies in the interval, up to a few units of its own 50th digit.
inline void require_inside(interval const& x, digits const& number, std::string const& what) {
  interval const n = exactly(number);
  if (n.is_nan() ? x.is_nan() || !x.is_number() : !x.is_number()) return;
  certify::working_precision const exact(512);
  interval const slack = scalar<interval>::abs(n) * interval(1e-47) + interval(1e-300);
  if (n.is_nan() || (n.is_finite() ? !(x <= n + slack).may_hold || !(n - slack <= x).may_hold : !(x == n).may_hold))
    throw std::runtime_error(what + ": 50 digits, " + std::to_string(double(n)) +
                             ", lie outside the enclosure around " + std::to_string(double(x)));
}
/// Throws unless both ends of an enclosure round to the same number. Some expectations are exactly half-way before they
/// are rounded (weights k / 10 times multiples of 10), which no interval proves: there 1,000 bits have to agree with
/// it.
inline double decided(enclosed_number const& x, std::string const& what) {
  if (!x.decided && !x.half_way)
    throw std::runtime_error(what + " is not decided: between " + std::to_string(x.lower) + " and " +
                             std::to_string(x.upper));
  return x.rounded;
}
inline std::vector<double> decided(std::vector<enclosed_number> const& list, std::string const& what) {
  std::vector<double> r;
  for (std::size_t n = 0; n < list.size(); ++n) r.push_back(decided(list[n], what + " " + std::to_string(n)));
  return r;
}

template <class Op>
void require_digits_inside(Op const& op, inputs<Op, any_tensor> const& in) {
  auto const wide = [&] {
    certify::working_precision const coarse(coarse_bits);
    return forward(reference<interval>{}, op, in);
  }();
  auto const narrow = forward(reference<digits>{}, op, in);
  for (std::size_t h = 0; h < wide.heads.size(); ++h) {
    auto const check = [&](auto const& x, auto const& y, char const* what) {
      for (index_t n = 0; n < x.size(); ++n) require_inside(x.data()[n], y.data()[n], what);
    };
    check(wide.heads[h].out, narrow.heads[h].out, "out");
    check(wide.heads[h].weights, narrow.heads[h].weights, "weight");
    check(wide.heads[h].lse, narrow.heads[h].lse, "lse");
    check(wide.heads[h].ground_weight, narrow.heads[h].ground_weight, "ground weight");
    check(wide.heads[h].threshold, narrow.heads[h].threshold, "threshold");
  }
}

template <class Op>
result run_enclosed(Op const& op, problem const& p) {
  loaded<double> const from(p, false);
  auto const in = view_inputs<Op, any_tensor>(from, p);
  require_digits_inside(op, in);
  auto const e = certify::enclose(op, in, {}, certify::enclosed_weights::all);
  problem_shape const& s = e.extents;
  auto const rows = [&](index_t width, std::vector<double> data) {
    return array{{s.batch, s.heads, s.queries, width}, std::move(data)};
  };
  result r;
  r.out = rows(s.value_width, decided(e.out, "out"));
  r.weights = rows(s.keys, decided(e.weights, "weight"));
  if constexpr (Op::has_lse) r.lse = rows(1, decided(e.lse, "lse"));
  if constexpr (Op::has_ground_weight) r.ground_weight = rows(1, decided(e.ground_weight, "ground weight"));
  if constexpr (Op::has_threshold) r.threshold = rows(1, decided(e.threshold, "threshold"));
  // What the registry wants besides: sums of weights, moving averages; scores and logits to some digits.
  auto const dense = forward(reference<interval>{}, op, in);
  r.scores = r.logits = rows(s.keys, {});
  for (auto const& head : dense.heads)
    for (index_t n = 0; n < head.scores.size(); ++n) {
      bool const seen = head.visible.data()[n];
      r.scores.data.push_back(seen ? double(head.scores.data()[n]) : 0);
      r.logits.data.push_back(seen ? double(head.logits.data()[n]) : 0);
    }
  r.row_sum =
      rows(1, decided(certify::enclosed_by({},
                                           [&] {
                                             std::vector<interval> sums;
                                             for (auto const& head : forward(reference<interval>{}, op, in).heads)
                                               for (index_t i = 0; i < s.queries; ++i) {
                                                 interval sum;
                                                 for (index_t j = 0; j < s.keys; ++j) sum = sum + head.weights(i, j);
                                                 sums.push_back(sum);
                                               }
                                             return sums;
                                           }),
                      "row sum"));
  r.average = average_of<double>(op);
  if (!r.average.empty())
    r.average.data = decided(certify::enclosed_by({},
                                                  [&] {
                                                    std::vector<interval> averages;
                                                    for_each_average(op, [&](parameter const& x) {
                                                      for (index_t h = 0; h < x.extents().head; ++h)
                                                        averages.push_back(x.template value<interval>(0, h, 0));
                                                    });
                                                    return averages;
                                                  }),
                             "moving average");
  return r;
}

template <class Op>
gradients vjp_enclosed(Op const& op, problem const& p, cotangent const& by, slot_names const& names) {
  loaded<double> const from(p, false);
  loaded_cotangents<double> const d(by, false);
  auto const in = view_inputs<Op, any_tensor>(from, p);
  auto const cotangents = d.template views<Op, any_tensor>();
  gradients places;  // for each gradient its place among the intervals
  auto const enclosed = [&] {
    std::vector<interval> all;
    places = named_gradients(vjp(reference<interval>{}, op, in, cotangents), p, names, [&](interval const& x) {
      all.push_back(x);
      return double(all.size() - 1);
    });
    return all;
  };
  auto const wide = [&] {
    certify::working_precision const coarse(coarse_bits);
    return enclosed();
  }();
  std::size_t n = 0;
  named_gradients(vjp(reference<digits>{}, op, in, cotangents), p, names, [&](digits const& x) {
    require_inside(wide.at(n++), x, "gradient");
    return 0.;
  });
  auto const numbers = certify::enclosed_by({}, enclosed);
  for (auto& [name, a] : places)
    for (double& x : a.data) x = decided(numbers.at(std::size_t(x)), "gradient of " + name);
  return places;
}

inline std::string in_full(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", x);
  return text;
}

/// Throws where one of the numbers is farther from the exact ones than is promised; absent outputs and promises hold.
inline void hold(array const& computed, std::vector<enclosed_number> const& exact,
                 std::vector<certify::bounded_number> const& promised, std::string const& what) {
  for (std::size_t n = 0; n < promised.size() && !computed.empty(); ++n)
    if (double const share = certify::used_share(computed.data.at(n), exact.at(n), promised[n]); share > 1)
      throw std::runtime_error(what + " " + std::to_string(n) + " is " + in_full(computed.data[n]) + ", off by " +
                               in_full(share) + " times its bound of " + in_full(promised[n].bound) + " from " +
                               in_full(exact.at(n).lower));
}

/// What an executor computed in this format, unless it breaks a bound.
template <class Op>
result held_to_bounds(Op const& op, problem const& p, certify::storage computed_in, result r) {
  loaded<double> const from(p, false);
  auto const in = view_inputs<Op, any_tensor>(from, p);
  auto const exact = certify::enclose(op, in);
  auto const bounds = certify::error_bound(op, in, computed_in);
  hold(r.out, exact.out, bounds.out, "out");
  hold(r.lse, exact.lse, bounds.lse, "lse");
  hold(r.ground_weight, exact.ground_weight, bounds.ground_weight, "ground weight");
  return r;
}

/// The same of gradients by the inputs; those of candidate sets have no bounds.
template <class Op>
gradients gradients_held_to_bounds(Op const& op, problem const& p, cotangent const& by, certify::storage computed_in,
                                   gradients g) {
  if constexpr (Op::normalizer_policy::traits.family != row_family::sparse_support) {
    loaded<double> const from(p, false);
    loaded_cotangents<double> const d(by, false);
    auto const in = view_inputs<Op, any_tensor>(from, p);
    auto const cotangents = d.template views<Op, any_tensor>();
    // An enclosure is enough, correct rounding is not asked for: more bits would only be spent on kinks.
    auto const exact = certify::enclose_vjp(op, in, cotangents, {.most_bits = 256});
    auto const bounds = certify::gradient_error_bound(op, in, cotangents, computed_in);
    for (int f = 0; f < int(field_count); ++f)
      if (auto const x = g.find(name_of(field(f))); x != g.end())
        hold(x->second, exact.of(field(f)).values, bounds.of(field(f)), "gradient of " + x->first);
  }
  return g;
}

}  // namespace detail

/// Makes this function another one than that of instances/instance.hpp for the linker.
struct enclosed_run;

template <class Run = enclosed_run, class K, class L, class G, class N, class... Post>
void add(std::map<std::string, entry>& to, named<K> const& kernel, named<L> const& length_scale, named<G> const& gate,
         named<N> const& normalizer, named<Post> const&... post) {
  std::string name = kernel.name + "/" + length_scale.name + "/" + gate.name + "/" + normalizer.name;
  ((name += "/" + post.name), ...);
  auto const found = to.find(name);
  if (found == to.end()) throw std::logic_error("tests/enclosure: " + name + " is not in the registry");
  entry& e = found->second;
  auto const make = [=](parameter_source const& from, mask::runtime const& mask) {
    return attention(kernel.make(from), length_scale.make(from), gate.make(from), normalizer.make(from),
                     post.make(from)..., mask);
  };
  e.run = [make, other = e.run](problem const& p, backend on, options const& o) {
    if (!o.cuts.empty() || on == backend::reference_double) return other(p, on, o);
    auto const op = make(parameter_source(p), detail::mask_of(p));
    if (on == backend::reference_50) return detail::run_enclosed(op, p);
    return detail::held_to_bounds(op, p, detail::format_of(on), other(p, on, o));
  };
  problem recorded;
  auto const names = detail::names_of_slots(make(parameter_source::recording(recorded), {}), recorded);
  e.vjp = [make, names, other = e.vjp](problem const& p, backend on, cotangent const& by, options const& o) {
    if (on == backend::reference_double) return other(p, on, by, o);
    auto const op = make(parameter_source(p), detail::mask_of(p));
    if (on == backend::reference_50) return detail::vjp_enclosed(op, p, by, names);
    return detail::gradients_held_to_bounds(op, p, by, detail::format_of(on), other(p, on, by, o));
  };
}

}  // namespace attune::instances
