// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// decode() from pages and from 16 bits gives what it gives for the same numbers in one piece, in floats.
#include <cstdint>
#include <numeric>

#include <attune/exec/cpu/decode.hpp>

#include "../exec/cpu/decode/decoding.hpp"

namespace attune::test {
namespace {

template <class E>
E number(double x) {
  return E(float(x));
}
template <>
double number<double>(double x) {
  return x;
}

/// A cache with the rows of one field, page by page, in the layout (page, key, head, feature); nothing but NaN
/// elsewhere.
template <class E>
struct cache {
  std::vector<E> memory;
  shape pages;
  tensor<E const> view() const {
    index_t const key = pages.head * pages.feature;
    return {memory.data(), pages, {pages.position * key, pages.feature, key, 1}};
  }
};

/// The tensors with a row per key of a problem, in pages of `size` keys that lie in disorder among others.
template <class E, class Op>
class paged_problem {
 public:
  paged_problem(problem<Op> const& p, index_t size) : size_(size) {
    auto const in = p.template inputs<tensor<double const>>();
    index_t const batch = p.e.batch, each = (p.e.keys + size - 1) / size, pages = 2 * batch * each + 3;
    for (index_t n = 0; n < batch * each; ++n) numbers.push_back(std::int32_t(pages - 2 - 2 * n));
    caches_.resize(field_count);
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) {
        tensor<double const> const from = member<F>(in);
        shape const e = from.extents();
        cache<E>& to = caches_[std::size_t(F)];
        bool const by_key = side_of(F) == input_side::key;
        to.pages = by_key ? shape{pages, e.head, size, e.feature} : e;
        to.memory.assign(std::size_t(to.pages.size()), number<E>(by_key ? nan : 0));
        auto const at = [&](index_t b, index_t h, index_t i, index_t d) -> E& {
          if (!by_key) return to.memory[std::size_t(((b * e.head + h) * e.position + i) * e.feature + d)];
          index_t const page = numbers[std::size_t(b * each + i / size)];
          return to.memory[std::size_t(((page * size + i % size) * e.head + h) * e.feature + d)];
        };
        for (index_t b = 0; b < e.batch; ++b)
          for (index_t h = 0; h < e.head; ++h)
            for (index_t i = 0; i < e.position; ++i)
              for (index_t d = 0; d < e.feature; ++d) at(b, h, i, d) = number<E>(from(b, h, i, d));
      }
    });
  }
  inputs<Op, tensor<E const>> inputs_of_pages() const {
    return make_inputs<Op, tensor<E const>>([&]<field F>() {
      auto const& x = caches_[std::size_t(F)];
      return side_of(F) == input_side::key ? x.view() : tensor<E const>(x.memory, x.pages);
    });
  }
  page_table table(index_t batch) const { return page_table(numbers, batch); }

  std::vector<std::int32_t> numbers;

 private:
  index_t size_;
  std::vector<cache<E>> caches_;
};

auto const soft = attention(kernel::dot_product{}, mask::runtime{});
auto const every_field =  // each kind of tensor with a row per key
    attention(kernel::dot_product{} + kernel::scalar_sort{2.0} + kernel::spatial_prior{3.0} + kernel::key_bias{},
              length_scale::margin{-1.0, 0.2}, gate::softplus{0.1}, normalizer::grounded{0.2}, mask::runtime{});

/// Pages of `size` keys against one piece of whole pages whose end a mask hides.
template <class T, class Op>
void check_pages_of(Op op, index_t size, bool same_bits) {
  attune::testing::detail::normal_numbers random(11);
  for (sees kind : every_mask) {
    problem_extents e{.batch = 2, .heads = 4, .queries = 3, .keys = 192, .width = 20, .gate_width = 4, .axes = 2};
    e.key_heads = 2;
    e.value_heads = 2;
    table_mask const mask(kind, e);
    op.mask = mask.mask();
    problem<Op> const p(e, random);
    auto const whole = decoded<T>(op, p.template inputs<tensor<T const>>(), p.extents());
    paged_problem<T, Op> const pages(p, size);
    auto const in = pages.inputs_of_pages();
    for (int threads : {1, 3}) {
      auto const got = written_by<T>(
          op, p.extents(), [&](auto const& to) { decode(cpu<T>(threads), op, in, pages.table(e.batch), to); });
      CAPTURE(int(kind));
      if (same_bits)
        CHECK(got == whole);
      else
        CHECK(differs(got, forward(reference<double>{}, op, p.template inputs<any_tensor>(), p.extents()), p.extents(),
                      op, sizeof(T) == 4 ? 4e-6 : 1e-13) == "");
    }
  }
}

TEST_CASE("pages: a multiple of 64 keys, bit for bit") {
  check_pages_of<float>(soft, 64, true);
  check_pages_of<double>(every_field, 192, true);
}

TEST_CASE("pages: any other number of keys, within the bound") {
  check_pages_of<float>(soft, 16, false);
  check_pages_of<double>(every_field, 1, false);
  check_pages_of<double>(every_field, 96, false);
}

TEST_CASE("pages: sequences of different lengths; entries and pages that nobody sees may be anything") {
  attune::testing::detail::normal_numbers random(12);
  problem_extents const e{.batch = 2, .heads = 2, .queries = 1, .keys = 48, .width = 8};
  auto op = attention(kernel::dot_product{}, mask::padding{});
  std::vector<index_t> const lengths{17, 40};
  op.mask = mask::padding(lengths);
  problem<decltype(op)> const p(e, random);
  auto const whole = decoded<float>(op, p.inputs<tensor<float const>>(), p.extents());
  paged_problem<float, decltype(op)> pages(p, 16);
  pages.numbers[2] = -1;  // keys 32 to 47 of sequence 0
  auto const run = [&] {
    return written_by<float>(op, p.extents(),
                             [&](auto const& to) { decode(cpu{}, op, pages.inputs_of_pages(), pages.table(2), to); });
  };
  CHECK(differs(run(), forward(reference<double>{}, op, p.inputs<any_tensor>(), p.extents()), p.extents(), op, 4e-6) ==
        "");
  CHECK(near(double(run().out[0]), double(whole.out[0]), 1e-6));
  pages.numbers[2] = 1 << 30;
  CHECK(run() == run());

  pages.numbers[1] = 99;  // keys 16 to 31 of sequence 0: one of them is seen
  CHECK(error_of(run) ==
        "attune::decode: pages(0, 1) has the value 99; expected a page in [0, 15): query 0 of head 0 sees key 16");
  pages.numbers[1] = pages.numbers[0];  // any page may stand twice
  CHECK(error_of(run) == "");
  pages.numbers[5] = -1;  // keys 32 to 47 of sequence 1
  CHECK(error_of(run) ==
        "attune::decode: pages(1, 2) has the value -1; expected a page in [0, 15): query 0 of head 0 sees key 32");
}

TEST_CASE("pages: shapes that do not fit are named") {
  std::vector<float> const memory(2 * 3 * 4 * 5 * 8);
  std::vector<float> out(2 * 4 * 1 * 8);
  auto const op = softmax_attention();
  tensor<float const> const q(memory.data(), {2, 4, 1, 8}), pages(memory.data(), {6, 2, 5, 8});
  std::vector<std::int32_t> const numbers{0, 1, 2, 3};
  auto const call = [&](tensor<float const> const& k, tensor<float const> const& v, page_table const& table) {
    return error_of(
        [&] { decode(cpu{}, op, {.q = q, .k = k, .v = v}, table, {.out = tensor(out, shape{2, 4, 1, 8})}); });
  };
  CHECK(call(pages, pages, page_table(numbers, 2)) == "");
  CHECK(call(tensor<float const>(memory.data(), {5, 2, 5, 8}), pages, page_table(numbers, 2)) ==
        "attune::decode: k has batch extent 5; expected 6, the number of pages of v");
  CHECK(call(tensor<float const>(memory.data(), {6, 2, 4, 8}), pages, page_table(numbers, 2)) ==
        "attune::decode: k has position extent 4; expected 5, the keys of a page of v");
  CHECK(call(pages, pages, page_table(numbers, 4)) ==
        "attune::decode: pages has batch extent 4; expected 2, the batch of out");
  CHECK(call(tensor<float const>(memory.data(), {6, 3, 5, 8}), pages, page_table(numbers, 2)) ==
        "attune::decode: k has head extent 3; expected a divisor of 4, the number of query heads");
  tensor<float const> const no_keys(memory.data(), {6, 2, 0, 8});
  CHECK(call(no_keys, no_keys, page_table(numbers, 2)) ==
        "attune::decode: v has position extent 0; expected at least 1");
  CHECK(error_of([&] { page_table(numbers, 3); }) ==
        "attune::page_table: entries has 4 numbers; expected a multiple of 3, the number of sequences");
  CHECK(
      error_of([&] { page_table(nullptr, 1, 2); }) ==
      "attune::page_table: entries has a null pointer for 1 x 2 pages; expected memory for as many numbers, both >= 0");
  // No pages at all: the contract of a row without keys.
  std::vector<std::int32_t> const none;
  CHECK(call(tensor<float const>(memory.data(), {0, 2, 5, 8}), tensor<float const>(memory.data(), {0, 2, 5, 8}),
             page_table(none, 2)) == "");
  CHECK(out == std::vector<float>(out.size(), 0));
}

/// decode(cpu<S>) against decode(cpu<float>) on the widened numbers, `out` rounded once: the same bits.
template <class S, class Op>
void check_stored(Op op, index_t page, index_t key_heads = 2, index_t value_heads = 4) {
  attune::testing::detail::normal_numbers random(13);
  problem_extents e{.batch = 2, .heads = 4, .queries = 2, .keys = 192, .width = 24, .gate_width = 5, .axes = 2};
  e.key_heads = key_heads;
  e.value_heads = value_heads;
  for (sees kind : every_mask) {
    CAPTURE(int(kind));
    table_mask const mask(kind, e);
    op.mask = mask.mask();
    problem<Op> p(e, random);
    for (int f = 0; f < int(field_count); ++f)
      p.change(field(f), [](double x, index_t, index_t, index_t) { return double(float(S(float(x)))); });
    auto const wide = decoded<float>(op, p.template inputs<tensor<float const>>(), p.extents());
    written<float, S> rounded{{}, wide.lse, wide.ground_weight};
    for (float x : wide.out) rounded.out.push_back(S(x));
    paged_problem<S, Op> const pages(p, page);
    auto const in = pages.inputs_of_pages();
    CHECK(rounded ==
          written_by<S>(op, p.extents(), [&](auto const& to) { decode(cpu<S>(2), op, in, pages.table(e.batch), to); }));
    // In one piece: a single page per sequence, the table left out.
    if (page == e.keys) {
      paged_problem<S, Op> one(p, page);
      auto narrow = one.inputs_of_pages();
      for_each_field([&]<field F>() {
        if constexpr (Op::uses(F) && side_of(F) == input_side::key) {
          auto& x = member<F>(narrow);
          shape s = x.extents();
          strides steps = x.steps();
          S const* const first = x.row(one.numbers[0], 0, 0);
          steps.batch *= one.numbers[1] - one.numbers[0];
          s.batch = 2;
          x = tensor<S const>(first, s, steps);
        }
      });
      CHECK(rounded == written_by<S>(op, p.extents(), [&](auto const& to) { decode(cpu<S>(2), op, narrow, to); }));
    }
  }
}

TEST_CASE("decode: from 16 bits, in pages and in one piece, bit for bit") {
  check_stored<bfloat16>(soft, 64);
  check_stored<bfloat16>(every_field, 192);
  check_stored<float16>(soft, 192);
  // One task has all heads, each with keys of its own.
  check_stored<bfloat16>(attention(kernel::scalar_sort{2.0} + kernel::key_bias{}, mask::runtime{}), 64, 4, 1);
}

}  // namespace
}  // namespace attune::test
