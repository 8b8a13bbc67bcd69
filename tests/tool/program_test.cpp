// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The whole program: every preset on both executors, from files to files.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include <doctest/doctest.h>

#include <attune/io/npy.hpp>
#include <attune/io/npz.hpp>
#include <attune/operators/inputs.hpp>

#include "captured.hpp"
#include "catalogue.hpp"
#include "problem.hpp"
#include "runners.hpp"
#include "typical.hpp"
#include "unit/io/files.hpp"

using namespace attune;

namespace {

constexpr index_t heads = 2, queries = 3, keys = 5, width = 4, value_width = 6;

/// Without the batch, and without the axis of one number per position.
std::vector<index_t> extents_of(field f) {
  shape const e = testing::extents_of(
      f, {.heads = heads, .queries = queries, .keys = keys, .width = width, .value_width = value_width});
  if (tool::is_per_position(f)) return {e.head, e.position};
  return {e.head, e.position, e.feature};
}

io::array drawn(std::vector<index_t> const& extents, std::mt19937& random) {
  index_t n = 1;
  for (index_t e : extents) n *= e;
  std::vector<float> values;
  for (index_t i = 0; i < n; ++i) values.push_back(0.1f + float(random() % 1000) / 1000);
  return io::make_array<float>(values, extents);
}

/// The arguments of a preset on random files.
std::vector<std::string> arguments_of(tool::preset const& p, std::filesystem::path const& folder,
                                      std::mt19937& random) {
  std::map<std::string, io::array> inputs;
  for (field f : p.inputs) inputs[name_of(f)] = drawn(extents_of(f), random);
  io::write_npz(folder / "in.npz", inputs);
  std::vector<std::string> all{p.name, "--from", (folder / "in.npz").string(), "--mask", "causal"};
  for (auto const& e : p.parameters)
    all.insert(all.end(), {"-p", e.name + "=" + std::to_string(tool::typical_value(e))});
  for (auto const& t : p.tables) {
    shape const x = tool::typical_extents(p, t, width);
    std::string const file = (folder / (t.name + ".npy")).string();
    io::write_npy(file, drawn({x.position, x.feature}, random));
    all.insert(all.end(), {"-p", t.name + "=" + file});
  }
  for (auto const& name : p.arrays) {
    std::string const file = (folder / (name + ".npy")).string();
    io::write_npy(file, drawn({keys, width}, random));
    all.insert(all.end(), {"-p", name + "=" + file});
  }
  for (auto const& c : p.constants)
    if (c.name == "k") all.insert(all.end(), {"-p", "k=2"});
  return all;
}

std::vector<std::string> with(std::vector<std::string> all, std::vector<std::string> const& more, char const* command) {
  all.insert(all.begin(), command);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// The largest difference, as a share of the largest number.
double apart(io::array const& a, io::array const& b) {
  auto const x = io::numbers<double>(a), y = io::numbers<double>(b);
  if (a.extents != b.extents) return 1e300;
  double most = 0, size = 1e-3;
  for (std::size_t n = 0; n < x.size(); ++n) {
    if (std::isfinite(y[n])) size = std::max(size, std::fabs(y[n]));
    if (x[n] == y[n] || (x[n] != x[n] && y[n] != y[n])) continue;
    most = std::max(most, std::isfinite(x[n] - y[n]) ? std::fabs(x[n] - y[n]) : 1e300);
  }
  return most / size;
}

}  // namespace

TEST_SUITE("full program") {
  TEST_CASE("Softmax is softmax") {
    io_tests::folder const folder;
    std::mt19937 random(1);
    std::string const in = (folder.path / "in.npz").string(), out = (folder.path / "out.npy").string();
    auto const a = arguments_of(tool::find_preset("softmax"), folder.path, random);
    std::vector<std::string> given{"run",    "softmax",    "--from",    in,      "--mask",
                                   "causal", "--executor", "reference", "--out", out};
    REQUIRE(tool_tests::attune(given).status == 0);
    io::npz_file file(in);
    auto const q = io::numbers<double>(file.read("q")), k = io::numbers<double>(file.read("k")),
               v = io::numbers<double>(file.read("v")), o = io::numbers<double>(io::read_npy(out));
    for (index_t h = 0; h < heads; ++h)
      for (index_t i = 0; i < queries; ++i) {
        double mass = 0;
        std::vector<double> sum(std::size_t(value_width), 0.0);
        for (index_t j = 0; j <= i + keys - queries; ++j) {
          double s = 0;
          for (index_t d = 0; d < width; ++d)
            s += q[std::size_t((h * queries + i) * width + d)] * k[std::size_t(j * width + d)];
          double const e = std::exp(s / std::sqrt(double(width)));
          mass += e;
          for (index_t d = 0; d < value_width; ++d) sum[std::size_t(d)] += e * v[std::size_t(j * value_width + d)];
        }
        for (index_t d = 0; d < value_width; ++d)
          CHECK(o[std::size_t((h * queries + i) * value_width + d)] ==
                doctest::Approx(sum[std::size_t(d)] / mass).epsilon(1e-13));
      }
  }

  TEST_CASE("Every operator is compiled, and nothing else") {
    CHECK(tool::runners().size() == tool::catalogue().size());
    for (tool::preset const& p : tool::catalogue()) CHECK(tool::runners().count(p.name) == 1);
  }

  TEST_CASE("Every preset: the executors agree on outputs and gradients") {
    io_tests::folder const folder;
    auto const at = [&](char const* name) { return (folder.path / name).string(); };
    std::mt19937 random(2);
    io::write_npy(at("dout.npy"), drawn({heads, queries, value_width}, random));
    for (tool::preset const& p : tool::catalogue()) {
      CAPTURE(p.name);
      auto const a = arguments_of(p, folder.path, random);
      for (char const* executor : {"reference", "cpu"}) {
        std::string const e = executor;
        std::vector<std::string> outputs{"--executor", e, "--dtype", "f64", "--out", at((e + ".npy").c_str())};
        if (p.has_lse) outputs.insert(outputs.end(), {"--lse", at((e + "_lse.npy").c_str())});
        auto const run = tool_tests::attune(with(a, outputs, "run"));
        CHECK(run.err == "");
        REQUIRE(run.status == 0);
        auto const gradient = tool_tests::attune(
            with(a, {"--executor", e, "--dtype", "f64", "--dout", at("dout.npy"), "--out", at((e + ".npz").c_str())},
                 "gradient"));
        CHECK(gradient.err == "");
        REQUIRE(gradient.status == 0);
      }
      CHECK(apart(io::read_npy(at("cpu.npy")), io::read_npy(at("reference.npy"))) < 1e-5);
      if (p.has_lse) CHECK(apart(io::read_npy(at("cpu_lse.npy")), io::read_npy(at("reference_lse.npy"))) < 1e-5);
      io::npz_file x(at("cpu.npz")), y(at("reference.npz"));
      CHECK(x.names() == y.names());
      CHECK(x.names().size() >= p.inputs.size());
      for (auto const& name : y.names()) {
        CAPTURE(name);
        CHECK(apart(x.read(name), y.read(name)) < 1e-3);
      }
    }
  }

  TEST_CASE("Every preset: a verdict passes what the cpu executor computed, and fails it when it is moved") {
    io_tests::folder const folder;
    auto const at = [&](char const* name) { return (folder.path / name).string(); };
    std::mt19937 random(4);
    io::write_npy(at("dout.npy"), drawn({heads, queries, value_width}, random));
    for (tool::preset const& p : tool::catalogue()) {
      CAPTURE(p.name);
      auto const a = arguments_of(p, folder.path, random);
      REQUIRE(tool_tests::attune(with(a, {"--out", at("out.npy")}, "run")).status == 0);
      auto const right = tool_tests::attune(with(a, {"--out", at("out.npy")}, "verdict"));
      INFO(right.out << right.err);
      CHECK(right.status == 0);
      auto moved = io::numbers<float>(io::read_npy(at("out.npy")));
      for (float& x : moved) x *= 1.02f;
      io::write_npy(at("moved.npy"), io::make_array<float>(moved, {1, heads, queries, value_width}));
      auto const wrong = tool_tests::attune(with(a, {"--out", at("moved.npy")}, "verdict"));
      INFO(wrong.out << wrong.err);
      CHECK(wrong.status == 1);

      REQUIRE(tool_tests::attune(with(a, {"--dout", at("dout.npy"), "--out", at("g.npz")}, "gradient")).status == 0);
      std::vector<std::string> gradients{"--dout", at("dout.npy")};
      for (field f : {field::q, field::k, field::v})
        if (std::find(p.inputs.begin(), p.inputs.end(), f) != p.inputs.end())
          gradients.insert(gradients.end(), {std::string("--d") + name_of(f), at("g.npz:") + name_of(f)});
      auto const judged = tool_tests::attune(with(a, gradients, "verdict"));
      INFO(judged.out << judged.err);
      if (p.has_threshold) {
        CHECK(judged.status == 2);
        CHECK(judged.says("a candidate set"));
      } else {
        CHECK(judged.status == 0);
      }
    }
  }

  TEST_CASE("Probes: a pack that the cpu executor answers passes; a wrong scale fails, a wrong alignment is named") {
    for (std::string const preset : {"softmax", "principled"}) {
      CAPTURE(preset);
      io_tests::folder const folder;
      std::string const pack = (folder.path / "pack").string();
      std::vector<std::string> const parameters =
          preset == "softmax" ? std::vector<std::string>{}
                              : std::vector<std::string>{"-p", "alpha=-1", "-p", "beta=0.3", "-p", "gamma=0.2"};
      std::vector<std::string> write{"probes", "write",   preset, "--mask",  "causal", "--queries", "9", "--keys",
                                     "20",     "--width", "16",   "--dtype", "bf16",   "--to",      pack};
      write.insert(write.end(), parameters.begin(), parameters.end());
      auto const written = tool_tests::attune(write);
      CHECK(written.err == "");
      REQUIRE(written.status == 0);
      auto const answer = [&](std::vector<std::string> const& how) {
        for (auto const& place : std::filesystem::directory_iterator(pack)) {
          if (!place.is_directory()) continue;
          std::vector<std::string> run{"run", preset, "--dtype", "bf16", "--out", (place.path() / "out.npy").string()};
          run.insert(run.end(), parameters.begin(), parameters.end());
          run.insert(run.end(), how.begin(), how.end());
          for (field f : tool::find_preset(preset).inputs) {
            std::string option = std::string("--") + name_of(f);
            std::replace(option.begin(), option.end(), '_', '-');
            run.insert(run.end(), {option, (place.path() / (std::string(name_of(f)) + ".npy")).string()});
          }
          auto const ran = tool_tests::attune(run);
          CHECK(ran.err == "");
          REQUIRE(ran.status == 0);
        }
        return tool_tests::attune({"probes", "judge", pack});
      };
      auto const right = answer({"--mask", "causal"});
      INFO(right.out << right.err);
      CHECK(right.status == 0);
      auto const scaled = answer({"--mask", "causal", "-p", "scale=0.26"});  // 1/sqrt 16 + 4 %
      CHECK(scaled.status == 1);
      CHECK(scaled.says("kernel.scale were +4"));
      auto const aligned = answer({"--mask", "causal", "--offset", "0"});
      CHECK(aligned.status == 1);
      CHECK(aligned.says("mask aligned top-left"));
    }
  }

  TEST_CASE("What the operator refuses names the input") {
    io_tests::folder const folder;
    std::mt19937 random(3);
    auto const a = arguments_of(tool::find_preset("softmax"), folder.path, random);
    io::write_npy(folder.path / "k.npy", drawn({1, keys, width + 1}, random));
    auto const c = tool_tests::attune(
        with(a, {"--k", (folder.path / "k.npy").string(), "--out", (folder.path / "o.npy").string()}, "run"));
    CHECK(c.status == 2);
    CHECK(c.says("k has feature extent 5; expected 4"));
    CHECK(!std::filesystem::exists(folder.path / "o.npy"));
  }
}
