// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   std::cout << ask_again(op, inputs, [](auto const& in) { return candidate(their_kernel(in.q, in.k, in.v)); });
//
// A kernel that failed is called again, on parts of the inputs: which is the smallest failing call, and which weights
// does the kernel use? Every part is a call that the operator defines, so the verdict judges it like any other.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <attune/exec/problem.hpp>
#include <attune/exec/reference/forward.hpp>
#include <attune/testing/asking/smallest_part.hpp>
#include <attune/testing/asking/weights_seen.hpp>
#include <attune/testing/verdict.hpp>

namespace attune::testing {

/// Options of ask_again.
struct ask_again_options {
  verdict_options judge = {};  ///< of the verdict on each part
  double seconds = 10;         ///< no call begins that would probably end later
};

/// The answers of a kernel.
struct ask_again_report {
  bool fails = false;              ///< a call failed, now too
  call_part smallest;              ///< the smallest failing call
  int calls = 0;                   ///< how often the kernel was called
  std::vector<std::string> lines;  ///< the answers as text
  friend std::ostream& operator<<(std::ostream& to, ask_again_report const& r) {
    for (std::string const& line : r.lines) to << line << '\n';
    return to;
  }
};

namespace detail {

/// A copy of a part of a problem: elements for the kernel, doubles for the judge.
template <class Op, class E>
struct cut_problem {
  struct cut_tensor {
    shape extents{0, 0, 0, 0};
    std::vector<E> elements;
    std::vector<double> doubles;
  };
  std::array<cut_tensor, field_count> fields;
  std::optional<index_t> offset;

  /// The inputs for the kernel.
  inputs<Op, tensor<E const>> of_kernel() const {
    return make_inputs<Op, tensor<E const>>(
        [&]<field F>() {
          auto const& x = fields[std::size_t(F)];
          return x.elements.empty() ? tensor<E const>() : tensor<E const>(x.elements, x.extents);
        },
        offset);
  }
  /// The inputs for the judge.
  inputs<Op, any_tensor> of_judge() const {
    return make_inputs<Op, any_tensor>(
        [&]<field F>() {
          auto const& x = fields[std::size_t(F)];
          return x.doubles.empty() ? any_tensor() : any_tensor(tensor<double const>(x.doubles, x.extents));
        },
        offset);
  }
};

template <class Op, class E, class Kernel>
class asking {
  using cut = cut_problem<Op, E>;
  using clock = std::chrono::steady_clock;

 public:
  asking(Op const& op, inputs<Op, any_tensor> const& in, Kernel const& kernel, ask_again_options const& how)
      : op_(op), in_(in), kernel_(kernel), how_(how), p_(attune::detail::checked_inputs("ask_again", op, in)),
        start_(clock::now()) {}

  ask_again_report operator()() {
    bool const each = in_.offsets.has_value(), fixed = each || in_.offset.has_value();
    part_rules const rules{{!each, attune::detail::heads_of_inputs<Op> == 1, !each, !fixed}, fixed};
    call_part const whole{{{{0, p_.batch}, {0, p_.heads}, {0, p_.queries}, {0, p_.keys}}}};
    part_search search(whole, rules, [&](call_part const& part) { return fails(part); });
    std::optional<bool> const again = search.fails(whole);
    if (!again.has_value() || !*again) {
      report_.lines.push_back(again.has_value() ? "asked again, the same call passes" : "not asked again: " + refusal_);
      return report_;
    }
    report_.fails = true;
    call_part const few = search.fewer_heads();
    report_.smallest = search.fewer_positions(few);
    report_.lines.push_back("smallest failing call: " + search.words(report_.smallest));
    std::string const said = reason_;
    std::string passes;
    for (std::string const& one : search.passing(report_.smallest)) passes += (passes.empty() ? "  " : "; ") + one;
    if (!passes.empty()) report_.lines.push_back(passes);
    report_.lines.push_back("  its verdict: " + said);
    if constexpr (Op::uses(field::v) && attune::detail::heads_of_inputs<Op> == 1) weights(few);
    if (late_)
      report_.lines.push_back("the time for asking again (" + attune::detail::number_text(how_.seconds, 3) +
                              " s) was over");
    return report_;
  }

 private:
  double seconds() const { return std::chrono::duration<double>(clock::now() - start_).count(); }
  /// Whether a call that takes as long as the last one is likely to end in time.
  bool has_time() {
    bool const enough = seconds() + last_ <= how_.seconds;
    if (!enough) late_ = true, refusal_ = "there is no time";
    return enough;
  }

  /// The heads of a tensor that a part of the query heads reads; nothing if they would share them in another way.
  std::optional<part_span> heads_of(index_t total, part_span const& heads) const {
    if (heads.count() == p_.heads) return part_span{0, total};
    index_t const first = p_.group(heads.first, total), count = p_.group(heads.last - 1, total) - first + 1;
    for (index_t h = 0; h < heads.count(); ++h)
      if (p_.group(heads.first + h, total) - first != h * count / heads.count()) return {};
    if (heads.count() % count != 0) return {};
    return part_span{first, first + count};
  }
  /// A part of the problem. value(old, key, feature): of v.
  template <class Value>
  std::optional<cut> cut_to(call_part const& part, Value const& value) const {
    cut to;
    to.offset = in_.offset;
    bool fits = true;
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) {
        any_tensor const x = member<F>(in_);
        if (x.absent()) return;
        shape const e = x.extents();
        constexpr input_side side = side_of(F);
        auto const heads = heads_of(e.head, part.heads());
        if (!heads) return void(fits = false);
        part_span const batch = e.batch == 1 && p_.batch > 1 ? part_span{0, 1} : part.batch();
        part_span const rows = side == input_side::query || side == input_side::pair ? part.queries()
                               : side == input_side::key                             ? part.keys()
                                                                                     : part_span{0, e.position};
        part_span const columns = side == input_side::pair ? part.keys() : part_span{0, e.feature};
        auto& [extents, elements, doubles] = to.fields[std::size_t(F)];
        bool const ground = side == input_side::ground;
        part_span const batches = ground ? part_span{0, e.batch} : batch;
        extents = {batches.count(), heads->count(), rows.count(), columns.count()};
        for (index_t b = batches.first; b < batches.last; ++b)
          for (index_t h = heads->first; h < heads->last; ++h)
            for (index_t i = rows.first; i < rows.last; ++i)
              for (index_t d = columns.first; d < columns.last; ++d) {
                double const old = x(b, h, i, d);
                elements.push_back(E(arithmetic_t<E>(F == field::v ? value(old, i - rows.first, d) : old)));
                doubles.push_back(double(arithmetic_t<E>(elements.back())));
              }
      }
    });
    return fits ? std::optional<cut>(std::move(to)) : std::nullopt;
  }
  std::optional<cut> cut_to(call_part const& part) const {
    return cut_to(part, [](double x, index_t, index_t) { return x; });
  }

  /// The kernel's results; nothing if it refused.
  std::optional<candidate> compute(cut const& part) {
    double const before = seconds();
    std::optional<candidate> found;
    try {
      report_.calls += 1;
      found = kernel_(part.of_kernel());
    } catch (std::exception const& e) {  // a shape that it does not take
      refusal_ = e.what();
    }
    last_ = seconds() - before;
    return found;
  }
  part_search::answer fails(call_part const& part) {
    auto const smaller = cut_to(part);
    if (!smaller || !has_time()) return {};
    try {
      double const before = seconds();
      attune::detail::checked_inputs("ask_again", op_, smaller->of_judge());  // parameters and masks may need all of it
      auto const given = compute(*smaller);
      if (!given) return {};
      verdict_report const r = verdict(op_, smaller->of_judge(), *given, how_.judge);
      last_ = seconds() - before;
      if (r.decision == judgement::fail) reason_ = r.reasons.empty() ? "FAIL" : r.reasons[0];
      return r.decision == judgement::fail;
    } catch (error const& e) {
      refusal_ = e.what();
      return {};
    }
  }

  // ---- weights ------------------------------------------------------------------------------------------------------
  void weights(call_part const& part) {
    auto const all = cut_to(part);
    auto const right = forward(reference<double>{}, op_, all->of_judge());
    if (!plain(*all, right)) {
      report_.lines.push_back("weights not seen: the operator has no plain weights of the values");
      return;
    }
    index_t const batch = part.batch().count(), heads = part.heads().count(), rows = part.queries().count(),
                  keys = part.keys().count(), width = p_.value_width;
    std::vector<seen_weights> tables(std::size_t(batch * heads), {rows, keys, {}, {}});
    for (auto& t : tables) t.seen.resize(std::size_t(rows * keys));
    storage stored = storage::fp32;
    for (index_t first = 0; first < keys; first += width) {
      auto const one_hot = cut_to(part, [&](double, index_t j, index_t d) { return j - first == d ? 1. : 0.; });
      std::optional<candidate> const given = has_time() ? compute(*one_hot) : std::nullopt;
      if (!given || !(given->extents() == shape{batch, heads, rows, width})) {
        report_.lines.push_back("weights not seen: " + refusal_);
        return;
      }
      stored = given->stored();
      for (index_t bh = 0; bh < batch * heads; ++bh)
        for (index_t i = 0; i < rows; ++i)
          for (index_t d = 0; d < width && first + d < keys; ++d)
            tables[std::size_t(bh)].seen[std::size_t(i * keys + first + d)] =
                given->out()[std::size_t((bh * rows + i) * width + d)];
    }
    std::size_t worst = 0;
    double most = -1;
    for (std::size_t n = 0; n < tables.size(); ++n) {
      auto& t = tables[n];
      for (index_t i = 0; i < rows; ++i)
        for (index_t j = 0; j < keys; ++j) t.exact.push_back(right.heads[n].weights(i, j));
      for (std::size_t m = 0; m < t.seen.size(); ++m)
        if (!(std::fabs(t.seen[m] - t.exact[m]) <= most)) most = std::fabs(t.seen[m] - t.exact[m]), worst = n;
    }
    index_t const head = part.heads().first + index_t(worst) % heads;
    std::string const size =
        attune::detail::text("weights seen (", rows, " x ", keys, " of head ", head, ", values one-hot)");
    auto const lines = differences(tables[worst], format_of(stored).unit);
    report_.lines.push_back(
        size + (lines.empty() ? " are the exact ones: look at how values are read and results are written" : ":"));
    for (std::string const& line : lines) report_.lines.push_back("  " + line);
  }
  /// Whether out is the sum of the values with these weights.
  bool plain(cut const& all, dense_result<double> const& right) const {
    auto const in = all.of_judge();
    double worst = 0, largest = 0;
    for (std::size_t n = 0; n < right.heads.size(); ++n) {
      auto const& head = right.heads[n];
      index_t const h = right.extents.group(index_t(n) % right.extents.heads, in.v.extents().head),
                    b = index_t(n) / right.extents.heads;
      for (index_t i = 0; i < right.extents.queries; ++i)
        for (index_t d = 0; d < right.extents.value_width; ++d) {
          double sum = 0;
          for (index_t j = 0; j < right.extents.keys; ++j)
            if (head.weights(i, j) != 0) sum += head.weights(i, j) * in.v(b, h, j, d);
          worst = std::fmax(worst, std::fabs(sum - head.out(i, d)));
          largest = std::fmax(largest, std::fabs(head.out(i, d)));
        }
    }
    return worst <= 1e-9 * largest;
  }

  Op const& op_;
  inputs<Op, any_tensor> const& in_;
  Kernel const& kernel_;
  ask_again_options const& how_;
  problem_shape p_;
  clock::time_point start_;
  double last_ = 0;
  bool late_ = false;
  std::string reason_, refusal_ = "the kernel refused";
  ask_again_report report_;
};

}  // namespace detail

/// Calls a kernel that failed again, on parts of the inputs.
/// kernel(in) gets inputs<Op, tensor<E const>>, which are dense copies, and returns a candidate. It may throw a
/// std::exception for extents that it does not take: such a part is not asked. The kernel reads numbers of type
/// E; the inputs are rounded to it.
/// Errors: attune::error if the inputs do not fit the operator.
/// Complexity: about 40 verdicts, all but the first ones on small parts, and Lk / Dv calls with one-hot values.
template <class E = float, class Op, class Kernel>
ask_again_report ask_again(Op const& op, inputs<Op, any_tensor> const& in, Kernel const& kernel,
                           ask_again_options const& how = {}) {
  return detail::asking<Op, E, Kernel>(op, in, kernel, how)();
}

}  // namespace attune::testing
