// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Defects that are large: exponentials that overflow, outputs that are NaN, a scale that is missing, a sink too many.
#include <cmath>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/gradient_verdict.hpp>
#include <attune/testing/probes.hpp>
#include <attune/testing/verdict.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

using certify::precision;
using certify::storage;
using testing::judgement;
using testing::problem_extents;
using testing::verdict_report;

using op_type = decltype(softmax_attention(mask::causal{}));
op_type const op = softmax_attention(mask::causal{});
using drawn = testing::drawn_problem<op_type>;

problem_extents const small{
    .heads = 2, .queries = 12, .keys = 20, .width = 16, .value_width = 16, .key_heads = 2, .value_heads = 2};

/// What is wrong with the kernel.
struct mistake {
  double scale = 1;         ///< a factor of 1 / sqrt(D)
  bool no_maximum = false;  ///< exponentials of logits
  double sink = 0;          ///< added to the sum of exponentials
};

struct results {
  std::vector<double> out, dq, dk, dv;
};

/// Causal attention and its gradients in plain loops, in T.
template <class T>
results run(drawn const& p, mistake const& m) {
  auto const& q = p.of(field::q);
  auto const& k = p.of(field::k);
  auto const& v = p.of(field::v);
  auto const& dout = p.by_out();
  index_t const H = q.extents.head, Lq = q.extents.position, Lk = k.extents.position, D = q.extents.feature;
  auto const at = [](testing::detail::drawn_tensor const& x, index_t h, index_t i, index_t c) {
    return T(x.floats[std::size_t((h * x.extents.position + i) * x.extents.feature + c)]);
  };
  T const scale = T(m.scale / std::sqrt(double(D)));
  std::vector<T> out(q.floats.size()), dq(q.floats.size()), dk(k.floats.size()), dv(k.floats.size());
  for (index_t h = 0; h < H; ++h)
    for (index_t i = 0; i < Lq; ++i) {
      index_t const seen = i + Lk - Lq + 1;
      std::vector<T> w;
      T largest = -math::infinity<T>(), sum = 0;
      for (index_t j = 0; j < seen; ++j) {
        T a = 0;
        for (index_t c = 0; c < D; ++c) a += at(q, h, i, c) * at(k, h, j, c);
        w.push_back(scale * a);
        largest = std::fmax(largest, w.back());
      }
      if (m.no_maximum) largest = 0;
      for (T& x : w) sum += x = std::exp(x - largest);
      if (m.sink != 0) sum += T(m.sink) * std::exp(-largest);
      for (T& x : w) x /= sum;
      std::vector<T> dp(w.size());
      T mean = 0;
      for (index_t j = 0; j < seen; ++j) {
        std::size_t const n = std::size_t(j);
        for (index_t c = 0; c < D; ++c) {
          out[std::size_t((h * Lq + i) * D + c)] += w[n] * at(v, h, j, c);
          dp[n] += at(dout, h, i, c) * at(v, h, j, c);
          dv[std::size_t((h * Lk + j) * D + c)] += w[n] * at(dout, h, i, c);
        }
        mean += w[n] * dp[n];
      }
      for (index_t j = 0; j < seen; ++j) {
        T const ds = scale * w[std::size_t(j)] * (dp[std::size_t(j)] - mean);
        for (index_t c = 0; c < D; ++c) {
          dq[std::size_t((h * Lq + i) * D + c)] += ds * at(k, h, j, c);
          dk[std::size_t((h * Lk + j) * D + c)] += ds * at(q, h, i, c);
        }
      }
    }
  auto const wide = [](std::vector<T> const& x) { return std::vector<double>(x.begin(), x.end()); };
  return {wide(out), wide(dq), wide(dk), wide(dv)};
}
results run(storage s, drawn const& p, mistake const& m) {
  results r = s == storage::fp64 ? run<double>(p, m) : run<float>(p, m);
  for (auto* x : {&r.out, &r.dq, &r.dk, &r.dv})
    for (double& y : *x) y = certify::rounded_to(s, y);
  return r;
}
verdict_report judged_out(storage s, drawn const& p, std::vector<double> const& out) {
  return testing::verdict(op, p.inputs<any_tensor>(),
                          testing::candidate(tensor<double const>(out, p.of(field::q).extents), s));
}
verdict_report judged_gradients(storage s, drawn const& p, results const& r) {
  testing::gradient_candidate given;
  given.with(field::q, tensor<double const>(r.dq, p.of(field::q).extents), s);
  given.with(field::k, tensor<double const>(r.dk, p.of(field::k).extents), s);
  given.with(field::v, tensor<double const>(r.dv, p.of(field::v).extents), s);
  auto d = p.cotangents<any_tensor>();
  d.lse = {};
  return testing::gradient_verdict(op, p.inputs<any_tensor>(), d, given);
}
std::string printed(verdict_report const& r) {
  std::ostringstream text;
  text << r;
  return text.str();
}
std::string name_of_cause(verdict_report const& r) { return r.cause() == nullptr ? "" : r.cause()->name; }

/// The probe with that name; its inputs are numbers of 16 bits, which every storage type has.
std::unique_ptr<testing::probe<op_type>> probe_called(std::string const& name) {
  for (auto& probe : testing::probe_pack(op, small))
    if (probe->name == name) {
      for (field f : {field::q, field::k, field::v})
        for (std::size_t n = 0; n < probe->problem.of(f).floats.size(); ++n) {
          float& x = probe->problem.of(f).floats[n];
          x = float(certify::rounded_to(storage::bf16, x));
          probe->problem.of(f).doubles[n] = double(x);
        }
      return std::move(probe);
    }
  return nullptr;
}

TEST_SUITE_BEGIN("verdict range");

TEST_CASE("a probe has logits far from 0: right kernels pass, one without the largest logit overflows and underflows") {
  auto const probe = probe_called("logits far from 0");
  REQUIRE(probe != nullptr);
  for (storage s : {storage::fp64, storage::fp32, storage::bf16, storage::fp16}) {
    INFO(std::string(testing::name_of(s)));
    drawn const& p = probe->problem;
    results const right = run(s, p, {}), naive = run(s, p, {.no_maximum = true});
    verdict_report const passed = judged_out(s, p, right.out);
    INFO(printed(passed));
    CHECK(passed.decision == judgement::pass);
    CHECK(passed.condition < 0.02);  // it judges as well as usual
    REQUIRE(passed.find("kernel.scale") != nullptr);
    CHECK(passed.find("kernel.scale")->power < 0.2);
    verdict_report const passed_back = judged_gradients(s, p, right);
    INFO(printed(passed_back));
    CHECK(passed_back.decision == judgement::pass);
    CHECK(passed_back.condition < 0.5);
    std::string const name = "exponentials overflow and underflow";
    CHECK(name_of_cause(judged_out(s, p, naive.out)) == name);
    CHECK(name_of_cause(judged_gradients(s, p, naive)) == name);
  }
}

TEST_CASE("outputs that are NaN are said to be NaN, and no weight is said to be off by 0") {
  auto const probe = probe_called("random");
  drawn const& p = probe->problem;
  results r = run(storage::fp32, p, {});
  std::vector<double> some = r.out, all(r.out.size(), nan);
  some[3] = some[40] = nan;
  verdict_report const one = judged_out(storage::fp32, p, all);
  INFO(printed(one));
  CHECK(one.reasons.at(0) == "all elements of out are NaN; no known defect explains it");
  CHECK(printed(one).find("weights off") == std::string::npos);
  CHECK(judged_out(storage::fp32, p, some).reasons.at(0).rfind("2 of 384 elements of out are NaN; ", 0) == 0);
  for (auto* x : {&r.dq, &r.dk, &r.dv}) x->assign(x->size(), nan);
  verdict_report const back = judged_gradients(storage::fp32, p, r);
  CHECK(back.reasons.at(0) ==
        "all elements of dq are NaN, all elements of dk are NaN, all elements of dv are NaN; no known defect explains "
        "it");
}

TEST_CASE("a scale that is far off is named with its size, in outputs and in gradients") {
  auto const probe = probe_called("random");
  drawn const& p = probe->problem;
  for (storage s : {storage::fp32, storage::bf16})
    for (double factor : {1. / 16, 1. / 8, 1 / 1.442695, 0.693147, 1.2, 2., 4., 8., 11.3, 16.}) {
      CAPTURE(factor);
      results const r = run(s, p, {.scale = factor});
      for (verdict_report const& j : {judged_out(s, p, r.out), judged_gradients(s, p, r)}) {
        INFO(printed(j));
        REQUIRE(name_of_cause(j) == "kernel.scale");
        CHECK(j.share > 0.95);
        CHECK(std::fabs((1 + j.cause()->estimate) / factor - 1) < (s == storage::fp32 ? 0.001 : 0.03));
      }
    }
}

TEST_CASE("a sink that the operator does not have is named") {
  auto const probe = probe_called("random");
  drawn const& p = probe->problem;
  results const r = run(storage::bf16, p, {.sink = 1});
  verdict_report const j = judged_out(storage::bf16, p, r.out);
  INFO(printed(j));
  CHECK(name_of_cause(j) == "a sink of logit 0 that the operator does not have");
  CHECK(j.share > 0.95);
}

TEST_CASE("results of fp32 in tensors of fp64 are said to be computed in fp32, and smaller defects keep their names") {
  auto const probe = probe_called("random");
  drawn const& p = probe->problem;
  results const narrow = run(storage::fp32, p, {});
  std::string const name = "computed in fp32";
  CHECK(name_of_cause(judged_out(storage::fp64, p, narrow.out)) == name);
  CHECK(name_of_cause(judged_gradients(storage::fp64, p, narrow)) == name);
  results const right = run(storage::fp64, p, {});
  CHECK(judged_out(storage::fp64, p, right.out).decision == judgement::pass);
  CHECK(judged_gradients(storage::fp64, p, right).decision == judgement::pass);
  results const off = run(storage::fp64, p, {.scale = 1 + 1e-7});  // within the bounds of fp32
  CHECK(name_of_cause(judged_out(storage::fp64, p, off.out)) == "kernel.scale");
  CHECK(name_of_cause(judged_gradients(storage::fp64, p, off)) == "kernel.scale");
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
