// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   suspicions<Op> all(call);   all.add(name, look_at, [](sampled_row const& r, std::vector<double>& change) { ... });
//   all.judge_best(rows)
//
// For a verdict that is already FAIL: many mistakes that a kernel may have, of which few are likely. They are compared
// on some of the wrong rows, and the best ones are judged on all.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <attune/core/stable_sort.hpp>
#include <attune/testing/judging/forward/sampled_call.hpp>
#include <attune/testing/judging/other_call.hpp>

namespace attune::testing::detail {

template <class Op>
class suspicions {
 public:
  /// Appends the change of a row to the residual's numbers: out, lse, ground weight.
  using effect = std::function<void(sampled_row const&, std::vector<double>&)>;

  explicit suspicions(sampled_call<Op>& call) : call_(call) {}

  void add(std::string name, std::string_view look_at, effect change) {
    all_.push_back({std::move(name), look_at, [change = std::move(change)] { return change; }});
  }
  /// A row of known_defects, if it applies.
  void add(known_defect const& d) {
    if (!d.applies(call_.facts()) || call_.allows(d.change)) return;
    add(std::string(d.name) + (changes_mask(d.change) ? words_of_mask(call_.op.mask) : ""), d.look_at, d.change);
  }
  void add(std::string name, std::string_view look_at, row_change const& c) {
    add(std::move(name), look_at, [this, c](sampled_row const& r, std::vector<double>& x) {
      call_.append_change(call_.rows.template evaluate<double>(c, r.batch, r.head, r.query), r, x, only_lse(c));
    });
  }
  /// Another call whose rows the kernel may have computed. `make` changes op and in; it may run more than once.
  void add_call(std::string name, std::string_view look_at, std::function<void(other_call<Op>&)> make) {
    all_.push_back({std::move(name), look_at, [this, make = std::move(make)]() -> effect {
                      auto const other = std::make_shared<other_call<Op>>(call_.op, call_.in, call_.p);
                      make(*other);
                      return [this, other](sampled_row const& r, std::vector<double>& x) {
                        call_.append_change(other->rows.template evaluate<double>({}, r.batch, r.head, r.query), r, x);
                      };
                    }});
  }

  /// Judges those that explain most of the given sampled rows.
  void judge_best(std::vector<std::size_t> const& of) {
    constexpr std::size_t rows = 24, kept = 6;
    struct place {
      std::size_t index;
      double gain;
    };
    // Changes of k and of v may be the same change: their gains then differ by rounding, and the first counts.
    auto const rank = [](double gain) { return gain > 0 ? std::round(1e6 * std::log(gain)) : -1e300; };
    std::vector<place> order;
    for (std::size_t n = 0; n < all_.size(); ++n) order.push_back({n, gain_of(all_[n], of, of.size() / rows + 1)});
    attune::detail::sort_stably(order, [&](place const& a, place const& b) { return rank(a.gain) > rank(b.gain); });
    for (std::size_t n = 0; n < (std::min)(kept, order.size()) && order[n].gain > 0; ++n) {
      one const& s = all_[order[n].index];
      finding f;
      f.name = s.name;
      f.look_at = s.look_at;
      f.chosen_from = index_t(all_.size());
      f = call_.seen.judged(f, call_.direction(s.make()));
      f.power = f.power_of_part = math::infinity<double>();  // nothing is promised of it
      call_.report.findings.push_back(std::move(f));
    }
  }

 private:
  struct one {
    std::string name;
    std::string_view look_at;
    std::function<effect()> make;
  };
  /// The part of the residual's square that a change explains, in the heads where it explains any.
  double gain_of(one const& s, std::vector<std::size_t> const& of, std::size_t every) const {
    std::map<index_t, double> by_head;
    std::vector<double> change;
    effect const effect_of = s.make();
    for (std::size_t n = 0; n < of.size(); n += every) {
      sampled_row const& r = call_.sampled[of[n]];
      change.clear();
      effect_of(r, change);
      double& gain = by_head[r.batch * call_.p.heads + r.head];
      for (std::size_t k = 0; k < change.size(); ++k) {
        std::size_t const at = of[n] * call_.step() + k;
        if (call_.seen.metric(at) == 0) continue;
        gain += std::isfinite(change[k]) ? call_.seen.left(at, 0) - call_.seen.left(at, change[k])
                                         : -math::infinity<double>();
      }
    }
    double sum = 0;
    for (auto const& [head, gain] : by_head) sum += std::fmax(gain, 0);
    return sum;
  }

  sampled_call<Op>& call_;
  std::vector<one> all_;
};

}  // namespace attune::testing::detail
