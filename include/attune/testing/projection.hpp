// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   theta = <r, D> / <D, D>      r: the residual, D: the effect of a defect, in the metric of the expected errors
//   power = <drift, |D|> / <D, D>  +  gate * the deviation of <scatter, D> / <D, D>
//
// The part of a verdict that does not depend on attention: numbers, directions, and residuals.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <attune/testing/judging/energy.hpp>
#include <attune/testing/judging/evidence/compared.hpp>
#include <attune/testing/judging/evidence/noise_fit.hpp>
#include <attune/testing/judging/evidence/residuals.hpp>
#include <attune/testing/judging/regions.hpp>
#include <attune/testing/verdict_options.hpp>
#include <attune/testing/verdict_report.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing::detail {

/// How much larger a sum over the features of a row is than with independent errors. `shared` features have an error of
/// rounded weights in common; storage rounds each feature by itself.
inline double together(bounded_number const& x, double shared, storage out) {
  if (!(shared > 1) || !(x.scatter > 0)) return 1;
  double const stored = format_of(out).unit * std::fabs(x.value) / std::sqrt(3.),
               alone = std::fmin(1, stored * stored / (x.scatter * x.scatter));
  return std::sqrt(alone + (1 - alone) * shared);
}

/// The residuals of a sample of numbers, and the part of them that a direction explains, in every region.
class projections : public residuals {
 public:
  projections(double gate, regions const& all) : gate_(gate), all_(all) {}

  /// How many projections of one direction are tested.
  index_t tests() const { return index_t(all_.count()); }

  /// Fills in estimate, z, power, gain, shares and region of a finding whose direction is `along`. parts: whether the
  /// finding may hold in one region alone.
  finding judged(finding f, std::vector<double> const& along, bool parts = true) const {
    f.directed = true;
    std::vector<sums> of(std::size_t(all_.count())), of_box(of.size());
    bool const by_box = parts && std::any_of(boxes_.begin(), boxes_.end(), [](auto& x) { return is_part(x); });
    for (std::size_t k = 0; k < runs_.size(); ++k) {
      sums of_run, of_wrong;
      in_box const wrong(*this, k, by_box);
      for (std::size_t n = runs_[k].first; n < end_of(k); ++n) {
        if (!usable_[n]) continue;
        if (!std::isfinite(along[n])) {  // the defect reads a NaN or infinity, and the kernel does not
          f.power = f.power_of_part = 0;
          return f;
        }
        if (along[n] == 0) continue;
        sums const one = sums_of(n, along[n]);
        of_run.add(one);
        if (by_box && wrong.has(n - runs_[k].first)) of_wrong.add(one);
      }
      for (int id : ids_[row_[runs_[k].first]]) {
        of[std::size_t(id)].add(of_run);
        if (by_box) of_box[std::size_t(id)].add(of_wrong);
      }
    }
    f.power = f.power_of_part = math::infinity<double>();
    if (of[0].square == 0 || of[0].noise_square == 0 || of[0].allowed / of[0].noise_square > 1e12) {
      f.tested = false;
      return f;
    }
    add_variances(of, along);
    if (by_box) add_variances(of_box, along);
    std::vector<int> shown{0};
    sums best = of[0];
    f.power_of_part = f.power = power_of(best);
    double gain = gain_of(f, best);
    bool box = false;
    auto const better = [&](sums const& together, std::vector<int> const& members, double by) {
      double const explains = gain_of(f, together);
      if (!(explains > by * std::fmax(gain, 0.))) return false;
      gain = explains, best = together, shown = members;
      return true;
    };
    for (int k = 1; k < regions::kinds && parts; ++k) {
      std::vector<int> members;
      sums together;
      for (int id = 0; id < all_.count(); ++id) {
        sums const& s = of[std::size_t(id)];
        if (all_.at(id).by != regions::kind(k) || s.noise_square == 0) continue;
        // Blocks of rows may hardly see a defect, and dk says little about a defect that dq shows.
        if (k >= int(regions::kind::batch) && !regions::is_range(regions::kind(k)))
          f.power_of_part = std::fmax(f.power_of_part, power_of(s));
        take(f, s, id, together, members);
      }
      if (!members.empty() && !is_contradicted(k, members)) better(together, members, 1.1);
    }
    constexpr index_t few = 32;  // numbers that resemble anything
    if (by_box && of_box[0].count >= few && of_box[0].noise_square > 0) box = better(of_box[0], {0}, 1.02);
    f.estimate = best.product / best.square;
    f.z = z_of(best);
    f.gain = gain;
    auto const [total, numbers] = to_explain();
    f.doubt = std::sqrt(total / best.square / std::fmax(numbers, 1.));
    f.where = box ? words_of_boxes() : all_.words(shown);
    fill_shares(f, along, shown, box);
    // Present or not: of a defect that is present, the residual has all, and not another multiple.
    f.partial = !f.parameter && !(f.estimate > 0.8 && f.estimate < 1.2);
    return f;
  }

  /// A finding that is noise, as fitted_noise has it.
  finding judged_as_noise(finding f, std::vector<double> const& size, double least, double most,
                          std::vector<int> const& in) const {
    noise_fit fit(gate_, all_.count());
    for (std::size_t n = 0; n < size.size(); ++n) {
      std::vector<int> const& ids = ids_[row_[n]];
      if (usable_[n] && metric_[n] > 0 && size[n] > 0 && is_in(ids, in))
        fit.add({residual_[n], 1 / noise_weight_[n], size[n], negative_[n], row_[n], &ids});
    }
    f.last_resort = true;
    f.power = f.power_of_part = math::infinity<double>();
    f.where = all_.words(in);
    f.tested = fit.fits(least, most);
    f.estimate = fit.size();
    if (!f.tested) return f;
    f.z = fit.z();
    f.share = fit.share();
    f.partial = !fit.is_certain();
    for (int output : unexplained_) {
      bool any = false;
      for (std::size_t n = 0; n < size.size() && !any; ++n)
        any = size[n] > 0 && output_[n] == output && is_in(ids_[row_[n]], in);
      f.alone.push_back({f.estimate, any ? f.share : 0});
    }
    for (auto const& x : f.alone) f.share = std::fmin(f.share, x.share);
    f.gain = f.share * excess();
    return f;
  }

 private:
  static bool is_in(std::vector<int> const& ids, std::vector<int> const& parts) {
    return parts.empty() || std::any_of(ids.begin(), ids.end(), [&](int id) {
             return std::find(parts.begin(), parts.end(), id) != parts.end();
           });
  }
  /// Of a direction in a region: with the metric, and with the weights of noise.
  struct sums {
    double square = 0, product = 0, noise_square = 0, noise_product = 0, allowed = 0, variance = 0;
    index_t count = 0;
    void add(sums const& x) {
      count += x.count;
      square += x.square;
      product += x.product;
      noise_square += x.noise_square;
      noise_product += x.noise_product;
      allowed += x.allowed;
      variance += x.variance;
    }
  };
  sums sums_of(std::size_t n, double along) const {
    double const x = along * metric_[n], y = along * noise_weight_[n];
    sums s{along * x, residual_[n] * x, along * y, residual_[n] * y, drift_[n] * std::fabs(y), 0, 1};
    if (!equal_[n]) s.variance = y * scatter_[n] * y * scatter_[n];
    return s;
  }
  double power_of(sums const& s) const { return (s.allowed + gate_ * std::sqrt(s.variance)) / s.noise_square; }
  double z_of(sums const& s) const { return gate_ * s.noise_product / s.noise_square / power_of(s); }
  static double gain_of(finding const& f, sums const& s) {
    double const theta = f.parameter ? s.product / s.square : 1;  // a defect is either present or not
    return theta * (2 * s.product - theta * s.square);
  }
  /// Adds a region that shows a finding to others with the same sign.
  void take(finding const& f, sums const& s, int id, sums& together, std::vector<int>& members) const {
    if (s.noise_square == 0) return;
    double const z = z_of(s);
    if (!((f.parameter ? std::fabs(z) : z) > gate_)) return;
    if (!members.empty() && (s.product < 0) != (together.product < 0)) return;
    members.push_back(id);
    together.add(s);
  }
  /// Whether other regions of the kind hold much of the excess. Rows are sampled; the energies see all.
  bool is_contradicted(int kind, std::vector<int> const& members) const {
    double inside = 0, all = 0;
    for (std::size_t id = 0; id < excess_.size(); ++id) {
      if (int(all_.at(int(id)).by) != kind) continue;
      all += excess_[id];
      if (std::find(members.begin(), members.end(), int(id)) != members.end()) inside += excess_[id];
    }
    return inside < 0.75 * all;
  }
  static bool is_part(wrong_part const& x) { return !x.box.feature.empty(); }
  /// Whether the numbers of a run are in the wrong part of their output.
  class in_box {
   public:
    in_box(projections const& of, std::size_t run, bool used) {
      std::size_t const output = std::size_t(of.output_[of.runs_[run].first]);
      if (!used || output >= of.boxes_.size() || !is_part(of.boxes_[output])) return;
      index_box const& box = of.boxes_[output].box;
      shape const& at = of.places_[of.row_[of.runs_[run].first]];
      has_row_ =
          box.batch[std::size_t(at.batch)] && box.head[std::size_t(at.head)] && box.position[std::size_t(at.position)];
      features_ = &box.feature;
    }
    bool has(std::size_t feature) const { return has_row_ && (features_ == nullptr || (*features_)[feature]); }

   private:
    bool has_row_ = true;
    std::vector<bool> const* features_ = nullptr;
  };
  std::string words_of_boxes() const {
    std::vector<std::string> seen;
    std::string all;
    for (std::size_t n = 0; n < unexplained_.size(); ++n) {
      std::size_t const k = std::size_t(unexplained_[n]);
      if (k >= boxes_.size() || !is_part(boxes_[k])) continue;
      std::string const words = boxes_[k].box.words(boxes_[k].of_keys);
      if (std::find(seen.begin(), seen.end(), words) != seen.end()) continue;
      seen.push_back(words);
      all += (all.empty() ? "in " : " and in ") + words +
             (names_[n].empty() || names_[n] == "out" ? "" : " of " + names_[n]);
    }
    return all;
  }

  /// The part of each output's excess that a finding explains.
  void fill_shares(finding& f, std::vector<double> const& along, std::vector<int> const& shown, bool box) const {
    std::size_t const outputs = std::size_t(outputs_);
    std::vector<sums> of(outputs);
    std::vector<double> total(outputs, 0), expected(outputs, 0);
    for (std::size_t k = 0; k < runs_.size(); ++k) {
      std::size_t const output = std::size_t(output_[runs_[k].first]);
      auto const& ids = ids_[row_[runs_[k].first]];
      bool const has = is_in(ids, shown);
      in_box const wrong(*this, k, box);
      for (std::size_t n = runs_[k].first; n < end_of(k); ++n) {
        if (!usable_[n] || !(noise_weight_[n] > 0)) continue;
        total[output] += residual_[n] * residual_[n] * metric_[n];
        expected[output] += metric_[n] / noise_weight_[n];
        if (has && wrong.has(n - runs_[k].first)) of[output].add(sums_of(n, along[n]));
      }
    }
    double const theta = f.parameter ? f.estimate : 1;
    auto const gain = [&](sums const& s) { return theta * (2 * s.product - theta * s.square); };
    f.alone.clear();
    double least = 1;
    bool any = unexplained_.empty();
    for (int k : unexplained_) {
      sums const& s = of[std::size_t(k)];
      // Common errors vary a lot: where they leave little of a residual, little is known of its excess.
      double const known = common_.empty() ? 0.1 : 0.3,
                   excess = std::fmax(total[std::size_t(k)] - expected[std::size_t(k)], known * total[std::size_t(k)]);
      double const own = s.square > 0 ? s.product / s.square : 0, by = f.parameter ? own : 1;
      f.alone.push_back({own, std::clamp(by * (2 * s.product - by * s.square) / std::fmax(excess, 1e-300), 0., 1.)});
      if (f.of_inputs && std::find(parameters_.begin(), parameters_.end(), k) != parameters_.end()) continue;
      any = true;
      least = std::fmin(least, gain(s) / std::fmax(excess, 1e-300));
    }
    f.share = 0;
    if (!any) return;
    if (unexplained_.empty()) least = f.gain / std::fmax(excess(), 1e-300);
    // A finding that changes an output, and the output does not change like this, is wrong.
    for (std::size_t k = 0; k < outputs; ++k) {
      if (!(theta * theta * of[k].noise_square > 2 * gate_ * gate_ && gain(of[k]) < 0)) continue;
      least = 0;
      if (!must_be_explained(int(k))) f.alone.clear();
    }
    f.share = std::clamp(least, 0., 1.);
  }

  void add_variances(std::vector<sums>& of, std::vector<double> const& along) const {
    std::vector<double> sum(of.size(), 0), squares(of.size(), 0);
    std::vector<int> touched;
    for (auto const& group : alike_) {
      for (std::uint32_t n : group) {
        if (!usable_[n]) continue;  // a direction may be infinite there
        double const x = along[n] * noise_weight_[n] * scatter_[n];
        if (x == 0) continue;
        for (int id : ids_[row_[n]]) {
          if (squares[std::size_t(id)] == 0) touched.push_back(id);
          sum[std::size_t(id)] += x;
          squares[std::size_t(id)] += x * x;
        }
      }
      for (int id : touched) {
        std::size_t const n = std::size_t(id);
        of[n].variance += std::fmax(sum[n] * sum[n], squares[n]);
        sum[n] = squares[n] = 0;
      }
      touched.clear();
    }
    for (auto const& noise : common_) {
      std::vector<double> response(of.size(), 0);
      for (std::size_t k = 0; k < runs_.size(); ++k) {
        double x = 0;
        for (std::size_t n = runs_[k].first; n < end_of(k); ++n)
          if (usable_[n]) x += along[n] * noise_weight_[n] * noise[n];
        if (x == 0) continue;
        for (int id : ids_[row_[runs_[k].first]]) response[std::size_t(id)] += x;
      }
      // 1.5: the variance of so few samples may come out too small.
      for (std::size_t n = 0; n < of.size(); ++n)
        of[n].variance += 1.5 * response[n] * response[n] / double(common_.size());
    }
  }

  double gate_;
  regions const& all_;
};

}  // namespace attune::testing::detail
