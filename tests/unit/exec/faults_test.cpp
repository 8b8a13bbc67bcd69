// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Inputs that other libraries' bug reports are about, and that attune once got wrong. Each case names its row: F1, B1,
// ...
#include <limits>
#include <vector>

#include <support/every_function.hpp>
#include <unit/check.hpp>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

using namespace attune;
using attune::test::error_of;

namespace {

constexpr float most = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();

bool says(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

/// A score of rate <q, k> that reads its rate from a copy.
struct copied_rate {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::dot;
  parameter rate = 1;
  static constexpr auto parameters() { return std::array{listed("rate", &copied_rate::rate)}; }
  template <class T>
  struct bound {
    T rate;
    T score(T const& x, key<T> const&) const { return rate * x; }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    auto const p = rate;
    return {r(p)};
  }
};

/// One row of four keys with values 1, 2, 3, 4, on the CPU and on the reference in float.
struct row_of_four {
  std::vector<float> scores, values{1, 2, 3, 4}, one{1};
  explicit row_of_four(std::vector<float> s) : scores(std::move(s)) {}

  template <class Op>
  float out(Op const& op) const {
    std::vector<float> o(1);
    auto const in = inputs_of(op);
    forward(cpu{serial{}}, op, in, {.out = tensor(o, {1, 1, 1, 1})});
    auto const dense = forward(reference<float>{}, op, {.v = in.v, .scores = in.scores}).at(0, 0).out(0, 0);
    CHECK(test::near(o[0], dense, 1e-6));
    return o[0];
  }
  /// d out / d scores.
  template <class Op>
  std::vector<float> gradient(Op const& op) const {
    auto const in = inputs_of(op);
    auto const fused = vjp(cpu{serial{}}, op, in, {.out = tensor(one, {1, 1, 1, 1})}).of(field::scores).values;
    auto const dense = vjp(reference<float>{}, op, {.v = in.v, .scores = in.scores}, {.out = tensor(one, {1, 1, 1, 1})})
                           .of(field::scores)
                           .values;
    for (std::size_t j = 0; j < 4; ++j) {
      CAPTURE(j);
      CHECK((std::isnan(fused[j]) ? std::isnan(dense[j]) : std::fabs(fused[j] - dense[j]) < 1e-5f));
    }
    return fused;
  }
  template <class Op>
  inputs<Op, tensor<float const>> inputs_of(Op const&) const {
    return {.v = tensor(values, {1, 1, 4, 1}), .scores = tensor(scores, {1, 1, 1, 4})};
  }
};

template <class Normalizer>
auto with(Normalizer n) {
  return attention(kernel::given_scores{}, n);
}

template <mass_reference Reference>
struct rectified {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = Reference};
  template <class T>
  struct bound {
    T earned(T const& a, T const&) const { return math::larger(a, T(0)); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};

struct square {
  std::vector<float> x = std::vector<float>(3 * 2, 0.5f), out = std::vector<float>(6);
  tensor<float> X{x.data(), {1, 1, 3, 2}}, O{out.data(), {1, 1, 3, 2}};
};

}  // namespace

TEST_SUITE("faults") {
  TEST_CASE("F1: a cotangent without elements is given, and has the wrong shape; one that is absent is zero") {
    square const s;
    std::vector<float> none;
    auto const op = attention(kernel::dot_product{}, normalizer::softmax{});
    using operator_type = std::remove_const_t<decltype(op)>;
    tensor const no_rows(none, {1, 1, 0, 2}), no_lse(none, {1, 1, 0, 1});
    auto const refused = [&](auto const& executor, auto const& d) {
      return error_of([&] { vjp(executor, op, {.q = s.X, .k = s.X, .v = s.X}, d); });
    };
    CHECK(says(refused(cpu{serial{}}, cotangents<operator_type, tensor<float const>>{.out = no_rows}),
               "the gradient of out has shape (1, 1, 0, 2); expected (1, 1, 3, 2)"));
    CHECK(says(refused(cpu{serial{}}, cotangents<operator_type, tensor<float const>>{.out = s.X, .lse = no_lse}),
               "the gradient of lse has shape (1, 1, 0, 1); expected (1, 1, 3, 1)"));
    CHECK(says(refused(reference<float>{}, cotangents<operator_type, any_tensor>{.out = no_rows}),
               "has shape (1, 1, 0, 2)"));
    CHECK(refused(cpu{serial{}}, cotangents<operator_type, tensor<float const>>{}) == "");
    CHECK(refused(reference<float>{}, cotangents<operator_type, any_tensor>{}) == "");
  }

  TEST_CASE("F1: a direction without elements is given too") {
    square const s;
    std::vector<float> none;
    auto const op = attention(kernel::dot_product{}, normalizer::softmax{});
    tensor<float const> const empty(none, {1, 1, 0, 2});
    CHECK(says(error_of([&] { jvp(cpu{serial{}}, op, {.q = {s.X, empty}, .k = s.X, .v = s.X}); }),
               "the direction of q has shape (1, 1, 0, 2)"));
    CHECK(says(error_of([&] { jvp(reference<double>{}, op, {.q = {s.X, empty}, .k = s.X, .v = s.X}); }),
               "the direction of q has shape (1, 1, 0, 2)"));
  }

  TEST_CASE("B1: logits of float's lowest number count as -inf, whatever the normalizer") {
    row_of_four const off({-most, -most, -most, -most}), mixed({1, 0.5f, -most, -most}),
        masked({1, 0.5f, -infinity, -infinity});
    auto const check = [&](auto const& op) {
      CHECK(off.out(op) == 0);
      for (float const g : off.gradient(op)) CHECK(g == 0);
      CHECK(mixed.out(op) == masked.out(op));
      auto const by_mixed = mixed.gradient(op), by_masked = masked.gradient(op);
      for (std::size_t j = 0; j < 4; ++j) CHECK(by_mixed[j] == by_masked[j]);
    };
    check(with(normalizer::softmax{}));
    check(with(normalizer::sparsemax{}));
    check(with(normalizer::entmax15{}));
    check(with(normalizer::entmax{2.5}));
    check(with(normalizer::top_k{2}));
    check(with(normalizer::self_adjusted<normalizer::adjusted_form::product>{}));
    check(with(normalizer::self_adjusted<normalizer::adjusted_form::with_zero>{}));
    check(with(normalizer::self_adjusted<normalizer::adjusted_form::full_range>{}));
    CHECK(mixed.out(with(normalizer::self_adjusted<normalizer::adjusted_form::product>{})) == doctest::Approx(1.0));
    CHECK(mixed.out(with(normalizer::self_adjusted<normalizer::adjusted_form::full_range>{})) ==
          doctest::Approx(0.622459));
  }

  TEST_CASE("B2: self-adjusted rows with logits near the ends of float") {
    using normalizer::adjusted_form;
    CHECK(row_of_four({1e38f, 0.5f, -most, -most}).out(with(normalizer::self_adjusted<adjusted_form::product>{})) ==
          1e38f);
    CHECK(row_of_four({2e38f, -2e38f, 0, 1}).out(with(normalizer::self_adjusted<adjusted_form::full_range>{})) ==
          doctest::Approx(1.0));
  }

  TEST_CASE("B3: in a row of NaN the gradient by every key is NaN") {
    row_of_four const x({infinity, 1, 0.5f, 0});
    auto const check = [&](auto const& op) {
      for (float const g : x.gradient(op)) CHECK(std::isnan(g));
    };
    check(with(normalizer::softmax{}));
    check(with(normalizer::off_by_one{}));
    check(with(normalizer::sink{0.25}));
    check(with(normalizer::sparsemax{}));
    check(with(normalizer::self_adjusted<normalizer::adjusted_form::full_range>{}));
  }

  TEST_CASE("B4: zeros of 16 bits") {
    CHECK(float(zeros<bfloat16>(3)(0, 0, 0, 2)) == 0);
    CHECK(float(zeros<float16>(3)(0, 0, 0, 2)) == 0);
  }

  TEST_CASE_TEMPLATE("B6, variants, fault 1: sin, cos, acos, erf, pow and floor in a kernel of one's own", T, float,
                     double) {
    constexpr index_t queries = 5, keys = 37, width = 4;
    auto const op = attention(test::every_function{}, normalizer::softmax{});
    std::vector<T> q(queries * width), k(keys * width), v(keys * width), out(q.size()), by_out(q.size());
    for (std::size_t n = 0; n < k.size(); ++n)
      k[n] = T(float(2 * std::sin(1.3 * double(n)))), v[n] = T(float(std::cos(0.7 * double(n))));
    for (std::size_t n = 0; n < q.size(); ++n)
      q[n] = T(float(3 * std::cos(2.1 * double(n)))), by_out[n] = T(float(std::sin(0.9 * double(n))));
    shape const rows{1, 1, queries, width}, columns{1, 1, keys, width};
    inputs<std::remove_const_t<decltype(op)>, tensor<T const>> const in{
        .q = tensor(q, rows), .k = tensor(k, columns), .v = tensor(v, columns)};
    tensor const D(std::as_const(by_out), rows);
    forward(cpu<T>{serial{}}, op, in, {.out = tensor(out, rows)});
    auto const dense = forward(reference<digits50>{}, op, {.q = in.q, .k = in.k, .v = in.v});
    double const tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
    for (index_t i = 0; i < queries; ++i)
      for (index_t d = 0; d < width; ++d)
        CHECK(std::fabs(double(out[std::size_t(i * width + d)]) - double(dense.at(0, 0).out(i, d))) < tolerance);
    auto const got = vjp(cpu<T>{serial{}}, op, in, {.out = D});
    auto const right = vjp(reference<digits50>{}, op, {.q = in.q, .k = in.k, .v = in.v}, {.out = D});
    for (field const f : {field::q, field::k, field::v})
      for (std::size_t n = 0; n < got.of(f).values.size(); ++n)
        CHECK(std::fabs(double(got.of(f).values[n]) - double(right.of(f).values[n])) < 20 * tolerance);
    CHECK(test::near(double(got.parameter("rate").values[0]), double(right.parameter("rate").values[0]),
                     100 * tolerance));
  }

  TEST_CASE(
      "B8, variants, fault 6: a parameter read from a copy, or assigned after the operator was made, keeps its "
      "gradient") {
    std::vector<float> const x{0.5f, -1, 2, 0.25f, 1, -0.5f}, by{1, -2, 0.5f, 1};
    shape const rows{1, 1, 2, 2}, columns{1, 1, 3, 2};
    tensor const Q(x.data(), rows), K(x.data(), columns), D(by.data(), rows);
    auto copied = attention(copied_rate{0.7}), assigned = attention(copied_rate{0.2});
    auto const plain = attention(kernel::dot_product{.scale = 0.7});
    assigned.kernel.rate = 0.7;
    auto const right =
        vjp(reference<double>{}, plain, {.q = Q, .k = K, .v = K}, {.out = D}).parameter("scale").values[0];
    REQUIRE(std::fabs(right) > 0.01);
    for (auto const& op : {copied, assigned}) {
      CHECK(test::near(vjp(reference<double>{}, op, {.q = Q, .k = K, .v = K}, {.out = D}).parameter("rate").values[0],
                       right, 1e-12));
      CHECK(test::near(double(vjp(cpu{}, op, {.q = Q, .k = K, .v = K}, {.out = D}).parameter("rate").values[0]), right,
                       1e-5));
      auto const moved = jvp(reference<double>{}, op, {.q = Q, .k = K, .v = K}, {.parameters = {{"rate", 1.0}}});
      auto const fused = jvp(cpu{}, op, {.q = Q, .k = K, .v = K}, {.parameters = {{"rate", 1.0}}});
      CHECK(moved.at(0, 0).out(0, 0).tangent[0] != 0);
      CHECK(test::near(double(fused.out_along(0, 0, 0, 0)), moved.at(0, 0).out(0, 0).tangent[0], 1e-5));
    }
    auto const g = vjp(cpu{}, plain, {.q = Q, .k = K, .v = K}, {.out = D});
    CHECK(test::error_of([&] { static_cast<void>(g.parameter("rate")); }).find("expected one of kernel.scale") !=
          std::string::npos);
  }

  TEST_CASE("B9: an output whose elements share memory is refused") {
    square s;
    auto const op = attention(kernel::dot_product{}, normalizer::softmax{});
    auto const into = [&](tensor<float> const& out, natural_lse<float> const& lse = {}) {
      return error_of([&] { forward(cpu{serial{}}, op, {.q = s.X, .k = s.X, .v = s.X}, {.out = out, .lse = lse}); });
    };
    std::vector<float> wide(30);
    CHECK(into(s.O) == "");
    CHECK(into({wide.data(), {1, 1, 3, 2}, {0, 0, 7, 3}}) == "");
    CHECK(into({wide.data() + 20, {1, 1, 3, 2}, {0, 0, -7, 3}}) == "");
    CHECK(into({wide.data(), {1, 1, 3, 2}, {0, 0, 2, 5}}) == "");   // 0 5 2 7 4 9
    CHECK(!detail::elements_coincide({2, 4, 0, 7}, {0, 0, 7, 1}));  // nothing lies anywhere
    CHECK(says(into({wide.data(), {1, 1, 3, 2}, {0, 0, 0, 1}}),
               "out has strides (0, 0, 0, 1) for the shape (1, 1, 3, 2)"));
    CHECK(says(into({wide.data(), {1, 1, 3, 2}, {0, 0, 1, 1}}), "share no memory"));
    CHECK(says(into({wide.data(), {1, 1, 3, 2}, {0, 0, 2, 4}}), "share no memory"));  // 0 4 2 6 4 8
    CHECK(says(into(s.O, natural_lse(tensor<float>(wide.data(), {1, 1, 3, 1}, {}))), "lse has strides (0, 0, 0, 0)"));
  }

  TEST_CASE("B10: extents whose product overflows") {
    std::vector<float> none;
    float one = 0;
    index_t const half = index_t(1) << (sizeof(index_t) * 4);
    CHECK(says(error_of([&] { tensor(none, {half, half, 1, 1}); }), "product"));
    CHECK(says(error_of([&] { tensor<float>(&one, {half, half, 0, 1}); }), "product"));
    CHECK(says(error_of([&] { tensor<float>(&one, {half, half / 2, 1, 2}, {}); }), "product"));
    CHECK(error_of([&] { tensor<float>(&one, {half, half / 4, 1, 1}, {}); }) == "");
  }

  TEST_CASE("B11: masks whose arrays a device cannot read") {
    std::vector<index_t> const ids{0, 0, 1}, lengths{3};
    std::vector<unsigned char> const table{1};
    mask_shape const on_device{1, 1, 3, 3, memory_kind::device};
    CHECK(says(error_of([&] { mask::check(mask::documents(ids), on_device); }),
               "has a std::vector, in memory of the host; expected an array that the device reads: documents("));
    CHECK(says(error_of([&] { mask::check(mask::padding(lengths), on_device); }), "padding(lengths, count)"));
    CHECK(says(error_of([&] { mask::check(mask::block_sparse(table, 4, 4), on_device); }), "block_sparse("));
    CHECK(error_of([&] { mask::check(mask::documents(ids.data(), 3, ids.data(), 3), on_device); }) == "");
    CHECK(error_of([&] { mask::check(mask::padding(lengths.data(), 1), on_device); }) == "");
    CHECK(error_of([&] { mask::check(mask::block_sparse(table.data(), 1, 4, 4), on_device); }) == "");
  }

  TEST_CASE("variants, fault 7: masses that do not scale with a running maximum are refused") {
    square s;
    auto const with_masses = [&](auto n) {
      return error_of([&] {
        forward(cpu{serial{}}, attention(kernel::dot_product{}, n), {.q = s.X, .k = s.X, .v = s.X}, {.out = s.O});
      });
    };
    CHECK(says(with_masses(rectified<mass_reference::running_maximum>{}),
               "masses that do not scale with their reference m"));
    CHECK(with_masses(rectified<mass_reference::none>{}) == "");
    CHECK(with_masses(normalizer::sink{0.25}) == "");
    CHECK(with_masses(normalizer::sink{300.0}) == "");
  }

  TEST_CASE("Heads interleaved with q, k and v, (B, L, 3, H, D), are read and written in place") {
    constexpr index_t batch = 2, positions = 5, heads = 3, width = 4;
    std::vector<float> packed(batch * positions * 3 * heads * width), out(batch * positions * heads * width);
    for (std::size_t n = 0; n < packed.size(); ++n) packed[n] = float(n * 37 % 101) / 50 - 1;
    shape const s{batch, heads, positions, width};
    strides const steps{positions * 3 * heads * width, width, 3 * heads * width, 1};
    auto const part = [&](index_t n) { return tensor<float const>(packed.data() + n * heads * width, s, steps); };
    tensor<float> const O(out.data(), s, {positions * heads * width, width, heads * width, 1});
    auto const op = attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{});
    forward(cpu{serial{}}, op, {.q = part(0), .k = part(1), .v = part(2)}, {.out = O});
    auto const exact = forward(reference<double>{}, op, {.q = part(0), .k = part(1), .v = part(2)});
    for (index_t b = 0; b < batch; ++b)
      for (index_t h = 0; h < heads; ++h)
        for (index_t i = 0; i < positions; ++i)
          for (index_t d = 0; d < width; ++d)
            CHECK(O(b, h, i, d) == doctest::Approx(exact.at(b, h).out(i, d)).epsilon(1e-5));
  }
}
