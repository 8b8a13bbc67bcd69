// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Few queries, many keys: the decode path against the reference, for every family of operators that it serves.
#include "decoding.hpp"

namespace attune::test {
namespace {

/// Lq 1..8, lengths around blocks, odd widths, all groups of heads.
std::vector<problem_extents> shapes() {
  std::vector<problem_extents> all;
  constexpr index_t keys[] = {1, 2, 63, 64, 65, 130, 200, 700};
  constexpr index_t heads[][3] = {{1, 1, 1}, {2, 1, 2}, {4, 1, 1}, {8, 1, 1},
                                  {4, 2, 4}, {4, 4, 2}, {6, 2, 3}, {3, 3, 3}};
  for (index_t n = 0; n < 8; ++n)
    all.push_back({.batch = 1 + n % 2,
                   .heads = heads[n][0],
                   .queries = 1 + (n * 3) % 8,
                   .keys = keys[n],
                   .width = 1 + (n * 13) % 37,
                   .value_width = 1 + (n * 29) % 71,
                   .gate_width = 1 + n,
                   .position_width = 3,
                   .key_heads = heads[n][1],
                   .value_heads = heads[n][2]});
  return all;
}

/// The operator under every mask at every shape: against the reference, bit by bit with garbage where nobody looks.
template <class T, class Op>
void check_everywhere(Op op, double tolerance) {
  attune::testing::detail::normal_numbers random(7);
  for (problem_extents const& e : shapes())
    for (sees kind : every_mask) {
      table_mask const mask(kind, e);
      op.mask = mask.mask();
      problem<Op> p(e, random);
      auto const got = decoded<T>(op, p.template inputs<tensor<T const>>(), p.extents());
      auto const exact = forward(reference<double>{}, op, p.template inputs<any_tensor>(), p.extents());
      std::string const where =
          attune::detail::text("mask ", int(kind), ", Lq ", e.queries, ", Lk ", e.keys, ", H ", e.heads);
      std::string const wrong = differs(got, exact, p.extents(), op, tolerance);
      CHECK_MESSAGE(wrong == "", where << ": " << wrong);
      p.poison(mask);
      CHECK_MESSAGE(got == decoded<T>(op, p.template inputs<tensor<T const>>(), p.extents()),
                    where << ": garbage changed bits");
    }
}

auto const plain = attention(kernel::dot_product{}, mask::runtime{});
auto const grounded = attention(kernel::dot_product{}, length_scale::margin{-1.0, 0.2}, gate::softplus{0.1},
                                normalizer::grounded{0.2}, gate::sigmoid_output{}, mask::runtime{});

TEST_CASE("decode: softmax") { check_everywhere<float>(plain, 4e-6); }

TEST_CASE("decode: ground mass and ground value, a gate, an output gate") { check_everywhere<double>(grounded, 1e-13); }

TEST_CASE("decode: a uniform share of all visible values; positions and a cap") {
  check_everywhere<double>(
      attention((kernel::dot_product{} + kernel::alibi{0.1} + kernel::key_bias{}) | kernel::softcap{3},
                normalizer::affine<>{0.7, 1.2}, mask::runtime{}),
      1e-13);
}

TEST_CASE("decode: no reference, no divisor; two products of features") {
  check_everywhere<double>(attention(kernel::tupe(), length_scale::ssmax{}, normalizer::sigmoid{}, mask::runtime{}),
                           1e-13);
}

TEST_CASE("decode: self-adjusted, distances") {
  check_everywhere<double>(
      attention(kernel::l2{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{}, mask::runtime{}),
      1e-12);
}

auto const given =
    attention(kernel::given_scores{}, gate::given_softplus{0.3}, normalizer::valued_sink{0.5}, mask::runtime{});

TEST_CASE("decode: given scores and gates, a sink with a value") { check_everywhere<float>(given, 4e-6); }

/// |q - k| does not vanish where both are padding, were it not for the constant.
struct shifted_difference {
  template <class T>
  static T pair(T const& q, T const& k) {
    return T(0.25) - math::abs(T(q - k));
  }
};

TEST_CASE("decode: all other contractions at once") {
  // Tables of one head and of three widths do not fit `shapes`: one shape, every mask.
  problem_extents const e{
      .heads = 4, .queries = 3, .keys = 150, .width = 5, .value_width = 6, .axes = 2, .key_heads = 2};
  attune::testing::detail::normal_numbers random(9);
  auto const numbers = [&](index_t n) {
    std::vector<double> x;
    for (index_t i = 0; i < n; ++i) x.push_back(0.3 * random());
    return x;
  };
  auto const metric = numbers(4 * 5), values = numbers(4 * 21), rows = numbers(160 * 2 * 5);
  tensor<double const> const per_head(metric, shape{1, 4, 1, 5}), near(values, shape{1, 4, 21, 1}),
      relative(rows, shape{1, 1, 2 * 160, 5});
  auto op = attention(
      kernel::bilinear{per_head} + kernel::elliptical{per_head} + kernel::elementwise<shifted_difference>{0.2} +
          kernel::scalar_sort{2.0} + kernel::spatial_prior{3.0} + kernel::relative_bias{near} + kernel::bias{} +
          kernel::transformer_xl(per_head, per_head, relative) + kernel::fourier_prior{near, near, near},
      mask::runtime{});
  for (sees kind : every_mask) {
    table_mask const mask(kind, e);
    op.mask = mask.mask();
    problem<decltype(op)> p(e, random);
    auto const got = decoded<double>(op, p.inputs<tensor<double const>>(), p.extents());
    auto const exact = forward(reference<double>{}, op, p.inputs<any_tensor>(), p.extents());
    CHECK_MESSAGE(differs(got, exact, p.extents(), op, 1e-13) == "", "mask " << int(kind));
    p.poison(mask);
    CHECK_MESSAGE(got == decoded<double>(op, p.inputs<tensor<double const>>(), p.extents()), "mask " << int(kind));
  }
}

TEST_CASE("decode: several chunks of keys are merged; any number of threads gives the same bits") {
  attune::testing::detail::normal_numbers random(3);
  problem_extents e{.batch = 2,
                    .heads = 4,
                    .queries = 2,
                    .keys = 3333,
                    .width = 4,
                    .gate_width = 2,
                    .key_heads = 2,
                    .value_heads = 2};
  for (sees kind : {sees::all, sees::causal, sees::window, sees::some, sees::nothing}) {
    table_mask const mask(kind, e);
    auto op = grounded;
    op.mask = mask.mask();
    problem<decltype(op)> p(e, random);
    // Chunks with the highest logits last, keys that are off all through a chunk.
    p.change(field::q, [](double x, index_t, index_t, index_t d) { return d == 0 ? 1 : x; });
    p.change(field::k, [](double x, index_t, index_t j, index_t d) { return d == 0 ? double(j) / 200 : x; });
    auto const in = p.inputs<tensor<double const>>();
    auto const one = decoded<double>(op, in, p.extents());
    std::string const wrong =
        differs(one, forward(reference<double>{}, op, p.inputs<any_tensor>(), p.extents()), p.extents(), op, 1e-12);
    CHECK_MESSAGE(wrong == "", "mask " << int(kind) << ": " << wrong);
    for (int threads : {2, 5}) CHECK(one == decoded<double>(op, in, p.extents(), threads));
  }
}

TEST_CASE("decode: a batch element has the same bits in every batch") {
  attune::testing::detail::normal_numbers random(8);
  constexpr index_t batch = 17, heads = 4, keys = 8192, width = 3;  // 8 chunks of keys for one batch element
  std::vector<float> q(batch * heads * width), k(batch * 2 * keys * width), v(k.size());
  for (auto* x : {&q, &k, &v})
    for (float& number : *x) number = float(random());
  auto const op = softmax_attention();
  auto const decoded = [&](index_t b, index_t count) {
    shape const rows{count, heads, 1, width}, cache{count, 2, keys, width};
    std::vector<float> out(std::size_t(rows.size()));
    decode(cpu{2}, op,
           {.q = tensor<float const>(q.data() + b * heads * width, rows),
            .k = tensor<float const>(k.data() + b * 2 * keys * width, cache),
            .v = tensor<float const>(v.data() + b * 2 * keys * width, cache)},
           {.out = tensor(out, rows)});
    return out;
  };
  std::vector<float> apart;
  for (index_t b = 0; b < batch; ++b)
    for (float x : decoded(b, 1)) apart.push_back(x);
  CHECK(decoded(0, batch) == apart);
}

TEST_CASE("decode: more rows than one task holds") {
  attune::testing::detail::normal_numbers random(4);
  problem_extents const e{.heads = 22, .queries = 7, .keys = 90, .width = 3};  // 154 rows of one key head: 64 + 64 + 26
  table_mask const mask(sees::causal, e);
  auto op = plain;
  op.mask = mask.mask();
  problem<decltype(op)> const p(e, random);
  auto const got = decoded<float>(op, p.inputs<tensor<float const>>(), p.extents(), 2);
  CHECK(differs(got, forward(reference<double>{}, op, p.inputs<any_tensor>(), p.extents()), p.extents(), op, 4e-6) ==
        "");
}

TEST_CASE("decode: logits of -inf and NaN, values that are not finite, seen by some rows") {
  attune::testing::detail::normal_numbers random(5);
  problem_extents const e{.heads = 2, .queries = 3, .keys = 100, .value_width = 5};
  table_mask const mask(sees::causal, e);  // row 0 does not see keys 98 and 99
  auto op = given;
  op.mask = mask.mask();
  problem<decltype(op)> p(e, random);
  auto const run = [&] { return decoded<float>(op, p.inputs<tensor<float const>>(), p.extents()); };
  auto const agrees = [&](written<float> const& got) {
    return differs(got, forward(reference<double>{}, op, p.inputs<any_tensor>(), p.extents()), p.extents(), op, 4e-6);
  };
  p.change(field::scores, [](double x, index_t h, index_t i, index_t j) {
    return (h == 0 && i == 0) || (j < 70 && i == 1) || j % 7 == 0 ? -inf
                                                                  : x;  // all off; off for a whole block; some off
  });
  CHECK(agrees(run()) == "");
  p.change(field::v, [](double x, index_t, index_t j, index_t) { return j >= 98 ? nan : x; });
  CHECK(agrees(run()) == "");  // rows 1 and 2 are NaN, row 0 is not
  p.change(field::v, [](double, index_t, index_t j, index_t d) { return double(j + d); });
  p.change(field::scores, [](double x, index_t, index_t i, index_t j) {
    return i == 1 && j == 3 ? nan : i == 2 && j == 9 ? inf : x;
  });
  auto const got = run();
  for (std::size_t n = 0; n < got.out.size(); ++n) CHECK(std::isnan(got.out[n]) == (n / 5 % 3 != 0));
}

/// Where the numbers of a row lie: `feature` apart, `row` from one position to the next, which may be negative.
struct layout {
  index_t feature, row;
};
/// The same numbers laid out otherwise, NaN between them.
template <class T>
struct arranged {
  std::vector<T> memory;
  shape extents;
  layout as;
  arranged(tensor<T const> const& x, layout const& l)
      : memory(std::size_t(x.extents().batch * x.extents().head * x.extents().position * std::abs(l.row)), T(nan)),
        extents(x.extents()), as(l) {
    auto const to = view();
    for (index_t b = 0; b < extents.batch; ++b)
      for (index_t h = 0; h < extents.head; ++h)
        for (index_t i = 0; i < extents.position; ++i)
          for (index_t d = 0; d < extents.feature; ++d) to(b, h, i, d) = x(b, h, i, d);
  }
  tensor<T> view() {
    index_t const head = std::abs(as.row) * extents.position;
    return {memory.data() + (as.row < 0 ? head + as.row : 0), extents, {head * extents.head, head, as.row, as.feature}};
  }
};

TEST_CASE_TEMPLATE("decode: any strides give the same bits", T, float, double) {
  attune::testing::detail::normal_numbers random(6);
  for (index_t heads : {4, 8})  // two and four rows that share their keys, or one alone
    for (index_t key_heads : {index_t(2), heads})
      for (index_t width : {16, 7}) {
        problem_extents const e{
            .batch = 2, .heads = heads, .queries = 1, .keys = 130, .width = width, .key_heads = key_heads};
        table_mask const mask(sees::window, e);
        auto op = plain;
        op.mask = mask.mask();
        problem<decltype(op)> const p(e, random);
        auto const in = p.template inputs<tensor<T const>>();
        auto const dense = decoded<T>(op, in, p.extents());
        // With a gap behind each feature rows are copied; long ones are multiplied in another order than short ones.
        for (layout const& l : {layout{2, -2 * width}, {1, -width}, {1, width + 100}, {1, -width - 100}}) {
          arranged<T> q(in.q, l), k(in.k, l), v(in.v, l);
          inputs<decltype(op), tensor<T const>> const other{.q = q.view(), .k = k.view(), .v = v.view()};
          CHECK_MESSAGE(dense == decoded<T>(op, other, p.extents()), heads, " heads, ", key_heads, " key heads, width ",
                        width, ", feature ", l.feature, ", row ", l.row);
        }
      }
}

TEST_CASE("decode: parameters of every query are read by their own row") {
  attune::testing::detail::normal_numbers random(8);
  problem_extents const e{.heads = 3, .queries = 4, .keys = 40};
  std::vector<double> scales;
  for (int n = 0; n < 12; ++n) scales.push_back(0.1 * n);
  table_mask const mask(sees::causal, e);
  auto op = attention(kernel::dot_product{per_query(scales, 3)}, mask::runtime{});
  op.mask = mask.mask();
  problem<decltype(op)> const p(e, random);
  auto const got = decoded<float>(op, p.inputs<tensor<float const>>(), p.extents());
  CHECK(differs(got, forward(reference<double>{}, op, p.inputs<any_tensor>(), p.extents()), p.extents(), op, 4e-6) ==
        "");
}

}  // namespace
}  // namespace attune::test
