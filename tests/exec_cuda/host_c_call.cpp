// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Calls of the C interface on a device, on emulated warps: the bits of the C++ call.
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>
#include <attune/testing/interop/c_warps.hpp>

#include "support/random.hpp"

ATTUNE_C_MAKE(sink, sink_attention(open, m))

namespace attune::test {
namespace {

using E = bfloat16;

/// A call of the operator `sink`, in memory of the host.
struct sink_call {
  shape of_queries{2, 4, 19, 24}, of_keys{2, 2, 37, 24}, of_values{2, 2, 37, 16}, of_out{2, 4, 19, 16};
  std::vector<E> q = numbers(of_queries, 1), k = numbers(of_keys, 2), v = numbers(of_values, 3);
  std::vector<E> out = std::vector<E>(std::size_t(of_out.size()));
  std::vector<float> lse = std::vector<float>(std::size_t(2 * 4 * 19)), logit{0.5f, -1, 0, 2};
  std::vector<attune_tensor> fields{seen(q, of_queries), seen(k, of_keys), seen(v, of_values)};
  std::vector<attune_parameter> parameters = std::vector<attune_parameter>(2);
  std::vector<attune_mask_node> mask;
  attune_call call{};
  attune_cuda more{};
  std::string text = std::string(4000, '\0');

  static std::vector<E> numbers(shape const& s, std::uint64_t seed) {
    rng random(seed);
    std::vector<E> x;
    for (index_t n = 0; n < s.size(); ++n) x.push_back(E(float(random.uniform(-2, 2))));
    return x;
  }
  template <class T>
  static attune_tensor seen(std::vector<T>& x, shape const& s) {
    strides const d = strides::dense(s);
    return {x.data(),
            {s.batch, s.head, s.position, s.feature},
            {d.batch, d.head, d.position, d.feature},
            interop::type_code<T>,
            1};
  }
  int run() {
    parameters[1].tensor = seen(logit, {1, 4, 1, 1});
    parameters[1].how = 2;
    call.fields = fields.data();
    call.parameters = parameters.data();
    call.mask = mask.data();
    call.mask_count = std::int64_t(mask.size());
    call.outputs[0] = seen(out, of_out);
    call.outputs[1] = seen(lse, {2, 4, 19, 1});
    call.type = attune_bfloat16;
    return interop::run_warps<interop::make_sink, E, 64>(&call, &more, {text.data(), std::int64_t(text.size())});
  }
  std::string message() const { return text.c_str(); }

  /// What forward_on_host_warps() writes with this mask.
  template <class Mask>
  bool is_call_with(Mask const& m, index_t offset) {
    std::vector<E> wanted(out.size());
    std::vector<float> wanted_lse(lse.size());
    auto const op = sink_attention(parameter(tensor<float const>(logit, {1, 4, 1, 1})), m);
    using op_type = std::remove_cvref_t<decltype(op)>;
    inputs<op_type, tensor<E const>> const in{.q = tensor<E const>(q, of_queries),
                                              .k = tensor<E const>(k, of_keys),
                                              .v = tensor<E const>(v, of_values),
                                              .offset = offset};
    outputs<op_type, E> to{.out = tensor<E>(wanted, of_out)};
    to.lse = natural_lse<float>(tensor<float>(wanted_lse, {2, 4, 19, 1}));
    testing::forward_on_host_warps(op, in, to);
    bool same = lse == wanted_lse;
    for (std::size_t n = 0; n < out.size(); ++n) same = same && float(out[n]) == float(wanted[n]);
    return same;
  }
};

attune_mask_node node(int kind, std::int64_t a = 0, std::int64_t b = 0) {
  attune_mask_node m{};
  m.kind = kind;
  m.a = a;
  m.b = b;
  return m;
}

}  // namespace

TEST_SUITE("c_call") {
  TEST_CASE("a call of the C interface has the bits of the C++ call") {
    sink_call c;
    index_t const last = 37 - 19;
    REQUIRE_MESSAGE(c.run() == 0, c.message());
    CHECK(c.is_call_with(mask::none{}, last));
    c.mask = {node(attune_mask_causal)};
    REQUIRE_MESSAGE(c.run() == 0, c.message());
    CHECK(c.is_call_with(mask::causal{}, last));
    CHECK_FALSE(c.is_call_with(mask::none{}, last));
    c.mask = {node(attune_mask_causal), node(attune_mask_band, 5, -1), node(attune_mask_both, 0, 1)};
    REQUIRE_MESSAGE(c.run() == 0, c.message());
    CHECK(c.is_call_with(mask::band{5, 0}, last));
    c.mask = {node(attune_mask_none), node(attune_mask_band_from_start, -1, 0), node(attune_mask_both, 0, 1)};
    c.call.has_offset = 1;
    c.call.offset = 7;
    REQUIRE_MESSAGE(c.run() == 0, c.message());
    CHECK(c.is_call_with(mask::band{mask::band::no_limit, 0, true}, 7));
  }

  TEST_CASE("it refuses what a device cannot have, in words") {
    auto const refused = [](auto const& change) {
      sink_call c;
      change(c);
      CHECK(c.run() == attune_refused);
      return c.message();
    };
    auto const has = [](std::string const& text, char const* part) {
      CHECK_MESSAGE(text.find(part) != std::string::npos, text);
    };
    has(refused([](sink_call& c) { c.mask = {node(attune_mask_prefix, 3)}; }), "full, causal, a window");
    has(refused([](sink_call& c) { c.mask = {node(attune_mask_causal), node(attune_mask_either, 0, 0)}; }),
        "on a device");
    has(refused([](sink_call& c) { c.mask = {node(attune_mask_both, 0, 0)}; }), "an earlier node");
    has(refused([](sink_call& c) {
          c.mask = {node(attune_mask_causal), node(attune_mask_band_from_start, 1, 1), node(attune_mask_both, 0, 1)};
        }),
        "different ends");
    has(refused([](sink_call& c) { c.fields[1].extents[3] = 16; }), "k");
    has(refused([](sink_call& c) { c.fields[2].given = 0; }), "v has no tensor");
    sink_call c;
    c.run();
    c.call.type = attune_float64;
    attune_cuda const more{};
    CHECK(interop::run_warps<interop::make_sink, E, 64>(&c.call, &more, {c.text.data(), 4000}) == attune_refused);
    has(c.message(), "bfloat16");
  }

  TEST_CASE("it says how much memory a call needs, and computes nothing") {
    sink_call c;
    c.run();
    std::vector<float> const before = c.lse;
    for (float& x : c.lse) x = 7;
    std::int64_t needed[2] = {-1, -1};
    c.more.needed = needed;
    c.more.step = attune_cuda_measure;
    REQUIRE_MESSAGE(c.run() == 0, c.message());
    CHECK(needed[0] > 2 * 4 * 19 * 4);
    CHECK(needed[1] == 2 * 4 * 19 * (16 + 4));  // a value sum, and four numbers
    c.more.step = attune_cuda_prepare;
    REQUIRE_MESSAGE(c.run() == 0, c.message());
    CHECK(c.lse == std::vector<float>(before.size(), 7.0f));
    auto room = std::vector<unsigned char>(std::size_t(needed[0]));
    c.more = {};
    c.more.workspace = room.data();
    c.more.bytes = needed[0];
    REQUIRE_MESSAGE(c.run() == 0, c.message());
    CHECK(c.lse == before);
    c.more.bytes = 1;
    CHECK(c.run() == attune_refused);
    c.more.step = 5;
    CHECK(c.run() == attune_refused);
    CHECK(c.message() == "attune::call: the step has the value 5; expected one of attune_cuda_step");
  }

  TEST_CASE("gradients of the C interface have the bits of the C++ call") {
    sink_call c;
    std::vector<float> saved(2 * 4 * 19 * 20);
    c.more.saved = saved.data();
    c.more.saved_count = index_t(saved.size());
    c.mask = {node(attune_mask_causal)};
    REQUIRE_MESSAGE(c.run() == 0, c.message());
    std::vector<E> d_out = sink_call::numbers(c.of_out, 4), dq(c.q.size()), dk(c.k.size()), dv(c.v.size());
    std::vector<float> d_logit(4);
    std::vector<attune_tensor> fields{sink_call::seen(dq, c.of_queries), sink_call::seen(dk, c.of_keys),
                                      sink_call::seen(dv, c.of_values)},
        parameters{{}, sink_call::seen(d_logit, {1, 4, 1, 1})};
    attune_gradients by{};
    by.cotangents[0] = sink_call::seen(d_out, c.of_out);
    by.fields = fields.data();
    by.parameters = parameters.data();
    std::int64_t needed[2] = {-1, -1};
    c.more.gradients = &by;
    c.more.needed = needed;
    auto const step = [&](int which) {
      c.more.step = which;
      return interop::run_warps_vjp<interop::make_sink, E, 64>(&c.call, &c.more, {c.text.data(), 4000});
    };
    REQUIRE_MESSAGE(step(attune_cuda_measure) == 0, c.message());
    REQUIRE_MESSAGE(step(attune_cuda_prepare) == 0, c.message());
    auto room = std::vector<unsigned char>(std::size_t(needed[0]));
    c.more.workspace = room.data();
    c.more.bytes = needed[0];
    REQUIRE_MESSAGE(step(attune_cuda_run) == 0, c.message());

    auto const op = sink_attention(parameter(tensor<float const>(c.logit, {1, 4, 1, 1})), mask::causal{});
    using op_type = std::remove_const_t<decltype(op)>;
    std::vector<E> q(dq.size()), k(dk.size()), v(dv.size());
    std::vector<float> logit(4);
    gradient_outputs<op_type, E> to;
    to.of(field::q) = tensor<E>(q, c.of_queries);
    to.of(field::k) = tensor<E>(k, c.of_keys);
    to.of(field::v) = tensor<E>(v, c.of_values);
    to.parameters[1] = tensor<float>(logit, {1, 4, 1, 1});
    testing::vjp_on_host_warps<exec_cuda::widths<64>>(
        op,
        inputs<op_type, tensor<E const>>{.q = tensor<E const>(c.q, c.of_queries),
                                         .k = tensor<E const>(c.k, c.of_keys),
                                         .v = tensor<E const>(c.v, c.of_values)},
        std::span<float const>(saved), {.out = tensor<E const>(d_out, c.of_out)}, to);
    auto const same = [](std::vector<E> const& a, std::vector<E> const& b) {
      return std::memcmp(a.data(), b.data(), sizeof(E) * a.size()) == 0;
    };
    CHECK(same(dq, q));
    CHECK(same(dk, k));
    CHECK(same(dv, v));
    CHECK(d_logit == logit);
    CHECK(d_logit[0] != 0);
  }
}

}  // namespace attune::test
