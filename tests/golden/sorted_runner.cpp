// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// sorted_window and topk_captured_mass (cases/README.md, section 8): windows of a sorted cache, what they hold and
// leave out.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <boost/math/special_functions/erf.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>

#include <attune/line/decode.hpp>

#include "plan.hpp"
#include "runner.hpp"

namespace attune::golden {
namespace {

using instances::backend;

std::vector<double> const& input(golden_case const& c, char const* name) {
  auto const found = c.inputs.find(name);
  if (found == c.inputs.end()) throw unplannable(std::string("has no input ") + name);
  return found->second.data;
}
double parameter_of(golden_case const& c, std::string const& name) {
  auto const value = numeric_param(c, name);
  if (!value) throw unplannable("has no parameter " + name);
  return *value;
}

/// A sorted_window case.
struct window_case {
  double query = 0, tau = 0, bound = 0, eps = 0, density = 0;
  index k = 0;
  std::string mode;
  std::vector<double> keys, dot, values;
  index width = 0;

  index size() const { return index(keys.size()); }
  std::vector<double> value(index j) const { return {values.begin() + j * width, values.begin() + (j + 1) * width}; }
};

window_case read(golden_case const& c) {
  window_case w;
  w.query = input(c, "qs").at(0);
  w.tau = input(c, "tau").at(0);
  w.keys = input(c, "ks");
  w.values = input(c, "v");
  w.width = c.inputs.at("v").shape.at(1);
  if (c.inputs.count("dot") > 0) w.dot = input(c, "dot"), w.bound = parameter_of(c, "dot_bound");
  w.mode = text_param(c, "mode").value_or("");
  if (w.mode == "radius")
    w.eps = parameter_of(c, "eps"), w.density = parameter_of(c, "density");
  else if (w.mode == "half" || w.mode == "nearest")
    w.k = index(parameter_of(c, "k"));
  else
    throw unplannable("has the unknown mode " + w.mode);
  return w;
}

std::vector<double> scores_of(window_case const& w) {
  std::vector<double> s;
  for (std::size_t j = 0; j < w.keys.size(); ++j)
    s.push_back((w.dot.empty() ? 0.0 : w.dot[j]) - (w.query - w.keys[j]) * (w.query - w.keys[j]) / w.tau);
  return s;
}

double norm(std::vector<double> const& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }

// ---- the rules as they are written, in any number -------------------------------------------------------------------

using digits50 = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<50>, boost::multiprecision::et_off>;

std::vector<index> sorted_by_key(std::vector<double> const& keys) {
  std::vector<index> p(keys.size());
  std::iota(p.begin(), p.end(), index(0));
  std::stable_sort(p.begin(), p.end(), [&](index a, index b) { return keys[std::size_t(a)] < keys[std::size_t(b)]; });
  return p;
}

template <class Number>
class rules {
 public:
  explicit rules(window_case const& w) : w_(w), perm_(sorted_by_key(w.keys)) { choose(); }

  results all() {
    using std::exp, std::log, std::sqrt;
    index const n = w_.size();
    Number z = 0, z_window = 0, omitted = 0;
    for (index r = 0; r < n; ++r) (r >= lo_ && r < hi_ ? z_window : omitted) += exp(score(r));
    z = z_window + omitted;
    Number tail = 0;
    if (lo_ > 0) tail += Number(double(lo_)) * exp(Number(w_.bound) - square(lo_ - 1));
    if (hi_ < n) tail += Number(double(n - hi_)) * exp(Number(w_.bound) - square(hi_));
    Number const certified = tail / (z_window + tail);
    std::vector<Number> full(std::size_t(w_.width)), window(full);
    for (index r = 0; r < n; ++r)
      for (index d = 0; d < w_.width; ++d) {
        Number const term = exp(score(r)) * Number(w_.values[std::size_t(perm_[std::size_t(r)] * w_.width + d)]);
        full[std::size_t(d)] += term / z;
        if (r >= lo_ && r < hi_) window[std::size_t(d)] += term / z_window;
      }
    Number error = 0, largest = 0;
    for (std::size_t d = 0; d < full.size(); ++d) error += (full[d] - window[d]) * (full[d] - window[d]);
    for (index j = 0; j < n; ++j) {
      Number sum = 0;
      for (double x : w_.value(j)) sum += Number(x) * Number(x);
      if (sum > largest) largest = sum;
    }
    results t;
    t["perm"] = {perm_.begin(), perm_.end()};
    t["insertion"] = {double(insertion_)}, t["lo"] = {double(lo_)}, t["hi"] = {double(hi_)};
    for (index r = lo_; r < hi_; ++r) t["w_window"].push_back(rounded(exp(score(r)) / z_window));
    t["lse_window"] = {rounded(log(z_window))}, t["lse_full"] = {rounded(log(z))};
    for (std::size_t d = 0; d < full.size(); ++d)
      t["o_full"].push_back(rounded(full[d])), t["o_window"].push_back(rounded(window[d]));
    t["true_tail_fraction"] = {rounded(omitted / z)};
    t["certified_tail_fraction"] = {rounded(certified)};
    t["output_error"] = {rounded(sqrt(error))};
    t["output_error_bound_certified"] = {rounded(Number(2) * certified * sqrt(largest))};
    t["erfc_uniform_tail"] = {lo_ == 0 && hi_ == n ? 0 : rounded(complement(nearest_omitted() / sqrt(Number(w_.tau))))};
    if (w_.mode == "radius") {
      t["radius"] = {rounded(radius())};
      t["expected_keys_uniform_density"] = {rounded(Number(2) * radius() * Number(w_.density))};
    }
    return t;
  }

 private:
  static double rounded(Number const& x) { return static_cast<double>(x); }
  static double complement(double x) { return std::erfc(x); }
  static digits50 complement(digits50 const& x) { return boost::math::erfc(x); }

  Number key(index r) const { return Number(w_.keys[std::size_t(perm_[std::size_t(r)])]); }
  Number distance(index r) const {
    Number const e = Number(w_.query) - key(r);
    return e < 0 ? Number(-e) : e;
  }
  Number square(index r) const { return distance(r) * distance(r) / Number(w_.tau); }
  Number score(index r) const {
    Number const dot = w_.dot.empty() ? Number(0) : Number(w_.dot[std::size_t(perm_[std::size_t(r)])]);
    return dot - square(r);
  }
  Number radius() const {
    using std::log, std::sqrt;
    return sqrt(Number(-Number(w_.tau) * log(Number(w_.eps))));
  }
  Number nearest_omitted() const {
    Number const below = lo_ > 0 ? distance(lo_ - 1) : distance(hi_);
    return hi_ < w_.size() && distance(hi_) < below ? distance(hi_) : below;
  }
  void choose() {
    index const n = w_.size();
    insertion_ = std::count_if(w_.keys.begin(), w_.keys.end(), [&](double k) { return k < w_.query; });
    lo_ = hi_ = insertion_;
    if (w_.mode == "half") {
      lo_ = std::max<index>(0, insertion_ - w_.k / 2);
      hi_ = std::min(n, insertion_ + w_.k - w_.k / 2);
    } else if (w_.mode == "nearest") {
      while (hi_ - lo_ < std::min(w_.k, n)) hi_ == n || (lo_ > 0 && distance(lo_ - 1) <= distance(hi_)) ? --lo_ : ++hi_;
    } else {
      while (lo_ > 0 && distance(lo_ - 1) <= radius()) --lo_;
      while (hi_ < n && distance(hi_) <= radius()) ++hi_;
    }
  }

  window_case const& w_;
  std::vector<index> perm_;
  index insertion_ = 0, lo_ = 0, hi_ = 0;
};

// ---- the cache ------------------------------------------------------------------------------------------------------

template <class T>
std::vector<T> as(std::vector<double> const& x) {
  return {x.begin(), x.end()};
}

/// The keys of a case, with the values given or with unit vectors, so that the output is the weights.
template <class T>
line::sorted_cache<T> filled(window_case const& w, bool weights) {
  index const n = w.size();
  line::sorted_cache<T> kv({.key_width = w.dot.empty() ? 0 : 1, .value_width = weights ? n : w.width});
  for (index j = 0; j < n; ++j) {
    std::vector<T> unit(weights ? std::size_t(n) : 0);
    if (weights) unit[std::size_t(j)] = 1;
    T const key = T(w.keys[std::size_t(j)]), dot = w.dot.empty() ? T(0) : T(w.dot[std::size_t(j)]);
    kv.insert({&key, 1}, weights ? unit : as<T>(w.value(j)), {&dot, w.dot.empty() ? 0u : 1u});
  }
  return kv;
}

struct decoded_row {
  std::vector<double> out;
  line::row_report report;
};

template <class T, class Window>
decoded_row decode_row(line::sorted_cache<T> const& kv, window_case const& w, Window const& window) {
  T const query = T(w.query), one = 1;
  shape const number{1, 1, 1, 1};
  std::vector<T> out(std::size_t(kv.layout().value_width));
  decoded_row r;
  attune::tensor<T const> const q = w.dot.empty() ? attune::tensor<T const>{} : attune::tensor<T const>(&one, number);
  line::queries<T> const in{.sort_q = {&query, number}, .q = q};
  line::decoded<T> const to{.out = {out, {1, 1, 1, kv.layout().value_width}}, .rows = {&r.report, 1}};
  if (w.dot.empty())
    attune::decode(cpu<T>{1}, line::windowed{w.tau, window}, kv, in, to);
  else
    attune::decode(cpu<T>{1}, line::hybrid{w.tau, window, mask::none{}, line::no_sink{}, 1.0}, kv, in, to);
  r.out.assign(out.begin(), out.end());
  return r;
}

template <class T>
decoded_row decode_window(line::sorted_cache<T> const& kv, window_case const& w) {
  if (w.mode == "half") return decode_row(kv, w, line::half{w.k});
  return w.mode == "nearest" ? decode_row(kv, w, line::nearest{w.k}) : decode_row(kv, w, line::radius{w.eps});
}

template <class T>
results run_window(window_case const& w) {
  auto const kv = filled<T>(w, false), units = filled<T>(w, true);
  line::nearest const everything{w.size()};
  decoded_row const window = decode_window(kv, w), full = decode_row(kv, w, everything),
                    weights = decode_window(units, w), all_weights = decode_row(units, w, everything);
  index const n = w.size(), lo = window.report.lower, hi = window.report.upper;
  double const infinity = std::numeric_limits<double>::infinity();
  std::vector<index> perm;
  std::vector<double> keys;
  kv.scan(0, -infinity, infinity, [&](T key, line::token id) {
    perm.push_back(index(id));
    keys.push_back(double(key));
  });
  double omitted = 0, distance = infinity;
  results t;
  for (index r = 0; r < n; ++r) {
    auto const j = std::size_t(perm[std::size_t(r)]);
    if (r >= lo && r < hi) {
      t["w_window"].push_back(weights.out[j]);
    } else {
      omitted += all_weights.out[j];
      distance = std::min(distance, std::abs(w.query - keys[std::size_t(r)]));
    }
  }
  t["perm"] = {perm.begin(), perm.end()};
  t["insertion"] = {double(window.report.insertion)}, t["lo"] = {double(lo)}, t["hi"] = {double(hi)};
  t["lse_window"] = {window.report.lse}, t["lse_full"] = {full.report.lse};
  t["o_window"] = window.out, t["o_full"] = full.out;
  t["true_tail_fraction"] = {omitted};
  t["certified_tail_fraction"] = {window.report.discarded_by_ends};
  std::vector<double> difference = full.out;
  for (std::size_t d = 0; d < difference.size(); ++d) difference[d] -= window.out[d];
  t["output_error"] = {norm(difference)};
  t["output_error_bound_certified"] = {2 * window.report.discarded_by_ends * kv.value_bound(0)};
  t["erfc_uniform_tail"] = {hi - lo == n ? 0 : line::uniform_tail(distance, w.tau)};
  if (w.mode == "radius") {
    double const radius = line::radius_of(w.tau, w.eps);
    t["radius"] = {radius};
    t["expected_keys_uniform_density"] = {line::expected_keys(radius, w.density)};
  }
  return t;
}

results window_on(backend executor, window_case const& w) {
  switch (executor) {
    case backend::reference_double:
      return rules<double>(w).all();
    case backend::reference_50:
      return rules<digits50>(w).all();
    case backend::cpu_float:
      return run_window<float>(w);
    case backend::cpu_double:
      break;
  }
  return run_window<double>(w);
}

// ---- what the nearest keys hold -------------------------------------------------------------------------------------

/// A cache of bare keys, or of keys and values.
template <class T>
line::sorted_cache<T> filled(std::vector<double> const& keys, std::vector<double> const& values, index width) {
  line::sorted_cache<T> kv({.value_width = width});
  for (std::size_t j = 0; j < keys.size(); ++j) {
    T const key = T(keys[j]);
    std::vector<double> const v(values.begin() + index(j) * width, values.begin() + index(j + 1) * width);
    kv.insert({&key, 1}, as<T>(v));
  }
  return kv;
}
template <class T>
line::sorted_cache<T> filled(std::vector<double> const& keys) {
  return filled<T>(keys, std::vector<double>(keys.size()), 1);
}

/// The k tokens nearest to a query; at equal distances those of lower index.
template <class T>
std::vector<std::size_t> nearest_tokens(line::sorted_cache<T> const& kv, double query, index k) {
  T const q = T(query);
  T out = 0;
  line::row_report report;
  attune::decode(cpu<T>{1}, line::windowed{1, line::nearest{k}}, kv, {.sort_q = {&q, {1, 1, 1, 1}}},
                 {.out = {&out, {1, 1, 1, 1}}, .rows = {&report, 1}});
  // Windows take the lower side of equal distances, this rule the lower index: the keys as far as the farthest are
  // looked at again.
  double reach = 0;
  kv.keys(0).blocks(report.lower, report.upper, [&](auto const& block, std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t i = first; i < last; ++i) reach = std::max(reach, std::abs(query - double(block.key[i])));
  });
  std::vector<std::pair<double, std::size_t>> within;
  kv.scan(0, query - reach, query + reach,
          [&](T key, line::token id) { within.emplace_back(std::abs(query - double(key)), std::size_t(id)); });
  std::sort(within.begin(), within.end());
  std::vector<std::size_t> tokens;
  for (auto const& [distance, id] : within)
    if (index(tokens.size()) < k) tokens.push_back(id);
  return tokens;
}

/// The part of each row's weight that the k nearest keys hold. Number: of the sums.
template <class T, class Number>
results captured(golden_case const& c) {
  auto const &weights = input(c, "w"), &queries = input(c, "qs"), &keys = input(c, "ks");
  auto const kv = filled<T>(keys);
  results t;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    double const* const w = weights.data() + i * keys.size();
    Number all = 0;
    for (std::size_t j = 0; j < keys.size(); ++j) all += Number(w[j]);
    for (auto const& k : c.params.at("k")) {
      Number sum = 0;
      for (std::size_t const j : nearest_tokens(kv, queries[i], k.get<index>())) sum += Number(w[j]);
      t["captured"].push_back(static_cast<double>(Number(sum / all)));
    }
  }
  return t;
}

results captured_on(backend executor, golden_case const& c) {
  switch (executor) {
    case backend::reference_50:
      return captured<double, digits50>(c);
    case backend::cpu_float:
      return captured<float, double>(c);
    case backend::reference_double:
    case backend::cpu_double:
      break;
  }
  return captured<double, double>(c);
}

}  // namespace

outcome run_cache_rule(golden_case const& c, registry const&, backend executor) {
  if (c.operation == "topk_captured_mass") return compared(c, captured_on(executor, c), 1, executor);
  window_case const w = read(c);
  return compared(c, window_on(executor, w), logit_magnitude(scores_of(w)), executor);
}

}  // namespace attune::golden
