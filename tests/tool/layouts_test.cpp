// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// `attune verdict` reads what kernels read: other orders of axes, packed sequences, pages, numbers of 8 bits with scales.
#include <bit>
#include <cmath>
#include <cstring>

#include <doctest/doctest.h>

#include <attune/io/npy.hpp>
#include <attune/io/safetensors.hpp>

#include "captured.hpp"
#include "masks.hpp"
#include "recording_runners.hpp"
#include "unit/io/files.hpp"

using namespace attune;
using tool_tests::captured;
using tool_tests::last_handed_back;
using tool_tests::last_problem;

namespace {

/// 0, 1, 2, ...
io::array counted(std::vector<index_t> extents, io::element_type type = io::element_type::float32) {
  index_t n = 1;
  for (index_t e : extents) n *= e;
  std::vector<double> x;
  for (index_t i = 0; i < n; ++i) x.push_back(double(i));
  return io::make_array<double>(x, extents, type);
}
io::array integers(std::vector<std::int32_t> const& x, std::vector<index_t> extents) {
  io::array to{io::element_type::int32, std::move(extents), {}, "the array"};
  to.bytes.resize(x.size() * sizeof(std::int32_t));
  std::memcpy(to.bytes.data(), x.data(), to.bytes.size());
  return to;
}

struct workplace {
  io_tests::folder folder;
  std::string at(std::string const& name) const { return (folder.path / name).string(); }
  void write(std::string const& name, io::array const& x) const { io::write_npy(at(name + ".npy"), x); }
  captured judge(std::vector<std::string> const& more) const {
    std::vector<std::string> all{"verdict", "softmax"};
    for (char const* name : {"q", "k", "v", "out"}) {
      all.push_back(std::string("--") + name);
      all.push_back(at(std::string(name) + ".npy"));
    }
    all.insert(all.end(), more.begin(), more.end());
    return tool_tests::attune(all);
  }
};
bool refused(captured const& c, char const* text) {
  if (c.status == 2 && c.err.find(text) != std::string::npos) return true;
  MESSAGE("status " << c.status << ": " << c.err);
  return false;
}
double number(tool::numbers const& x, index_t b, index_t h, index_t i, index_t d) {
  shape const& e = x.extents;
  std::size_t const at = std::size_t(((b * e.head + h) * e.position + i) * e.feature + d);
  return x.doubles.empty() ? double(x.floats.at(at)) : x.doubles.at(at);
}
/// The keys that query i sees.
key_interval seen(tool::mask_memory const& m, index_t i) { return m.hulls.at(std::size_t(i)); }

}  // namespace

TEST_CASE("--layout: (B, L, H, D) and (L, B, H, D) are read as (B, H, L, D), results and gradients too") {
  workplace const w;
  w.write("q", counted({2, 3, 4, 5}));
  w.write("k", counted({2, 6, 2, 5}));
  w.write("v", counted({2, 6, 2, 5}));
  w.write("out", counted({2, 3, 4, 5}));
  w.write("lse", counted({2, 3, 4}));
  w.write("dq", counted({2, 3, 4, 5}));
  captured const c = w.judge({"--layout", "blhd", "--lse", w.at("lse.npy"), "--lse-layout", "blh", "--dq",
                              w.at("dq.npy"), "--dout", w.at("out.npy")});
  CHECK(c.err == "");
  CHECK(last_problem().tensors.at("q").extents == shape{2, 4, 3, 5});
  CHECK(last_problem().tensors.at("k").extents == shape{2, 2, 6, 5});
  CHECK(number(last_problem().tensors.at("q"), 1, 3, 2, 4) == (((1 * 3) + 2) * 4 + 3) * 5 + 4);
  CHECK(number(last_handed_back().gradients.at("q"), 0, 3, 1, 0) == ((0 * 3 + 1) * 4 + 3) * 5);
  CHECK(number(last_problem().cotangents.at("out"), 0, 3, 1, 0) == ((0 * 3 + 1) * 4 + 3) * 5);
  CHECK(number(last_handed_back().outputs.at("lse"), 1, 3, 2, 0) == (1 * 3 + 2) * 4 + 3);
  CHECK(last_handed_back().outputs.at("lse").extents == shape{2, 4, 3, 1});

  w.write("q", counted({3, 2, 4, 5}));
  w.write("k", counted({6, 2, 2, 5}));
  w.write("v", counted({6, 2, 2, 5}));
  w.write("out", counted({3, 2, 4, 5}));
  CHECK(w.judge({"--layout", "lbhd"}).err == "");
  CHECK(number(last_problem().tensors.at("q"), 1, 3, 2, 4) == ((2 * 2 + 1) * 4 + 3) * 5 + 4);
  CHECK(refused(w.judge({"--layout", "hbld"}), "--layout: the value 'hbld'; expected bhld, blhd or lbhd"));
  w.write("out", counted({4, 5}));
  CHECK(refused(w.judge({"--layout", "blhd"}), "expected the axes blhd"));
}

TEST_CASE("--cu-seqlens: packed sequences, whose masks align at their own ends") {
  workplace const w;
  w.write("q", counted({5, 2, 4}));
  w.write("k", counted({7, 1, 4}));
  w.write("v", counted({7, 1, 4}));
  w.write("out", counted({5, 2, 4}));
  w.write("lse", counted({2, 5}));
  captured const c =
      w.judge({"--cu-seqlens-q", "0,2,2,5", "--cu-seqlens-k", "0,3,4,7", "--mask", "causal", "--lse", w.at("lse.npy")});
  CHECK(c.err == "");
  CHECK(c.says("packed queries and keys begin at different places"));
  CHECK(last_problem().tensors.at("q").extents == shape{1, 2, 5, 4});
  CHECK(number(last_problem().tensors.at("q"), 0, 1, 3, 2) == (3 * 2 + 1) * 4 + 2);
  auto const& m = last_problem().mask;
  CHECK(seen(m, 0) == key_interval{0, 2});  // 2 queries, 3 keys
  CHECK(seen(m, 1) == key_interval{0, 3});
  CHECK(seen(m, 2) == key_interval{4, 5});  // 3 queries, 3 keys
  CHECK(seen(m, 4) == key_interval{4, 7});
  for (auto const& wrong : last_problem().misaligned) {
    if (wrong.top_left) CHECK(seen(wrong.memory, 0) == key_interval{0, 1});
    if (!wrong.top_left && wrong.by == 1) CHECK(seen(wrong.memory, 3) == key_interval{4, 7});
  }
  CHECK(last_problem().misaligned.size() == 3);
  CHECK(w.judge({"--cu-seqlens-q", "0,2,2,5", "--cu-seqlens-k", "0,3,4,7"}).err == "");
  CHECK(seen(last_problem().mask, 0) == key_interval{0, 3});  // no mask: the keys of its sequence
  CHECK(refused(w.judge({"--cu-seqlens", "0,2,5"}), "ends with 5; expected 7, the number of keys"));
  CHECK(refused(w.judge({"--cu-seqlens", "0,3,2"}), "0, n0, n0 + n1, ..., total"));
  CHECK(refused(w.judge({"--cu-seqlens-q", "0,5"}), "one of them is missing"));
  CHECK(refused(w.judge({"--cu-seqlens-q", "0,5", "--cu-seqlens-k", "0,7", "--offset", "1"}), "no offset"));
  CHECK(refused(w.judge({"--cu-seqlens-q", "0,5", "--cu-seqlens-k", "0,7", "--mask", "padding=3"}),
                "a mask without an array"));
}

TEST_CASE("--page-table: pages of a cache, with the lengths of their sequences") {
  workplace const w;
  w.write("q", counted({2, 2, 2, 4}));
  w.write("k", counted({5, 3, 1, 4}));  // 5 pages of 3 keys, one head: (page, key, head, feature)
  w.write("v", counted({5, 3, 1, 4}));
  w.write("out", counted({2, 2, 2, 4}));
  w.write("table", integers({4, 0, 2, -1}, {2, 2}));
  std::vector<std::string> const pages{"--page-table", w.at("table.npy"), "--cache-layout", "blhd"};
  auto const with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), pages.begin(), pages.end());
    return w.judge(more);
  };
  captured const c = with({"--cache-lengths", "5,2", "--mask", "causal"});
  CHECK(c.err == "");
  CHECK(last_handed_back().how.page == 3);
  auto const& k = last_problem().tensors.at("k");
  CHECK(k.extents == shape{2, 1, 5, 4});
  CHECK(number(k, 0, 0, 1, 3) == (4 * 3 + 1) * 4 + 3);
  CHECK(number(k, 0, 0, 4, 0) == (0 * 3 + 1) * 4);
  CHECK(number(k, 1, 0, 1, 0) == (2 * 3 + 1) * 4);
  CHECK(std::isnan(number(k, 1, 0, 2, 0)));
  CHECK(last_problem().offsets == std::vector<index_t>{3, 0});
  auto const& m = last_problem().mask;
  CHECK(m.view.hull_shape.batch == 2);
  CHECK(m.hulls[0] == key_interval{0, 4});
  CHECK(m.hulls[1] == key_interval{0, 5});
  CHECK(m.hulls[2] == key_interval{0, 1});
  CHECK(m.hulls[3] == key_interval{0, 2});
  CHECK(with({"--cache-lengths", "5,2"}).err == "");
  CHECK(last_problem().mask.hulls[2] == key_interval{0, 2});
  CHECK(refused(with({"--cache-lengths", "5,4"}), "page 1 of sequence 1 is -1, and query 0 sees key 3"));
  CHECK(refused(with({"--cache-lengths", "5,7"}), "lengths[1]"));
  CHECK(refused(with({}), "--cache-lengths is missing"));
  CHECK(refused(w.judge({"--cache-lengths", "5,2"}), "they need --page-table"));
}

TEST_CASE("--page-table with a window: pages that no query sees may be missing") {
  workplace const w;
  for (char const* name : {"q", "out"}) w.write(name, counted({2, 2, 2, 4}));
  for (char const* name : {"k", "v"}) w.write(name, counted({5, 1, 3, 4}));
  w.write("table", integers({4, 0, -1, 2}, {2, 2}));  // sequence 1 has no keys 0, 1 and 2
  auto const with = [&](char const* mask) {
    return w.judge({"--page-table", w.at("table.npy"), "--cache-lengths", "5,5", "--mask", mask});
  };
  CHECK(with("window=0:0").err == "");
  CHECK(number(last_problem().tensors.at("k"), 1, 0, 3, 0) == 2 * 12);
  CHECK(last_problem().mask.hulls[2] == key_interval{3, 4});
  CHECK(refused(with("window=1:0"), "page 0 of sequence 1 is -1, and query 0 sees key 2"));
  CHECK(refused(with("causal"), "query 0 sees key 0"));
  w.write("table", integers({4, 0, -2, 2}, {2, 2}));
  CHECK(refused(with("window=0:0"), "pages(1, 0) has the value -2"));
}

TEST_CASE("--latent: values are the first features of keys, in pages, too") {
  workplace const w;
  w.write("q", counted({4, 2, 6}));
  w.write("k", counted({1, 3, 6}));
  w.write("out", counted({4, 2, 5}));
  auto const with = [&](std::vector<std::string> const& more) {
    std::vector<std::string> all{"verdict", "softmax",     "--q",   w.at("q.npy"),
                                 "--k",     w.at("k.npy"), "--out", w.at("out.npy")};
    all.insert(all.end(), more.begin(), more.end());
    return tool_tests::attune(all);
  };
  CHECK(with({"--latent", "5"}).err == "");
  auto const& v = last_problem().tensors.at("v");
  CHECK(v.extents == shape{1, 1, 3, 5});
  CHECK(number(v, 0, 0, 2, 4) == 2 * 6 + 4);
  CHECK(refused(with({"--latent", "7"}), "at most 6, the width of k"));
  CHECK(refused(with({"--latent", "5", "--v", w.at("k.npy")}), "--latent: v is given as well"));
  CHECK(refused(with({}), "--v is missing"));
}

TEST_CASE("A bias may have one batch element, head or query for all") {
  workplace const w;
  w.write("q", counted({2, 3, 2, 4}));
  w.write("k", counted({2, 1, 5, 4}));
  w.write("v", counted({2, 1, 5, 4}));
  w.write("out", counted({2, 3, 2, 4}));
  auto const with = [&](std::vector<index_t> extents) {
    w.write("bias", counted(std::move(extents)));
    return tool_tests::attune({"verdict", "biased", "--q", w.at("q.npy"), "--k", w.at("k.npy"), "--v", w.at("v.npy"),
                               "--bias", w.at("bias.npy"), "--out", w.at("out.npy")});
  };
  for (auto const& extents : {std::vector<index_t>{2, 5}, {3, 2, 5}, {2, 1, 1, 5}, {2, 3, 2, 5}}) {
    CHECK(with(extents).err == "");
    CHECK(last_problem().tensors.at("bias").extents == shape{2, 3, 2, 5});
  }
  with({3, 1, 5});
  CHECK(number(last_problem().tensors.at("bias"), 1, 2, 1, 4) == 14);
}

TEST_CASE("Keys and values of 8 bits: codes in safetensors or as words, with scales for all, for heads, from a file") {
  workplace const w;
  auto const one = counted({1, 2, 3, 4});
  w.write("q", one);
  w.write("out", one);
  w.write("k", counted({1, 2, 3, 4}, io::element_type::float8_e4m3fn));
  w.write("v", counted({1, 2, 3, 4}, io::element_type::float8_e5m2));
  CHECK(refused(w.judge({}), "for float8 words say --cache-dtype"));
  captured const words = w.judge({"--cache-dtype", "e4m3", "--k-scale", "0.5", "--v-scale", "1,0.25"});
  CHECK(words.err == "");
  CHECK(number(last_problem().tensors.at("k"), 0, 1, 0, 1) == 0.5 * 13);
  CHECK(number(last_problem().tensors.at("v"), 0, 0, 0, 1) ==
        double(float(std::bit_cast<float8_e4m3fn>(float8_e5m2(1.f)))));
  io::write_safetensors(w.at("cache.safetensors"), {{"k", counted({1, 2, 3, 4}, io::element_type::float8_e4m3fn)},
                                                    {"v", counted({1, 2, 3, 4}, io::element_type::float8_e5m2)}});
  w.write("scale", counted({1, 2, 1, 1}));
  captured const typed =
      tool_tests::attune({"verdict", "softmax", "--q", w.at("q.npy"), "--from", w.at("cache.safetensors"), "--out",
                          w.at("out.npy"), "--v-scale", w.at("scale.npy")});
  CHECK(typed.err == "");
  CHECK(number(last_problem().tensors.at("k"), 0, 0, 0, 3) == 3);
  CHECK(number(last_problem().tensors.at("v"), 0, 0, 0, 3) == 0);
  CHECK(number(last_problem().tensors.at("v"), 0, 1, 0, 0) == 12);
  CHECK(refused(w.judge({"--cache-dtype", "e3m4"}), "e4m3 or e5m2"));
  CHECK(refused(w.judge({"--cache-dtype", "e4m3", "--k-scale", "1,2,3"}), "scales has shape (1, 3, 1, 1)"));
}
