// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "print.hpp"

#include <algorithm>

namespace demo {

namespace {

void print_presets(std::ostream& to, study_result const& r) {
  to << "                     largest error, of the bound             ";
  for (int const n : r.options.layers) to << text(" layer %-9d ", n);
  to << "   time\npreset      mask     cpu:double  cpu:50d  double:50d       ";
  for (std::size_t n = 0; n < r.options.layers.size(); ++n) to << "  ground  H/nats";
  to << "  rel.\n";
  double const base = r.presets.front().time;
  for (preset_result const& p : r.presets) {
    std::vector<head_report> all;
    for (auto const& [number, heads] : p.heads) all.insert(all.end(), heads.begin(), heads.end());
    head_report const worst = summary(all);
    to << text("%-11s %-7s  %10.3f  %7.3f  %10.3f       ", p.name.c_str(), p.mask.c_str(), worst.error / error_limit,
               worst.digits_error / error_limit, worst.reference_error / error_limit);
    for (auto const& [number, heads] : p.heads) {
      head_report const mean = summary(heads);
      to << text("  %6.3f  %6.2f", mean.ground, mean.entropy);
    }
    to << text("  %5.2f\n", p.time / base);
  }
}

grid_result const* find(study_result const& r, principled_choice const& c) {
  for (grid_result const& g : r.grid)
    if (g.choice.alpha == c.alpha && g.choice.beta == c.beta && g.choice.gamma == c.gamma &&
        g.choice.ground_value == c.ground_value)
      return &g;
  return nullptr;
}

void print_grid(std::ostream& to, study_result const& r) {
  to << "alpha      beta      ";
  for (granularity const g : granularities) to << text("  gamma %-9s", name(g));
  to << "\n";
  for (granularity const a : granularities)
    for (granularity const b : granularities) {
      to << text("%-9s  %-9s ", name(a), name(b));
      for (granularity const g : granularities) {
        grid_result const *zero = find(r, {a, b, g, false}), *valued = find(r, {a, b, g, true});
        grid_result const* const any = zero ? zero : valued;
        if (any)
          to << text("   %5.3f  %5.3f ", any->all.ground,
                     std::max(zero ? zero->all.error : 0, valued ? valued->all.error : 0) / error_limit);
        else
          to << "       -      - ";
      }
      to << "\n";
    }
}

}  // namespace

void print_tables(std::ostream& to, study_result const& r) {
  layer const& first = r.layers.front();
  auto const layers = r.layers.size();
  to << text(
      "Alice in Wonderland, %zu layer%s x %td heads x %td tokens, width %td, scale 1/sqrt(%td). cpu<float>, %d "
      "thread%s.\n\n",
      layers, layers == 1 ? "" : "s", first.heads, first.length, first.width, first.width, r.options.threads,
      r.options.threads == 1 ? "" : "s");
  print_presets(to, r);
  to << text(
      "\n"
      "cpu:double  cpu<float> against reference<double>, every element of every row\n"
      "cpu:50d     cpu<float> against reference<digits50>, 2 rows per head; double:50d  reference<double> against the "
      "same\n"
      "bound       eps x condition; eps is 2^-23 for float, 2^-52 for double; condition is (1 + the largest number in "
      "a "
      "row's\n"
      "            logits) x the largest |value|, condition.hpp has the formula. An error above 1 bound fails.\n"
      "ground, H   mean ground (sink) weight w0; mean entropy of the weights, ground included\n"
      "time        processor time of one thread, layer %d, medians of interleaved calls; 1.00 is %.2f ms\n\n",
      r.options.grid_layer, 1e3 * r.presets.front().time);
  std::vector<double> times;
  for (grid_result const& g : r.grid) times.push_back(g.relative_time);
  std::sort(times.begin(), times.end());
  to << text(
      "Principled Attention, %zu variants of one operator type on layer %d: mean ground weight, and the largest error "
      "over\n"
      "v0 = 0 and v0 per head against reference<double> (1 row in %td of every head; together they cover all rows)\n\n",
      r.grid.size(), r.options.grid_layer, r.grid_step);
  print_grid(to, r);
  to << text("\ntime of the variants relative to softmax (%td heads): median %.2f, nine in ten below %.2f\n",
             r.timed_heads, times[times.size() / 2], times[9 * times.size() / 10]);
  to << text("Principled Attention with everything off against softmax, cpu<float>: %s\n",
             r.all_off_difference == 0 ? "the same bit for bit"
                                       : text("largest difference %.1e", r.all_off_difference).c_str());
  to << text("reference<double> against the model's stored outputs (softmax): %.1e, limit %.0e\n", r.stored_error,
             stored_limit);
  to << text("worst error: %.3f of the bound: %s   (%.1f s)\n", r.worst_error() / error_limit,
             r.passed() ? "PASS" : "FAIL", r.seconds);
}

void write_csv(std::ostream& to, study_result const& r) {
  to << "system,mask,layer,head,alpha,beta,gamma,v0,error_cpu_double,error_cpu_50,error_double_50,ground_weight,"
        "entropy_nats,"
        "relative_time\n";
  double const base = r.presets.front().time;
  auto const numbers = [](head_report const& h, double time) {
    return text("%.6g,%.6g,%.6g,%.6g,%.6g,%.4g\n", h.error, h.digits_error, h.reference_error, h.ground, h.entropy,
                time);
  };
  for (preset_result const& p : r.presets)
    for (auto const& [number, heads] : p.heads)
      for (std::size_t h = 0; h < heads.size(); ++h)
        to << p.name << ',' << p.mask << ',' << number << ',' << h << ",,,,," << numbers(heads[h], p.time / base);
  for (grid_result const& g : r.grid)
    to << "principled,none," << r.options.grid_layer << ",all," << name(g.choice.alpha) << ',' << name(g.choice.beta)
       << ',' << name(g.choice.gamma) << ',' << (g.choice.ground_value ? "per head" : "zero") << ','
       << numbers(g.all, g.relative_time);
}

}  // namespace demo
