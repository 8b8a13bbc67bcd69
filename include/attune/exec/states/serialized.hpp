// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   header:  "ATTUNEST"  version  kind  bits of a number  arrays  B  H  first query  end of queries  Lk  Dv
//   normalizer  payload
//
// States as bytes, for messages and files. Integers have 64 bits; all numbers are little endian. A text is its length
// and its characters. The payload of states with an O(1) state: the arrays of row_states, one after another. The
// payload of candidate sets: B H Lq poisons, B H Lq numbers of candidates; then of all candidates the logits, the keys
// and the values.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include <attune/core/type_name.hpp>
#include <attune/exec/states.hpp>

namespace attune {

namespace detail {

/// The first bytes of states, and the version of what follows.
inline constexpr std::string_view states_magic = "ATTUNEST";
inline constexpr std::int64_t states_version = 1;
/// The kinds of states.
inline constexpr std::int64_t states_of_rows = 1, states_of_candidates = 2;

/// Writes numbers and texts behind one another.
class byte_writer {
 public:
  std::vector<std::byte> bytes;  ///< all so far
  /// Integers and floating-point numbers of 8 bytes or fewer.
  template <class N>
  void numbers(N const* from, std::size_t count) {
    static_assert(std::is_arithmetic_v<N>);
    if (count == 0) return;
    std::size_t const at = bytes.size();
    bytes.resize(at + count * sizeof(N));
    std::memcpy(bytes.data() + at, from, count * sizeof(N));
    if constexpr (std::endian::native != std::endian::little)
      for (std::size_t n = 0; n < count; ++n)
        std::reverse(bytes.data() + at + n * sizeof(N), bytes.data() + at + (n + 1) * sizeof(N));
  }
  void integer(std::int64_t x) { numbers(&x, 1); }
  void text(std::string_view words) {
    integer(std::int64_t(words.size()));
    numbers(words.data(), words.size());
  }
};

/// Reads what byte_writer wrote. Throws attune::error before it reads past the end.
class byte_reader {
 public:
  byte_reader(char const* function, std::string name, std::span<std::byte const> bytes)
      : function_(function), name_(std::move(name)), bytes_(bytes) {}
  /// The bytes that are left.
  std::size_t left() const { return bytes_.size() - at_; }
  template <class N>
  void numbers(N* to, std::size_t count, char const* what) {
    if (count > left() / sizeof(N))
      fail(attune::detail::text("its end at byte ", bytes_.size()),
           attune::detail::text(count, " numbers of ", sizeof(N), " bytes from byte ", at_, " on: ", what));
    if (count == 0) return;
    std::memcpy(to, bytes_.data() + at_, count * sizeof(N));
    at_ += count * sizeof(N);
    if constexpr (std::endian::native != std::endian::little)
      for (std::size_t n = 0; n < count; ++n) {
        auto* const bytes = reinterpret_cast<std::byte*>(to + n);
        std::reverse(bytes, bytes + sizeof(N));
      }
  }
  std::int64_t integer(char const* what) {
    std::int64_t x = 0;
    numbers(&x, 1, what);
    return x;
  }
  std::string text(char const* what) {
    std::int64_t const n = integer(what);
    if (n < 0 || std::uint64_t(n) > left())
      fail(attune::detail::text(what, " of ", n, " characters"),
           attune::detail::text("at most ", left(), ", the bytes left"));
    std::string words(std::size_t(n), '\0');
    numbers(words.data(), words.size(), what);
    return words;
  }
  /// "<function>: <name> has <found>; expected <expected>"
  [[noreturn]] void fail(std::string const& found, std::string const& expected) const {
    throw error(function_, name_, found, expected);
  }

 private:
  char const* function_;
  std::string name_;
  std::span<std::byte const> bytes_;
  std::size_t at_ = 0;
};

template <class T>
void require_storable() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "attune: states are stored as float or double: use an executor of these types");
}

/// The header of states. It must be as the reader expects it.
template <class T, class Normalizer>
void write_states_header(byte_writer& to, std::int64_t kind, bool second, problem_shape const& p) {
  require_storable<T>();
  to.numbers(states_magic.data(), states_magic.size());
  for (std::int64_t const x : {states_version, kind, std::int64_t(8 * sizeof(T)), std::int64_t(second ? 6 : 5),
                               std::int64_t(p.batch), std::int64_t(p.heads), std::int64_t(p.first_query),
                               std::int64_t(p.queries), std::int64_t(p.keys), std::int64_t(p.value_width)})
    to.integer(x);
  to.text(readable_name(typeid(Normalizer)));
}
template <class T, class Normalizer>
void read_states_header(byte_reader& from, std::int64_t kind, bool second, problem_shape const& p) {
  require_storable<T>();
  char magic[states_magic.size()];
  from.numbers(magic, sizeof magic, "the word ATTUNEST");
  if (std::string_view(magic, sizeof magic) != states_magic)
    from.fail("other first bytes than states", "bytes of to_bytes or of write_states");
  auto const demand = [&](char const* what, std::int64_t expected) {
    if (std::int64_t const got = from.integer(what); got != expected)
      from.fail(attune::detail::text(what, " ", got), attune::detail::text(expected));
  };
  demand("format version", states_version);
  demand("the kind of states (1 rows, 2 candidate sets)", kind);
  demand("numbers with bits", std::int64_t(8 * sizeof(T)));
  demand("the number of arrays", second ? 6 : 5);
  demand("batch extent", p.batch);
  demand("query heads", p.heads);
  demand("the first query", p.first_query);
  demand("queries", p.queries);
  demand("keys", p.keys);
  demand("value features", p.value_width);
  std::string const expected = readable_name(typeid(Normalizer)), got = from.text("the name of the normalizer");
  if (got != expected) from.fail("the normalizer " + got, expected);
}

inline void require_end(byte_reader const& from) {
  if (from.left() != 0)
    from.fail(attune::detail::text(from.left(), " bytes more than the states"), "nothing after the states");
}

}  // namespace detail

/// The states as bytes, in the format above: the same bytes on every machine, by g++ and clang++. O(size of states).
template <class T, class Normalizer, class Array>
std::vector<std::byte> to_bytes(row_states<T, Normalizer, Array> const& states) {
  using rows = row_states<T, Normalizer, Array>;
  detail::byte_writer to;
  detail::write_states_header<T, Normalizer>(to, detail::states_of_rows, rows::has_second, states.extents);
  rows::each_array(states, [&](Array const& x, index_t n) { to.numbers(x.data(), std::size_t(n)); });
  return std::move(to.bytes);
}
/// The same for candidate sets.
template <class T, class Normalizer>
std::vector<std::byte> to_bytes(candidate_states<T, Normalizer> const& states) {
  detail::byte_writer to;
  detail::write_states_header<T, Normalizer>(to, detail::states_of_candidates, false, states.extents);
  to.numbers(states.poisons.data(), states.poisons.size());
  for (auto const& row : states.rows) to.integer(std::int64_t(row.size()));
  for (auto const& row : states.rows)
    for (auto const& c : row) to.numbers(&c.logit, 1);
  for (auto const& row : states.rows)
    for (auto const& c : row) to.integer(std::int64_t(c.key));
  for (auto const& row : states.rows)
    for (auto const& c : row) to.numbers(c.value.data(), c.value.size());
  return std::move(to.bytes);
}

/// Reads states into `states`, which were made for the same problem: states_of<T, Op>(op, p). Throws attune::error if
/// the bytes are of another version, kind, type or normalizer, of another problem, damaged or cut off; then `states`
/// may have been partly written. `function` and `name` are for the message. The name of the normalizer is compared; its
/// parameters are not in the bytes, so give an operator with equal ones. O(size of the states).
template <class T, class Normalizer, class Array>
void from_bytes(char const* function, std::string const& name, std::span<std::byte const> bytes,
                row_states<T, Normalizer, Array>& states) {
  using rows = row_states<T, Normalizer, Array>;
  detail::byte_reader from(function, name, bytes);
  detail::read_states_header<T, Normalizer>(from, detail::states_of_rows, rows::has_second, states.extents);
  rows::each_array(states, [&](Array& x, index_t n) { from.numbers(x.data(), std::size_t(n), "an array"); });
  detail::require_end(from);
}
/// The same for candidate sets. The normalizers of `states` stay as they are.
template <class T, class Normalizer>
void from_bytes(char const* function, std::string const& name, std::span<std::byte const> bytes,
                candidate_states<T, Normalizer>& states) {
  detail::byte_reader from(function, name, bytes);
  problem_shape const& p = states.extents;
  detail::read_states_header<T, Normalizer>(from, detail::states_of_candidates, false, p);
  std::size_t const rows = states.rows.size(), width = std::size_t(p.value_width);
  from.numbers(states.poisons.data(), rows, "poisons");
  for (T const& x : states.poisons)
    if (x == x && x != T(0)) from.fail(detail::text("a poison ", double(x)), "0 or NaN");
  std::size_t left = from.left() / (sizeof(T) + sizeof(std::int64_t) + width * sizeof(T));
  for (auto& row : states.rows) {
    std::int64_t const n = from.integer("numbers of candidates");
    if (n < 0 || n > p.keys || std::uint64_t(n) > left)
      from.fail(detail::text("a row of ", n, " candidates"),
                detail::text("at most ", p.keys, ", the keys, and ", left, " in the bytes left"));
    left -= std::size_t(n);
    row.assign(std::size_t(n), {T(0), 0, std::vector<T>(width)});
  }
  for (auto& row : states.rows)
    for (auto& c : row) from.numbers(&c.logit, 1, "logits");
  for (auto& row : states.rows)
    for (auto& c : row) {
      std::int64_t const key = from.integer("keys");
      if (key < 0 || key >= p.keys)
        from.fail(detail::text("the key ", key), detail::text("a key from 0 to ", p.keys - 1));
      c.key = index_t(key);
    }
  for (auto& row : states.rows)
    for (auto& c : row) from.numbers(c.value.data(), width, "values");
  detail::require_end(from);
}

}  // namespace attune
