// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   attune_verdict_held [forward|backward] [--seed N] [--only ID] [--limit N] [--all]
//
// A verdict before defects of a grammar that its authors did not write. Scores what a user reads. Prints a table for
// each
// format and every row that was missed, not useful or wrong; with --all every row.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>

#include "backward_rows.hpp"
#include "forward_data.hpp"
#include "judge.hpp"
#include "score.hpp"

namespace attune::test::held {
namespace {

struct arguments {
  std::uint64_t seed = 1;
  std::string only;
  int limit = 1 << 30;
  bool all = false;
};

struct tally {
  int cases = 0, moved = 0, caught = 0, named = 0, region = 0, measured = 0, useful = 0, wrong = 0, alarms = 0;
  int correct = 0, correct_failed = 0;
};
/// By format, and of pairs of defects.
using tallies = std::map<std::string, tally>;

char const* format_of_case(formats f, std::size_t row, int which, storage& stored) {
  bool const sixteen =
      f == formats::sixteen || f == formats::half || (f == formats::turns && (row + std::size_t(which)) % 2 == 1);
  bool const half = f == formats::half || (sixteen && row % 5 == 0);
  stored = !sixteen ? storage::fp32 : half ? storage::fp16 : storage::bf16;
  return !sixteen ? "fp32" : half ? "fp16" : "bf16";
}
int shape_of_case(shapes s, int which) { return s == shapes::both ? which : s == shapes::equal ? 0 : 1 + which; }

/// The outputs of a result: (name, array, axis of its positions, axis of its features).
template <class Use>
void outputs(forward_result const& r, Use const& use) {
  use("out", r.out, "queries", "features"), use("lse", r.lse, "queries", "features");
}
template <class Use>
void outputs(backward_result const& r, Use const& use) {
  use("dq", r.dq, "queries", "features"), use("dk", r.dk, "keys", "features"), use("dv", r.dv, "keys", "features");
  if (!r.dbias.x.empty()) use("dbias", r.dbias, "queries", "keys");
}
template <class Result>
std::vector<array> arrays(Result const& r) {
  std::vector<array> to;
  outputs(r, [&](char const*, array const& x, char const*, char const*) { to.push_back(x); });
  return to;
}
void without_rounding(forward_kernel& k) { k.plain_weights = true; }
void without_rounding(backward_kernel& k) { k.plain = true; }
told judged(problem const& p, forward_result const& r, std::string const& id) {
  return judge(p, r, id.rfind("page", 0) == 0 ? 16 : 0);
}
told judged(problem const& p, backward_result const& r, std::string const&) { return judge(p, r); }

template <class Kernel>
auto exactly(problem const& p, std::function<void(Kernel&)> const& apply) {
  Kernel k(p);
  without_rounding(k);
  if (apply) apply(k);
  return run<double>(k);
}
template <class Kernel>
auto computed(problem const& p, std::function<void(Kernel&)> const& apply) {
  Kernel k(p);
  if (apply) apply(k);
  return stored(k, run<float>(k));
}

template <class Kernel>
void try_row(row<Kernel> const& r, std::size_t number, int which, arguments const& how, tallies& to) {
  storage s = storage::fp32;
  char const* const format = format_of_case(r.in, number, which, s);
  bool const small = std::is_same_v<Kernel, backward_kernel>;
  problem const p =
      draw(r.setting, shape_of_case(r.of, which), s, how.seed * 1000003 + number * 2 + std::uint64_t(which), small);
  auto const wrong = computed<Kernel>(p, r.apply), right = computed<Kernel>(p, {});
  std::vector<array> const got = arrays(wrong), good = arrays(right), exact = arrays(exactly<Kernel>(p, {}));
  std::vector<array> const changed = arrays(exactly<Kernel>(p, r.apply));
  std::vector<region> regions;
  std::string where;
  std::size_t n = 0;
  outputs(wrong, [&](char const* name, array const&, char const* positions, char const* features) {
    std::size_t const k = n++;
    if (!moved(got[k], good[k], exact[k])) return;
    if (std::strcmp(name, "lse") == 0 && !regions.empty()) return;
    regions.push_back(region_of(changed[k], exact[k], positions, features, between(good[k], exact[k]).rms));
    where += std::string(where.empty() ? "" : " | ") + name + ": " + words_of(regions.back());
  });
  indices keys;
  if (r.keys) {
    Kernel const k(p);
    for (int j = 0; j < p.keys; ++j) keys.push_back(r.keys(k, j));
    where += " | keys treated wrongly: " + words_of(keys);
  }
  told const t = judged(p, wrong, r.id);
  score const x = score_of(t.text, r.names, r.measures, regions, keys, std::max(p.keys, p.queries));
  bool const moves = !regions.empty();
  for (std::string const& name : {std::string(format), std::string(r.pair ? "two at once" : "one defect")}) {
    tally& all = to[name];
    all.cases += 1, all.moved += moves, all.alarms += t.failed && !moves;
    if (moves) {
      all.caught += t.failed;
      if (t.failed)
        all.named += x.named, all.region += x.region, all.measured += x.measured, all.useful += x.useful(),
            all.wrong += x.wrong;
    }
  }
  std::string const fault = !moves                   ? "does not move"
                            : !t.failed              ? "MISSED"
                            : x.wrong && !x.useful() ? "WRONG, not useful"
                            : x.wrong                ? "WRONG"
                            : !x.useful()            ? "NOT USEFUL"
                                                     : "";
  if (fault.empty() && !how.all) return;
  std::printf("%s %s %s [%s, %d queries, %d keys]: %s\n    source: %s\n    truth:  %s\n",
              fault.empty() ? "ok" : fault.c_str(), format, r.id.c_str(), r.setting.c_str(), p.queries, p.keys,
              x.named      ? "named"
              : x.region   ? "region"
              : x.measured ? "measured"
                           : "-",
              r.source.c_str(), where.c_str());
  std::istringstream text(t.text);
  std::string line;
  for (int l = 0; l < 3 && std::getline(text, line); ++l) std::printf("    > %s\n", line.c_str());
}

/// Kernels without a defect, of every setting.
template <class Kernel>
void try_correct(std::vector<row<Kernel>> const& rows, arguments const& how, tallies& to) {
  std::map<std::string, bool> done;
  std::size_t number = 0;
  for (row<Kernel> const& r : rows) {
    if (done[r.setting]) continue;
    done[r.setting] = true;
    for (int which = 0; which < 2; ++which) {
      storage s = storage::fp32;
      char const* const format = format_of_case(formats::turns, ++number, 0, s);
      problem const p = draw(r.setting, shape_of_case(r.of, which), s, how.seed * 7919 + number,
                             std::is_same_v<Kernel, backward_kernel>);
      told const t = judged(p, computed<Kernel>(p, {}), "");
      to[format].correct += 1, to[format].correct_failed += t.failed;
      if (t.failed) std::printf("FALSE ALARM %s %s\n%s\n", format, r.setting.c_str(), t.text.substr(0, 400).c_str());
    }
  }
}

bool threw = false;  // a verdict threw

template <class Kernel>
void study(char const* calls, std::vector<row<Kernel>> const& rows, arguments const& how) {
  std::printf("%s: %zu rows\n", calls, rows.size());
  tallies to;
  int left = how.limit;
  for (std::size_t n = 0; n < rows.size() && left > 0; ++n) {
    if (!how.only.empty() && rows[n].id != how.only) continue;
    --left;
    for (int which = 0; which < 2; ++which) try {
        try_row(rows[n], n, which, how, to);
      } catch (std::exception const& e) {
        std::printf("ERROR %s: %s\n", rows[n].id.c_str(), e.what());
        threw = true;
      }
    std::fflush(stdout);
  }
  if (how.only.empty()) try_correct(rows, how, to);
  std::printf("\n%s, seed %llu\n%-12s %6s %6s %7s %6s %6s %6s %8s %7s %6s %14s\n", calls,
              static_cast<unsigned long long>(how.seed), "", "cases", "moved", "caught", "named", "region", "meas.",
              "useful", "wrong", "alarms", "correct failed");
  for (auto const& [name, t] : to)
    std::printf("%-12s %6d %6d %7d %6d %6d %6d %8d %7d %6d %7d of %d\n", name.c_str(), t.cases, t.moved, t.caught,
                t.named, t.region, t.measured, t.useful, t.wrong, t.alarms, t.correct_failed, t.correct);
  std::printf("\n");
}

int main_of(int count, char** words) {
  arguments how;
  std::string calls;
  for (int n = 1; n < count; ++n) {
    std::string const word = words[n];
    bool const more = n + 1 < count;
    if (word == "--all")
      how.all = true;
    else if (word == "--seed" && more)
      how.seed = std::strtoull(words[++n], nullptr, 10);
    else if (word == "--only" && more)
      how.only = words[++n];
    else if (word == "--limit" && more)
      how.limit = std::atoi(words[++n]);
    else if (word == "forward" || word == "backward")
      calls = word;
    else {
      std::fprintf(stderr, "attune_verdict_held [forward|backward] [--seed N] [--only ID] [--limit N] [--all]\n");
      return 2;
    }
  }
  if (calls != "backward") study("forward", forward_rows(), how);
  if (calls != "forward") study("backward", backward_rows(), how);
  return threw ? 1 : 0;
}

}  // namespace
}  // namespace attune::test::held

int main(int count, char** words) { return attune::test::held::main_of(count, words); }
