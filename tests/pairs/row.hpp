// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   row_of<executor::cpu_float, choice::dot_product, choice::causal>("1")
//
// An operator of the design: what it is made of, and a drawn problem of it, run by every call. The reference runs the
// same problem in double. A call that reads a wrong element is off by as much as the numbers themselves, so what is
// allowed is generous: 2^14 roundings of the largest number.
#pragma once

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include <attune/attune.hpp>
#include <attune/float8_cache.hpp>
#include <attune/reference.hpp>
#ifdef ATTUNE_PAIRS_THRUST
#include <thrust/system/cpp/execution_policy.h>

#include <attune/thrust.hpp>
#endif

#include "calls.hpp"
#include "choices.hpp"
#include "features.hpp"
#include "rows.hpp"

namespace attune::pairs {

namespace detail {

/// The kernel of a row: the sum of its kernels, then its maps.
template <class... P>
auto kernel_of(std::tuple<P...> const& policies) {
  auto const added = [&]<std::size_t... N>(std::index_sequence<N...>) {
    auto const part = [&]<std::size_t M>() {
      using policy = std::tuple_element_t<M, std::tuple<P...>>;
      if constexpr (policy::role == policy_role::kernel)
        return std::tuple<policy>(std::get<M>(policies));
      else
        return std::tuple<>{};
    };
    return std::apply([](auto const&... k) { return (k + ...); }, std::tuple_cat(part.template operator()<N>()...));
  }(std::index_sequence_for<P...>{});
  auto const mapped = [&]<std::size_t N>(auto const& self, auto const& k) {
    if constexpr (N == sizeof...(P))
      return k;
    else if constexpr (std::tuple_element_t<N, std::tuple<P...>>::role == policy_role::score_map)
      return self.template operator()<N + 1>(self, k | std::get<N>(policies));
    else
      return self.template operator()<N + 1>(self, k);
  };
  return mapped.template operator()<0>(mapped, added);
}
/// What is not part of the kernel.
template <class P>
auto others(P const& policy) {
  if constexpr (P::role == policy_role::kernel || P::role == policy_role::score_map)
    return std::tuple<>{};
  else
    return std::tuple<P>(policy);
}
template <class... P>
auto operator_of(std::tuple<P...> const& policies) {
  auto const rest = std::apply([](auto const&... p) { return std::tuple_cat(others(p)...); }, policies);
  return std::apply([&](auto const&... p) { return attention(kernel_of(policies), p...); }, rest);
}

/// The rows of a table of a contraction.
template <class Operand>
index_t rows_of(drawn_call const& c) {
  switch (Operand::place) {
    case contraction::table_place::column:
      return 1;
    case contraction::table_place::row:
      return 3;
    case contraction::table_place::of_pair:
      return 31;
    case contraction::table_place::of_key:
      return (std::max<index_t>)(c.keys, 1);
    case contraction::table_place::of_distance:
      break;
  }
  if (!requires { Operand::table_of::rises; }) return 7;
  index_t farthest = 0;
  for (index_t b = 0; b < c.batch; ++b)
    farthest = (std::max)({farthest, std::abs(c.offset_of(b) - c.keys), std::abs(c.offset_of(b) + c.queries)});
  return 2 * farthest + 1;
}

/// Draws every table that has no numbers yet, and every parameter.
template <class Op>
void draw_numbers(Op& op, drawn_call& c) {
  [&]<class... C, int... Index>(contraction::list<C...>, std::integer_sequence<int, Index...>) {
    auto const of_contraction = [&]<class X, int N>() {
      attune::detail::for_each_operand<contraction::inner_of<X>>([&]<int, class Operand>() {
        if constexpr (Operand::side == contraction::operand_side::table) {
          auto const& owner = op.template owner<N>();
          table& x = const_cast<table&>(Operand::table_of::of(owner));
          if (x.is_set()) return;
          table_width width = table_width::any;
          for (operator_table const& listed : listed_tables(op))
            if (listed.at == &x) width = listed.width;
          bool const narrow = width == table_width::one || width == table_width::any;
          bool const of_features = X::uses(field::q) || !narrow;
          x = c.drawn_table(rows_of<Operand>(c), of_features ? c.width : 1);
        }
      });
    };
    (of_contraction.template operator()<C, Index>(), ...);
  }(typename Op::contractions{}, std::make_integer_sequence<int, Op::contractions::size>{});
  for (operator_parameter const& listed : listed_parameters(op))
    if (listed.at->is_set() || c.chance(0.5)) const_cast<parameter&>(*listed.at) = c.drawn_parameter(listed.values);
}

}  // namespace detail

template <executor Second, class... Choices>
struct row_of {
  using Op = decltype(detail::operator_of(std::tuple<policy_of<Choices>...>{std::declval<policy_of<Choices>>()...}));
  using view = tensor<double const>;
  static constexpr bool has_rotary = [] {
    return []<class... C>(contraction::list<C...>) {
      return (false || ... || contraction::Rotary<contraction::inner_of<C>>);
    }(typename Op::contractions{});
  }();
  static constexpr wishes wanted() {
    wishes w;
    for_each_field([&]<field F>() { w.reads[std::size_t(F)] = Op::uses(F); });
    w.rotary = has_rotary;
    return w;
  }
  static constexpr number_grid grid = Second == executor::cpu_bfloat16   ? number_grid::bfloat16
                                      : Second == executor::cpu_float16  ? number_grid::float16
                                      : Second == executor::float8_cache ? number_grid::float8
                                                                         : number_grid::floats;

  explicit row_of(std::uint64_t seed, run_record& to) : c(seed, wanted(), grid), op(make(c)), record(to) {}
  static Op make(drawn_call& c) {
    Op made = detail::operator_of(std::tuple<policy_of<Choices>...>{Choices::make(c)...});
    detail::draw_numbers(made, c);
    return made;
  }

  /// The features of the row, and the calls that it makes.
  static design_row described(int number) {
    design_row r;
    r.number = number;
    ((r.text += std::string(r.text.empty() ? "" : " ") + Choices::text), ...);
    r.features = features_of_operator<Op>();
    for (std::size_t n = 0; n < call_count; ++n)
      if ((all_calls[n].on == executor::cpu_double || all_calls[n].on == Second) && (accepted_calls<Op> >> n & 1) != 0)
        r.calls.insert(all_calls[n].name);
    r.run = &run;
    return r;
  }
  static void run(std::uint64_t seed, run_record& record) {
    row_of r(seed, record);
    record.facts = r.c.drawn;
    r.all();
  }

 private:
  template <class View>
  inputs<Op, View> in() const {
    return make_inputs<Op, View>([&]<field F>() { return c.fields[std::size_t(F)].template view<View>(); }, c.offset,
                                 c.offsets());
  }

  template <class T>
  struct results {
    shape out_extents, rows;
    std::vector<T> out;
    std::vector<arithmetic_t<T>> lse, ground_weight, threshold;
    explicit results(drawn_call const& c)
        : out_extents(c.out()), rows{c.batch, c.heads, c.queries, 1},
          out(std::size_t(out_extents.size()), T(std::numeric_limits<float>::quiet_NaN())),
          lse(std::size_t(rows.size()), std::numeric_limits<arithmetic_t<T>>::quiet_NaN()), ground_weight(lse),
          threshold(lse) {}
    outputs<Op, T> views() {
      outputs<Op, T> to{.out = tensor<T>(out, out_extents)};
      if constexpr (Op::has_lse) to.lse = natural_lse(tensor<arithmetic_t<T>>(lse, rows));
      if constexpr (Op::has_ground_weight) to.ground_weight = tensor<arithmetic_t<T>>(ground_weight, rows);
      if constexpr (Op::has_threshold) to.threshold = tensor<arithmetic_t<T>>(threshold, rows);
      return to;
    }
  };
  template <class T>
  static constexpr double allowed = 0x1p14 * double(std::numeric_limits<T>::epsilon());

  /// Numbers against the reference's: the largest error, where it is too large.
  template <class Got, class Right>
  void compare(char const* call, std::string const& what, std::size_t n, Got const& got, Right const& right,
               double relative, double scale) {
    for (std::size_t i = 0; i < n; ++i) record.bits[call].add(double(got(i)));
    double largest = scale, worst = 0;
    std::size_t where = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (std::isfinite(double(right(i)))) largest = std::fmax(largest, std::fabs(double(right(i))));
    for (std::size_t i = 0; i < n; ++i) {
      double const a = double(got(i)), b = double(right(i));
      double const error = a == b || (std::isnan(a) && std::isnan(b)) ? 0 : std::fabs(a - b);
      if (!(error <= worst)) worst = error, where = i;
    }
    if (worst <= relative * largest) return;
    std::ostringstream text;
    text << call << ": " << what << " " << where << " is " << double(got(where)) << " and not " << double(right(where));
    record.failures.push_back(text.str());
  }
  template <class T>
  void compare_results(char const* call, results<T> const& r) {
    using number = arithmetic_t<T>;
    double const few = std::is_same_v<T, number> ? 0 : std::is_same_v<T, bfloat16> ? 0x1p-8 : 0x1p-10;
    std::size_t const dv = std::size_t(c.value_width), lq = std::size_t(c.queries);
    auto const of_row = [&](auto member) {
      return [this, member, lq](std::size_t n) { return (exact.heads[n / lq].*member)(index_t(n % lq)); };
    };
    using head = dense_head<double>;
    // A row at a time: numbers of one row are of one size.
    for (std::size_t row = 0; row < r.lse.size(); ++row)
      compare(
          call, "row " + std::to_string(row) + " of out, feature", dv,
          [&](std::size_t d) { return float_or_double(r.out[row * dv + d]); },
          [&](std::size_t d) { return stored<T>(exact.heads[row / lq].out(index_t(row % lq), index_t(d))); },
          allowed<number> + few, 1);
    auto const rows = [&](char const* name, auto const& got, auto member) {
      compare(call, name, got.size(), [&](std::size_t n) { return got[n]; }, of_row(member), allowed<number>, 1);
    };
    if constexpr (Op::has_lse) rows("lse", r.lse, &head::lse);
    if constexpr (Op::has_ground_weight) rows("ground weight", r.ground_weight, &head::ground_weight);
    if constexpr (Op::has_threshold) rows("threshold", r.threshold, &head::threshold);
  }
  /// Numbers beyond the largest float16 are infinite there.
  template <class T>
  static double stored(double x) {
    return std::is_same_v<T, float16> && std::fabs(x) >= 65520 ? std::copysign(INFINITY, x) : x;
  }
  template <class T>
  static double float_or_double(T const& x) {
    if constexpr (std::is_same_v<T, double>)
      return x;
    else
      return double(float(x));
  }

  /// Runs a call of outputs, if the operator has it, in three of four problems.
  template <class T, class Run>
  void outputs_of(executor on, call what, Run const& compute) {
    made(on, what, [&](char const* name) {
      results<T> r(c);
      compute(r.views());
      compare_results(name, r);
    });
  }
  template <class Run>
  void made(executor on, call what, Run const& compute) {
    // Logits that are equal up to rounding: each executor may select another one.
    bool const wide = on == executor::cpu_double || on == executor::thrust_double;
    if (closest_choice < (wide ? 0x1p-36 : 0x1p-10)) return;
    for (std::size_t n = 0; n < call_count; ++n)
      if (all_calls[n].on == on && all_calls[n].what == what && (accepted_calls<Op> >> n & 1) != 0 && c.chance(0.75)) {
        record.calls.insert(all_calls[n].name);
        compute(all_calls[n].name);
      }
  }
  template <class T>
  void compare_gradients(char const* call, dense_gradients<T> const& g) {
    double largest = 1;
    each_gradient(exact_gradients, [&](std::string const&, gradient_array<double> const& x) {
      for (double const y : x.values) largest = std::fmax(largest, std::fabs(y));
    });
    std::vector<gradient_array<double> const*> right;
    each_gradient(exact_gradients, [&](std::string const&, gradient_array<double> const& x) { right.push_back(&x); });
    std::size_t at = 0;
    each_gradient(g, [&](std::string const& name, gradient_array<T> const& x) {
      gradient_array<double> const& y = *right[at++];
      if (!(x.extents == y.extents))
        record.failures.push_back(std::string(call) + ": the shape of the gradient by " + name);
      else
        compare(
            call, "gradient by " + name, x.values.size(), [&](std::size_t n) { return x.values[n]; },
            [&](std::size_t n) { return y.values[n]; }, allowed<T>, largest);
    });
  }
  template <class T, class Visit>
  static void each_gradient(dense_gradients<T> const& g, Visit const& visit) {
    for (std::size_t f = 0; f < field_count; ++f) visit(name_of(field(f)), g.fields[f]);
    for (auto const& x : g.parameters) {
      visit(x.path, x.values);
      visit(x.path + ".x", x.x);
      visit(x.path + ".weight", x.weight);
      visit(x.path + ".bias", x.bias);
    }
    for (auto const& x : g.tables) visit(x.path, x.values);
  }

  template <class T>
  cotangents<Op, tensor<T const>> by() const {
    auto const pick = [](std::vector<double> const& d, std::vector<float> const& f) -> std::vector<T> const& {
      if constexpr (std::is_same_v<T, double>)
        return d;
      else
        return f;
    };
    cotangents<Op, tensor<T const>> d;
    d.out = tensor<T const>(pick(by_out, by_out_floats), c.out());
    shape const rows{c.batch, c.heads, c.queries, 1};
    if constexpr (Op::has_lse) d.lse = tensor<T const>(pick(by_row, by_row_floats), rows);
    if constexpr (Op::has_ground_weight) d.ground_weight = tensor<T const>(pick(by_row, by_row_floats), rows);
    return d;
  }

  void all() {
    exact = forward(reference<double>{}, op, in<any_tensor>(), c.out());
    if constexpr (Op::normalizer_is.threshold == threshold_rule::selection) find_closest_choice();
    by_out = c.numbers(c.out().size());
    by_row = c.numbers(c.batch * c.heads * c.queries);
    if constexpr (Op::has_lse)
      for (std::size_t n = 0; n < by_row.size(); ++n)  // an lse of a row without a mass does not move
        if (!std::isfinite(exact.heads[n / std::size_t(c.queries)].lse(index_t(n % std::size_t(c.queries)))))
          by_row[n] = 0;
    by_out_floats.assign(by_out.begin(), by_out.end());
    by_row_floats.assign(by_row.begin(), by_row.end());
    if constexpr (tells_queries<Op>) {
      cotangents<Op, any_tensor> d;
      auto const b = by<double>();
      d.out = b.out;
      if constexpr (Op::has_lse) d.lse = b.lse;
      if constexpr (Op::has_ground_weight) d.ground_weight = b.ground_weight;
      exact_gradients = vjp(reference<double>{}, op, in<any_tensor>(), d);
    }
    cpu<double> const exec{serial{}};
    outputs_of<double>(executor::cpu_double, call::forward, [&](auto const& to) { forward(exec, op, in<view>(), to); });
    if constexpr (decodes<Op>) {
      outputs_of<double>(executor::cpu_double, call::decode, [&](auto const& to) { decode(exec, op, in<view>(), to); });
      outputs_of<double>(executor::cpu_double, call::paged_decode, [&](auto const& to) { paged(exec, to); });
    }
    if constexpr (has_states<Op>)
      outputs_of<double>(executor::cpu_double, call::split, [&](auto const& to) {
        index_t const cut = c.keys / 3;
        finish(exec, op, in<view>(),
               merge(accumulate(exec, op, in<view>(), {cut, c.keys}), accumulate(exec, op, in<view>(), {0, cut})), to);
      });
    if constexpr (tells_queries<Op>) {
      made(executor::cpu_double, call::vjp,
           [&](char const* name) { compare_gradients(name, vjp(exec, op, in<view>(), by<double>())); });
      made(executor::cpu_double, call::statistics, [&](char const* name) { compare_statistics(name, exec); });
    }
    if constexpr (has_jvp<Op>)
      made(executor::cpu_double, call::jvp, [&](char const* name) { compare_direction(name, exec); });
    second();
  }

  /// The smallest difference of a logit that is selected from one that is not.
  void find_closest_choice() {
    for (dense_head<double> const& head : exact.heads)
      for (index_t i = 0; i < c.queries; ++i) {
        double last = INFINITY, next = -INFINITY;
        for (index_t j = 0; j < c.keys; ++j)
          if (head.visible(i, j) && head.weights(i, j) != 0)
            last = std::fmin(last, head.logits(i, j));
          else if (head.visible(i, j))
            next = std::fmax(next, head.logits(i, j));
        if (std::isfinite(last) && std::isfinite(next))
          closest_choice = std::fmin(closest_choice, (last - next) / (1 + std::fabs(last)));
      }
  }

  void second() {
    if constexpr (Second == executor::cpu_float) {
      cpu<float> const exec{serial{}};
      using floats = tensor<float const>;
      outputs_of<float>(Second, call::forward, [&](auto const& to) { forward(exec, op, in<floats>(), to); });
      if constexpr (decodes<Op>)
        outputs_of<float>(Second, call::decode, [&](auto const& to) { decode(exec, op, in<floats>(), to); });
      if constexpr (tells_queries<Op>)
        made(Second, call::vjp,
             [&](char const* name) { compare_gradients(name, vjp(exec, op, in<floats>(), by<float>())); });
    } else if constexpr (Second == executor::cpu_bfloat16 || Second == executor::cpu_float16) {
      using S = std::conditional_t<Second == executor::cpu_bfloat16, bfloat16, float16>;
      few_bits<S, tensor<S const>>(cpu<S>{serial{}}, in<tensor<S const>>());
    } else if constexpr (Second == executor::float8_cache) {
      using coded = float8_view<float, float8_e4m3fn>;
      auto const codes = make_inputs<Op, coded>(
          [&]<field F>() {
            drawn_input const& x = c.fields[std::size_t(F)];
            if (side_of(F) != input_side::key) return coded(x.template view<tensor<float const>>());
            return coded(x.of(x.codes), 1.f);
          },
          c.offset, c.offsets());
      few_bits<float, coded>(cpu_float8_cache<float8_e4m3fn>(cpu<float>{serial{}}), codes);
#ifdef ATTUNE_PAIRS_THRUST
    } else if constexpr (Second == executor::thrust_double) {
      auto const exec = thrust_on<double>(thrust::cpp::par);
      outputs_of<double>(Second, call::forward, [&](auto const& to) { forward(exec, op, in<view>(), to); });
      if constexpr (tells_queries<Op>)
        made(Second, call::vjp,
             [&](char const* name) { compare_gradients(name, vjp(exec, op, in<view>(), by<double>())); });
#endif
    }
  }
  template <class S, class View, class Exec>
  void few_bits(Exec const& exec, inputs<Op, View> const& read) {
    if constexpr (forwards_few_bits<Op>)
      outputs_of<S>(Second, call::forward, [&](auto const& to) { forward(exec, op, read, to); });
    if constexpr (decodes_few_bits<Op>)
      outputs_of<S>(Second, call::decode, [&](auto const& to) { decode(exec, op, read, to); });
  }

  /// The keys in pages, in another order than that of the sequences.
  void paged(cpu<double> const& exec, outputs<Op, double> const& to) {
    index_t size = (std::max<index_t>)(c.keys, 1);
    for (index_t const n : {2, 3, 5, 7})
      if (c.keys > 0 && c.keys % n == 0) size = c.keys / n;
    index_t const each = c.keys / size, pages = (std::max<index_t>)(each * c.batch, 1);
    std::vector<std::int32_t> numbers;
    for (index_t n = 0; n < each * c.batch; ++n) numbers.push_back(std::int32_t(pages - 1 - n));
    std::deque<std::vector<double>> memory;
    auto const read = make_inputs<Op, view>(
        [&]<field F>() -> view {
          drawn_input const& x = c.fields[std::size_t(F)];
          if (side_of(F) != input_side::key) return x.template view<view>();
          shape const e{pages, x.extents.head, size, x.extents.feature};
          std::vector<double>& m = memory.emplace_back(std::size_t(e.size()));
          tensor<double> const page(m, e);
          for (index_t b = 0; b < c.batch; ++b)
            for (index_t h = 0; h < e.head; ++h)
              for (index_t j = 0; j < c.keys; ++j)
                for (index_t d = 0; d < e.feature; ++d)
                  page(numbers[std::size_t(b * each + j / size)], h, j % size, d) = x.at(b, h, j, d);
          return tensor<double const>(m, e);
        },
        c.offset, c.offsets());
    decode(exec, op, read, page_table(numbers, c.batch), to);
  }

  void compare_statistics(char const* call, cpu<double> const& exec) {
    results<double> r(c);
    auto const saved = forward_and_save(exec, op, in<view>(), r.views());
    compare_results(call, r);
    statistics_request const wanted{.entropy = true, .columns = true};
    auto const got = statistics(exec, op, in<view>(), saved, wanted);
    auto const right = statistics(exact, wanted);
    auto const one = [&](char const* name, auto const& x, auto const& y) {
      compare(
          call, name, y.size(), [&](std::size_t n) { return x[n]; }, [&](std::size_t n) { return y[n]; },
          allowed<double>, 1);
    };
    one("highest logit", got.highest_logit, right.highest_logit);
    one("mean logit", got.mean_logit, right.mean_logit);
    one("scored keys", got.scored, right.scored);
    one("highest weight", got.highest_weight, right.highest_weight);
    one("mass", got.mass, right.mass);
    one("weight of the first key", got.first_key, right.first_key);
    one("ground weight", got.ground_weight, right.ground_weight);
    one("entropy", got.entropy, right.entropy);
    one("sums of columns", got.columns, right.columns);
  }

  /// <d, J x> = <J^T d, x> for a direction x of everything that moves.
  void compare_direction(char const* name, cpu<double> const& exec) {
    if constexpr (has_jvp<Op>) {
      double expected = 0, size = 0, got = 0;
      auto const add = [&](double x) { expected += x, size += std::fabs(x); };
      policy_direction direction;
      auto const parameters = listed_parameters(op);
      for (std::size_t n = 0; n < parameters.size(); ++n) {
        double const x = c.random();
        direction.parameters.push_back({parameters[n].path(), x});
        for (double const g : exact_gradients.parameters[n].values.values) add(x * g);
      }
      auto const tables = listed_tables(op);
      for (std::size_t n = 0; n < tables.size(); ++n) {
        auto const& x = c.numbers(tables[n].at->extents().size());
        direction.tables.push_back({tables[n].path(), table(tensor<double const>(x, tables[n].at->extents()))});
        for (std::size_t e = 0; e < x.size(); ++e) add(x[e] * exact_gradients.tables[n].values.values[e]);
      }
      auto const moving = make_inputs<Op, moving_tensor<double>>(
          [&]<field F>() {
            drawn_input const& x = c.fields[std::size_t(F)];
            auto const& along = c.numbers(x.extents.size());
            for (std::size_t e = 0; e < along.size(); ++e) add(along[e] * exact_gradients.of(F).values[e]);
            return moving_tensor<double>(x.template view<view>(), tensor<double const>(along, x.extents));
          },
          c.offset, c.offsets());
      auto const r = jvp(exec, op, moving, direction);
      for (auto const* x : {&r.out.values, &r.out_along.values, &r.lse.values, &r.lse_along.values})
        record.bits[name].add(*x);
      auto const pair = [&](gradient_array<double> const& x, std::vector<double> const& d) {
        for (std::size_t n = 0; n < x.values.size(); ++n)
          if (d[n] != 0) got += x.values[n] * d[n];
      };
      pair(r.out_along, by_out);
      if constexpr (Op::has_lse) pair(r.lse_along, by_row);
      if constexpr (Op::has_ground_weight) pair(r.ground_weight_along, by_row);
      compare(
          name, "product with the direction", 1, [&](std::size_t) { return got; },
          [&](std::size_t) { return expected; }, allowed<double>, 1 + size);
    }
  }

  drawn_call c;
  Op op;
  run_record& record;
  dense_result<double> exact;
  dense_gradients<double> exact_gradients;
  std::vector<double> by_out, by_row;
  double closest_choice = INFINITY;
  std::vector<float> by_out_floats, by_row_floats;
};

}  // namespace attune::pairs
