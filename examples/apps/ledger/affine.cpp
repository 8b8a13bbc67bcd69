// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Affine-Scaled Attention.
#include <cmath>
#include <stdexcept>

#include <attune/analysis/gradient_norms.hpp>
#include <attune/analysis/jacobian.hpp>
#include <attune/analysis/row_shape.hpp>
#include <attune/core/activation.hpp>
#include <attune/core/moving_average.hpp>
#include <attune/policies/normalizer/affine.hpp>
#include <attune/policies/normalizer/off_by_one.hpp>
#include <attune/policies/normalizer/sink.hpp>

#include "common.hpp"

namespace ledger {
namespace {

using attune::normalizer::affine_count;

numbers affine(numbers const& l, double alpha, double average) {
  attune::normalizer::affine<affine_count::visible> policy;
  policy.alpha = alpha;
  policy.average = average;
  return analysis::weights(policy, l);
}
/// K visible keys of N, by hand: the policy counts all keys of its row.
numbers affine_of_total(numbers const& l, double alpha, double average, double total) {
  numbers w = softmax(l);
  for (double& p : w) p = alpha * p + (average - alpha) / total;
  return w;
}

void adaptive_sum(evidence& e) {
  numbers sums;
  rng draw(1);
  numbers const l = draw.normals(9);
  for (double const alpha : {0.0, 0.2, 0.9, 1.0}) sums.push_back(analysis::sum(affine(l, alpha, 0.63)));
  e.refute(largest_difference(sums, numbers(4, 0.63)) < 1e-14,
           "N = the keys that get the bias, average 0.63: alpha = 0, 0.2, 0.9, 1 have row sums ", sums);
  e.on_random("sum w = average for every query, and alpha + K / N (average - alpha) with K of N keys visible",
              [](rng& random) {
                index_t const k = random.between(1, 20), n = k + random.between(0, 100);
                double const alpha = random.uniform(), average = random.uniform();
                numbers const logits = random.normals(k);
                return close(analysis::sum(affine(logits, alpha, average)), average) &&
                       close(analysis::sum(affine_of_total(logits, alpha, average, double(n))),
                             alpha + double(k) / double(n) * (average - alpha));
              });
}

void sequence_length(evidence& e) {
  double const alpha = 0.2, average = 0.9, total = 2048;
  double const first = analysis::sum(affine_of_total(numbers(1, 0.0), alpha, average, total)),
               last = analysis::sum(affine_of_total(numbers(2048, 0.0), alpha, average, total));
  e.confirm(close(first, alpha, 1e-3) && close(last, average), "N = 2048, alpha = 0.2, average = 0.9: row sum ", first,
            " with one visible key, ", last, " with all");
  e.refute(close(analysis::sum(affine(numbers(1, 0.0), alpha, average)), average), "N = K: ", average,
           " at every position: the sum does not adapt");
}

void negative_weights(evidence& e) {
  numbers const l{5, 0, 0, 0}, p = softmax(l), w = affine(l, 0.9, 0.5);
  e.refute(w[1] < 0 && std::isnan(analysis::entropy(w)), "alpha = 0.9, average = 0.5, p = ", p, ": w = ", w,
           ", no entropy");
  e.on_random("w >= 0 if and only if alpha p_min >= (alpha - average) / N", [](rng& draw) {
    numbers const logits = draw.normals(6, 2), weights = softmax(logits);
    double const alpha = draw.uniform(), average = draw.uniform();
    double least = 1;
    for (double x : weights) least = std::fmin(least, x);
    double const margin = alpha * least - (alpha - average) / 6;
    if (std::fabs(margin) < 1e-12) return true;
    bool negative = false;
    for (double x : affine(logits, alpha, average)) negative = negative || x < 0;
    return negative == (margin < 0);
  });
}

void relative_allocation(evidence& e) {
  e.on_random("w / p is the same for all keys and below 1, and off-by-one is a sink of logit 0", [](rng& draw) {
    numbers const l = draw.normals(6, 2), p = softmax(l);
    numbers const one = analysis::weights(attune::normalizer::off_by_one{}, l),
                  sink = analysis::weights(attune::normalizer::sink{draw.normal()}, l),
                  zero = analysis::weights(attune::normalizer::sink{0.0}, l);
    for (std::size_t j = 1; j < 6; ++j)
      if (!close(one[j] / p[j], one[0] / p[0]) || !close(sink[j] / p[j], sink[0] / p[0])) return false;
    return analysis::sum(one) < 1 && analysis::sum(sink) < 1 && largest_difference(one, zero) < 1e-15;
  });
}

void moving_average(evidence& e) {
  attune::moving_average<double> average{0.9, 0.0};
  numbers found;
  for (int t = 1; t <= 50; ++t) {
    average.update(numbers(1, 1.0));
    if (t == 1 || t == 10 || t == 50) found.push_back(average.value());
  }
  e.confirm(close(found[0], 0.1) && close(found[1], 1 - std::pow(0.9, 10)) && close(found[2], 1 - std::pow(0.9, 50)),
            "constant alpha = 1, rho = 0.9, t = 1, 10, 50: average ", found,
            ": row sums start near 0.1 alpha, with a strongly negative bias");
}

void temperature(evidence& e) {
  numbers const w = affine(numbers{0, 1, 2, 3}, 0.5, 1.0);
  numbers steps;
  for (std::size_t j = 1; j < 4; ++j) steps.push_back(std::log(w[j] / w[j - 1]));
  e.refute(steps[2] > 1.5 * steps[0], "alpha = 0.5, average = 1, logits 0, 1, 2, 3: the logarithms of weights rise by ",
           steps, ", not evenly as at any temperature: alpha scales the amplitude");
}

void entropy_rises(evidence& e) {
  e.on_random("alpha <= average = 1: a mixture with uniform never lowers the entropy", [](rng& draw) {
    numbers const l = draw.normals(6, 2);
    return analysis::entropy(affine(l, draw.uniform(), 1.0)) >= analysis::entropy(softmax(l)) - 1e-12;
  });
  numbers const l{2, 0, 0};
  double const before = analysis::entropy(softmax(l)), after = analysis::entropy(affine(l, 1.2, 1.0));
  e.refute(after < before, "alpha = 1.2 > average = 1, l = (2, 0, 0): ", before, " falls to ", after);
}

void clipping(evidence& e) {
  using attune::activation;
  auto const slope = [](activation f, double x) {
    return attune::activate(f, attune::dual<double, 1>::variable(x, 0)).tangent[0];
  };
  e.confirm(slope(activation::linear_clipping, 0) == 0.1 && slope(activation::linear_clipping, 4.9) == 0.1,
            "slope 0.1 for |x| < 5, of the sigmoid ", slope(activation::sigmoid, 0), " at 0 and ",
            slope(activation::sigmoid, 4.9), " at 4.9");
  e.refute(slope(activation::linear_clipping, 5) == 0 && slope(activation::sigmoid, 5) > 0.006,
           "|x| >= 5: slope exactly 0, where sigmoid still has ", slope(activation::sigmoid, 5));
}

void gradient_variance(evidence& e) {
  struct row {
    double mean, deviation, variance, variation;
  };
  row const half[] = {{.563, .507, .257, .90}, {.551, .509, .259, .92}, {.561, .451, .203, .80}};
  row const one[] = {{.907, 1.983, 3.934, 2.19}, {.902, 1.988, 3.951, 2.20}, {.842, 1.702, 2.897, 2.02}};
  bool consistent = true;
  for (auto const& table : {half, one})
    for (int i = 0; i < 3; ++i)
      consistent = consistent && std::fabs(table[i].deviation * table[i].deviation - table[i].variance) < 0.003 &&
                   std::fabs(table[i].deviation / table[i].mean - table[i].variation) < 0.006;
  e.confirm(consistent, "Table 4: std^2 = variance and std / mean = CV within rounding");
  e.confirm(half[2].variance < half[0].variance && half[2].variance < half[1].variance &&
                one[2].variance < one[0].variance && one[2].variance < one[1].variance &&
                half[2].variation < half[0].variation && one[2].variation < one[0].variation,
            "affine has the lower variance and CV in both");
  e.note("the table does not decide whether this is stability");
}

/// P(X <= least) for X of Binomial(n, 1/2): whether one count of two with the sum n is smaller by chance.
double binomial_half(int least, int n) {
  double all = 0;
  for (int k = 0; k <= least; ++k)
    all += std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) - n * std::log(2.0));
  return all;
}

/// Table 5: spikes of the baseline, with the sink, affine.
struct spike_counts {
  char const* model;
  int six[3], nine[3];
};
constexpr spike_counts table5[] = {{"Qwen-0.5B", {40, 44, 42}, {30, 31, 22}}, {"LLaMA-1B", {53, 67, 54}, {28, 35, 27}}};

void spikes(evidence& e) {
  bool consistent = true, fewer_at_nine = true, fewer_than_sink = true;
  for (spike_counts const& t : table5) {
    e.refute(t.six[2] > t.six[0], t.model, ", k = 6, baseline to affine: ", t.six[0], " to ", t.six[2]);
    fewer_at_nine = fewer_at_nine && t.nine[2] < t.nine[0];
    fewer_than_sink = fewer_than_sink && t.six[2] < t.six[1] && t.nine[2] < t.nine[1];
    for (int m = 0; m < 3; ++m) consistent = consistent && t.nine[m] <= t.six[m];
    e.note(t.model, ", k = 9, ", t.nine[0], " to ", t.nine[2], ": if spikes were independent, one such run in ",
           std::round(1 / binomial_half(t.nine[2], t.nine[0] + t.nine[2])), " would do this by chance");
  }
  e.confirm(fewer_at_nine && fewer_than_sink,
            "affine has fewer spikes than the baseline at k = 9, and fewer than the sink");
  e.confirm(consistent, "no count rises with k");
  e.on_random("in any run, spikes above median + 9 MAD are also spikes above median + 6 MAD", [](rng& draw) {
    numbers g;
    for (int n = 0; n < 500; ++n) g.push_back(std::exp(draw.normal()));
    return analysis::spikes(g, 9.0) <= analysis::spikes(g, 6.0);
  });
}

double mean(numbers const& x) { return analysis::sum(x) / double(x.size()); }

/// A line of Tables 1 and 2.
struct scores {
  char const *size, *method;
  double parameters, loss;  ///< added, in millions
  numbers tasks;            ///< in the order of `tasks_of`
  double printed;           ///< average
};
constexpr char const* tasks_of[] = {"Wino", "PIQA", "Hella", "ARC-c", "ARC-e", "BoolQ"};

std::vector<scores> table1() {
  return {{"0.5B", "baseline", 0, 2.82, {52.6, 68.6, 45.1, 27.6, 51.5, 58.6}, 50.6},
          {"0.5B", "sink", 0, 2.83, {54.9, 68.2, 44.3, 26.7, 51.9, 58.7}, 50.8},
          {"0.5B", "affine", 0.4, 2.82, {53.2, 68.8, 45.1, 28.2, 52.5, 60.2}, 51.3},
          {"1B", "baseline", 0, 2.73, {55.6, 72.4, 53.1, 35.2, 62.5, 61.5}, 56.7},
          {"1B", "sink", 0, 2.73, {56.6, 72.7, 53.2, 34.0, 62.0, 61.7}, 56.7},
          {"1B", "affine", 1.0, 2.72, {58.6, 71.7, 53.9, 35.2, 63.1, 60.8}, 57.2},
          {"3B", "baseline", 0, 2.65, {59.0, 75.1, 60.8, 38.4, 68.1, 63.6}, 60.8},
          {"3B", "sink", 0, 2.65, {61.2, 75.7, 60.9, 40.2, 68.1, 63.5}, 61.6},
          {"3B", "affine", 2.1, 2.64, {61.0, 74.8, 62.0, 41.5, 69.9, 65.1}, 62.4}};
}
std::vector<scores> table2() {
  return {{"1B", "gated", 67.1, 2.71, {57.7, 71.9, 53.9, 33.9, 62.5, 62.8}, 57.1},
          {"1B", "affine and gated", 68.2, 2.71, {58.1, 72.0, 54.5, 35.3, 64.3, 64.0}, 58.0},
          {"3B", "gated", 264.2, 2.65, {61.5, 74.4, 61.4, 40.4, 68.8, 63.1}, 61.6},
          {"3B", "affine and gated", 266.3, 2.63, {63.4, 74.6, 62.7, 41.2, 70.0, 66.4}, 63.1}};
}
scores const& line(std::vector<scores> const& table, std::string const& size, std::string const& method) {
  for (scores const& s : table)
    if (s.size == size && s.method == method) return s;
  throw std::logic_error("no line " + size + ", " + method);
}

/// The tasks at which `a` is behind `b`: "PIQA 0.7, ...".
std::string behind(scores const& a, scores const& b) {
  std::string all;
  for (std::size_t t = 0; t < a.tasks.size(); ++t)
    if (a.tasks[t] < b.tasks[t]) all += text(all.empty() ? "" : ", ", tasks_of[t], " ", b.tasks[t] - a.tasks[t]);
  return all;
}

/// The largest difference of a printed average from that of the printed tasks.
double worst_average(std::vector<scores> const& table) {
  double worst = 0;
  for (scores const& s : table) worst = std::fmax(worst, std::fabs(mean(s.tasks) - s.printed));
  return worst;
}
/// Tasks and averages are each rounded to 0.1: what lies further apart cannot come from one set of numbers.
constexpr double rounding = 0.05 + 0.05;

void averages(evidence& e) {
  auto const table = table1();
  bool best = true;
  for (char const* size : {"0.5B", "1B", "3B"}) {
    scores const &base = line(table, size, "baseline"), &sink = line(table, size, "sink"),
                 &affine = line(table, size, "affine");
    best = best && mean(affine.tasks) > std::fmax(mean(base.tasks), mean(sink.tasks));
    std::string const lost = behind(affine, base);
    if (!lost.empty()) e.refute(true, size, ": affine is behind the baseline at ", lost);
    if (affine.loss == base.loss) e.refute(true, size, ": loss ", affine.loss, " against the baseline's ", base.loss);
  }
  e.confirm(best, "Table 1: affine has the best average at each size, from the tasks");
  e.confirm(worst_average(table) <= rounding, "printed averages differ from the averages of the tasks by at most ",
            worst_average(table), ", rounding allows ", rounding);
}

void gated(evidence& e) {
  auto const table = table2();
  numbers means;
  for (char const* size : {"1B", "3B"}) {
    scores const &gate = line(table, size, "gated"), &both = line(table, size, "affine and gated");
    e.confirm(behind(both, gate).empty() && behind(gate, both) != "", "Table 2, ", size,
              ": no task falls. Rises: ", behind(gate, both));
    means.insert(means.end(), {mean(gate.tasks), mean(both.tasks)});
    if (both.loss == gate.loss) e.refute(true, "training loss at ", size, ": ", gate.loss, " and ", both.loss);
  }
  e.confirm(worst_average(table) <= rounding, "averages from the tasks ", means,
            ", the printed ones differ by at most ", worst_average(table));
}

void ablation(evidence& e) {
  double const sigmoid = 57.6, linear = 58.0;  // Table 3
  double const alone = line(table1(), "1B", "affine").printed,
               with_gate = line(table2(), "1B", "affine and gated").printed;
  e.confirm(linear != alone && std::fabs(mean(line(table1(), "1B", "affine").tasks) - linear) > rounding,
            "Table 3 has ", linear, " for linear clipping, which the method uses, but Table 1 has ", alone,
            " for affine at 1B, and rounding does not explain this");
  e.confirm(linear == with_gate, "Table 2 has ", with_gate, " for affine with gate");
  e.note("the sigmoid's ", sigmoid, " would beat the affine of Table 1");
}

/// A published model: layers, width, heads.
struct model {
  char const* size;
  double layers, width, heads;
};
constexpr model models[] = {{"0.5B", 24, 1024, 16}, {"1B", 16, 2048, 32}, {"3B", 28, 3072, 24}};
/// Whether millions of parameters are printed as this, to 0.1.
bool prints_as(double parameters, double printed) { return std::fabs(parameters / 1e6 - printed) <= 0.05 + 1e-9; }

void overhead(evidence& e) {
  bool per_head = true, per_query = false, per_channel = false;
  numbers counts;
  for (model const& m : models) {
    double const printed = line(table1(), m.size, "affine").parameters, one = m.layers * m.width;
    counts.push_back(one * m.heads / 1e6);
    per_head = per_head && prints_as(one * m.heads, printed);
    per_query = per_query || prints_as(one, printed);
    per_channel = per_channel || prints_as(one * m.width, printed);
  }
  e.confirm(per_head, "Qwen1.5-0.5B, LLaMA3.2-1B, LLaMA3.2-3B: layers x width x heads = ", counts,
            " M, printed as 0.4, 1.0, 2.1: alpha is per query and head");
  e.confirm(!per_query && !per_channel,
            "one alpha per query, or one per channel, would be printed as other numbers at every size");
  for (model const& m : {models[1], models[2]}) {
    double const gate = m.layers * m.width * m.width, both = gate + m.layers * m.width * m.heads;
    double const printed = line(table2(), m.size, "gated").parameters,
                 printed_both = line(table2(), m.size, "affine and gated").parameters;
    e.confirm(prints_as(gate, printed) && !prints_as(m.layers * m.width * m.heads, printed), m.size,
              ": layers x width^2 = ", gate / 1e6, " M, printed as ", printed, ": the gate is elementwise");
    e.confirm(prints_as(both, printed_both), "with alpha ", both / 1e6, " M, printed as ", printed_both);
  }
}

void leak(evidence& e) {
  numbers const p{0.6, 0.4, 0, 0};
  double const share = (0.5 - 0.3) / 4, moved = 0.3 * p[3] + share;
  e.refute(moved > 0,
           "causal row 2 of 4, alpha = 0.3, average = 0.5: the future value v_4 enters the output with weight ", moved);
  e.on_random("with the bias on visible keys alone, keys removed from the row change nothing", [](rng& draw) {
    numbers l = draw.normals(4);
    numbers const seen = affine(l, 0.3, 0.5);
    l.push_back(-std::numeric_limits<double>::infinity());
    double const extra = analysis::weights(attune::normalizer::softmax{}, l).back();
    return extra == 0 && close(analysis::sum(seen), 0.5);
  });
}

void figure1(evidence& e) {
  double const alpha = 0.2, average = 0.9;
  numbers const l(2048, 0.0), right = affine(l, alpha, average);
  double const n = double(l.size()), beta = (average - alpha) / n;  // (8)
  attune::normalizer::free_affine<affine_count::visible> figure;    // alpha softmax + beta / N
  figure.alpha = alpha;
  figure.beta = beta;
  numbers const twice = analysis::weights(figure, l);
  e.confirm(close(analysis::sum(right), average) && close(analysis::sum(twice), alpha + beta, 1e-11),
            "N = 2048, alpha = 0.2, average = 0.9: (6) with (8) gives rows of sum ", analysis::sum(right),
            ", Figure 1 divides the beta of (8) by N again: ", analysis::sum(twice));
  figure.beta = average - alpha;
  e.confirm(largest_difference(analysis::weights(figure, l), right) < 1e-15,
            "Figure 1 with the numerator of (8) for beta is (6) with (8)");
}

void gate_after(evidence& e) {
  e.on_random("a factor on o does not change w, and equals a scaling of v", [](rng& draw) {
    numbers const w = softmax(draw.normals(5)), v = draw.normals(5);
    double const gate = draw.uniform();
    numbers scaled = v;
    for (double& x : scaled) x *= gate;
    return close(gate * analysis::dot(w, v), analysis::dot(w, scaled)) && close(analysis::sum(w), 1);
  });
}

void training(evidence& e) {
  e.note("training curves, perplexities, first-token weights, head diversity and the decay of QK^T need the models");
}

void gradients(evidence& e) {
  e.on_random("dw_j / dalpha = p_j - 1 / N with the average held: it sums to 1 - K / N, 0 for N = K", [](rng& draw) {
    numbers const l = draw.normals(5), p = softmax(l);
    double const alpha = draw.uniform(), h = 1e-6;
    numbers const up = affine(l, alpha + h, 0.6), down = affine(l, alpha - h, 0.6);
    double total = 0;
    for (std::size_t j = 0; j < 5; ++j) {
      double const slope = (up[j] - down[j]) / (2 * h);
      total += slope;
      if (std::fabs(slope - (p[j] - 0.2)) > 1e-8) return false;
    }
    return std::fabs(total) < 1e-8;
  });
  e.note("the paper does not say whether gradients pass the running average: stop-gradient is the default here");
}

}  // namespace

std::vector<claim> affine_claims() {
  using enum status;
  return {
      {"A01", "3.2, Figures 1 and 3", "The row sum of affine-scaled weights is adaptive, input dependent", incorrect,
       "If N is the number of keys that get the bias, the sum is exactly alpha_ma. Otherwise it is alpha + K / N "
       "(alpha_ma - alpha).",
       adaptive_sum, true},
      {"A02", "(8)", "N is the key sequence length", conditional,
       "N must be the padded length, or all sums are equal. With the padded length their range shrinks with the "
       "position.",
       sequence_length},
      {"A03", "4.4, Figure 6", "The entropy of affine-scaled weights", conditional,
       "The entropy exists where no weight is negative: alpha p_min >= (alpha - alpha_ma) / N", negative_weights, true},
      {"A04", "2.3", "Off-by-one and sink keep order and relative allocation, with a sum below 1", holds, "",
       relative_allocation},
      {"A05", "(9)", "The moving average starts at 0", holds, "This makes a transient of about 1 / (1 - rho) steps",
       moving_average},
      {"A06", "6", "The scaling factor directly controls the effective softmax temperature", incorrect, "",
       temperature},
      {"A07", "4.4", "Relaxing the unit sum increases entropy", conditional, "This holds for alpha <= alpha_ma = 1",
       entropy_rises, true},
      {"A08", "6", "Linear clipping avoids the saturation of the sigmoid and keeps the range", conditional,
       "This holds for |x| < 5. Outside, the slope is 0.", clipping},
      {"A09", "Table 4", "Affine scaling lowers variance and CV of gradient norms", holds, "", gradient_variance},
      {"A10", "Table 5, B.3", "Affine scaling consistently reduces extreme gradient events", incorrect,
       "There are fewer events at k = 9 (at 1B, one fewer), and fewer than with the sink", spikes},
      {"A11", "Table 1, 5.2", "Best average in every setting, consistently lower loss", conditional,
       "This holds for the averages. The loss ties at 0.5B.", averages},
      {"A12", "Table 2, 5.4", "Gains on all benchmarks and lower loss on top of the gate", conditional,
       "This holds for the benchmarks. The loss ties at 1B.", gated},
      {"A13", "Table 3", "Linear clipping 58.0 against sigmoid 57.6 on the 1B model", inconsistent,
       "The 58.0 seems to belong to affine with gate", ablation},
      {"A14", "Tables 1, 2", "Parameter overheads of 0.4, 1.0, 2.1 M; gates 67.1, 264.2 M", holds, "", overhead},
      {"A15", "(6)", "[alpha softmax + beta] V", conditional,
       "The bias must be on visible keys only. Taken literally, the formula leaks from the future.", leak, true},
      {"A16", "Figure 1 against (8)", "beta / N", inconsistent, "Figure 1 should have the numerator of (8) for beta",
       figure1},
      {"A17", "2.4, 5.4", "Gated attention does not alter the attention distribution", holds, "", gate_after},
      {"A18", "3.1, 4, 5", "Statements measured on trained models", undecidable, "", training},
      {"A19", "(8), (9)", "The gradient through alpha and its average (silent)", holds, "", gradients},
  };
}

}  // namespace ledger
