// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   divided_call<T, Op> const call(all, op, in, out.extents(), no_more_facts);
//
// A call that ranks share: the whole problem, the part of this rank, and which rank sees the keys of which. Everything
// is compared on all ranks here, before any tensor is sent. Only the constructor is collective.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <attune/exec/mpi/collective.hpp>
#include <attune/exec/mpi/local_fields.hpp>
#include <attune/exec/mpi/operator_probe.hpp>
#include <attune/exec/problem.hpp>

namespace attune::exec_mpi {

/// Rows of a rank whose positions follow one another.
struct row_window {
  problem_shape p;  ///< problem_shape::window of the whole problem
  index_t local;    ///< the rank's local position of the first row
  key_interval rows() const { return {p.first_query, p.queries}; }
};

/// Where the rows of a call are: each on one rank, by the sharding of the queries, or all of them on every rank.
enum class rows_on { one_rank, every_rank };

/// The part of one rank in a call.
template <class T, class Op>
class divided_call {
 public:
  using view = tensor<T const>;
  using inputs_type = inputs<Op, view>;

  /// `rows`: the extents (B, H, own queries, Dv) of this rank's output. Throws the same attune::error on all
  /// ranks if a tensor does not fit, or if a fact differs. `more`: adds facts to compare.
  template <class Exec, class More>
  divided_call(collective_call<Exec>& all, Op const& of, inputs_type const& own_tensors, shape const& rows,
               More const& more, rows_on at = rows_on::one_rank)
      : me(all.rank()), ranks(all.size()), op(of), in(own_tensors), where_(at), counts_(all.gather(own_counts(rows))) {
    all.agree(all.agreed([&] {
      divide(all.function(), all.where, rows);
      whole = check_whole(all.function(), rows);
      return facts<Exec>(all.function(), all.where, more);
    }));
    agree_on_numbers(
        all, all.agreed([&] { return operator_probe(op, whole, [&]<field F>() { return whole_extents<F>(); }); }));
    if (at == rows_on::one_rank) sights_ = all.gather(all.agreed([&] { return own_sights(); }));
  }

  int me, ranks;  ///< the number of this rank, and of the ranks
  Op const& op;
  inputs_type const& in;
  sharding queries, keys;
  problem_shape whole;

  /// The rows of a rank.
  std::vector<row_window> windows(int rank) const {
    std::vector<row_window> all;
    for (std::size_t n = 0; n < queries.intervals(rank).size(); ++n)
      all.push_back({whole.window(queries.intervals(rank)[n]), queries.local_start(rank, n)});
    return all;
  }
  /// Whether some query of rank `of` sees some key of rank `by`.
  bool sees(int of, int by) const { return sights_[std::size_t(of) * std::size_t(ranks) + std::size_t(by)] != 0; }

  /// Whether this input has a row for each of a rank's queries. An input without positions has one for all queries.
  template <field F>
  static constexpr bool by_query = Op::uses(F) && side_of(F) != input_side::key;
  template <field F>
  static constexpr bool by_key = Op::uses(F) && side_of(F) == input_side::key;
  bool shared_by_queries(field f) const { return shared_[std::size_t(f)]; }

  /// The tensors of this rank that `chosen` accepts.
  template <class Chosen>
  rank_fields<T const> own(Chosen const& chosen) const {
    rank_fields<T const> to;
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F))
        if (chosen(F)) to[std::size_t(F)] = member<F>(in);
    });
    return to;
  }
  template <class Chosen>
  rank_fields<T const> own_keys(Chosen const& chosen) const {
    return own([&](field f) { return side_of(f) == input_side::key && chosen(f); });
  }
  rank_fields<T const> own_queries() const {
    return own([&](field f) { return travels_with_queries(f); });
  }
  bool travels_with_queries(field f) const {
    return side_of(f) != input_side::key && f != field::v0 && f != field::output_gate && !shared_by_queries(f);
  }
  /// The extents of a rank's tensors with a row per key that `chosen` accepts.
  template <class Chosen>
  field_shapes key_shapes(int rank, Chosen const& chosen) const {
    return shapes([&](field f) { return side_of(f) == input_side::key && chosen(f); }, keys.size(rank));
  }
  field_shapes key_shapes(int rank) const {
    return key_shapes(rank, [](field) { return true; });
  }
  /// The extents of a rank's tensors with a row per query, as far as row states are made of them.
  field_shapes query_shapes(int rank) const {
    return shapes([&](field f) { return travels_with_queries(f); }, queries.size(rank));
  }

  /// The inputs of the rows of a window and of the keys of interval n of a rank. rows, columns: their tensors. Tensors
  /// are absent there come from this rank.
  inputs_type part(row_window const& w, rank_fields<T const> const& rows, int key_rank, std::size_t n,
                   rank_fields<T const> const& columns) const {
    auto const intervals = keys.intervals(key_rank);
    key_interval const at = n < intervals.size() ? intervals[n] : key_interval{};
    index_t const local = n < intervals.size() ? keys.local_start(key_rank, n) : 0;
    return make_inputs<Op, view>(
        [&]<field F>() {
          auto const f = std::size_t(F);
          if constexpr (side_of(F) == input_side::key) {
            return at_positions(columns[f].absent() ? unread(member<F>(in)) : columns[f], local, at, whole.keys);
          } else {
            if (shared_by_queries(F)) return member<F>(in);
            return at_positions(rows[f].absent() ? member<F>(in) : rows[f], w.local, w.rows(), w.p.queries);
          }
        },
        in.offset, in.offsets);
  }
  /// The inputs of the rows of a window, without keys.
  inputs_type rows_alone(row_window const& w) const { return part(w, {}, me, keys.intervals(me).size(), {}); }

  /// The inputs of rank-independent rows and the own keys of interval n, with positions of the whole problem.
  inputs_type keys_at(std::size_t n, key_interval at) const {
    return make_inputs<Op, view>(
        [&]<field F>() {
          if constexpr (side_of(F) != input_side::key) return member<F>(in);
          return at_positions(member<F>(in), at.empty() ? 0 : keys.local_start(me, n), at, whole.keys);
        },
        in.offset, in.offsets);
  }

  /// Tensors of this rank with a row per query, as the rows of a window.
  template <class E>
  static tensor<E> rows_of(tensor<E> const& x, row_window const& w) {
    return at_positions(x, w.local, w.rows(), w.p.queries);
  }
  static outputs<Op, T> rows_of(outputs<Op, T> const& out, row_window const& w) {
    outputs<Op, T> to{.out = rows_of(out.out, w)};
    if constexpr (Op::has_lse) to.lse.values = rows_of(out.lse.values, w);
    if constexpr (Op::has_ground_weight) to.ground_weight = rows_of(out.ground_weight, w);
    if constexpr (Op::has_threshold) to.threshold = rows_of(out.threshold, w);
    return to;
  }
  static cotangents<Op, view> rows_of(cotangents<Op, view> const& d, row_window const& w) {
    cotangents<Op, view> to;
    to.out = rows_of(d.out, w);
    if constexpr (Op::has_lse) to.lse = rows_of(d.lse, w);
    if constexpr (Op::has_ground_weight) to.ground_weight = rows_of(d.ground_weight, w);
    return to;
  }

  /// Throws unless outputs fit the rows of this rank.
  void check_outputs(char const* function, outputs<Op, T> const& out) const {
    problem_shape p = whole;
    p.queries = queries.size(me);
    attune::detail::check_outputs(function, out, p);
  }

 private:
  static view unread(view const& x) {
    static constexpr T nothing = 0;
    return {&nothing, x.extents(), strides{}};
  }

  // Own counts: queries, keys, then the positions of each tensor that may be shared by all queries.
  static constexpr std::size_t counts = 2 + field_count;
  index_t count(int rank, std::size_t n) const { return counts_[std::size_t(rank) * counts + n]; }

  std::vector<index_t> own_counts(shape const& rows) const {
    std::vector<index_t> mine(counts, 0);
    mine[0] = rows.position;
    mine[1] = in.v.extents().position;
    for_each_field([&]<field F>() {
      if constexpr (by_query<F>) mine[2 + std::size_t(F)] = member<F>(in).extents().position;
    });
    return mine;
  }

  sharding in_order(std::size_t n) const {
    std::vector<std::vector<key_interval>> all;
    index_t next = 0;
    for (int r = 0; r < ranks; ++r) {
      all.push_back({{next, next + count(r, n)}});
      next += count(r, n);
    }
    return sharding::of(next, all);
  }
  void check_sharding(char const* function, char const* name, sharding const& s, std::string_view tensor,
                      index_t own) const {
    if (s.ranks() != ranks)
      throw error(function, name, attune::detail::text("shards of ", s.ranks(), " ranks"),
                  attune::detail::text(ranks, ", the ranks of the communicator"));
    if (s.size(me) != own)
      throw error(function, tensor, attune::detail::text("position extent ", own),
                  attune::detail::text(s.size(me), ", the positions that ", name, " gives to rank ", me));
  }
  void divide(char const* function, shards const& where, shape const& rows) {
    if (where_ == rows_on::every_rank) {
      if (where.queries)
        throw error(function, "the sharding of the queries", "a value", "no value: every rank passes all queries");
      queries = sharding::contiguous(rows.position, ranks);
    } else {
      queries = where.queries ? *where.queries : in_order(0);
      check_sharding(function, "the sharding of the queries", queries, "out", rows.position);
    }
    keys = where.keys ? *where.keys : in_order(1);
    check_sharding(function, "the sharding of the keys", keys, "v", in.v.extents().position);
    for_each_field([&]<field F>() {
      if constexpr (by_query<F>) {
        if (where_ == rows_on::every_rank) return;
        constexpr auto n = 2 + std::size_t(F);
        constexpr bool may = side_of(F) != input_side::query || shares_rows(F);
        bool all_own = true, all_one = true;
        for (int r = 0; r < ranks; ++r)
          all_own = all_own && count(r, n) == count(r, 0), all_one = all_one && count(r, n) == 1;
        shared_[std::size_t(F)] = may && all_one && !all_own;
        if (!shared_[std::size_t(F)])
          require_rows(function, name_of(F), member<F>(in).extents().position, rows.position, may);
      } else if constexpr (by_key<F>) {
        require_rows(function, name_of(F), member<F>(in).extents().position, in.v.extents().position, false);
      }
    });
  }
  static void require_rows(char const* function, char const* name, index_t got, index_t own, bool may_share) {
    if (got != own)
      throw error(function, name, attune::detail::text("position extent ", got),
                  attune::detail::text(own, ", the positions of this rank", may_share ? "; or 1 on every rank" : ""));
  }
  /// The extents of an input of the whole problem.
  template <field F>
  shape whole_extents() const {
    shape e = member<F>(in).extents();
    if (side_of(F) == input_side::key)
      e.position = keys.positions();
    else if (!shared_by_queries(F) && where_ == rows_on::one_rank)
      e.position = queries.positions();
    return e;
  }
  problem_shape check_whole(char const* function, shape const& rows) const {
    static constexpr T nothing = 0;
    auto const all = make_inputs<Op, view>([&]<field F>() { return view(&nothing, whole_extents<F>(), strides{}); },
                                           in.offset, in.offsets);
    return attune::detail::checked_problem(function, op, all,
                                           {rows.batch, rows.head, queries.positions(), rows.feature});
  }

  template <class Exec, class More>
  call_facts facts(char const* function, shards const& where, More const& more) const {
    call_facts to(function);
    to.template add_type<Exec>("the executor").add("the plan", "the number", where.plan);
    to.add("the sharding of the queries", queries).add("the sharding of the keys", keys);
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) {
        to.add(name_of(F), whole_extents<F>());
      }
    });
    to.add("out", whole.rows(whole.value_width));
    to.add("offset", "the value", whole.has_offsets() ? index_t(0) : whole.offset_of(0));
    to.add_presence("offsets", whole.has_offsets());
    for (index_t b = 0; whole.has_offsets() && b < whole.batch; ++b)
      to.add(attune::detail::text("offsets[", b, "]"), "the value", whole.offset_of(b));
    to.add_operator(op).add_mask(op.mask, whole);
    more(to);
    return to;
  }

  // Each rank looks at its own rows; then all ranks know all of it.
  std::vector<char> own_sights() const {
    int const n = ranks;
    auto const pieces = keys.pieces();
    std::vector<char> seen(std::size_t(n), 0);
    int missing = 0;
    for (int r = 0; r < n; ++r) missing += keys.size(r) > 0;
    for (key_interval const& rows : queries.intervals(me))
      for (index_t b = 0; b < whole.batch && missing > 0; ++b)
        for (index_t h = 0; h < whole.heads && missing > 0; ++h)
          for (index_t i = rows.first; i < rows.last && missing > 0; ++i) {
            mask_row const row = whole.row(b, h, i);
            std::size_t at = 0;
            for (key_interval k = mask::next(op.mask, row, 0); !k.empty() && missing > 0;
                 k = mask::next(op.mask, row, k.last)) {
              while (at < pieces.size() && pieces[at].at.last <= k.first) ++at;
              for (; at < pieces.size() && pieces[at].at.first < k.last; ++at) {
                char& found = seen[std::size_t(pieces[at].rank)];
                missing -= found == 0;
                found = 1;
                if (pieces[at].at.last > k.last) break;
              }
            }
          }
    return seen;
  }

  template <class Chosen>
  field_shapes shapes(Chosen const& chosen, index_t positions) const {
    field_shapes to;
    to.fill({0, 0, 0, 0});
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F))
        if (chosen(F)) {
          shape e = member<F>(in).extents();
          e.position = positions;
          to[std::size_t(F)] = e;
        }
    });
    return to;
  }

  rows_on where_;
  std::vector<index_t> counts_;
  std::array<bool, field_count> shared_{};
  std::vector<char> sights_;
};

}  // namespace attune::exec_mpi
