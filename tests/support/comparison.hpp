// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A result against the one that it has to agree with, within the certified bounds of its operator (entry::bounds).
#pragma once

#include <cmath>
#include <sstream>
#include <string>

#include "problems.hpp"

namespace attune::test {

/// The numbers of a backend.
struct accuracy {
  double eps;   ///< spacing at 1
  double tiny;  ///< the least weight: results below may be 0
};
inline accuracy accuracy_of(backend b) {
  return b == backend::cpu_float ? accuracy{0x1p-23, 0x1p-96} : accuracy{0x1p-52, 0x1p-992};
}

/// The largest error / bound of a comparison, and in words what failed (empty: nothing).
struct comparison {
  double worst = 0;
  std::string failure;
};

/// Non-finite expectations have to be met exactly (NaN by any NaN), finite ones within the bound.
inline void compare(char const* what, array const& got, array const& expected, array const& bound, comparison& all) {
  if (got.shape != expected.shape || got.data.size() != expected.data.size()) {
    all.failure += std::string(what) + ": wrong shape\n";
    return;
  }
  double worst = 0;
  std::size_t where = 0, failures = 0;
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    double const x = got.data[i], y = expected.data[i];
    bool const same = x == y || (std::isnan(x) && std::isnan(y));
    bool const any = bound.data[i] == infinity;  // beyond what the operator promises
    double const ratio = same || any ? 0 : std::isfinite(y) ? std::fabs(x - y) / bound.data[i] : infinity;
    if (!(ratio <= 1)) ++failures;
    if (!(ratio <= worst) && !std::isnan(worst)) worst = ratio, where = i;
  }
  if (!(worst <= all.worst)) all.worst = worst;
  if (failures == 0) return;
  std::ostringstream text;
  text.precision(17);
  text << what << '[';
  std::size_t rest = where;
  std::vector<std::size_t> axis;
  for (std::size_t i = got.shape.size(); i-- > 0; rest /= to_size(got.shape[i]))
    axis.push_back(rest % to_size(got.shape[i]));
  for (std::size_t i = axis.size(); i-- > 0;) text << axis[i] << (i ? "," : "]");
  text << " got " << got.data[where] << ", expected " << expected.data[where] << ", error / bound " << worst << "; "
       << failures << " of " << got.data.size() << " elements fail\n";
  all.failure += text.str();
}

inline comparison compare(result const& got, result const& expected, bounds const& bound) {
  comparison all;
  compare("out", got.out, expected.out, bound.out, all);
  compare("lse", got.lse, expected.lse, bound.lse, all);
  compare("ground weight", got.ground_weight, expected.ground_weight, bound.ground_weight, all);
  compare("threshold", got.threshold, expected.threshold, bound.threshold, all);
  compare("average", got.average, expected.average, bound.average, all);
  return all;
}

/// What a failure message says about the case: enough to repeat it.
inline std::string describe(entry const& e, backend b, dimensions const& n, std::string const& mask,
                            std::uint64_t seed) {
  std::ostringstream text;
  text << e.name << " on " << instances::name(b) << ", case seed " << seed << ", mask " << mask << ", B " << n.batch
       << ", H " << n.heads << '/' << n.key_heads << '/' << n.value_heads << ", Lq " << n.queries << ", Lk " << n.keys
       << ", D " << n.width << ", Dv " << n.value_width << '\n';
  return text.str();
}

/// Whether two results agree bit for bit (NaN with NaN).
inline bool same_bits(array const& x, array const& y) {
  if (x.shape != y.shape || x.data.size() != y.data.size()) return false;
  for (std::size_t i = 0; i < x.data.size(); ++i)
    if (!(x.data[i] == y.data[i] && std::signbit(x.data[i]) == std::signbit(y.data[i])) &&
        !(std::isnan(x.data[i]) && std::isnan(y.data[i])))
      return false;
  return true;
}
inline bool same_bits(result const& x, result const& y) {
  return same_bits(x.out, y.out) && same_bits(x.lse, y.lse) && same_bits(x.ground_weight, y.ground_weight) &&
         same_bits(x.threshold, y.threshold) && same_bits(x.average, y.average);
}

}  // namespace attune::test
