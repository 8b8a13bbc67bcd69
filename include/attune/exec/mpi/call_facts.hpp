// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   mpi::call_facts facts("forward");   facts.add("q", "batch extent", 2).add("keys", of_keys).add_operator(op);
//
// The facts of a call, as texts that ranks compare (exec/mpi/agree.hpp).
#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <attune/core/number_text.hpp>
#include <attune/core/type_name.hpp>
#include <attune/exec/mpi/sharding.hpp>
#include <attune/exec/problem_shape.hpp>
#include <attune/operators/listing.hpp>
#include <attune/version.hpp>

namespace attune::mpi {

namespace detail {

/// FNV-1a of numbers, by their bits: equal for equal numbers in equal order.
class number_hash {
 public:
  void add(std::uint64_t bits) {
    for (int n = 0; n < 8; ++n) state_ = (state_ ^ ((bits >> (8 * n)) & 0xff)) * 0x100000001b3u;
  }
  void add(double x) { add(std::bit_cast<std::uint64_t>(x)); }
  void add(index_t x) { add(std::uint64_t(x)); }
  std::string text() const {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(state_));
    return digits;
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

}  // namespace detail

/// One fact about a call: "<argument> on rank 2 has <property> <value>".
struct call_fact {
  std::string argument,  ///< "q"
      property,          ///< "batch extent"; may be empty
      value;             ///< "2"
  friend bool operator==(call_fact const&, call_fact const&) = default;
};

/// Facts that must be the same on all ranks, in the order in which they are compared. The first three are the name of
/// the function, the version of attune and how numbers are stored.
class call_facts {
 public:
  /// The facts of a call of `function`.
  explicit call_facts(std::string_view function) : function_(function) {
    add("the call", "name", function);
    add("the program", "attune",
        attune::detail::text(ATTUNE_VERSION_MAJOR, ".", ATTUNE_VERSION_MINOR, ".", ATTUNE_VERSION_PATCH));
    add("the machine", "numbers stored as",
        attune::detail::text(std::endian::native == std::endian::little ? "little" : "big", " endian, indices of ",
                             sizeof(index_t), " bytes"));
  }

  /// The name of the function.
  std::string const& function() const { return function_; }
  /// All facts so far.
  std::vector<call_fact> const& all() const { return facts_; }

  /// A fact as a text.
  call_facts& add(std::string_view argument, std::string_view property, std::string_view value) {
    facts_.push_back({std::string(argument), std::string(property), std::string(value)});
    return *this;
  }
  /// An integer or an enumeration.
  template <class N>
    requires(std::is_integral_v<N> || std::is_enum_v<N>)
  call_facts& add(std::string_view argument, std::string_view property, N value) {
    return add(argument, property, std::to_string(static_cast<long long>(value)));
  }
  /// A real number; compared with all its digits.
  call_facts& add(std::string_view argument, std::string_view property, double value) {
    return add(argument, property, std::string_view(attune::detail::number_text(value, 17)));
  }
  /// Extents.
  call_facts& add(std::string_view argument, shape const& extents) {
    return add(argument, "shape", std::string_view(attune::to_string(extents)));
  }
  /// A sharding: the number of positions, and the positions of each rank. `argument`: "the sharding of the keys".
  call_facts& add(std::string_view argument, sharding const& s) {
    add(argument, "a number of positions,", s.positions());
    add(argument, "a number of ranks,", s.ranks());
    for (int r = 0; r < s.ranks(); ++r)
      add(argument, attune::detail::text("for rank ", r, " the positions"), std::string_view(to_string(s, r)));
    return *this;
  }
  /// Whether an optional argument is given.
  call_facts& add_presence(std::string_view argument, bool given) {
    return add(argument, "", given ? "a value" : "no value");
  }
  /// A type. `argument`: "the executor".
  template <class T>
  call_facts& add_type(std::string_view argument) {
    return add(argument, "the type", std::string_view(attune::detail::readable_name(typeid(T))));
  }

  /// An operator: its type, its parameters and its tables, number by number (by a hash). Of projections and moving
  /// averages, the kind and the extents. O(numbers of the parameters and tables).
  template <class Op>
  call_facts& add_operator(Op const& op, std::string_view name = "the operator") {
    add_type<Op>(name);
    for (operator_parameter const& p : listed_parameters(op)) {
      std::string const argument = "parameter " + p.path();
      add(argument, "the value",
          std::string_view(!p.at->is_set()        ? "of its default"
                           : p.at->is_number()    ? attune::detail::number_text(p.at->at(0, 0, 0), 17)
                           : p.at->is_average()   ? "of a moving average"
                           : p.at->is_projected() ? "of a projection"
                                                  : "of a view"));
      if (!p.at->is_set() || p.at->is_number()) continue;
      shape const e = p.at->extents();
      add(argument, e);
      if (!p.at->is_projected() && !p.at->is_average())
        add_numbers(argument, e, [&](index_t b, index_t h, index_t i, index_t) { return p.at->at(b, h, i); });
    }
    for (operator_table const& t : listed_tables(op)) {
      std::string const argument = "table " + t.path();
      add_presence(argument, t.at->is_set());
      if (!t.at->is_set()) continue;
      add(argument, t.at->extents());
      add_numbers(argument, t.at->extents(), *t.at);
    }
    return *this;
  }

  /// A mask on a whole problem: its type, and which keys the rows see. Compares up to about 4,096 rows, spread evenly,
  /// with the first and the last query of each head.
  template <class Mask>
  call_facts& add_mask(Mask const& mask, problem_shape const& p) {
    add_type<Mask>("the mask");
    if (p.batch == 0 || p.heads == 0 || p.queries == 0 || p.keys == 0) return *this;
    index_t const step = (std::max)(index_t(1), p.batch * p.heads * p.queries / 4096);
    detail::number_hash hash;
    for (index_t b = 0; b < p.batch; ++b)
      for (index_t h = 0; h < p.heads; ++h)
        for (index_t i = 0;; i = (std::min)(i + step, p.queries - 1)) {
          mask_row const row = p.row(b, h, i);
          for (key_interval k = mask::next(mask, row, 0); !k.empty(); k = mask::next(mask, row, k.last))
            hash.add(k.first), hash.add(k.last);
          hash.add(index_t(-1));
          if (i == p.queries - 1) break;
        }
    return add("the mask", "visible keys with the hash", std::string_view(hash.text()));
  }

 private:
  template <class Numbers>
  void add_numbers(std::string const& argument, shape const& e, Numbers const& at) {
    detail::number_hash hash;
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i)
          for (index_t d = 0; d < e.feature; ++d) hash.add(double(at(b, h, i, d)));
    add(argument, "numbers with the hash", std::string_view(hash.text()));
  }

  std::string function_;
  std::vector<call_fact> facts_;
};

}  // namespace attune::mpi
