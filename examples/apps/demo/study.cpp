// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "study.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "shared/each.hpp"
#include "shared/progress.hpp"

namespace demo {
namespace {

/// Processor time of this process: on a busy machine the wall clock would time the others.
double processor_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

double median(std::vector<double> x) {
  auto const middle = x.begin() + std::ptrdiff_t(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

/// Median seconds of each experiment on one thread, run in turns so that a disturbance hits all alike.
std::vector<double> time_interleaved(std::vector<experiment const*> const& experiments, layer const& l, index_t heads,
                                     int rounds) {
  std::vector<std::vector<double>> samples(experiments.size());
  computed scratch;
  for (int round = -1; round < rounds; ++round)  // round -1 warms up
    for (std::size_t e = 0; e < experiments.size(); ++e) {
      double const start = processor_seconds();
      experiments[e]->run_again(l, heads, scratch);
      if (round >= 0) samples[e].push_back(processor_seconds() - start);
    }
  std::vector<double> medians;
  for (auto& s : samples) medians.push_back(median(std::move(s)));
  return medians;
}

/// Rough seconds of a head's check, for the progress bar.
constexpr double check_cost = 0.15;

void check_presets(study_result& r, std::vector<experiment> const& experiments, std::vector<magnitudes> const& m,
                   progress& bar) {
  struct task {
    std::size_t experiment, layer;
    index_t head;
  };
  std::vector<task> tasks;
  std::vector<std::vector<computed>> outputs(experiments.size());
  for (std::size_t e = 0; e < experiments.size(); ++e)
    for (std::size_t n = 0; n < r.layers.size(); ++n) {
      layer const& l = r.layers[n];
      outputs[e].push_back(experiments[e].run(l, r.options.threads));
      r.presets[e].heads[l.number].resize(std::size_t(l.heads));
      for (index_t h = 0; h < l.heads; ++h) tasks.push_back({e, n, h});
    }
  each(r.options.threads, std::ptrdiff_t(tasks.size()), [&](std::ptrdiff_t n) {
    task const& t = tasks[std::size_t(n)];
    layer const& l = r.layers[t.layer];
    check_plan plan{.rows = {.head = t.head, .count = l.length},
                    .sample = {(300 + 41 * t.head) % l.length, (17 + 37 * t.head) % l.length},
                    .corner = r.options.corner};
    if (r.options.quick) plan.sample.resize(1);
    r.presets[t.experiment].heads[l.number][std::size_t(t.head)] =
        experiments[t.experiment].check(l, m[t.layer], outputs[t.experiment][t.layer], plan);
    bar.add(check_cost);
  });
  for (auto const& [number, heads] : r.presets.front().heads)
    for (head_report const& head : heads) r.stored_error = std::fmax(r.stored_error, head.stored_error);
}

void check_grid(study_result& r, layer const& l, magnitudes const& m, std::vector<experiment> const& variants,
                progress& bar) {
  each(r.options.threads, std::ptrdiff_t(r.grid.size()), [&](std::ptrdiff_t n) {
    grid_result& to = r.grid[std::size_t(n)];
    computed const out = variants[std::size_t(n)].run(l, 1);
    std::vector<head_report> heads;
    for (index_t h = 0; h < l.heads; ++h) {
      // Phases such that the variants of every (gamma, v0) check all rows between them.
      index_t const first = (n + 3 * (n / 8)) % r.grid_step;
      check_plan plan{.rows = {h, first, r.grid_step, (l.length - first + r.grid_step - 1) / r.grid_step},
                      .sample = {},
                      .corner = 0};
      if (h == (n % 8 + n / 8) % l.heads) plan.sample = {(7 * n) % plan.rows.count};
      heads.push_back(variants[std::size_t(n)].check(l, m, out, plan));
    }
    to.all = summary(heads);
    to.all.ground =
        std::accumulate(out.ground_weight.begin(), out.ground_weight.end(), 0.0) / double(out.ground_weight.size());
    bar.add(check_cost);
  });
}

}  // namespace

head_report summary(std::vector<head_report> const& heads) {
  head_report all;
  auto const keep_worst = [](double& worst, double x) {  // a NaN is the worst and stays
    if (worst == worst && !(x <= worst)) worst = x;
  };
  for (head_report const& h : heads) {
    keep_worst(all.error, h.error);
    keep_worst(all.digits_error, h.digits_error);
    keep_worst(all.reference_error, h.reference_error);
    keep_worst(all.stored_error, h.stored_error);
    all.ground += h.ground / double(heads.size());
    all.entropy += h.entropy / double(heads.size());
  }
  return all;
}

preset_result const& study_result::preset(std::string const& name, std::string const& mask) const {
  for (preset_result const& p : presets)
    if (p.name == name && p.mask == mask) return p;
  throw std::logic_error("no preset " + name + " with mask " + mask);
}

double study_result::worst_error() const {
  std::vector<head_report> all;
  for (preset_result const& p : presets)
    for (auto const& [number, heads] : p.heads) all.insert(all.end(), heads.begin(), heads.end());
  for (grid_result const& g : grid) all.push_back(g.all);
  head_report const worst = summary(all);
  std::vector<double> const kinds{worst.error, worst.digits_error, worst.reference_error};
  for (double const x : kinds)
    if (!(x <= error_limit)) return x;
  return *std::max_element(kinds.begin(), kinds.end());
}

study_result run_study(study_options const& options) {
  study_result r;
  r.options = options;
  if (r.options.threads <= 0) r.options.threads = std::max(1, int(std::thread::hardware_concurrency()));
  if (options.quick) r.options.layers = {options.grid_layer};
  int const threads = r.options.threads;
  index_t const heads = options.quick ? 2 : 0;
  if (options.quick) r.grid_step = 64;

  std::vector<experiment> const presets = preset_experiments();
  std::vector<experiment> variants;
  for (granularity const a : granularities)
    for (granularity const b : granularities)
      for (granularity const g : granularities)
        for (bool const v0 : {false, true}) {
          principled_choice const choice{a, b, g, v0};
          if (options.quick && (5 * int(a) + 3 * int(b) + int(g)) % 16 != (v0 ? 11 : 6)) continue;
          r.grid.push_back({.choice = choice, .all = {}});
          variants.push_back(principled_experiment(choice));
        }

  progress bar(double(presets.size() * r.options.layers.size()) * (options.quick ? 2 : 12) * check_cost +
                   double(variants.size()) * 1.5 * check_cost,
               options.quiet);
  bar.stage("reading activations");
  r.tokens = load_tokens(options.data);
  std::vector<magnitudes> m;
  for (int const number : r.options.layers) {
    layer const& l = r.layers.emplace_back(load_layer(options.data, number, heads));
    if (r.tokens.size() != std::size_t(l.length))
      throw std::runtime_error("alice_tokens.json has " + std::to_string(r.tokens.size()) + " tokens; expected " +
                               std::to_string(l.length) + ", one per position");
    m.push_back(measure(l, threads));
  }
  std::size_t const grid_at = std::size_t(
      std::find(r.options.layers.begin(), r.options.layers.end(), options.grid_layer) - r.options.layers.begin());
  layer const& grid_layer = r.layers.at(grid_at);

  bar.stage("timing, one thread");
  std::vector<experiment const*> timed;
  for (experiment const& e : presets) {
    r.presets.push_back({.name = e.name, .mask = e.mask, .heads = {}});
    timed.push_back(&e);
  }
  auto const times = time_interleaved(timed, grid_layer, grid_layer.heads, options.quick ? 3 : 11);
  for (std::size_t e = 0; e < presets.size(); ++e) r.presets[e].time = times[e];
  r.timed_heads = std::min<index_t>(grid_layer.heads, 3);
  timed.assign(1, &presets.front());
  for (experiment const& e : variants) timed.push_back(&e);
  auto const grid_times = time_interleaved(timed, grid_layer, r.timed_heads, options.quick ? 3 : 5);
  for (std::size_t n = 0; n < variants.size(); ++n) r.grid[n].relative_time = grid_times[n + 1] / grid_times[0];

  bar.stage("presets against the reference and 50 digits");
  check_presets(r, presets, m, bar);
  bar.stage("ablation grid against the reference and 50 digits");
  check_grid(r, grid_layer, m[grid_at], variants, bar);
  computed const softmax = presets.front().run(grid_layer, threads);
  computed const all_off =
      principled_experiment({granularity::off, granularity::off, granularity::off, false}).run(grid_layer, threads);
  for (std::size_t n = 0; n < softmax.out.size(); ++n)
    r.all_off_difference = std::fmax(r.all_off_difference, std::fabs(double(softmax.out[n]) - all_off.out[n]));
  bar.end();
  r.seconds = bar.seconds();
  return r;
}

}  // namespace demo
