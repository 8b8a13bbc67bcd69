// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rotary embeddings: frequencies, the precision of angles, and what is refused.
#include <string>
#include <vector>

#include <attune/exec/reference/multiprecision.hpp>
#include <attune/exec/rotary.hpp>
#include <attune/policies/kernel/rotary.hpp>

#include "../../check.hpp"
#include "../row.hpp"

namespace attune::test {
namespace {

TEST_CASE("rotary_frequencies: plain, linear, NTK-aware") {
  auto const plain = rotary_frequencies::plain(4, 100);
  CHECK(plain.values == std::vector<double>{1, 0.1});
  CHECK(plain.attention_factor == 1);
  CHECK(rotary_frequencies::plain(128).values.size() == 64);
  CHECK(near(rotary_frequencies::plain(128).values[32], 0.01));
  auto const linear = rotary_frequencies::linear(4, 8, 100);
  CHECK(linear.values == std::vector<double>{0.125, 0.1 / 8});
  auto const ntk = rotary_frequencies::ntk(64, 4);
  auto const base = rotary_frequencies::plain(64);
  CHECK(ntk.values.front() == 1);
  CHECK(near(ntk.values.back(), base.values.back() / 4, 1e-13));  // the slowest pair: as linear
  CHECK(near(ntk.values[1], std::pow(10000 * std::pow(4, 64. / 62), -2. / 64)));
}

TEST_CASE("rotary_frequencies: YaRN keeps fast pairs, divides slow ones, and has an attention factor") {
  // 64 features, trained on 2048: pair r turns 2048 10000^(-r/32) / 2 pi times. 32 turns at r = 8.06, one at r = 20.1.
  auto const yarn = rotary_frequencies::yarn(64, 16, 2048);
  auto const plain = rotary_frequencies::plain(64);
  for (std::size_t r = 0; r <= 8; ++r) CHECK(yarn.values[r] == plain.values[r]);
  for (std::size_t r = 21; r < 32; ++r) CHECK(near(yarn.values[r], plain.values[r] / 16));
  double const share = (14. - 8) / (21 - 8);
  CHECK(near(yarn.values[14], plain.values[14] * ((1 - share) + share / 16)));
  CHECK(near(yarn.attention_factor, 0.1 * std::log(16.) + 1));
  CHECK(rotary_frequencies::yarn(64, 1, 2048).attention_factor == 1);
}

TEST_CASE("rotary_frequencies: axes") {
  auto const f = rotary_frequencies::plain(4, 100).on_axes(2);
  CHECK(f.values == std::vector<double>{1, 0.1, 1, 0.1});
  CHECK(f.axes == std::vector<index_t>{0, 0, 1, 1});
}

/// The largest error of the stored numbers of position n, relative to 50 digits.
template <class T>
double error_at(index_t n, rotary_frequencies const& f) {
  std::vector<double> const position{double(n)};
  rotary_angles<T> const angles(f, tensor<double const>(position, shape{1, 1, 1, 1}));
  double worst = 0;
  for (std::size_t r = 0; r < f.values.size(); ++r) {
    digits50 const angle = digits50(double(n)) * digits50(f.values[r]);
    double const c = double(digits50(angles.values()(0, 0, 0, index_t(r))) - math::cos(angle));
    double const s = double(digits50(angles.values()(0, 0, 0, index_t(r) + angles.pairs())) - math::sin(angle));
    worst = std::fmax(worst, std::fmax(std::fabs(c), std::fabs(s)));
  }
  return worst;
}

TEST_CASE("rotary_angles: the stated precision, up to position 2^24 and beyond") {
  auto const f = rotary_frequencies::plain(128);
  for (index_t n : {0, 1, 77, 4095, 1 << 20, (1 << 24) - 1, 1 << 24}) {
    CHECK(error_at<float>(n, f) <= 0x1p-25 + 3e-16);
    CHECK(error_at<double>(n, f) <= 3e-16);
  }
  CHECK(error_at<double>(index_t(1) << 40, f) <= 3e-16);  // the product alone would lose 1e-4
}

TEST_CASE("rotary_angles: counted, given and copied rows") {
  auto const f = rotary_frequencies::plain(4, 100).on_axes(2);
  rotary_angles<double> const counted(f, 3);
  CHECK(counted.rows() == 3);
  CHECK(counted.pairs() == 4);
  CHECK(counted.values()(0, 0, 2, 2) == std::cos(2.));
  CHECK(counted.values()(0, 0, 2, 6) == std::sin(2.));
  std::vector<float> const places{0, 0.5f, 3, -2};  // batch 2, one row, two axes
  rotary_angles<double> const given(f, tensor<float const>(places, shape{2, 1, 1, 2}));
  CHECK(given.values()(0, 0, 0, 0) == 1);
  CHECK(given.values()(0, 0, 0, 2) == std::cos(0.5));
  CHECK(given.values()(1, 0, 0, 4) == std::sin(3.));
  CHECK(given.values()(1, 0, 0, 6) == std::sin(-2.));
  std::vector<double> const c{1, 2}, s{3, 4};
  auto const copied = rotary_angles<double>::from(tensor<double const>(c, shape{1, 1, 1, 2}),
                                                  tensor<double const>(s, shape{1, 1, 1, 2}));
  for (index_t d = 0; d < 4; ++d) CHECK(copied.values()(0, 0, 0, d) == double(d + 1));
  auto stretched = rotary_frequencies::plain(2);
  stretched.attention_factor = 1.5;
  CHECK(rotary_angles<double>(stretched, 1).values()(0, 0, 0, 0) == 1.5);
}

TEST_CASE("rotary_angles: keys are turned in place") {
  rotary_angles<double> const angles(rotary_frequencies::plain(4, 100), 4);
  std::vector<double> x{1, 0, 0, 0, 7}, y = x;
  angles.turn(rotary_layout::half, tensor<double>(x, shape{1, 1, 1, 5}), 3);
  CHECK(x == std::vector<double>{std::cos(3.), 0, std::sin(3.), 0, 7});
  angles.turn(rotary_layout::interleaved, tensor<double>(y, shape{1, 1, 1, 5}), 3);
  CHECK(y == std::vector<double>{std::cos(3.), std::sin(3.), 0, 0, 7});
  CHECK(error_of([&] { angles.turn(rotary_layout::half, tensor<double>(x, shape{1, 1, 1, 5}), 4); }) ==
        "attune::rotary_angles::turn: first has the value 4 for 1 rows; expected rows within the 4 of the angles");
  CHECK(error_of([&] { angles.turn(rotary_layout::half, tensor<double>(x, shape{1, 1, 1, 5}), -1); }) != "");
  CHECK(error_of([&] {
          angles.turn(rotary_layout::half, tensor<double>(x.data(), {1, 1, 1, 3}));
        }).find("at least 4 features") != std::string::npos);
}

TEST_CASE("kernel::rotary: the scale, and the features of a pair") {
  rotary_angles<double> const angles(rotary_frequencies::plain(4), 3);
  kernel::rotary const k{angles}, scaled{.angles = angles, .scale = 3.0};
  CHECK(k.bind(row_with(0)).score(2, key<double>{0}) == 2 * row_with(0).inverse_sqrt_width);
  CHECK(scaled.bind(row_with(0)).score(2, key<double>{0}) == 6);
  CHECK(rotary_pair(rotary_layout::half, 4, 1).first == 1);
  CHECK(rotary_pair(rotary_layout::half, 4, 1).second == 5);
  CHECK(rotary_pair(rotary_layout::interleaved, 4, 1).first == 2);
  CHECK(rotary_pair(rotary_layout::interleaved, 4, 1).second == 3);
}

std::string refusal(kernel::rotary const& k, index_t queries, index_t keys, index_t width, index_t offset,
                    index_t batch = 1, memory_kind where = memory_kind::host) {
  problem_shape p;
  p.batch = batch, p.queries = queries, p.keys = keys, p.width = width;
  return error_of([&] { detail::check_angles("forward", k, p, offset, where); });
}

TEST_CASE("kernel::rotary: too few rows, a negative offset, too many pairs") {
  rotary_angles<float> const angles(rotary_frequencies::plain(4), 3);
  kernel::rotary const k{angles}, turned{.angles = angles, .keys = rotary_keys::turned};
  CHECK(refusal(k, 3, 3, 4, 0) == "");
  CHECK(refusal(k, 1, 3, 4, 2) == "");
  CHECK(refusal(k, 1, 3, 4, -1) ==
        "attune::forward: offset has the value -1; expected at least 0: query i reads row i + offset of the angles of "
        "kernel::rotary");
  CHECK(
      refusal(k, 2, 3, 4, 2) ==
      "attune::forward: the angles of kernel::rotary has 3 rows; expected at least 4: the last query is at position 3");
  CHECK(refusal(k, 1, 4, 4, 0) ==
        "attune::forward: the angles of kernel::rotary has 3 rows; expected at least 4, one for each key");
  CHECK(refusal(turned, 1, 4, 4, 0) == "");  // keys read no row
  CHECK(refusal(k, 1, 1, 3, 0) ==
        "attune::forward: the angles of kernel::rotary has 2 pairs of features; expected at most 1: q and k have 3 "
        "features");
  CHECK(refusal(k, 1, 1, 4, 0, 1, memory_kind::device).find("in memory of the host") != std::string::npos);
  CHECK(refusal({}, 1, 1, 4, 0).find("has no data") != std::string::npos);

  rotary_angles<float> const of_two(rotary_frequencies::plain(2), 2);
  CHECK(refusal({.angles = {angles, of_two}}, 3, 2, 4, 0).find("1 pairs for keys and 2 for queries") !=
        std::string::npos);
  kernel::rotary const given{.angles = {angles, angles}};
  CHECK(refusal(given, 3, 3, 4, -7) == "");  // given positions do not use the offset
  CHECK(refusal(given, 2, 3, 4, 0).find("3 rows for queries; expected 2") != std::string::npos);
  CHECK(refusal(given, 3, 2, 4, 0).find("3 rows for keys; expected 2") != std::string::npos);
  std::vector<float> const places(6);
  rotary_angles<float> const by_batch(rotary_frequencies::plain(4), tensor<float const>(places, shape{2, 1, 3, 1}));
  CHECK(refusal({by_batch}, 3, 3, 4, 0, 2) == "");
  CHECK(refusal({by_batch}, 3, 3, 4, 0, 3).find("batch extent 2; expected 1 or 3") != std::string::npos);
}

TEST_CASE("rotary_frequencies, rotary_angles, rotary_rows: what they refuse") {
  using f = rotary_frequencies;
  auto const says = [](auto const& call, char const* text) { CHECK(error_of(call).find(text) != std::string::npos); };
  says([] { f::plain(3); }, "rotary_frequencies::plain: features has the value 3; expected an even number, at least 2");
  says([] { f::plain(4, 1); }, "theta has the value 1");
  says([] { f::linear(4, 0); }, "scale has the value 0");
  says([] { f::ntk(2, 2); }, "features has the value 2; expected at least 4");
  says([] { f::yarn(4, 2, 0); }, "training_length has the value 0");
  says([] { f::yarn(4, 2, 8, 10000, 1, 1); }, "fast > slow > 0");
  says([] { f::plain(4).on_axes(0); }, "n has the value 0");
  says([] { rotary_angles<float>(f::plain(4), -1); }, "length has the value -1");
  says([] { rotary_angles<float>(f{}, 1); }, "frequencies has no value");
  says([] { rotary_angles<float>(f{{1, 1}, {0}, 1}, 1); }, "frequencies.axes has 1 entries; expected 2");
  says([] { rotary_angles<float>(f{{inf}, {}, 1}, 2); }, "finite positions, frequencies and attention factor");
  std::vector<double> const places{0, 1}, numbers(8);
  says([&] { rotary_angles<float>(f::plain(4).on_axes(3), tensor<double const>(places, shape{1, 1, 1, 2})); },
       "frequencies.axes has the value 2; expected an axis of the positions, which have 2");
  says([&] { rotary_angles<float>(f::plain(4), tensor<double const>(places, shape{1, 2, 1, 1})); }, "positions has");
  says([&] { rotary_rows(stored_view(tensor<double const>(numbers.data(), {1, 1, 2, 3}))); },
       "R cosines, then R sines");
}

}  // namespace
}  // namespace attune::test
