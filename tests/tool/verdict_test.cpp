// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// `attune verdict` and `attune probes`: what they read, refuse, write and return; the judge only records.
#include <cmath>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <attune/io/npy.hpp>

#include "captured.hpp"
#include "pictures.hpp"
#include "recording_runners.hpp"
#include "unit/io/files.hpp"

using namespace attune;
using tool_tests::captured;
using tool_tests::last_handed_back;
using tool_tests::last_problem;

namespace {

io::array filled(std::vector<index_t> extents, double value, io::element_type type = io::element_type::float32) {
  index_t n = 1;
  for (index_t e : extents) n *= e;
  return io::make_array<double>(std::vector<double>(std::size_t(n), value), extents, type);
}
std::string contents(std::string const& file) {
  std::ifstream in(file);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

/// q (2, 3, 4), k and v (1, 5, 4), and an out of 0.3.
struct workplace {
  io_tests::folder folder;
  std::string at(std::string const& name) const { return (folder.path / name).string(); }
  workplace() {
    io::write_npy(at("q.npy"), filled({2, 3, 4}, 1));
    io::write_npy(at("k.npy"), filled({1, 5, 4}, 1));
    io::write_npy(at("v.npy"), filled({1, 5, 4}, 1));
    io::write_npy(at("out.npy"), filled({2, 3, 4}, 0.3));
    io::write_npy(at("lse.npy"), filled({2, 3}, 0.3));
  }
  captured judge(std::vector<std::string> const& more = {}, std::string const& out = "out.npy",
                 std::string const& preset = "softmax") const {
    std::vector<std::string> all{"verdict",   preset, "--q",       at("q.npy"), "--k",
                                 at("k.npy"), "--v",  at("v.npy"), "--out",     at(out)};
    all.insert(all.end(), more.begin(), more.end());
    return tool_tests::attune(all);
  }
};

}  // namespace

TEST_CASE("The status of a verdict is its decision") {
  workplace const w;
  CHECK(w.judge().status == 0);
  CHECK(w.judge().says("PASS"));
  io::write_npy(w.at("wrong.npy"), filled({2, 3, 4}, 200.3));
  captured const failed = w.judge({}, "wrong.npy");
  CHECK(failed.status == 1);
  CHECK(failed.says("behaves as if kernel.scale were +0.5 %"));
  captured const open = w.judge({"--must-detect", "kernel.scale=0.01"});
  CHECK(open.status == 3);
  CHECK(open.says("attune probes write softmax"));
  REQUIRE(last_handed_back().how.must_detect.size() == 1);
  CHECK(last_handed_back().how.must_detect[0].name == "kernel.scale");
  CHECK(last_handed_back().how.must_detect[0].size == 0.01);
  CHECK(w.judge({"--must-detect", "sink or ground ignored"}).status == 3);
  CHECK(last_handed_back().how.must_detect[0].size == 1);
}

TEST_CASE("What is judged: results, formats, and masks that a wrong kernel may have used") {
  workplace const w;
  REQUIRE(w.judge({"--lse", w.at("lse.npy"), "--mask", "causal"}).status == 0);
  CHECK(last_handed_back().outputs.at("lse").extents == shape{1, 2, 3, 1});
  CHECK(last_handed_back().stored == certify::storage::fp32);
  CHECK(last_handed_back().how.how->weights == certify::storage::fp32);
  // Query 0 sees keys 0..2; one late, one early, and aligned top-left: 0..3, 0..1, 0.
  auto const& others = last_problem().misaligned;
  REQUIRE(others.size() == 3);
  CHECK(others[0].by == 1);
  CHECK(others[0].memory.hulls[0] == key_interval{0, 4});
  CHECK(others[1].by == -1);
  CHECK(others[1].memory.hulls[0] == key_interval{0, 2});
  CHECK(others[2].by == -2);
  CHECK(others[2].memory.hulls[0] == key_interval{0, 1});

  io::write_npy(w.at("narrow.npy"), filled({2, 3, 4}, 0.3, io::element_type::float16));
  REQUIRE(w.judge({"--weights", "f32", "--arithmetic", "f64"}, "narrow.npy").status == 0);
  CHECK(last_handed_back().stored == certify::storage::fp16);
  CHECK(last_handed_back().how.how->weights == certify::storage::fp32);
  CHECK(last_handed_back().how.how->arithmetic == certify::storage::fp64);
}

TEST_CASE("Narrow numbers in wide files: --dtype says so, a hint asks, and numbers that are none are refused") {
  workplace const w;
  io::write_npy(w.at("wide.npy"), filled({2, 3, 4}, 0.375));
  captured const asked = w.judge({}, "wide.npy");
  CHECK(asked.status == 0);
  CHECK(asked.out.rfind("PASS\n  hint: every number is a bfloat16: if the kernel wrote those, say --dtype bf16\n", 0) ==
        0);
  captured const said = w.judge({"--dtype", "bf16"}, "wide.npy");
  CHECK(said.status == 0);
  CHECK(!said.says("hint"));
  CHECK(last_handed_back().stored == certify::storage::bf16);
  CHECK(last_handed_back().how.how->weights == certify::storage::bf16);
  captured const wrong = w.judge({"--dtype", "bf16"});
  CHECK(wrong.status == 2);
  CHECK(wrong.says("expected numbers of the type bfloat16; it holds 0.300000012, which is none"));
}

TEST_CASE("Bad usage of a verdict is status 2 and says why") {
  workplace const w;
  auto const refused = [](captured const& c, char const* text) {
    if (c.status == 2 && c.err.find(text) != std::string::npos) return true;
    MESSAGE("status " << c.status << ": " << c.err);
    return false;
  };
  CHECK(refused(w.judge({}, "k.npy"), "--out: the value"));
  CHECK(refused(w.judge({"--lse", w.at("q.npy")}), "--lse"));
  CHECK(refused(w.judge({"--ground-weight", w.at("lse.npy")}), "softmax has no ground and no sink"));
  CHECK(refused(w.judge({"--must-detect", "kernel.scale=no"}), "NAME=SIZE with a number > 0"));
  CHECK(refused(w.judge({"--weights", "f8"}), "--weights: the value 'f8'; expected f64, f32, f16 or bf16"));
  CHECK(refused(w.judge({"--arithmetic", "bf16"}), "--arithmetic: the value 'bf16'; expected f32 or f64"));
  CHECK(refused(w.judge({"--html", w.at("no/folder.html")}), "--html"));
  CHECK(refused(tool_tests::attune({"verdict", "softmax", "--q", w.at("q.npy")}), "--out"));
}

TEST_CASE("A PASS has a line for each defect that would have been noticed, and for each that would not") {
  CHECK(
      workplace().judge().says("half of the rows of a tile:\n    kernel.scale off by 0.2 %\n  would not have been "
                               "noticed:\n    K one too large\n"));
}

TEST_CASE("Reports: JSON with every number, a page with pictures") {
  workplace const w;
  io::write_npy(w.at("wrong.npy"), filled({2, 3, 4}, 200.3));
  REQUIRE(w.judge({"--json", w.at("r.json"), "--html", w.at("r.html")}, "wrong.npy").status == 1);
  auto const json = nlohmann::json::parse(contents(w.at("r.json")));
  CHECK(json["decision"] == "FAIL");
  CHECK(json["verdict"]["outputs"]["cause"]["name"] == "kernel.scale");
  CHECK(json["verdict"]["outputs"]["findings"][0]["smallest_noticed"] == 0.001);
  CHECK(json["verdict"]["outputs"]["error_over_bound"]["by_query"][1] == 2);
  CHECK(json["stored"] == "fp32");
  std::string const page = contents(w.at("r.html"));
  CHECK(page.find("<title>FAIL: softmax</title>") != std::string::npos);
  CHECK(page.find("out by head and position") != std::string::npos);
  CHECK(page.find("out by position and feature") != std::string::npos);
  CHECK(page.find("the weight that each key acts with") == std::string::npos);  // the cause is another one
  CHECK(page.find("<p class=\"legend\">") > page.find("out by position and feature"));
  CHECK(page.find("http") == std::string::npos);  // self-contained
  CHECK(page.find("<p class=\"cause\">behaves as if kernel.scale were +0.5 %</p>") < page.find("<h2>"));
  captured const only = w.judge({"--json", "-"});
  CHECK(nlohmann::json::parse(only.out)["decision"] == "PASS");
}

TEST_CASE("The page of a verdict: what explains the error is open, the rest is folded, the call is in words") {
  workplace const w;
  io::write_npy(w.at("wrong.npy"), filled({2, 3, 4}, 200.3));
  REQUIRE(
      w.judge({"--html", w.at("r.html"), "--mask", "window=63:0", "--mask", "sink_window=1:2"}, "wrong.npy").status ==
      1);
  std::string const page = contents(w.at("r.html"));
  auto const at = [&](char const* text) {
    INFO(std::string(text));
    auto const place = page.find(text);
    CHECK(place != std::string::npos);
    return place;
  };
  auto const folded = at("<details><summary>Other parameters and defects (1)</summary>");
  CHECK(at("<tr class=\"noticed\"><td>kernel.scale</td>") < folded);
  CHECK(at("These would not show on these inputs: K one too large.") > folded);
  CHECK(page.find("e+12") == std::string::npos);
  at("Mask: window: 63 keys before the query's own, 0 after it; sink window: the first 1 keys, and the last 2 up to "
     "the "
     "query. "
     "No parameters. Offset 2.");
  std::size_t times = 0;
  for (auto n = page.find("FAIL", page.find("</style>")); n != std::string::npos; n = page.find("FAIL", n + 1)) ++times;
  CHECK(times == 2);  // the class of the mark and the mark
}

TEST_CASE("Gradients are judged with the cotangents they belong to, alone or beside the outputs") {
  workplace const w;
  io::write_npy(w.at("dq.npy"), filled({2, 3, 4}, 0.3));
  io::write_npy(w.at("dout.npy"), filled({2, 3, 4}, 1));
  captured const both = w.judge({"--dq", w.at("dq.npy"), "--dout", w.at("dout.npy")});
  CHECK(both.err == "");
  CHECK(both.status == 0);
  CHECK(both.says("outputs: PASS"));
  CHECK(both.says("gradients: PASS"));
  CHECK(last_handed_back().gradients.at("q").extents == shape{1, 2, 3, 4});
  CHECK(last_problem().cotangents.at("out").doubles[0] == 1);
  std::vector<std::string> const alone{"verdict", "softmax",     "--q", w.at("q.npy"),
                                       "--k",     w.at("k.npy"), "--v", w.at("v.npy")};
  auto const with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), alone.begin(), alone.end());
    return tool_tests::attune(more);
  };
  CHECK(with({"--dq", w.at("dq.npy"), "--dlse", w.at("lse.npy")}).status == 0);
  CHECK(with({"--dq", w.at("dq.npy")}).says("judged with the --dout or --dlse"));
  CHECK(with({"--out", w.at("out.npy"), "--dout", w.at("dout.npy")}).says("judged with the --dout or --dlse"));
  CHECK(with({}).says("--out is missing"));
  CHECK(with({"--dk", w.at("dq.npy"), "--dout", w.at("dout.npy")}).says("--dk: the value"));
  io::write_npy(w.at("wrong.npy"), filled({2, 3, 4}, 200.3));
  CHECK(w.judge({"--dq", w.at("wrong.npy"), "--dout", w.at("dout.npy")}).status == 1);
}

TEST_CASE("Pictures: cells are merged by the worst of them, colours part at the bound") {
  testing::worst_element e;
  e.extents = {1, 2, 3, 2};
  for (int n = 0; n < 12; ++n) e.ratios.push_back(float(n));
  tool::grid const rows = tool::by_head_and_position(e);
  CHECK(rows.rows == 2);
  CHECK(rows.values == std::vector<double>{1, 3, 5, 7, 9, 11});
  tool::grid const features = tool::by_position_and_feature(e);
  CHECK(features.values == std::vector<double>{6, 7, 8, 9, 10, 11});
  CHECK(tool::merged(rows, 1, 2).values == std::vector<double>{9, 11});
  e.ratios[0] = std::nanf("");
  CHECK(std::isnan(tool::by_head_and_position(e).values[0]));
  std::string const picture = tool::heat_map({1, 2, {0.5, 2}}, "a < b", "row", "column");
  CHECK(picture.find("a &lt; b") != std::string::npos);
  CHECK(picture.find("hsl(210") < picture.find("hsl(47"));
  CHECK(tool::bars({0, -1, 1}, "weights").find("key 1: -1") != std::string::npos);
}

TEST_CASE("Probes: a folder of files with a manifest, judged when the kernel has answered") {
  workplace const w;
  std::string const pack = w.at("pack");
  std::vector<std::string> const write{"probes", "write",   "softmax", "--heads", "2", "--queries",
                                       "2",      "--keys",  "7",       "--width", "4", "--mask",
                                       "causal", "--dtype", "bf16",    "--to",    pack};
  captured const written = tool_tests::attune(write);
  CHECK(written.err == "");
  REQUIRE(written.status == 0);
  auto const manifest = nlohmann::json::parse(contents(pack + "/manifest.json"));
  CHECK(manifest["preset"] == "softmax");
  CHECK(manifest["mask"][0] == "causal");
  REQUIRE(manifest["probes"].size() == 2);
  CHECK(manifest["probes"][1]["folder"] == "two_keys");
  CHECK(manifest["probes"][1]["results"]["out"] == std::vector<int>{1, 2, 2, 4});
  io::array const q = io::read_npy(pack + "/random/q.npy");
  CHECK(q.type == io::element_type::float32);
  CHECK(io::numbers<float>(q)[0] == float(bfloat16(1.f / 3)));

  captured const early = tool_tests::attune({"probes", "judge", pack});
  CHECK(early.status == 2);
  CHECK(early.says("and so are 1 more: every probe wants a result"));
  for (char const* folder : {"/random/out.npy", "/two_keys/out.npy"})
    io::write_npy(pack + folder, filled({1, 2, 2, 4}, 0.375));
  captured const judged = tool_tests::attune({"probes", "judge", pack});
  CHECK(judged.err == "");
  CHECK(judged.status == 0);
  CHECK(judged.says("PASS: 2 probes judged, 0 failed"));
  CHECK(last_handed_back().stored == certify::storage::bf16);
  CHECK(last_problem().mask.view.hulls != nullptr);
  // A demand is met by one probe with the power.
  CHECK(tool_tests::attune({"probes", "judge", pack, "--must-detect", "scale=0.01"}).status == 0);
  captured const blind = tool_tests::attune({"probes", "judge", pack, "--must-detect", "scale=0.0001"});
  CHECK(blind.status == 3);
  CHECK(blind.says("0.0001 would go unnoticed"));
  io::write_npy(pack + "/two_keys/out.npy", filled({1, 2, 2, 4}, 200));
  CHECK(tool_tests::attune({"probes", "judge", pack, "--json", w.at("r.json")}).status == 1);
  CHECK(nlohmann::json::parse(contents(w.at("r.json")))["probes"][1]["decision"] == "FAIL");

  // What kernels need not promise is judged if the caller asks for it.
  std::vector<std::string> strict = write;
  strict.push_back("--strict");
  CHECK(tool_tests::attune(strict).status == 0);
  CHECK(nlohmann::json::parse(contents(pack + "/manifest.json"))["probes"].size() == 3);
  io::write_npy(pack + "/hidden_NaN/out.npy", filled({1, 2, 2, 4}, 200));
  CHECK(
      tool_tests::attune({"probes", "judge", pack}).says("contract of --strict: NaN in keys and values that no query"));

  std::ofstream(pack + "/manifest.json") << "{\"format\": 1}";
  CHECK(tool_tests::attune({"probes", "judge", pack}).says("is no manifest of an attune probe pack"));
  CHECK(tool_tests::attune({"probes", "judge", w.at("nowhere")}).status == 2);
  CHECK(tool_tests::attune({"probes", "write", "softmax", "--heads", "3", "--key-heads", "2", "--to", pack})
            .says("a divisor"));
}

TEST_CASE("Everything that a kernel returns: lse of base 2, lse in 16 bits, gradients of parameters") {
  workplace const w;
  CHECK(w.judge({"--lse", w.at("lse.npy"), "--lse-base", "2"}).status == 0);
  CHECK(last_handed_back().base_two);
  CHECK(last_handed_back().other_types.at("lse") == certify::storage::fp32);
  CHECK(w.judge({"--lse", w.at("lse.npy"), "--lse-base", "10"}).says("--lse-base: the value '10'; expected e or 2"));
  io::write_npy(w.at("narrow.npy"), filled({2, 3}, 0.5, io::element_type::float16));
  CHECK(w.judge({"--lse", w.at("narrow.npy")}).status == 0);
  CHECK(!last_handed_back().base_two);
  CHECK(last_handed_back().other_types.at("lse") == certify::storage::fp16);

  io::write_npy(w.at("dout.npy"), filled({2, 3, 4}, 1));
  io::write_npy(w.at("dlogit.npy"), filled({2}, 0.25));
  std::vector<std::string> const sink{"-p", "logit=0.5,-1", "--dout", w.at("dout.npy"), "--gradient"};
  auto const with = [&](std::string const& word) {
    std::vector<std::string> all = sink;
    all.push_back(word);
    return w.judge(all, "out.npy", "sink");
  };
  captured const c = with("logit=" + w.at("dlogit.npy"));
  CHECK(c.err == "");
  CHECK(last_handed_back().gradients.at("logit").extents == shape{1, 2, 1, 1});
  CHECK(last_handed_back().other_types.at("logit") == certify::storage::fp32);
  CHECK(with("logit").says("expected NAME=FILE"));
  CHECK(with("gamma=" + w.at("dlogit.npy")).says("expected an input of sink, or one of "));
  CHECK(with("logit=" + w.at("lse.npy")).says("expected (1, 2, 1, 1), axes of extent 1 may be missing"));
}

TEST_CASE("A second implementation tells a wrong kernel from a call that is described wrongly") {
  workplace const w;  // the judge FAILs what is above 100
  io::write_npy(w.at("wrong.npy"), filled({2, 3, 4}, 200.3));
  io::write_npy(w.at("near.npy"), filled({2, 3, 4}, 200.30001));
  io::write_npy(w.at("other.npy"), filled({2, 3, 4}, 400.3));
  auto const told = [&](char const* out, char const* reference) {
    return w.judge({"--reference-out", w.at(reference)}, out);
  };
  CHECK(told("wrong.npy", "out.npy").out.rfind("FAIL\n  hint: --reference-out PASSes: the call is described", 0) == 0);
  CHECK(told("wrong.npy", "out.npy").status == 1);
  CHECK(told("wrong.npy", "near.npy").says("FAILs, too, and agrees with --out: the call is described wrongly"));
  CHECK(told("wrong.npy", "other.npy").says("FAILs, too, and differs from --out"));
  CHECK(told("out.npy", "wrong.npy").says("--reference-out FAILs, and --out does not: behaves as if"));
  CHECK(told("out.npy", "wrong.npy").status == 0);
  CHECK(told("out.npy", "out.npy").says("--reference-out PASSes, too"));
  CHECK(told("out.npy", "k.npy").says("--reference-out: the value"));
  CHECK(last_handed_back().stored == certify::storage::fp32);
  io::write_npy(w.at("narrow.npy"), filled({2, 3, 4}, 0.375));  // bfloat16 numbers in a wider file
  CHECK(told("out.npy", "narrow.npy").status == 0);
  CHECK(last_handed_back().stored == certify::storage::bf16);
  REQUIRE(w.judge({"--reference-out", w.at("out.npy"), "--json", w.at("r.json")}).status == 0);
  CHECK(nlohmann::json::parse(contents(w.at("r.json")))["verdict"]["reference_out"]["decision"] == "PASS");
}
