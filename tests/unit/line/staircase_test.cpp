// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Long staircases, which are walked in blocks: against long double, which takes them by levels of rectangles.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <support/line_in_long_double.hpp>
#include <support/line_problem.hpp>
#include <support/sights.hpp>
#include <unit/check.hpp>

#include <attune/attune.hpp>
#include <attune/line.hpp>

namespace attune::test {
namespace {

using numbers = std::vector<double>;

/// Heads of their own line, narrow or wide values.
line_problem long_line(lie queries, lie keys, index_t lq, index_t lk, index_t width, unsigned seed) {
  line_problem p = random_line(queries, keys, lq, lk, seed);
  p.batch = 1;
  p.heads = p.key_heads = 2;
  p.width = width;
  std::mt19937 random(seed + 1);
  p.v.resize(std::size_t(p.value_side().size()));
  for (double& x : p.v) x = draw_scalar(lie::normal, random);
  p.q.resize(std::size_t(p.query_side().size()));
  p.k.resize(std::size_t(p.key_side().size()));
  p.by.resize(std::size_t(p.query_side(width).size()));
  p.by_lse.resize(p.q.size());
  p.tau = {0.3, 5};
  return p;
}

/// Causal, and what falls into several long staircases.
std::vector<sight> long_sights(index_t queries, index_t keys) {
  std::vector<sight> all = all_sights(queries, keys);
  std::erase_if(all,
                [](sight const& s) { return s.name == "full" || s.name == "window 7" || s.name == "causal window 1"; });
  return all;
}

struct lengths {
  index_t queries, keys, width;
};
constexpr lengths some_lengths[] = {{900, 900, 5}, {600, 1000, 20}, {1000, 700, 16}};

/// max |got - exact| / scale; 0 for equal infinities, inf for a NaN.
template <class Exact>
double farthest(numbers const& got, Exact const& exact, numbers const& scale) {
  double worst = 0;
  for (std::size_t x = 0; x < got.size(); ++x) {
    if (got[x] == double(exact[x])) continue;
    double const off = double(std::fabs(got[x] - exact[x])) / (scale.size() == 1 ? scale[0] : scale[x]);
    worst = off >= worst ? off : (off == off ? worst : inf);
  }
  return worst;
}

TEST_CASE("long staircases: laplacian and sliced ReLU within the stated bounds") {
  constexpr double u = 0x1p-53;
  unsigned seed = 0;
  for (lie const how : {lie::normal, lie::clustered, lie::equal, lie::tied, lie::heavy, lie::far})
    for (std::size_t n_sight = 0; n_sight < long_sights(9, 9).size(); ++n_sight) {
      lengths const of = some_lengths[++seed % 3];
      index_t const queries = of.queries, keys = of.keys, width = of.width;
      sight const s = long_sights(queries, keys)[n_sight];
      lie const of_queries = seed % 2 == 0 ? how : lie::normal;
      line_problem const p = long_line(of_queries, how, queries, keys, width, seed);
      INFO(s.name, " ", queries, " x ", keys, " lie ", int(how));
      double const n = double(keys),
                   far = how == lie::far || how == lie::heavy ? 1e5 : 30;  // no query is farther from a key
      line::laplacian const laplace{per_head(p.tau), s.mask()};
      double const off =
          farthest(outputs_in<double>(cpu<double>{}, laplace, p), in_long_double(laplace, p).out, {largest(p.v)});
      CHECK(off <= u * (8 * n + 6 * far / 0.3 + 12 * std::log(n + 1) + 64));

      line::sliced_relu const relu{normalizer::relu{}, s.mask()};
      line_problem absolute = p;
      for (double& x : absolute.v) x = std::fabs(x);
      CHECK(farthest(outputs_in<double>(cpu<double>{}, relu, p), in_long_double(relu, p).out,
                     outputs_in<double>(cpu<double>{}, relu, absolute)) <= 4 * (n + 8) * u);
    }
}

TEST_CASE("long staircases: lse, every divisor, gradients") {
  line_problem const p = long_line(lie::normal, lie::tied, 900, 900, 5, 77);
  auto const off = [&](auto const& op) {
    auto const exact = in_long_double(op, p, true);
    auto const got = results_on(cpu<double>{}, op, p);
    std::vector<long double> right;
    numbers all;
    for (auto const* x : {&exact.out, &exact.lse, &exact.q, &exact.k, &exact.v})
      right.insert(right.end(), x->begin(), x->end());
    for (auto const* x : {&got.out, &got.lse, &got.q, &got.k, &got.v}) all.insert(all.end(), x->begin(), x->end());
    numbers finite(right.begin(), right.end());
    std::erase_if(finite, [](double x) { return !std::isfinite(x); });
    return farthest(all, right, {largest(finite)});
  };
  CHECK(off(line::laplacian{per_head(p.tau), mask::causal{}}) < 1e-13);
  CHECK(off(line::sliced_relu{normalizer::relu{}, mask::causal{}}) < 1e-13);
  CHECK(off(line::sliced_relu{normalizer::mean_relu{}, mask::causal{}}) < 1e-13);
  CHECK(off(line::sliced_relu{normalizer::normalized_relu{}, mask::causal{}}) < 1e-13);
}

TEST_CASE("long staircases: more positions than are walked at once") {
  for (lie const how : {lie::normal, lie::tied}) {
    line_problem p = long_line(lie::normal, how, 7000, 7000, 2, 17);
    REQUIRE(p.keys > line::detail::blocks_of_part * line::detail::block_size(p.keys));
    line::laplacian const laplace{per_head(p.tau), mask::causal{}};
    CHECK(farthest(outputs_in<double>(cpu<double>{}, laplace, p), in_long_double(laplace, p).out, {largest(p.v)}) <
          1e-13);
    line::sliced_relu const relu{normalizer::mean_relu{}, mask::causal{}};
    CHECK(farthest(outputs_in<double>(cpu<double>{}, relu, p), in_long_double(relu, p).out, {largest(p.v)}) < 1e-12);
  }
}

TEST_CASE("long staircases: values and places at the ends of double") {
  for (double const size : {1e300, 1e-149, 1e-151, 1e-190, 1e-300}) {
    line_problem p = long_line(lie::normal, lie::normal, 600, 600, 5, 6);
    p.tau = {0.03, 0.03};  // lines of more than 200 tau
    for (double& x : p.v) x *= size;
    for (std::size_t i = 0; i < 300; ++i) p.q[i] = 5;  // keys are far
    INFO(size);
    line::laplacian const op{per_head(p.tau), mask::causal{}};
    CHECK(farthest(outputs_in<double>(cpu<double>{}, op, p), in_long_double(op, p).out, {largest(p.v)}) < 1e-12);
  }
  line_problem p = long_line(lie::equal, lie::equal, 900, 900, 1, 6);
  for (double& x : p.q) x = -1.2e308;
  for (double& x : p.k) x = 1.2e308;
  CHECK(largest(outputs_in<double>(cpu<double>{}, line::sliced_relu{normalizer::relu{}, mask::causal{}}, p)) == 0);
}

TEST_CASE("long staircases: NaN and infinite values reach those that see them, and nobody else") {
  line_problem p = long_line(lie::normal, lie::normal, 1200, 1200, 5, 5);
  for (double const bad : {nan, inf}) {
    p.v[std::size_t(1000 * p.width + 2)] = bad;
    auto const of = [&](auto const& op) {
      numbers const out = outputs_in<double>(cpu<double>{}, op, p);
      index_t before = 0, behind = 0;
      for (index_t i = 0; i < p.queries; ++i)
        for (index_t d = 0; d < p.width; ++d) {
          bool const finite = std::isfinite(out[std::size_t(i * p.width + d)]);
          before += i < 1000 && !finite;
          behind += i >= 1000 && d == 2 && finite && p.q[std::size_t(i)] > p.k[1000];
        }
      CHECK(before == 0);
      return behind;
    };
    CHECK(of(line::laplacian{5.0, mask::causal{}}) == 0);
    CHECK(of(line::sliced_relu{normalizer::relu{}, mask::causal{}}) == 0);
    of(line::gaussian{5.0, 1e-6, mask::causal{}});
    for (sight const& w : long_sights(p.queries, p.keys)) {
      INFO(w.name);
      numbers const out = outputs_in<double>(cpu<double>{}, line::laplacian{5.0, w.mask()}, p);
      index_t wrong = 0;
      for (index_t i = 0; i < p.queries; ++i)
        wrong += std::isfinite(out[std::size_t(i * p.width + 2)]) == w.sees(i, 1000);
      CHECK(wrong == 0);
    }
  }
}

/// Whether the first head does.
bool goes_by_waves(line::gaussian<mask::causal> const& op, line_problem const& p) {
  numbers out(std::size_t(p.query_side(p.width).size()));
  line::detail::extents const e{p.batch, p.heads, p.key_heads, p.value_heads, p.queries, p.keys, p.width};
  problem_shape s;
  s.batch = p.batch, s.heads = p.heads, s.queries = p.queries, s.keys = p.keys, s.set_offset(p.keys - p.queries);
  return line::detail::forward_by_waves<double, xsimd::default_arch>(
             op.tau, op.tolerance, {op.mask, s, 0, 0}, p.arrays(), e, 0, 0, {tensor(out, p.query_side(p.width)), {}})
      .has_value();
}

TEST_CASE("long staircases: the gaussian's certificate holds, in float and double") {
  index_t by_waves = 0;
  unsigned seed = 40;
  for (lengths const& of : {lengths{1500, 1500, 5}, lengths{1200, 1100, 20}})
    for (lie const how : {lie::normal, lie::clustered, lie::equal, lie::heavy, lie::far})
      for (double const tolerance : {1e-2, 1e-6, 1e-9}) {
        index_t const queries = of.queries, keys = of.keys, width = of.width;
        lie const of_queries = ++seed % 2 == 0 ? how : lie::normal;
        line_problem p = long_line(of_queries, how, queries, keys, width, seed);
        for (auto* x : {&p.q, &p.k, &p.v})
          for (double& e : *x) e = double(float(e));
        INFO(queries, " x ", keys, " lie ", int(how), " tolerance ", tolerance);
        double const tau = 0.5;
        line::gaussian const op{tau, tolerance, mask::causal{}};
        numbers out(std::size_t(p.query_side(width).size())), lse(p.q.size());
        auto const c =
            forward(cpu<double>{}, op, p.in<line::gaussian<mask::causal>>(),
                    {.out = tensor(out, p.query_side(width)), .lse = natural_lse<double>(tensor(lse, p.query_side()))});
        CHECK(c.discarded + c.truncated <= 1.1 * tolerance);
        by_waves += goes_by_waves(op, p);
        std::vector<float> const in_float = outputs_in<float>(cpu<float>{}, op, p);
        double worst = 0, worst_float = 0, worst_lse = 0;
        for (index_t i = seed % 3; i < queries; i += 37) {
          index_t const sees = std::max<index_t>(0, i + keys - queries + 1);
          double const q = p.q[std::size_t(i)];
          long double most = -std::numeric_limits<long double>::infinity(), mass = 0, sum = 0;
          for (int pass = 0; pass < 2; ++pass)
            for (index_t j = 0; j < sees; ++j) {
              long double const e = static_cast<long double>(q) - p.k[std::size_t(j)], score = -e * e / tau;
              if (pass == 0) {
                most = std::max(most, score);
                continue;
              }
              long double const w = std::exp(score - most);
              mass += w;
              sum += w * p.v[std::size_t(j * width + 3)];
            }
          std::size_t const at = std::size_t(i * width + 3);
          if (sees == 0) {
            CHECK(out[at] == 0);
            CHECK(lse[std::size_t(i)] == -inf);
            continue;
          }
          worst = std::max(worst, double(std::fabs(out[at] - sum / mass)));
          worst_float = std::max(worst_float, double(std::fabs(in_float[at] - sum / mass)));
          long double const exact = most + std::log(mass);
          worst_lse = std::max(worst_lse, double(std::fabs(lse[std::size_t(i)] - exact) / (1 + std::fabs(exact))));
        }
        CHECK(worst <= c.output() * largest(p.v));
        CHECK(worst_float <= (c.output() + 0x1p-24) * largest(p.v));
        CHECK(worst_lse <= c.lse() + 1e-15);
      }
  CHECK(by_waves >= 8);  // the others are too wide, see too many keys at once, or ask for too much
}

TEST_CASE("long staircases: rows with little mass, as many as there may be") {
  for (index_t const every : {400, 5}) {
    line_problem p = long_line(lie::normal, lie::normal, 1500, 1500, 3, 12);
    for (auto* x : {&p.q, &p.k})
      for (double& e : *x) e *= 0.01;
    for (std::size_t i = 0; i < p.q.size(); i += std::size_t(every)) p.q[i] = 3;  // each meets every key
    numbers out(std::size_t(p.query_side(3).size()));
    line::gaussian const op{0.5, 1e-6, mask::causal{}};
    auto const c =
        forward(cpu<double>{}, op, p.in<line::gaussian<mask::causal>>(), {.out = tensor(out, p.query_side(3))});
    CHECK(goes_by_waves(op, p) == (every == 400));  // more of them are better off in rectangles
    CHECK(c.share() < 1e-5);
    line::gaussian const exact{0.5, 1e-12, mask::causal{}};
    numbers right(out.size());
    auto const of_exact =
        forward(cpu<double>{}, exact, p.in<line::gaussian<mask::causal>>(), {.out = tensor(right, p.query_side(3))});
    CHECK(farthest(out, right, {largest(p.v)}) <= c.output() + of_exact.output());
  }
}

TEST_CASE("waves: what they miss of a Gaussian is what the plan says") {
  for (double const reach : {0.5, 3.0, 25.0, 80.0})
    for (double const missing : {1e-4, 1e-8, 1e-12}) {
      auto const plan = line::detail::wave_plan::of(reach, missing);
      REQUIRE(plan);
      double worst = 0;
      for (int n = -1000; n <= 1000; ++n) {
        double const x = reach * n / 1000;
        double sum = 0;
        for (int m = 0; m <= plan->waves; ++m) sum += plan->coefficient(m) * std::cos(m * plan->step * x);
        worst = std::max(worst, std::fabs(sum - std::exp(-x * x)));
      }
      CHECK(worst <= missing + 1e-15);
      CHECK(worst >= 1e-5 * missing);  // no more waves than that takes
    }
  CHECK(!line::detail::wave_plan::of(1e4, 1e-6));
}

TEST_CASE("waves: boxes have every query, and every key that is near one of theirs") {
  std::mt19937 random(8);
  for (double const unit : {10.0, 1.0, 0.2, 0.02, 0.004})
    for (lie const how : {lie::normal, lie::tied, lie::equal})
      for (double const tolerance : {1e-2, 1e-6, 1e-10}) {
        INFO("unit ", unit, " lie ", int(how), " tolerance ", tolerance);
        numbers q, k;
        for (int n = 0; n < 400; ++n)
          q.push_back(draw_scalar(how, random) / unit), k.push_back(draw_scalar(lie::normal, random) / unit);
        line::detail::wave_boxes const line(q, k, tolerance);
        REQUIRE(!line.boxes().empty());
        double most_off = 0;
        index_t homeless = 0, missed = 0;
        for (index_t i = 0; i < index_t(q.size()); ++i) {
          index_t homes = 0;
          for (auto const& box : line.boxes()) {
            if (index_t const c = index_t(line.cell_of_query(i)); c < box.first || c >= box.last) continue;
            ++homes;
            for (index_t j = 0; j < index_t(k.size()); ++j) {
              index_t const c = index_t(line.cell_of_key(j));
              double const x = q[std::size_t(i)] - k[std::size_t(j)];
              if (c < box.first_key || c >= box.last_key) {
                missed += std::fabs(x) < box.within;
                continue;
              }
              if ((i + j) % 19 != 0) continue;
              double sum = 0;
              for (int m = 0; m <= box.waves.waves; ++m)
                sum += box.waves.coefficient(m) * std::cos(m * box.waves.step * x);
              most_off = std::max(most_off, std::fabs(sum - std::exp(-x * x)) - box.waves.missing);
            }
          }
          homeless += homes != 1;
        }
        CHECK(homeless == 0);
        CHECK(missed == 0);
        CHECK(most_off <= 1e-14);
      }
  // A long line takes more boxes, not more waves.
  numbers even, heavy{0, 1e300};
  for (int n = 0; n < 4000; ++n) even.push_back(n * 0.1);
  line::detail::wave_boxes const line(even, even, 1e-6);
  CHECK(line.boxes().size() >= 8);
  for (auto const& box : line.boxes()) CHECK(box.waves.waves < 80);
  CHECK(line.work() < 400.0 * double(even.size()));
  CHECK(line::detail::wave_boxes(heavy, even, 1e-6).boxes().empty());
}

TEST_CASE("waves: a box meets the keys that it is planned for, though boxes on both sides look farther") {
  struct cluster {
    double center, half_width;
    int keys, queries;
  };
  numbers q, k;
  for (cluster const& c : {cluster{10.16, 0.07, 11, 365},
                           {21.66, 0.71, 1, 2},
                           {23.38, 0.14, 49, 6},
                           {25.71, 0.2, 1166, 9},
                           {29.02, 0.12, 313, 1117},
                           {33.04, 0.0018, 465, 1}}) {
    for (int n = 0; n < c.keys; ++n) k.push_back(c.center + c.half_width * (2 * (n + 0.5) / c.keys - 1));
    for (int n = 0; n < c.queries; ++n) q.push_back(c.center + c.half_width * (2 * (n + 0.5) / c.queries - 1));
  }
  line::detail::wave_boxes const line(q, k, 5.3e-3);
  std::vector<index_t> const seen(q.size(), index_t(k.size()));
  auto const of = line::detail::stairs_of_boxes({seen, {0, false}, {0, false}}, line);
  index_t foreign = 0, missing = 0, skipped = 0;
  for (std::size_t b = 0; b < of.size(); ++b) {
    auto const wants = [&](std::size_t box, index_t c) {
      return c >= line.boxes()[box].first_key && c < line.boxes()[box].last_key;
    };
    for (index_t const j : of[b].keys) foreign += !wants(b, index_t(line.cell_of_key(j)));
    index_t here = 0;
    for (index_t j = 0; j < index_t(k.size()); ++j) here += wants(b, index_t(line.cell_of_key(j)));
    missing += here - index_t(of[b].keys.size());
    for (index_t c = 0; c < line.cells(); ++c) {
      bool before = false, behind = false;
      for (std::size_t other = 0; other < of.size(); ++other)
        (other < b ? before : behind) |= other != b && wants(other, c);
      skipped += before && behind && !wants(b, c);
    }
  }
  CHECK(skipped > 0);  // else this shows nothing
  CHECK(foreign == 0);
  CHECK(missing == 0);
}

TEST_CASE("waves: lines of next to no length, rows at the ends of double") {
  numbers const close{1e-30, 2e-30, 0};
  line::detail::wave_boxes const line(close, close, 1e-6);
  REQUIRE(line.boxes().size() == 1);
  CHECK(line.boxes()[0].last_key == line.cells());
  line_problem p = long_line(lie::normal, lie::normal, 1500, 1500, 1, 4);
  for (double const tau : {1e300, 1e-300}) {
    line_problem far = p;
    for (auto* x : {&far.q, &far.k})
      for (double& e : *x) e *= 0.1 * std::sqrt(tau);
    for (std::size_t i = 0; i < far.q.size(); i += 400) far.q[i] = 20 * std::sqrt(tau);  // late rows
    std::fill(far.v.begin(), far.v.end(), 1.0);
    numbers out(far.q.size()), lse(far.q.size());
    using Op = line::gaussian<mask::causal>;
    auto const c = forward(cpu<double>{}, Op{tau, 1e-6}, far.in<Op>(), far.to<Op>(out, lse));
    CHECK(c.output() <= 2.1e-6);
    for (double const x : out) REQUIRE(std::fabs(x - 1) <= 1e-12);
  }
}

TEST_CASE("long staircases: the gaussian on long lines, by waves or not, near its keys or not") {
  index_t by_waves = 0;
  for (double const tau : {0.3, 3e-3, 3e-5})
    for (lie const how : {lie::normal, lie::clustered})
      for (double const tolerance : {1e-6, 1e-11}) {
        INFO("tau ", tau, " lie ", int(how), " tolerance ", tolerance);
        line_problem const p = long_line(lie::normal, how, 2500, 2500, 1, 15);
        line::gaussian const op{tau, tolerance, mask::causal{}};
        numbers out(p.q.size()), lse(p.q.size());
        auto const c = forward(cpu<double>{}, op, p.in<line::gaussian<mask::causal>>(),
                               p.to<line::gaussian<mask::causal>>(out, lse));
        CHECK(c.share() <= 1.1 * tolerance + 1e-8);
        by_waves += goes_by_waves(op, p);
        double worst = 0, worst_lse = 0;
        for (index_t r = 0; r < index_t(p.q.size()); r += r % p.queries < 300 ? 1 : 7) {
          index_t const h = r / p.queries, head = h * p.keys, sees = r % p.queries + 1;
          index_t const values = h * p.value_heads / p.heads * p.keys;
          auto const score = [&](index_t j) {
            long double const e = static_cast<long double>(p.q[std::size_t(r)]) - p.k[std::size_t(head + j)];
            return -e * e / tau;
          };
          long double most = score(0), mass = 0, sum = 0;
          for (index_t j = 1; j < sees; ++j) most = std::max(most, score(j));
          for (index_t j = 0; j < sees; ++j) {
            long double const w = std::exp(score(j) - most);
            mass += w;
            sum += w * p.v[std::size_t(values + j)];
          }
          long double const exact = most + std::log(mass);
          worst = std::max(worst, double(std::fabs(out[std::size_t(r)] - sum / mass)));
          worst_lse = std::max(worst_lse, double(std::fabs(lse[std::size_t(r)] - exact) / (1 + std::fabs(exact))));
        }
        CHECK(worst <= c.output() * largest(p.v));
        CHECK(worst_lse <= c.lse() + 1e-15);
      }
  CHECK(by_waves >= 2);
}

TEST_CASE("digits: the order of numbers by value and place") {
  std::mt19937 random(3);
  using line::detail::ranked;
  for (lie const how : {lie::normal, lie::equal, lie::tied, lie::heavy}) {
    numbers x(1000);
    for (double& e : x) e = draw_scalar(how, random);
    x[10] = -0.0, x[20] = 0.0, x[30] = -5e-324, x[40] = 5e-324, x[50] = -1e308, x[60] = 1e308;
    std::vector<ranked> list, scratch;
    for (index_t n = 0; n < 1000; ++n) list.push_back({ranked::digits_of(x[std::size_t(n)]), n});
    line::detail::radix_sort(list, scratch);
    CHECK(std::is_sorted(list.begin(), list.end(), [&](ranked const& a, ranked const& b) {
      return std::pair(x[std::size_t(a.index)], a.index) < std::pair(x[std::size_t(b.index)], b.index);
    }));
  }
}

TEST_CASE("cells: a query has keys on its left in cells before its own, on its right behind it") {
  for (lie const how : {lie::normal, lie::equal, lie::tied, lie::clustered}) {
    line_problem const p = long_line(lie::normal, how, 300, 900, 1, 8);
    line::detail::scalars<double> const on(p.arrays(), {1, 2, 2, 1, 300, 900, 1}, 0, 0);
    std::vector<index_t> seen;
    for (index_t i = 0; i < 300; ++i) seen.push_back(3 * i + 3);
    line::detail::line_cells const cells({seen, {0, false}, {0, false}}, on, 32);
    CHECK(cells.count() == 29);
    auto const keys = cells.keys(), queries = cells.queries();
    index_t wrong = 0, members = 0;
    for (index_t c = 0; c < cells.count(); ++c) {
      CHECK(keys[c].size() == (c < 28 ? 32 : 4));
      CHECK(std::is_sorted(keys[c].begin(), keys[c].end()));
      members += index_t(queries[c].size());
      for (index_t const i : queries[c])
        for (index_t j = 0; j < 900; ++j) {
          double const x = on.q[std::size_t(i)] - on.k[std::size_t(j)];
          wrong += (cells.of_key(j) < c && x < 0) || (cells.of_key(j) > c && x > 0);
        }
    }
    CHECK(members == 300);
    CHECK(wrong == 0);
  }
}

}  // namespace
}  // namespace attune::test
