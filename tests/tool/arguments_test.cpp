// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <attune/io/npy.hpp>
#include <attune/io/npz.hpp>
#include <attune/io/safetensors.hpp>

#include "captured.hpp"
#include "recording_runners.hpp"
#include "unit/io/files.hpp"

using namespace attune;
using tool_tests::captured;
using tool_tests::last_problem;

namespace {

io::array counted(std::vector<index_t> extents, io::element_type type = io::element_type::float32) {
  index_t n = 1;
  for (index_t e : extents) n *= e;
  std::vector<double> values;
  for (index_t i = 0; i < n; ++i) values.push_back(double(i % 64));
  return io::make_array<double>(values, extents, type);
}

/// q (2, 3, 4), k (1, 5, 4), v (1, 5, 6) and what else the tests want, in a folder of its own.
struct workplace {
  io_tests::folder folder;
  std::string at(std::string const& name) const { return (folder.path / name).string(); }
  workplace() {
    io::write_npy(at("q.npy"), counted({2, 3, 4}));
    io::write_npy(at("k.npy"), counted({1, 5, 4}));
    io::write_npy(at("v.npy"), counted({1, 5, 6}));
    io::write_npy(at("dout.npy"), counted({2, 3, 6}));
  }
  captured run(std::vector<std::string> more, std::string const& preset = "softmax",
               std::string const& command = "run") const {
    std::vector<std::string> all{command, preset, "--q", at("q.npy"), "--k", at("k.npy"), "--v", at("v.npy")};
    bool const has_out = std::find(more.begin(), more.end(), "--out") != more.end();
    if (!has_out) all.insert(all.end(), {"--out", at(command == "run" ? "out.npy" : "out.npz")});
    all.insert(all.end(), more.begin(), more.end());
    return tool_tests::attune(all);
  }
};

/// Status 2 and a text that says these.
bool refused(captured const& c, std::string const& first, std::string const& second = "") {
  if (c.status == 2 && c.err.find(first) != std::string::npos && c.err.find(second) != std::string::npos) return true;
  MESSAGE("status " << c.status << ": " << c.err);
  return false;
}

}  // namespace

TEST_CASE("Help and versions are status 0, no command is 2") {
  auto const help = tool_tests::attune({"--help"});
  CHECK(help.status == 0);
  CHECK(help.says("Exit status"));
  auto const run_help = tool_tests::attune({"run", "--help"});
  CHECK(run_help.status == 0);
  CHECK(run_help.says("attune run softmax --q q.npy"));
  CHECK(run_help.says("window=LEFT:RIGHT"));
  CHECK(tool_tests::attune({"--version"}).status == 0);
  CHECK(refused(tool_tests::attune({}), "subcommand"));
  CHECK(refused(tool_tests::attune({"walk"}), ""));
  CHECK(refused(tool_tests::attune({"run"}), "PRESET"));
  CHECK(refused(tool_tests::attune({"run", "softmax", "--out", "x.npy", "--what", "1"}), "--what"));
}

TEST_CASE("F9: outputs share an archive, and never overwrite each other") {
  workplace const w;
  std::string const archive = w.at("r.npz"), same = w.at("r.npy");
  captured const both = w.run({"--out", archive, "--lse", archive});
  CHECK(both.err == "");
  REQUIRE(both.status == 0);
  io::npz_file written(archive);
  CHECK(written.names() == std::vector<std::string>{"lse", "out"});
  CHECK(written.read("out").extents == std::vector<index_t>{1, 2, 3, 6});
  CHECK(refused(w.run({"--out", same, "--lse", same}), "r.npy'; expected another file than that of --lse",
                "holds one array"));
  CHECK(!std::filesystem::exists(same));
  CHECK(refused(w.run({"--out", same, "--json", same}), "--json", "another file than that of --out"));
  CHECK(refused(w.run({"--dout", w.at("dout.npy"), "--out", archive, "--json", archive}, "softmax", "gradient"),
                "--json", "another file than that of --out"));
}

TEST_CASE("Errors of files name the argument") {
  workplace const w;
  auto const with_q = [&](std::vector<std::string> const& more) {
    std::vector<std::string> all{"run", "softmax",     "--k",   w.at("k.npy"),
                                 "--v", w.at("v.npy"), "--out", w.at("out.npy")};
    all.insert(all.end(), more.begin(), more.end());
    return tool_tests::attune(all);
  };
  io::write_npy(w.at("five.npy"), counted({1, 1, 1, 3, 4}));
  CHECK(refused(with_q({"--q", w.at("five.npy")}), "--q", "at most 4 axes"));
  CHECK(refused(w.run({"--mask", "visible=" + w.at("q.npy")}), "visible=", "integers or booleans"));
  io::write_npz(w.at("in.npz"), {{"q", counted({2, 3, 4})}});
  CHECK(refused(with_q({"--from", w.at("in.npz") + ":q"}), "in.npz:q"));
  captured const by_member = with_q({"--q", w.at("in.npz") + ":q.npy"});
  CHECK(by_member.err == "");
  CHECK(by_member.status == 0);
}

TEST_CASE("Tensors arrive under four axes, in floats") {
  workplace const w;
  captured const c = w.run({"--lse", w.at("lse.npy")});
  CHECK(c.err == "");
  REQUIRE(c.status == 0);
  auto const& p = last_problem();
  CHECK(p.tensors.at("q").extents == shape{1, 2, 3, 4});
  CHECK(p.tensors.at("k").extents == shape{1, 1, 5, 4});
  CHECK(p.tensors.at("v").floats[7] == 7);
  CHECK(p.in == tool::arithmetic::float32);
  CHECK(p.mask.view.hulls == nullptr);
  io::array const out = io::read_npy(w.at("out.npy")), lse = io::read_npy(w.at("lse.npy"));
  CHECK(out.type == io::element_type::float32);
  CHECK(out.extents == std::vector<index_t>{1, 2, 3, 6});
  CHECK(lse.extents == std::vector<index_t>{1, 2, 3});
  CHECK(c.says("out.npy: float32 (1, 2, 3, 6)"));
}

TEST_CASE("Precision: double where an input or the executor is; outputs as v, or as --dtype says") {
  workplace const w;
  io::write_npy(w.at("k.npy"), counted({1, 5, 4}, io::element_type::float64));
  REQUIRE(w.run({}).status == 0);
  CHECK(last_problem().in == tool::arithmetic::float64);
  CHECK(io::read_npy(w.at("out.npy")).type == io::element_type::float32);
  io::write_npy(w.at("k.npy"), counted({1, 5, 4}));
  REQUIRE(w.run({"--executor", "reference"}).status == 0);
  CHECK(last_problem().on == tool::executor::reference);
  CHECK(io::read_npy(w.at("out.npy")).type == io::element_type::float64);
  REQUIRE(w.run({"--dtype", "f16", "--lse", w.at("lse.npy")}).status == 0);
  CHECK(io::read_npy(w.at("out.npy")).type == io::element_type::float16);
  CHECK(io::read_npy(w.at("lse.npy")).type == io::element_type::float32);
  CHECK(refused(w.run({"--dtype", "f8"}), "--dtype: the value 'f8'; expected f64, f32, f16 or bf16"));
  CHECK(refused(w.run({"--executor", "gpu"}), "--executor: the value 'gpu'; expected cpu or reference"));
  CHECK(refused(w.run({"--threads", "-1"}), "--threads: the value '-1'"));
}

TEST_CASE("bfloat16: in safetensors by itself, in .npy as words that --dtype explains") {
  workplace const w;
  io::write_npy(w.at("v.npy"), counted({1, 5, 6}, io::element_type::bfloat16));
  CHECK(refused(w.run({}), "--v: the value", "it holds uint16 (for bfloat16 words say --dtype bf16)"));
  REQUIRE(w.run({"--dtype", "bf16"}).status == 0);
  CHECK(last_problem().tensors.at("v").floats[29] == 29);
  io::write_safetensors(w.at("all.safetensors"), {{"v", counted({1, 5, 6}, io::element_type::bfloat16)},
                                                  {"q", counted({2, 3, 4}, io::element_type::bfloat16)},
                                                  {"k", counted({1, 5, 4}, io::element_type::bfloat16)}});
  captured const c =
      tool_tests::attune({"run", "softmax", "--from", w.at("all.safetensors"), "--out", w.at("o.safetensors")});
  CHECK(c.err == "");
  REQUIRE(c.status == 0);
  CHECK(last_problem().tensors.at("v").floats[29] == 29);
  CHECK(io::safetensors_file(w.at("o.safetensors")).read("out").type == io::element_type::bfloat16);
}

TEST_CASE("Archives: a name after a colon, the only array, the argument's own name") {
  workplace const w;
  io::write_npz(w.at("x.npz"), {{"q", counted({2, 3, 4})}, {"keys", counted({1, 5, 4})}});
  io::write_npz(w.at("one.npz"), {{"anything", counted({1, 5, 6})}});
  captured const c = tool_tests::attune({"run", "softmax", "--q", w.at("x.npz"), "--k", w.at("x.npz:keys"), "--v",
                                         w.at("one.npz"), "--out", w.at("out.npz")});
  CHECK(c.err == "");
  REQUIRE(c.status == 0);
  CHECK(io::npz_file(w.at("out.npz")).names() == std::vector<std::string>{"out"});
  CHECK(refused(w.run({"--k", w.at("x.npz")}), "--k"));  // given twice
  auto const with_k = [&](std::string const& k) {
    return tool_tests::attune(
        {"run", "softmax", "--q", w.at("q.npy"), "--k", k, "--v", w.at("v.npy"), "--out", w.at("o.npy")});
  };
  CHECK(refused(with_k(w.at("x.npz")), "expected FILE:NAME, NAME one of keys, q"));
  CHECK(refused(with_k(w.at("x.npz:none")), "--k: ", "member 'none' has no data"));
  CHECK(refused(with_k("k.txt"), "--k: the value 'k.txt'; expected a file whose name ends with"));
  CHECK(refused(with_k(w.at("missing.npy")), "--k: ", "no such path"));
  io_tests::bytes cut = io_tests::file_bytes(w.at("k.npy"));
  cut.pop_back();
  std::ofstream(w.at("cut.npy"), std::ios::binary)
      .write(reinterpret_cast<char const*>(cut.data()), std::streamsize(cut.size()));
  CHECK(refused(with_k(w.at("cut.npy")), "--k: ", "data has 79 bytes; expected 80 for float32 of shape (1, 5, 4)"));
}

TEST_CASE("Inputs that are missing or superfluous") {
  workplace const w;
  CHECK(refused(tool_tests::attune({"run", "softmax", "--q", w.at("q.npy"), "--out", w.at("o.npy")}),
                "--k is missing: softmax needs it, (B, Hk, Lk, D)"));
  CHECK(refused(w.run({"--gate-q", w.at("q.npy")}), "--gate-q: softmax has no such input"));
  CHECK(refused(w.run({}, "principled"), "--gate-q is missing"));
  io::write_npy(w.at("g.npy"), counted({2, 5, 4}));
  REQUIRE(w.run({"--gate-q", w.at("q.npy"), "--gate-k", w.at("g.npy")}, "principled").status == 0);
  CHECK(last_problem().tensors.at("v0").extents == shape{1, 1, 1, 6});  // nothing, where no v0 is given
  CHECK(last_problem().tensors.at("v0").floats == std::vector<float>(6, 0.0f));
}

TEST_CASE("One number per position") {
  workplace const w;
  io::write_npy(w.at("sq.npy"), counted({2, 3}));
  io::write_npy(w.at("sk.npy"), counted({1, 1, 5, 1}));
  captured const c = tool_tests::attune({"run", "scalar_sort", "--sort-q", w.at("sq.npy"), "--sort-k", w.at("sk.npy"),
                                         "--v", w.at("v.npy"), "-p", "tau=0.5", "--out", w.at("out.npy")});
  CHECK(c.err == "");
  REQUIRE(c.status == 0);
  CHECK(last_problem().tensors.at("sort_q").extents == shape{1, 2, 3, 1});
  CHECK(last_problem().tensors.at("sort_k").extents == shape{1, 1, 5, 1});
  CHECK(last_problem().parameters.at("kernel.tau").doubles == std::vector<double>{0.5});
}

TEST_CASE("Parameters: numbers, lists, files, paths, constants, tables") {
  workplace const w;
  REQUIRE(w.run({"-p", "logit=0.5,-inf"}, "sink").status == 0);
  CHECK(last_problem().parameters.at("normalizer.logit").extents == shape{1, 2, 1, 1});
  CHECK(last_problem().parameters.at("normalizer.logit").doubles == std::vector<double>{0.5, -INFINITY});
  io::write_npy(w.at("heads.npy"), counted({2}));
  io::write_npy(w.at("rows.npy"), counted({2, 3}));
  REQUIRE(w.run({"--parameter", "logit=" + w.at("heads.npy"), "-p", "scale=1"}, "sink").status == 0);
  CHECK(last_problem().parameters.at("normalizer.logit").extents == shape{1, 2, 1, 1});
  CHECK(last_problem().parameters.at("kernel.scale").doubles == std::vector<double>{1});
  REQUIRE(w.run({"-p", "logit=" + w.at("rows.npy")}, "sink").status == 0);
  CHECK(last_problem().parameters.at("normalizer.logit").extents == shape{1, 2, 3, 1});
  REQUIRE(w.run({"-p", "scale=2", "-p", "kernel.scale=3"}, "ssmax").status == 0);
  CHECK(last_problem().parameters.at("length_scale.scale").doubles == std::vector<double>{2});
  CHECK(last_problem().parameters.at("kernel.scale").doubles == std::vector<double>{3});
  REQUIRE(w.run({"-p", "k=3"}, "top_k").status == 0);
  CHECK(last_problem().constants.at("k") == 3);
  io::write_npy(w.at("table.npy"), counted({9}));
  REQUIRE(w.run({"-p", "values=" + w.at("table.npy")}, "relative_bias").status == 0);
  CHECK(last_problem().tables.at("kernel.1.values").extents == shape{1, 1, 9, 1});
  io::write_npy(w.at("metric.npy"), counted({4}));
  REQUIRE(w.run({"-p", "metric=" + w.at("metric.npy")}, "elliptical").status == 0);
  CHECK(last_problem().tables.at("kernel.metric").extents == shape{1, 1, 1, 4});

  CHECK(refused(w.run({}, "sink"), "--parameter logit is missing: sink needs logit=VALUE, a number, -inf or +inf"));
  CHECK(refused(w.run({}, "elliptical"), "--parameter metric is missing"));
  CHECK(refused(w.run({"-p", "metric=3"}, "elliptical"),
                "--parameter metric: the value '3'; expected a file with a table"));
  CHECK(refused(w.run({"-p", "tau=1"}, "sink"), "--parameter: the value 'tau'; expected one of scale, logit"));
  CHECK(refused(w.run({"-p", "logit"}, "sink"), "expected NAME=VALUE"));
  CHECK(refused(w.run({"-p", "logit=nan"}, "sink"),
                "--parameter logit: the value 'nan'; expected a number, -inf or +inf"));
  CHECK(refused(w.run({"-p", "logit="}, "sink"), "--parameter logit: the value ''"));
  CHECK(refused(w.run({"-p", "logit=1 2"}, "sink"), "--parameter logit: the value '1 2'"));
  CHECK(refused(w.run({"-p", "logit=1", "-p", "logit=2"}, "sink"), "each parameter once"));
  CHECK(refused(w.run({"-p", "k=x"}, "top_k"), "--parameter k: the value 'x'; expected a whole number"));
}

TEST_CASE(
    "Outputs that an operator does not have, or that cannot be written, are refused before anything is computed") {
  workplace const w;
  CHECK(refused(w.run({"--lse", w.at("l.npy")}, "sparsemax"), "--lse: sparsemax has no lse"));
  CHECK(refused(w.run({"--ground-weight", w.at("l.npy")}), "--ground-weight: softmax has no ground and no sink"));
  CHECK(refused(w.run({"--threshold", w.at("l.npy")}), "--threshold: softmax has no threshold"));
  CHECK(refused(w.run({"--out", "out.txt"}), "--out: the value 'out.txt'"));
  CHECK(refused(w.run({"--out", w.at("no/out.npy")}), "expected a file in a folder that exists"));
  CHECK(!std::filesystem::exists(w.at("l.npy")));
}

TEST_CASE("Gradients") {
  workplace const w;
  CHECK(refused(w.run({}, "softmax", "gradient"), "--dout is required"));
  CHECK(refused(w.run({"--dout", w.at("q.npy")}, "softmax", "gradient"), "--dout", "expected the shape (1, 2, 3, 6)"));
  CHECK(refused(w.run({"--dout", w.at("dout.npy"), "--out", w.at("g.npy")}, "softmax", "gradient"), "--out",
                "several gradients"));
  CHECK(
      refused(w.run({"--dout", w.at("dout.npy"), "--dlse", w.at("dout.npy")}, "sparsemax", "gradient"), "has no lse"));
  io::write_npy(w.at("dlse.npy"), counted({2, 3}));
  captured const c =
      w.run({"--dout", w.at("dout.npy"), "--dlse", w.at("dlse.npy"), "-p", "scale=0.5"}, "softmax", "gradient");
  CHECK(c.err == "");
  REQUIRE(c.status == 0);
  CHECK(last_problem().cotangents.at("out").floats.size() == 36);
  CHECK(last_problem().cotangents.at("lse").extents == shape{1, 2, 3, 1});
  CHECK(io::npz_file(w.at("out.npz")).names() == std::vector<std::string>{"k", "kernel.scale", "q", "v"});
}

TEST_CASE("The report") {
  workplace const w;
  captured const c = w.run({"--mask", "causal", "-p", "scale=1", "--json", "-"});
  REQUIRE(c.status == 0);
  auto const r = nlohmann::json::parse(c.out);
  CHECK(r["preset"] == "softmax");
  CHECK(r["arithmetic"] == "float32");
  CHECK(r["offset"] == 2);
  CHECK(r["inputs"]["q"]["shape"] == nlohmann::json({1, 2, 3, 4}));
  CHECK(r["outputs"]["out"]["largest"] == 0.5);
  CHECK(r["outputs"]["out"]["nan"] == 0);
  CHECK(r["mask"][0] == "causal");
  REQUIRE(w.run({"--json", w.at("r.json")}).status == 0);
  CHECK(std::filesystem::exists(w.at("r.json")));
}

TEST_CASE("rotary: angles are an array that each call gives") {
  workplace const w;
  io::write_npy(w.at("angles.npy"), counted({5, 4}));
  CHECK(refused(w.run({}, "rotary"), "--parameter angles is missing: rotary needs angles=FILE, an array"));
  CHECK(refused(w.run({"-p", "angles=3"}, "rotary"), "a file with an array"));
  REQUIRE(w.run({"-p", "angles=" + w.at("angles.npy"), "-p", "interleaved=1"}, "rotary").status == 0);
  CHECK(last_problem().arrays.at("angles").extents == shape{1, 1, 5, 4});
  CHECK(last_problem().constants.at("interleaved") == 1);
  CHECK(tool_tests::attune({"explain", "rotary"}).says("angles                    an array (rows, 2 R)"));
}
