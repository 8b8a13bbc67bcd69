// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Windows in key order against plain sums over all visible pairs in long double.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <support/line_problem.hpp>
#include <support/sights.hpp>
#include <unit/check.hpp>

#include <attune/attune.hpp>
#include <attune/line.hpp>

namespace attune::test {
namespace {

using real = long double;
using numbers = std::vector<double>;

/// A problem with vectors and a sink.
struct hybrid_problem {
  line_problem line;
  index_t width = 0, vector_heads = 1;
  bool with_sink = false;
  numbers q, k, sink_k, sink_v;

  shape vector_q() const { return {line.batch, line.heads, line.queries, width}; }
  shape vector_k() const { return {line.batch, vector_heads, line.keys, width}; }
  /// One number and one value for all heads, or one each.
  shape sink(index_t features) const { return {1, index_t(sink_k.size()), 1, features}; }
};

hybrid_problem random_hybrid(lie keys, index_t lq, index_t lk, index_t width, bool with_sink, unsigned seed) {
  hybrid_problem p;
  p.line = random_line(lie::normal, keys, lq, lk, seed);
  std::mt19937 random(seed + 1);
  std::normal_distribution<double> normal;
  p.line.batch = 1, p.line.heads = 2, p.line.key_heads = 2, p.line.value_heads = 1;
  p.line.tau = numbers{0.02, 0.5};
  p.width = width;
  p.with_sink = with_sink;
  auto const fit = [&](numbers& x, index_t n) {
    x.resize(std::size_t(n));
    for (double& e : x) e = double(float(e == 0 ? normal(random) : e));  // the same numbers in float
  };
  fit(p.line.q, p.line.query_side().size()), fit(p.line.k, p.line.key_side().size());
  fit(p.line.v, p.line.value_side().size()), fit(p.line.by, p.line.query_side(p.line.width).size());
  fit(p.line.by_lse, p.line.query_side().size());
  fit(p.q, p.vector_q().size()), fit(p.k, p.vector_k().size());
  if (with_sink) fit(p.sink_k, seed % 2 == 0 ? 1 : 2), fit(p.sink_v, p.line.width * index_t(p.sink_k.size()));
  return p;
}

/// Everything a call gives.
struct hybrid_answer {
  numbers out, lse, discarded, sort_q, sort_k, v, q, k, tau, scale, sink_k, sink_v;
  explicit hybrid_answer(hybrid_problem const& p)
      : out(p.line.by.size()), lse(p.line.q.size()), discarded(lse), sort_q(lse), sort_k(p.line.k.size()),
        v(p.line.v.size()), q(p.q.size()), k(p.k.size()), tau(2), scale(lse), sink_k(p.sink_k.size()),
        sink_v(p.sink_v.size()) {}
};

/// Sums over all pairs that `sees` allows.
hybrid_answer exactly(hybrid_problem const& p, sight const& s, double scale) {
  hybrid_answer r(p);
  line_problem const& l = p.line;
  index_t const w = l.width;
  for (index_t h = 0; h < l.heads; ++h) {
    index_t const hk = h * l.key_heads / l.heads, hv = h * l.value_heads / l.heads, hx = h * p.vector_heads / l.heads;
    index_t const hs = p.sink_k.size() == 1 ? 0 : h;
    real const tau = l.tau[std::size_t(h)];
    for (index_t i = 0; i < l.queries; ++i) {
      std::size_t const row = std::size_t(h * l.queries + i);
      std::vector<index_t> seen;  // Lk: the sink
      for (index_t j = 0; j < l.keys; ++j)
        if (s.sees(i, j)) seen.push_back(j);
      if (p.with_sink) seen.push_back(l.keys);
      auto const key = [&](index_t j) {
        return real(j == l.keys ? p.sink_k[std::size_t(hs)] : l.k[std::size_t(hk * l.keys + j)]);
      };
      auto const value = [&](index_t j) {
        return j == l.keys ? p.sink_v.data() + hs * w : l.v.data() + (hv * l.keys + j) * w;
      };
      auto const product = [&](index_t j) {
        real sum = 0;
        for (index_t d = 0; d < p.width && j < l.keys; ++d)
          sum += real(p.q[std::size_t((h * l.queries + i) * p.width + d)]) *
                 p.k[std::size_t((hx * l.keys + j) * p.width + d)];
        return sum;
      };
      std::vector<real> score;
      real most = -real(inf), mass = 0;
      for (index_t const j : seen) {
        real const e = real(l.q[row]) - key(j);
        score.push_back(real(scale) * product(j) - e * e / tau);
        most = std::max(most, score.back());
      }
      std::vector<real> out(std::size_t(w), 0);
      for (std::size_t n = 0; n < seen.size(); ++n) {
        real const x = std::exp(score[n] - most);
        mass += x;
        for (index_t d = 0; d < w; ++d) out[std::size_t(d)] += x * value(seen[n])[d];
      }
      r.lse[row] = seen.empty() ? -inf : double(most + std::log(mass));
      real average = 0;
      for (index_t d = 0; d < w && !seen.empty(); ++d) {
        out[std::size_t(d)] /= mass;
        r.out[row * std::size_t(w) + std::size_t(d)] = double(out[std::size_t(d)]);
        average += real(l.by[row * std::size_t(w) + std::size_t(d)]) * out[std::size_t(d)];
      }
      for (std::size_t n = 0; n < seen.size(); ++n) {
        index_t const j = seen[n];
        real const weight = std::exp(score[n] - most) / mass, e = real(l.q[row]) - key(j);
        real gain = l.by_lse[row] - average;
        for (index_t d = 0; d < w; ++d) {
          double const by = l.by[row * std::size_t(w) + std::size_t(d)];
          gain += real(by) * value(j)[d];
          (j == l.keys ? r.sink_v[std::size_t(hs * w + d)] : r.v[std::size_t((hv * l.keys + j) * w + d)]) +=
              double(weight * by);
        }
        real const pull = weight * gain;
        r.sort_q[row] -= double(2 * e / tau * pull);
        (j == l.keys ? r.sink_k[std::size_t(hs)] : r.sort_k[std::size_t(hk * l.keys + j)]) +=
            double(2 * e / tau * pull);
        r.tau[std::size_t(h)] += double(e * e / (tau * tau) * pull);
        r.scale[row] += double(product(j) * pull);
        for (index_t d = 0; d < p.width && j < l.keys; ++d) {
          std::size_t const a = std::size_t((h * l.queries + i) * p.width + d),
                            b = std::size_t((hx * l.keys + j) * p.width + d);
          r.q[a] += double(scale * pull * p.k[b]);
          r.k[b] += double(scale * pull * p.q[a]);
        }
      }
    }
  }
  return r;
}

template <class T>
std::vector<T> as(numbers const& x) {
  return {x.begin(), x.end()};
}

/// The operator under test: with vectors, with a sink, or without.
struct windows {
  parameter tau;
  double tolerance = 1e-6;
  mask::runtime sees{};
  std::vector<double> scale{};  ///< per query of every head; empty: as the operator has it
};

/// forward and vjp.
template <class T>
hybrid_answer answer(hybrid_problem const& p, windows const& op, bool with_gradients, line::window_certificate& c,
                     int threads = 0) {
  line_problem const& l = p.line;
  hybrid_answer r(p);
  auto const sq = as<T>(l.q), sk = as<T>(l.k), v = as<T>(l.v), q = as<T>(p.q), k = as<T>(p.k), by = as<T>(l.by),
             bl = as<T>(l.by_lse), vs = as<T>(p.sink_v);
  std::vector<T> out(r.out.size()), lse(r.lse.size());
  cpu<T> const exec{threads};
  auto const run = [&]<class Op>(Op const& of) {
    auto const in = make_inputs<Op, tensor<T const>>([&]<field F>() -> tensor<T const> {
      if constexpr (F == field::sort_q) return {sq.data(), l.query_side()};
      if constexpr (F == field::sort_k) return {sk.data(), l.key_side()};
      if constexpr (F == field::v) return {v.data(), l.value_side()};
      if constexpr (F == field::q) return {q.data(), p.vector_q()};
      if constexpr (F == field::k) return {k.data(), p.vector_k()};
      if constexpr (F == field::v0) return {vs.data(), p.sink(l.width)};
    });
    c = forward(exec, of, in,
                {.out = tensor<T>(out, l.query_side(l.width)), .lse = natural_lse<T>(tensor<T>(lse, l.query_side()))},
                tensor(r.discarded, l.query_side()));
    if (!with_gradients) return;
    auto const g = vjp(exec, of, in,
                       {.out = tensor<T const>(by, l.query_side(l.width)), .lse = tensor<T const>(bl, l.query_side())});
    auto const take = [](numbers& to, gradient_array<T> const& from) {
      to.assign(from.values.begin(), from.values.end());
    };
    take(r.sort_q, g.of(field::sort_q)), take(r.sort_k, g.of(field::sort_k)), take(r.v, g.of(field::v));
    take(r.tau, g.parameter("tau"));
    if constexpr (Op::has_vectors) {
      take(r.q, g.of(field::q)), take(r.k, g.of(field::k));
      take(r.scale, g.parameter("scale"));
    }
    if constexpr (Op::has_sink) take(r.sink_k, g.parameter("sort_k")), take(r.sink_v, g.of(field::v0));
  };
  line::certified const window{op.tolerance};
  parameter const scale = op.scale.empty() ? parameter{} : per_query(op.scale, l.heads);
  line::sink const at{p.with_sink ? parameter(tensor<double const>(p.sink_k, p.sink(1))) : parameter{}};
  if (p.width > 0 && p.with_sink) run(line::hybrid{op.tau, window, op.sees, at, scale});
  if (p.width > 0 && !p.with_sink) run(line::hybrid{op.tau, window, op.sees, line::no_sink{}, scale});
  if (p.width == 0 && p.with_sink) run(line::windowed{op.tau, window, op.sees, at});
  if (p.width == 0 && !p.with_sink) run(line::windowed{op.tau, window, op.sees});
  std::copy(out.begin(), out.end(), r.out.begin());
  std::copy(lse.begin(), lse.end(), r.lse.begin());
  return r;
}
/// What each query sees of as many keys.
sight causal(index_t queries, index_t keys) { return all_sights(queries, keys)[1]; }

/// What the certificate promises, row by row, against the exact rows; returns the largest error / promise.
template <class T>
double check_promises(hybrid_problem const& p, hybrid_answer const& got, hybrid_answer const& want,
                      line::window_certificate const& c, double tolerance) {
  index_t const w = p.line.width;
  double largest_value = 0, worst = 0;
  auto const norm = [&](double const* x) {
    double sum = 0;
    for (index_t d = 0; d < w; ++d) sum += x[d] * x[d];
    return std::sqrt(sum);
  };
  for (std::size_t j = 0; j + std::size_t(w) <= p.line.v.size(); j += std::size_t(w))
    largest_value = std::max(largest_value, norm(p.line.v.data() + j));
  for (std::size_t j = 0; j + std::size_t(w) <= p.sink_v.size(); j += std::size_t(w))
    largest_value = std::max(largest_value, norm(p.sink_v.data() + j));
  CHECK(c.discarded <= tolerance * (1 + 1e-3));
  double const u = std::numeric_limits<T>::epsilon() / 2;
  bool right = true;
  for (std::size_t row = 0; row < got.lse.size(); ++row) {
    numbers off(static_cast<std::size_t>(w));
    for (std::size_t d = 0; d < off.size(); ++d)
      off[d] = got.out[row * off.size() + d] - want.out[row * off.size() + d];
    double const promise = (2 * got.discarded[row] + c.rounded + u) * largest_value;
    worst = std::max(worst, norm(off.data()) / promise);
    right = right && norm(off.data()) <= promise && got.discarded[row] <= c.discarded;
    if (want.lse[row] == -inf) {
      right = right && got.lse[row] == -inf && got.discarded[row] == 0;
      continue;
    }
    // The missing weight itself, from the two normalizers.
    double const missing = want.lse[row] - got.lse[row], of_lse = c.rounded + 2 * u * std::fabs(want.lse[row]);
    right = right && missing <= -std::log1p(-got.discarded[row]) + of_lse && missing >= -of_lse;
  }
  CHECK(right);
  return worst;
}

TEST_CASE("hybrid: by hand") {
  numbers const sq{0}, sk{1, 0}, v{10, 30}, q{ln2}, k{2, 1};
  numbers out(1), lse(1);
  shape const one{1, 1, 1, 1}, two{1, 1, 2, 1};
  auto const c = forward(cpu<double>{}, line::hybrid{1 / ln2, line::certified{}, mask::none{}, line::no_sink{}, 1.0},
                         {.q = tensor(q, one),
                          .k = tensor(k, two),
                          .v = tensor(v, two),
                          .sort_q = tensor(sq, one),
                          .sort_k = tensor(sk, two)},
                         {.out = tensor(out, one), .lse = natural_lse<double>(tensor(lse, one))});
  // masses 2^(2 - 1) and 2^(1 - 0)
  CHECK(near(out[0], 20));
  CHECK(near(lse[0], std::log(4)));
  CHECK(c.discarded == 0);
  CHECK(c.scored == 2);
}

TEST_CASE("hybrid: certificate and gradients under every visibility, wherever keys lie") {
  unsigned seed = 0;
  for (lie const keys : {lie::normal, lie::clustered, lie::equal, lie::heavy, lie::far})
    for (sight const& s : all_sights(150, 170)) {
      CAPTURE(int(keys));
      CAPTURE(s.name);
      index_t const width = ++seed % 2 == 0 ? 3 : 0;
      hybrid_problem const p = random_hybrid(keys, 150, 170, width, seed % 3 == 0, seed);
      double const scale = 0.7;
      hybrid_answer const want = exactly(p, s, scale);
      windows op{per_head(p.line.tau), 1e-11, s.mask(), numbers(p.line.q.size(), scale)};
      line::window_certificate c;
      auto const got = answer<double>(p, op, true, c);
      check_promises<double>(p, got, want, c, op.tolerance);
      CHECK(away(got.sort_q, want.sort_q) < 1e-8);
      CHECK(away(got.sort_k, want.sort_k) < 1e-8);
      CHECK(away(got.v, want.v) < 1e-9);
      CHECK(away(got.q, want.q) < 1e-9);
      CHECK(away(got.k, want.k) < 1e-9);
      CHECK(away(got.tau, want.tau) < 1e-7);
      if (width > 0) CHECK(away(got.scale, want.scale) < 1e-8);
      CHECK(away(got.sink_k, want.sink_k) < 1e-8);
      CHECK(away(got.sink_v, want.sink_v) < 1e-9);
      op.tolerance = 1e-2;
      check_promises<double>(p, answer<double>(p, op, false, c), want, c, op.tolerance);
      op.tolerance = 1e-5;
      check_promises<float>(p, answer<float>(p, op, false, c), want, c, op.tolerance);
    }
}

TEST_CASE("hybrid: rectangles beside what is near, and what windows leave out") {
  for (index_t const width : {0, 2}) {
    hybrid_problem p = random_hybrid(lie::normal, 1200, 1200, width, false, 7);
    p.line.tau = numbers{0.01, 0.1};
    for (double& x : p.k) x *= 0.3;
    auto const sights = all_sights(1200, 1200);
    for (std::size_t const n :
         {std::size_t(1), std::size_t(3), std::size_t(7)}) {  // causal, causal window, causal documents
      CAPTURE(sights[n].name);
      hybrid_answer const want = exactly(p, sights[n], 1);
      windows const op{per_head(p.line.tau), 1e-8, sights[n].mask(), numbers(p.line.q.size(), 1.0)};
      line::window_certificate c;
      auto const got = answer<double>(p, op, true, c);
      double const share = check_promises<double>(p, got, want, c, op.tolerance);
      MESSAGE(sights[n].name << ", width " << width << ": scored " << double(c.scored) / double(c.visible)
                             << " of pairs, discarded " << c.discarded << ", error / promise " << share);
      CHECK(c.discarded > 0);
      if (n == 1) CHECK(double(c.scored) < 0.75 * double(c.visible));
      CHECK(away(got.sort_q, want.sort_q) < 1e-6);
      CHECK(away(got.sort_k, want.sort_k) < 1e-6);
      CHECK(away(got.v, want.v) < 1e-6);
      CHECK(away(got.q, want.q) < 1e-6);
      CHECK(away(got.k, want.k) < 1e-6);
      CHECK(away(got.tau, want.tau) < 1e-6);
    }
  }
}

TEST_CASE("hybrid: gradients are those of the outputs, by differences") {
  hybrid_problem p = random_hybrid(lie::normal, 20, 30, 2, true, 4);
  p.line.tau = numbers{0.5, 2};
  sight const sees = causal(20, 30);
  windows const op{per_head(p.line.tau), 1e-12, sees.mask()};
  line::window_certificate c;
  auto const g = answer<double>(p, op, true, c);
  auto const objective = [&] {
    auto const r = answer<double>(p, op, false, c);
    double sum = 0;
    for (std::size_t n = 0; n < r.out.size(); ++n) sum += p.line.by[n] * r.out[n];
    for (std::size_t n = 0; n < r.lse.size(); ++n) sum += p.line.by_lse[n] * r.lse[n];
    return sum;
  };
  auto const check = [&](numbers& x, numbers const& slope) {
    for (std::size_t n = 0; n < x.size(); n += 1 + x.size() / 7) {
      double const at = x[n], step = 1e-5;
      x[n] = at + step;
      double const above = objective();
      x[n] = at - step;
      double const below = objective();
      x[n] = at;
      CHECK(std::fabs((above - below) / (2 * step) - slope[n]) < 1e-7 * (1 + std::fabs(slope[n])));
    }
  };
  check(p.line.q, g.sort_q), check(p.line.k, g.sort_k), check(p.line.v, g.v), check(p.q, g.q), check(p.k, g.k);
  check(p.line.tau, g.tau), check(p.sink_k, g.sink_k), check(p.sink_v, g.sink_v);
}

TEST_CASE("hybrid: tau to 0 is the nearest key, ties share; tau to inf is the mean") {
  numbers const q{0, 2.4, -50}, k{1, -1, 3, 4}, v{1, 2, 4, 9};
  shape const three{1, 1, 3, 1}, four{1, 1, 4, 1};
  auto const at = [&](double tau) {
    numbers out(3);
    auto const c = forward(cpu<double>{}, line::windowed{tau},
                           {.v = tensor(v, four), .sort_q = tensor(q, three), .sort_k = tensor(k, four)},
                           {.out = tensor(out, three)});
    CHECK(c.discarded <= 1e-6);
    return out;
  };
  for (double const tau : {1e-3, 1e-9, 1e-30}) CHECK(at(tau) == numbers{1.5, 4, 2});
  for (double const out : at(1e12)) CHECK(near(out, 4, 1e-9));
}

TEST_CASE("hybrid: what a query does not see is never read, what is not finite leaves nothing out") {
  hybrid_problem p = random_hybrid(lie::normal, 600, 600, 2, false, 5);
  sight const sees = causal(600, 600);
  windows const op{.tau = 0.05, .sees = sees.mask()};
  line::window_certificate c;
  auto const before = answer<double>(p, op, false, c);
  for (std::size_t d = 0; d < 5; ++d) p.line.v[400 * 5 + d] = nan;
  p.k[2 * 450] = nan;
  p.q[2 * 20] = inf;
  auto const after = answer<double>(p, op, false, c);
  for (std::size_t i = 0; i < 400; ++i)
    for (std::size_t d = 0; d < 5; ++d)
      CHECK((i == 20 ? std::isnan(after.out[i * 5 + d])
                     : std::fabs(after.out[i * 5 + d] - before.out[i * 5 + d]) < 1e-5));
  for (std::size_t i = 450; i < 600; ++i) CHECK(std::isnan(after.out[i * 5]));
}

TEST_CASE("hybrid: without a key out is 0, without a query nothing happens") {
  numbers const q{1}, none;
  numbers out(1, 7.0), lse(1), discarded(1, 7.0), nothing;
  shape const one{1, 1, 1, 1}, empty{1, 1, 0, 1};
  auto const in = [&](numbers const& rows, shape const& queries, numbers const& keys, shape const& of_keys) {
    return inputs<line::windowed<>, tensor<double const>>{
        .v = tensor(keys, of_keys), .sort_q = tensor(rows, queries), .sort_k = tensor(keys, of_keys)};
  };
  auto const c =
      forward(cpu<double>{}, line::windowed{}, in(q, one, none, empty),
              {.out = tensor(out, one), .lse = natural_lse<double>(tensor(lse, one))}, tensor(discarded, one));
  CHECK(out[0] == 0);
  CHECK(lse[0] == -inf);
  CHECK(discarded[0] == 0);
  CHECK(c.visible == 0);
  auto const g = vjp(cpu<double>{}, line::windowed{}, in(q, one, none, empty), {.out = tensor<double const>(q, one)});
  CHECK(g.of(field::sort_q).values.at(0) == 0);
  forward(cpu<double>{}, line::windowed{}, in(none, empty, q, one), {.out = tensor(nothing, empty)});
}

TEST_CASE("hybrid: a sink serves rows that see nothing else, and queries near it") {
  numbers const q{0, 3}, k{3}, v{8}, sink_v{2};
  numbers out(2);
  shape const one{1, 1, 1, 1}, two{1, 1, 2, 1};
  auto const call = [&](auto const& sees) {
    forward(cpu<double>{}, line::windowed{0.1, line::certified{}, sees, line::sink{0}},
            {.v = tensor(v, one), .sort_q = tensor(q, two), .sort_k = tensor(k, one), .v0 = tensor(sink_v, one)},
            {.out = tensor(out, two)});
  };
  call(mask::causal{});
  CHECK(near(out[0], 2));  // offset -1: it sees no key
  CHECK(near(out[1], 8, 1e-12));
  call(mask::none{});
  CHECK(near(out[0], 2, 1e-12));
}

TEST_CASE("half and radius: the windows that they name, and what those leave out is bounded") {
  hybrid_problem p = random_hybrid(lie::normal, 90, 110, 2, false, 8);
  p.line.tau = numbers{0.1, 0.1};
  numbers in_order(p.line.k.begin(), p.line.k.begin() + 110);  // of head 0
  std::sort(in_order.begin(), in_order.end());
  auto const check = [&](auto const& op, auto const& kept) {
    line_problem const& l = p.line;
    shape const queries{1, 1, 90, 1}, keys{1, 1, 110, 1};
    numbers const sq(l.q.begin(), l.q.begin() + 90), sk(l.k.begin(), l.k.begin() + 110),
        v(l.v.begin(), l.v.begin() + 110);
    numbers out(90), discarded(90);
    forward(cpu<double>{}, op, {.v = tensor(v, keys), .sort_q = tensor(sq, queries), .sort_k = tensor(sk, keys)},
            {.out = tensor(out, queries)}, tensor(discarded, queries));
    for (std::size_t i = 0; i < 90; ++i) {
      double mass = 0, sum = 0, all = 0;
      for (std::size_t j = 0; j < 110; ++j) {
        double const w = std::exp(-(sq[i] - sk[j]) * (sq[i] - sk[j]) / 0.1);
        all += w;
        if (!kept(sq[i], sk[j])) continue;
        mass += w;
        sum += w * v[j];
      }
      CHECK(near(out[i], mass > 0 ? sum / mass : 0, 1e-10));
      CHECK(discarded[i] >= 1 - mass / all - 1e-12);
    }
  };
  check(line::windowed{0.1, line::half{21}}, [&](double q, double k) {
    index_t const at = std::lower_bound(in_order.begin(), in_order.end(), q) - in_order.begin(),
                  rank = std::lower_bound(in_order.begin(), in_order.end(), k) - in_order.begin();
    return rank >= at - 10 && rank < at + 11;
  });
  check(line::windowed{0.1, line::radius{0.4}},
        [](double q, double k) { return std::fabs(q - k) <= std::sqrt(-0.1 * std::log(0.4)); });
}

TEST_CASE("hybrid: bitwise the same for any number of threads; tau per query") {
  hybrid_problem const p = random_hybrid(lie::tied, 700, 700, 2, true, 6);
  numbers tau;
  for (std::size_t n = 0; n < p.line.q.size(); ++n) tau.push_back(0.01 * double(1 + n % 9));
  sight const sees = causal(700, 700);
  windows const op{.tau = per_query(tau, 2), .sees = sees.mask()};
  line::window_certificate c;
  auto const one = answer<float>(p, op, true, c, 1), three = answer<float>(p, op, true, c, 3);
  CHECK(one.out == three.out);
  CHECK(one.sort_q == three.sort_q);
  CHECK(one.k == three.k);
  CHECK(one.tau == three.tau);
  // Each row is that of its own tau.
  for (double const t : {0.01, 0.05}) {
    auto const same = answer<float>(p, windows{.tau = t, .sees = sees.mask()}, false, c);
    for (std::size_t n = 0; n < tau.size(); ++n)
      if (tau[n] == t) CHECK(std::fabs(same.lse[n] - one.lse[n]) < 1e-4);
  }
}

TEST_CASE("hybrid: bad input is refused in words, and nothing is written") {
  numbers const q{0, 1}, k{0, 1}, v{1, 2}, bad{0, nan}, three{1, 2, 3};
  numbers out{7, 7};
  shape const two{1, 1, 2, 1}, one{1, 1, 1, 1};
  auto const refused = [&](auto const& op, numbers const& keys) {
    return error_of([&] {
      forward(cpu<double>{}, op, {.v = tensor(v, two), .sort_q = tensor(q, two), .sort_k = tensor(keys, two)},
              {.out = tensor(out, two)});
    });
  };
  auto const with_sink = [&](line::sink const& at, numbers const& value, shape const& of_value) {
    return error_of([&] {
      forward(cpu<double>{}, line::windowed{1, line::certified{}, mask::none{}, at},
              {.v = tensor(v, two), .sort_q = tensor(q, two), .sort_k = tensor(k, two), .v0 = tensor(value, of_value)},
              {.out = tensor(out, two)});
    });
  };
  auto const says = [](std::string const& text, char const* what) { return text.find(what) != std::string::npos; };
  CHECK(says(refused(line::windowed{}, bad), "sort_k has the value nan"));
  CHECK(says(refused(line::windowed{0.0}, k), "tau"));
  CHECK(says(refused(line::windowed{1, line::certified{1.0}}, k), "tolerance"));
  CHECK(says(refused(line::windowed{1, line::certified{1e-13}}, k), "tolerance has the value 1e-13"));
  CHECK(says(refused(line::windowed{1, line::half{0}}, k), "k has the value 0"));
  CHECK(says(refused(line::windowed{1, line::radius{0}}, k), "eps"));
  CHECK(says(with_sink({}, {1}, one), "sink.sort_k has no value"));
  CHECK(says(with_sink({nan}, {1}, one), "sink.sort_k"));
  CHECK(says(with_sink({parameter(tensor<double const>(q, two))}, {1}, one), "one value per query"));
  CHECK(says(with_sink({0.0}, {1, 2}, two), "v0 has one value per query"));
  CHECK(says(with_sink({0.0}, three, {1, 1, 1, 3}), "v0 has shape (1, 1, 1, 3); expected (1 or 1, 1 or 1, 1, 1)"));
  CHECK(out == numbers{7, 7});
}

}  // namespace
}  // namespace attune::test
