// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "selftest.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <ostream>
#include <random>
#include <set>
#include <stdexcept>

#include "compare.hpp"
#include "plan.hpp"
#include "runner.hpp"
#include "selftest_files.hpp"

namespace attune::golden {
namespace {

using instances::backend;

constexpr std::size_t complete_files = 15;
constexpr std::size_t complete_cases = 527;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Counts what was tried and prints what went unnoticed.
class log {
 public:
  explicit log(std::ostream& out) : out_(out) {}

  void expect(bool holds, std::string const& what) {
    ++tried_;
    if (holds) return;
    ++wrong_;
    out_ << "UNNOTICED  " << what << "\n";
  }

  void finish(std::string const& stage) {
    out_ << stage << ": " << tried_ << " checks, " << wrong_ << " wrong\n";
    all_wrong_ += wrong_;
    if (tried_ == 0) ++all_wrong_;
    tried_ = wrong_ = 0;
  }

  bool good() const { return all_wrong_ == 0; }

 private:
  std::ostream& out_;
  int tried_ = 0, wrong_ = 0, all_wrong_ = 0;
};

// --- the comparison: every expected tensor of the set, perturbed by slightly more than its tolerance -----------------

/// The entry of the largest bounded, finite size; the size of the tensor if there is none.
std::size_t entry_to_break(tensor const& expected) {
  std::size_t best = expected.data.size();
  for (std::size_t i = 0; i < expected.data.size(); ++i)
    if (std::isfinite(expected.data[i]) &&
        (best == expected.data.size() || std::abs(expected.data[i]) > std::abs(expected.data[best])))
      best = i;
  return best;
}

/// About 1.1 limits from x in the direction of `to`; more than one limit, however it is rounded.
double beyond(double x, double limit, double to) {
  double y = x + std::copysign(1.1 * limit, to);
  while (!(std::abs(y - x) > limit)) y = std::nextafter(y, to);
  return y;
}

/// About 0.9 limits from x, at most one.
double within(double x, double limit) {
  double y = x + 0.9 * limit;
  while (std::abs(y - x) > limit) y = std::nextafter(y, x);
  return y;
}

void break_tensor(golden_case const& c, std::string const& name, tensor const& expected, accuracy promised, log& l) {
  auto const limit = bounds(c, name, magnitude_of(c, 1), promised);
  std::string const what = c.name + ": " + name;
  auto const accepts = [&](std::vector<double> const& got) { return compare(expected, got, limit).accepted; };
  auto const with = [&](std::size_t i, double x) {
    auto got = expected.data;
    got[i] = x;
    return got;
  };
  l.expect(accepts(expected.data), what + ": the expectation itself is rejected");
  auto longer = expected.data;
  longer.push_back(0);
  l.expect(!accepts(longer), what + ": one entry too many is accepted");

  std::size_t const i = entry_to_break(expected);
  if (i < expected.data.size()) {
    double const x = expected.data[i];
    l.expect(!accepts(with(i, beyond(x, limit[i], inf))), what + ": 1.1 tolerances above is accepted");
    l.expect(!accepts(with(i, beyond(x, limit[i], -inf))), what + ": 1.1 tolerances below is accepted");
    l.expect(accepts(with(i, within(x, limit[i]))), what + ": 0.9 tolerances above is rejected");
    l.expect(!accepts(with(i, nan)), what + ": nan instead of a number is accepted");
    l.expect(!accepts(with(i, inf)), what + ": inf instead of a number is accepted");
  }
  for (std::size_t k = 0; k < expected.data.size(); ++k) {
    double const x = expected.data[k];
    if (std::isfinite(x)) continue;
    l.expect(!accepts(with(k, 0)), what + ": a number instead of a non-finite entry is accepted");
    l.expect(!accepts(with(k, std::isnan(x) ? inf : -x)), what + ": inf for nan or with the wrong sign is accepted");
    l.expect(std::isnan(x) || !accepts(with(k, nan)), what + ": nan for inf is accepted");
  }
}

void break_expectations(std::vector<golden_case> const& cases, log& l) {
  for (auto const& c : cases)
    for (auto const& [name, expected] : c.expected)
      for (auto const promised : {accuracy::binary32, accuracy::binary64, accuracy::correctly_rounded})
        break_tensor(c, name, expected, promised, l);
  l.finish("perturbed expectations");
}

// --- the runner: operators that compute something wrong --------------------------------------------------------------

using breakage = void (*)(instances::result&);

void break_first(instances::array& a, double (*wrong)(double)) {
  if (!a.empty()) a.data.front() = wrong(a.data.front());
}

/// Every entry: the first rows of some cases are empty, and not compared.
void break_all(instances::array& a, double (*wrong)(double)) {
  for (double& x : a.data) x = wrong(x);
}

double make_nan(double x) { return std::isnan(x) ? 0 : nan; }
double make_neighbour(double x) { return std::isfinite(x) ? std::nextafter(x, inf) : 0; }

/// A registry whose operators all spoil their results in one way.
registry spoiled(registry const& operators, breakage spoil) {
  registry result = operators;
  for (auto& [name, entry] : result)
    entry.run = [run = entry.run, spoil](instances::problem const& p, backend b, instances::options const& o) {
      auto r = run(p, b, o);
      spoil(r);
      return r;
    };
  return result;
}

struct sabotage {
  char const* what;
  breakage spoil;
  char const* tensor;  ///< cases that expect this tensor have to fail
  bool only_exact;     ///< too small for any executor but the exact one
};

constexpr sabotage sabotages[] = {
    {"out with a misplaced nan", [](instances::result& r) { break_first(r.out, make_nan); }, "o", false},
    {"lse with a misplaced nan", [](instances::result& r) { break_all(r.lse, make_nan); }, "lse", false},
    {"weights with a misplaced nan",
     [](instances::result& r) { break_first(r.weights.empty() ? r.out : r.weights, make_nan); }, "w", false},
    {"threshold with a misplaced nan", [](instances::result& r) { break_all(r.threshold, make_nan); }, "tau", false},
    {"ground weight with a misplaced nan", [](instances::result& r) { break_first(r.ground_weight, make_nan); }, "w0",
     false},
    {"out one unit in the last place off", [](instances::result& r) { break_first(r.out, make_neighbour); }, "o", true},
    {"lse one unit in the last place off", [](instances::result& r) { break_all(r.lse, make_neighbour); }, "lse", true},
    {"weights one unit in the last place off", [](instances::result& r) { break_first(r.weights, make_neighbour); },
     "w", true},
    {"ground weight one unit off", [](instances::result& r) { break_first(r.ground_weight, make_neighbour); }, "w0",
     true},
    {"threshold one unit in the last place off", [](instances::result& r) { break_all(r.threshold, make_neighbour); },
     "tau", true},
    {"sum of weights one unit off", [](instances::result& r) { break_first(r.row_sum, make_neighbour); }, "rowsum",
     true},
    {"average one unit off", [](instances::result& r) { break_first(r.average, make_neighbour); }, "alpha_ma_new",
     true},
    {"no out", [](instances::result& r) { r.out = {}; }, "o", false},
    {"no lse", [](instances::result& r) { r.lse = {}; }, "lse", false},
    {"an exception", [](instances::result&) { throw std::runtime_error("planted"); }, "o", false},
};

/// A registry whose gradients are all spoiled in one way: the first entry of each.
registry with_spoiled_gradients(registry const& operators, double (*wrong)(double)) {
  registry result = operators;
  for (auto& [name, entry] : result)
    entry.vjp = [vjp = entry.vjp, wrong](instances::problem const& p, backend b, instances::cotangent const& by,
                                         instances::options const& o) {
      auto g = vjp(p, b, by, o);
      for (auto& gradient : g) break_first(gradient.second, wrong);
      return g;
    };
  return result;
}

bool is_run(outcome const& o) { return o.result != status::skipped && o.why.empty(); }

void break_operators(std::vector<golden_case> const& cases, registry const& operators, log& l) {
  for (auto const& s : sabotages) {
    auto const wrong = spoiled(operators, s.spoil);
    for (auto const& c : cases) {
      if (needs_no_operator(c) || forward_expectations(c).count(s.tensor) == 0 || (s.only_exact && is_convention(c)))
        continue;
      for (auto const executor : instances::all_backends) {
        if (s.only_exact && executor != backend::reference_50) continue;
        auto const o = run_case(c, wrong, {executor}).at(0);
        if (is_run(o)) l.expect(o.result == status::failed, c.name + " (" + executor_name(executor) + "): " + s.what);
      }
    }
  }
  l.finish("spoiled operators");
}

void break_gradients(std::vector<golden_case> const& cases, registry const& operators, log& l) {
  auto const misplaced = with_spoiled_gradients(operators, make_nan),
             neighbours = with_spoiled_gradients(operators, make_neighbour);
  for (auto const& c : cases) {
    if (c.grads.empty() || needs_no_operator(c)) continue;
    for (auto const executor : instances::all_backends) {
      auto const o = run_case(c, misplaced, {executor}).at(0);
      if (is_run(o))
        l.expect(o.result == status::failed, c.name + " (" + executor_name(executor) + "): gradients with a nan");
    }
    // One unit off is seen where the first entry of some gradient does not nearly cancel.
    bool const visible = std::any_of(c.grads.begin(), c.grads.end(), [&](std::string const& name) {
      return std::abs(c.expected.at(name).data.front()) > 1e-30 * c.grad_scale.at(name);
    });
    auto const o = run_case(c, neighbours, {backend::reference_50}).at(0);
    if (is_run(o) && visible)
      l.expect(o.result == status::failed, c.name + ": gradients one unit in the last place off");
  }
  l.finish("spoiled gradients");
}

/// Nothing may be skipped because it does not fit: an unknown parameter or input of an available operator is a failure.
void break_cases(std::vector<golden_case> const& cases, registry const& operators, log& l) {
  for (auto const& original : cases) {
    if (original.operation == "merge_states") continue;
    if (!is_diagnostic(original) && operators.count(choose(original).entry) == 0) continue;
    auto const fails = [&](golden_case const& c) {
      return run_case(c, operators, {backend::reference_double}).at(0).result == status::failed;
    };
    auto c = original;
    c.params["unheard_of"] = 1;
    l.expect(fails(c), c.name + ": an unknown parameter is ignored");
    c = original;
    c.inputs["unheard_of"] = {{1}, {1}};
    l.expect(fails(c), c.name + ": an unknown input is ignored");
    c = original;
    c.expected["unheard_of"] = {{1}, {1}};
    l.expect(fails(c), c.name + ": an expected tensor that nothing provides is ignored");
    c = original;
    c.inputs.erase(is_diagnostic(c) ? (c.inputs.count("r") != 0 ? "x" : c.inputs.begin()->first) : "v");
    l.expect(fails(c), c.name + ": a missing input is ignored");
  }
  l.finish("cases that do not fit");
}

void run_without_operators(std::vector<golden_case> const& cases, log& l) {
  for (auto const& c : cases)
    l.expect(needs_no_operator(c) || run_case(c, {}, {backend::cpu_float}).at(0).result == status::skipped,
             c.name + ": not skipped by an empty registry");
  l.finish("empty registry");
}

// --- malformed files -------------------------------------------------------------------------------------------------

void read_malformed_files(log& l) {
  auto const folder =
      std::filesystem::temp_directory_path() / ("attune_golden_selftest_" + std::to_string(std::random_device{}()));
  std::filesystem::create_directory(folder);
  auto const file = folder / "broken.json";
  for (auto const& m : malformed_files()) {
    std::ofstream(file) << m.text;
    std::string message = "accepted";
    try {
      load(folder);
    } catch (bad_file const& error) {
      message = error.what();
    }
    bool const clear = message.find("broken.json") != std::string::npos && message.find(m.message) != std::string::npos;
    l.expect(clear, "malformed file: expected \"" + m.message + "\", got \"" + message + "\"");
  }
  std::filesystem::remove_all(folder);
  l.finish("malformed files");
}

}  // namespace

int selftest(std::string const& path, std::ostream& out) {
  log l(out);
  auto const cases = load(path);
  std::set<std::string> files;
  for (auto const& c : cases) files.insert(c.file);
  l.expect(files.size() == complete_files && cases.size() == complete_cases,
           std::to_string(cases.size()) + " cases in " + std::to_string(files.size()) + " files: not the complete set");
  l.finish("completeness");
  read_malformed_files(l);
  break_expectations(cases, l);
  run_without_operators(cases, l);
  break_cases(cases, instances::registry(), l);
  break_operators(cases, instances::registry(), l);
  break_gradients(cases, instances::registry(), l);
  out << (l.good() ? "selftest passed\n" : "selftest FAILED\n");
  return l.good() ? 0 : 1;
}

}  // namespace attune::golden
