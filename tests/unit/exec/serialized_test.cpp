// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <attune/exec/cpu/forward.hpp>
#include <attune/exec/states/file.hpp>
#include <attune/operators/attention.hpp>
#include <attune/policies.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

std::vector<float> drawn(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> x(count);
  for (float& y : x) y = float(random() % 2000) / 1000.f - 1.f;
  return x;
}

/// Two heads, three queries, five keys, widths 4 and 2.
struct problem {
  std::vector<float> q = drawn(24, 1), k = drawn(40, 2), v = drawn(20, 3);
  template <class Op>
  inputs<Op, tensor<float const>> in(Op const&) const {
    return {.q = {q, {1, 2, 3, 4}}, .k = {k, {1, 2, 5, 4}}, .v = {v, {1, 2, 5, 2}}};
  }
};

auto const softmax = attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{});
auto const adjusted = attention(kernel::dot_product{},
                                normalizer::self_adjusted<normalizer::adjusted_form::full_range>{}, mask::causal{});
auto const entmax = attention(kernel::dot_product{}, normalizer::entmax{1.5}, mask::causal{});
auto const sparsemax = attention(kernel::dot_product{}, normalizer::sparsemax{}, mask::causal{});

template <class T, class Normalizer>
bool same(row_states<T, Normalizer> const& a, row_states<T, Normalizer> const& b) {
  auto const equal = [](std::vector<T> const& x, std::vector<T> const& y) {
    return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0);
  };
  return equal(a.reference, b.reference) && equal(a.earned, b.earned) && equal(a.ground, b.ground) &&
         equal(a.lowest, b.lowest) && equal(a.acc, b.acc) && equal(a.second, b.second);
}
template <class T, class Normalizer>
bool same(candidate_states<T, Normalizer> const& a, candidate_states<T, Normalizer> const& b) {
  if (a.rows.size() != b.rows.size()) return false;
  for (std::size_t n = 0; n < a.rows.size(); ++n) {
    if (a.rows[n].size() != b.rows[n].size() || std::memcmp(&a.poisons[n], &b.poisons[n], sizeof(T)) != 0) return false;
    for (std::size_t c = 0; c < a.rows[n].size(); ++c)
      if (a.rows[n][c].logit != b.rows[n][c].logit || a.rows[n][c].key != b.rows[n][c].key ||
          a.rows[n][c].value != b.rows[n][c].value)
        return false;
  }
  return true;
}

/// The states of the first three keys.
template <class Op>
auto part_of(Op const& op, problem const& given = {}) {
  return accumulate(cpu<float>{1}, op, given.in(op), {0, 3});
}
template <class Op>
auto empty_states(Op const& op) {
  auto states = part_of(op);
  return states_of<float, Op>(op, states.extents);
}
template <class States>
std::string refusal(States to, std::vector<std::byte> const& bytes) {
  return error_of([&] { from_bytes("read_states", "the message", bytes, to); });
}
std::string begins() { return "attune::read_states: the message has "; }

template <class Op>
void check_round_trip(Op const& op) {
  auto const states = part_of(op);
  auto const bytes = to_bytes(states);
  auto back = empty_states(op);
  REQUIRE(!same(states, back));
  from_bytes("read_states", "the message", bytes, back);
  CHECK(same(states, back));
  for (std::size_t n = 0; n < bytes.size(); ++n) {  // cut off anywhere: refused
    std::vector<std::byte> const cut(bytes.begin(), bytes.begin() + std::ptrdiff_t(n));
    std::string const words = refusal(back, cut);
    INFO("cut off after ", n);
    CHECK(words.starts_with(begins()));
  }
  for (std::size_t n = 0; n < bytes.size(); ++n)  // damaged anywhere: refused, or read as other numbers
    for (int const bit : {0, 6, 7}) {
      auto damaged = bytes;
      damaged[n] ^= std::byte(1 << bit);
      std::string const words = refusal(back, damaged);
      if (n < 80) {  // of the header, all is compared
        CHECK(words.starts_with(begins()));
      }
    }
  auto longer = bytes;
  longer.push_back(std::byte(0));
  CHECK(refusal(back, longer) == begins() + "1 bytes more than the states; expected nothing after the states");
}

TEST_CASE("to_bytes, from_bytes: the same states back; cut off or longer, refused") {
  check_round_trip(softmax);
  check_round_trip(adjusted);
  check_round_trip(entmax);
  check_round_trip(sparsemax);
}

TEST_CASE("to_bytes: rows without candidates, poisoned rows, infinities and -0") {
  problem given;
  given.q[0] = std::numeric_limits<float>::quiet_NaN();
  given.v[0] = -0.f;
  given.v[1] = std::numeric_limits<float>::infinity();
  auto const states = part_of(sparsemax, given);
  auto back = empty_states(sparsemax);
  from_bytes("read_states", "the message", to_bytes(states), back);
  REQUIRE(states.poisons[0] != 0);
  CHECK(same(states, back));
}

TEST_CASE("to_bytes: the layout of version 1") {
  row_states<float, normalizer::softmax> s;
  s.extents.batch = s.extents.heads = s.extents.queries = s.extents.value_width = 1;
  s.extents.keys = 9;
  s.reference = {1}, s.earned = {2}, s.ground = {3}, s.lowest = {4}, s.acc = {5};
  auto const bytes = to_bytes(s);
  std::string const name = "attune::normalizer::softmax";
  std::string expected = "ATTUNEST";
  auto const integer = [&](unsigned x) { expected += char(x) + std::string(7, '\0'); };
  for (unsigned x : {1u, 1u, 32u, 5u, 1u, 1u, 0u, 1u, 9u, 1u}) integer(x);
  integer(unsigned(name.size()));
  expected += name;
  expected += std::string("\0\0\x80\x3f", 4) + std::string("\0\0\0\x40", 4) + std::string("\0\0\x40\x40", 4) +
              std::string("\0\0\x80\x40", 4) + std::string("\0\0\xa0\x40", 4);
  CHECK(std::string(reinterpret_cast<char const*>(bytes.data()), bytes.size()) == expected);
}

TEST_CASE("from_bytes: states of something else are refused, and the message has both values") {
  auto const bytes = to_bytes(part_of(softmax));
  auto const changed = [&](std::size_t at, int to) {
    auto b = bytes;
    b[at] = std::byte(to);
    return b;
  };
  auto const to = empty_states(softmax);
  CHECK(refusal(to, changed(0, 'B')) ==
        begins() + "other first bytes than states; expected bytes of to_bytes or of write_states");
  CHECK(refusal(to, changed(8, 2)) == begins() + "format version 2; expected 1");
  CHECK(refusal(to, changed(24, 64)) == begins() + "numbers with bits 64; expected 32");
  CHECK(refusal(to, changed(32, 6)) == begins() + "the number of arrays 6; expected 5");
  CHECK(refusal(to, changed(40, 7)) == begins() + "batch extent 7; expected 1");
  CHECK(refusal(to, changed(48, 7)) == begins() + "query heads 7; expected 2");
  CHECK(refusal(to, changed(56, 1)) == begins() + "the first query 1; expected 0");
  CHECK(refusal(to, changed(64, 7)) == begins() + "queries 7; expected 3");
  CHECK(refusal(to, changed(72, 7)) == begins() + "keys 7; expected 5");
  CHECK(refusal(to, changed(80, 7)) == begins() + "value features 7; expected 2");
  CHECK(refusal(empty_states(entmax), bytes) ==
        begins() + "the kind of states (1 rows, 2 candidate sets) 1; expected 2");
  auto const sigmoid = attention(kernel::dot_product{}, normalizer::sigmoid{}, mask::causal{});
  CHECK(refusal(empty_states(sigmoid), bytes) ==
        begins() + "the normalizer attune::normalizer::softmax; expected attune::normalizer::sigmoid");
}

TEST_CASE("from_bytes: damaged candidate sets are refused before memory is allocated for them") {
  auto const states = part_of(sparsemax);
  auto const bytes = to_bytes(states);
  std::size_t const name = std::string("attune::normalizer::sparsemax").size(), poisons = 96 + name,
                    counts = poisons + 6 * 4;
  auto const to = empty_states(sparsemax);
  auto const first_count = [&](std::int64_t n) {
    auto b = bytes;
    std::memcpy(b.data() + counts, &n, sizeof n);
    return refusal(to, b);
  };
  std::int64_t stored = 0;
  std::memcpy(&stored, bytes.data() + counts, sizeof stored);
  REQUIRE(stored == std::int64_t(states.rows[0].size()));
  CHECK(first_count(-1).starts_with(begins() + "a row of -1 candidates; expected at most 5, the keys"));
  CHECK(first_count(6).starts_with(begins() + "a row of 6 candidates; expected at most 5, the keys"));
  CHECK(!first_count(stored + 1).empty());
  auto b = bytes;
  float const one = 1;
  std::memcpy(b.data() + poisons, &one, sizeof one);
  CHECK(refusal(to, b) == begins() + "a poison 1; expected 0 or NaN");
  std::size_t all = 0;
  for (auto const& row : states.rows) all += row.size();
  b = bytes;
  std::int64_t const key = 5;
  std::memcpy(b.data() + counts + 6 * 8 + all * 4, &key, sizeof key);
  CHECK(refusal(to, b) == begins() + "the key 5; expected a key from 0 to 4");
}

/// Halves of the keys through files, then finish: the bits of a merge in memory.
template <class Op>
void check_files(Op const& op) {
  problem const given;
  cpu<float> const exec{1};
  auto const in = given.in(op);
  auto const folder = std::filesystem::temp_directory_path();
  auto const first = folder / "attune_serialized_test_0.states", second = folder / "attune_serialized_test_1.states";
  auto const a = accumulate(exec, op, in, {0, 2}), b = accumulate(exec, op, in, {2, 5});
  write_states(first, a);
  write_states(second, b);
  std::vector<float> expected(12), out(12);
  finish(exec, op, in, merge(a, b), {.out = {expected, {1, 2, 3, 2}}});
  finish(exec, op, in, merge(read_states(exec, op, in, first), read_states(exec, op, in, second)),
         {.out = {out, {1, 2, 3, 2}}});
  CHECK(out == expected);
  std::filesystem::remove(first);
  std::filesystem::remove(second);
}

TEST_CASE("write_states, read_states: parts from files finish with the same bits") {
  check_files(softmax);
  check_files(adjusted);
  check_files(entmax);
}

TEST_CASE("write_states, read_states: errors name the file") {
  problem const given;
  auto const folder = std::filesystem::temp_directory_path();
  auto const none = folder / "attune_no_such_folder" / "part.states";
  CHECK(error_of([&] { write_states(none, part_of(softmax)); }) ==
        "attune::write_states: file " + none.string() +
            " has a problem: No such file or directory; expected a writable file");
  CHECK(error_of([&] {
          read_states(cpu<float>{1}, softmax, given.in(softmax), none);
        }).starts_with("attune::read_states: file " + none.string() + " has a problem: "));
  auto const cut = folder / "attune_serialized_test_cut.states";
  {
    std::ofstream(cut, std::ios::binary) << "ATTUNE";
  }
  CHECK(error_of([&] { read_states(cpu<float>{1}, softmax, given.in(softmax), cut); }) ==
        "attune::read_states: file " + cut.string() +
            " has its end at byte 6; expected 8 numbers of 1 bytes from byte 0 on: the word ATTUNEST");
  std::filesystem::remove(cut);
}

}  // namespace
}  // namespace attune::test
