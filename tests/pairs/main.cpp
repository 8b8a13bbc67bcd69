// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   attune_pairs [--problems N] [--seed S] [--row R] [--without R] [--some] [--bits]
//
// Which pairs of what an operator and a call can have are in no test? Prints them; 0 is the end of a good run. Draws N
// problems, an operator of the design after the other, and compares every call with the reference. Four in five have
// seeds that are always the same: these count. The others are new in each run.
//   --without R   as if row R were not there: something must be missing then
//   --some        this program has a part of the rows: what is missing is printed, and is no failure
//   --bits        prints a hash of what each call computes, for scripts/compare_bits, and nothing else
// To repeat a problem: --row R --seed S --problems 1.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "coverage.hpp"

namespace attune::pairs {
namespace {

struct arguments {
  std::uint64_t problems = 10000, seed = 0;
  bool seeded = false, some = false, bits = false;
  int row = 0, without = 0;
};
arguments parsed(int count, char** texts) {
  arguments a;
  for (int n = 1; n < count; ++n) {
    std::string const name = texts[n];
    if (name == "--some" || name == "--bits") {
      (name == "--some" ? a.some : a.bits) = true;
      continue;
    }
    if (n + 1 == count) throw std::invalid_argument("attune_pairs: " + name + " wants a number");
    unsigned long long const value = std::stoull(texts[++n]);
    if (name == "--problems")
      a.problems = value;
    else if (name == "--seed")
      a.seed = value, a.seeded = true;
    else if (name == "--row")
      a.row = int(value);
    else if (name == "--without")
      a.without = int(value);
    else
      throw std::invalid_argument("attune_pairs: unknown argument " + name);
  }
  return a;
}

pair_set missing_of(pair_set const& accepted, pair_set const& covered) {
  pair_set to;
  std::set_difference(accepted.begin(), accepted.end(), covered.begin(), covered.end(), std::inserter(to, to.end()));
  return to;
}
void print(char const* title, pair_set const& missing) {
  std::cout << title << ": " << missing.size() << " without a test\n";
  std::size_t n = 0;
  for (auto const& [a, b] : missing) {
    if (++n > 30) break;
    std::cout << "  " << a << " x " << b << "\n";
  }
  if (n > 30) std::cout << "  ...\n";
}

/// The rows without which no pair is missing.
std::vector<int> superfluous(std::vector<design_row> const& rows) {
  std::map<name_pair, int> times;
  for (design_row const& r : rows)
    for (name_pair const& p : pairs_of_row(r)) ++times[p];
  std::vector<int> to;
  for (design_row const& r : rows) {
    pair_set const own = pairs_of_row(r);
    bool const needed = std::any_of(
        own.begin(), own.end(), [&](name_pair const& p) { return times[p] == 1 && accepted_by_types().contains(p); });
    if (!needed) to.push_back(r.number);
  }
  return to;
}

struct finished_problem {
  std::uint64_t seed = 0;
  design_row const* row = nullptr;
  run_record record;
};

/// Runs problem n of the rows, for n < count, on all processors.
std::vector<finished_problem> run_all(std::vector<design_row> const& rows, std::uint64_t first, std::uint64_t count) {
  std::vector<finished_problem> done(count);
  std::atomic<std::uint64_t> next{0};
  auto const work = [&] {
    for (std::uint64_t n = next++; n < count; n = next++) {
      finished_problem& p = done[n];
      p.seed = first + n;
      p.row = &rows[n % rows.size()];
      try {
        p.row->run(p.seed, p.record);
      } catch (std::exception const& e) {
        p.record.failures.push_back(e.what());
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned n = 1; n < std::thread::hardware_concurrency(); ++n) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  return done;
}

int failures_of(std::vector<finished_problem> const& done) {
  int failed = 0;
  for (finished_problem const& p : done)
    if (!p.record.failures.empty() && ++failed <= 20) {
      std::cout << "--row " << p.row->number << " --seed " << p.seed << " --problems 1: " << p.row->text << "\n";
      for (std::string const& f : p.record.failures) std::cout << "  " << f << "\n";
      std::cout << "  drawn:";
      for (std::string const& f : p.record.facts) std::cout << " [" << f << "]";
      std::cout << "\n";
    }
  return failed;
}

void print_bits(std::vector<finished_problem> const& done) {
  for (finished_problem const& p : done)
    for (auto const& [call, hash] : p.record.bits)
      std::cout << "pairs row " << p.row->number << " seed " << p.seed << " " << call << " " << hash.text() << "\n";
}

int run(arguments const& a) {
  std::vector<design_row> rows;
  for (design_row const& r : design())
    if (r.number != a.without && (a.row == 0 || r.number == a.row)) rows.push_back(r);
  if (rows.empty()) throw std::invalid_argument("attune_pairs: there is no such row");
  if (a.bits) {
    auto const done = run_all(rows, 1, a.problems);
    print_bits(done);
    return failures_of(done) == 0 ? 0 : 1;
  }
  if (a.row != 0) {
    auto const done = run_all(rows, a.seed, a.problems);
    return failures_of(done) == 0 ? 0 : 1;
  }

  bool complete = true;
  for (std::string const& f : features_without_choice()) {
    std::cout << f << ": no policy of tests/pairs/choices.hpp has it\n";
    complete = false;
  }
  pair_set by_types, with_facts;
  for (design_row const& r : rows) by_types.merge(pairs_of_row(r));
  pair_set const types_missing = missing_of(accepted_by_types(), by_types);
  std::cout << rows.size() << " operators, " << accepted_by_types().size()
            << " pairs of inputs, contractions, hooks, traits and calls\n";
  print("pairs of types", types_missing);
  complete = complete && types_missing.empty();
  for (int const n : superfluous(rows)) {
    std::cout << "row " << n << " reaches no pair that others do not reach\n";
    complete = complete && a.without != 0;
  }

  std::uint64_t const fixed = a.problems - a.problems / 5;
  auto const counted = run_all(rows, 1, fixed);
  std::uint64_t const fresh = a.seeded ? a.seed : std::random_device{}();
  auto const others = run_all(rows, fresh, a.problems - fixed);
  int const failed = failures_of(counted) + failures_of(others);
  for (finished_problem const& p : counted) with_facts.merge(pairs_of_problem(*p.row, p.record));
  pair_set const facts_missing = missing_of(accepted_with_facts(), with_facts);
  std::cout << fixed << " problems that count, " << a.problems - fixed << " more from seed " << fresh << ": " << failed
            << " failed\n"
            << accepted_with_facts().size() << " pairs with what a call draws\n";
  print("pairs of calls", facts_missing);
  complete = complete && facts_missing.empty();
  std::cout
      << "not drawn here: ranks of MPI, emulated warps of the executor cuda, products in bf16, folds and mixtures, "
         "operators on a line\n";
  return failed == 0 && (complete || a.some) ? 0 : 1;
}

}  // namespace
}  // namespace attune::pairs

int main(int count, char** texts) try {
  return attune::pairs::run(attune::pairs::parsed(count, texts));
} catch (std::exception const& e) {
  std::cerr << e.what() << "\n";
  return 2;
}
