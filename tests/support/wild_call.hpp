// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Calls as careless callers make them, by every entry point: each computes what the reference computes, or throws
// attune::error before it writes anything.
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/drawn_problem.hpp>

#include "wild_tensor.hpp"

namespace attune::test {

/// How often each thing happened: a test that always throws, or never, tests nothing.
struct tally_of_calls {
  int computed = 0, refused = 0;
  std::string fault;  ///< of the first call that did neither
};

/// The tensors of one call of an operator, one or two of which are not what they should be.
template <class Op>
class wild_call {
  using view = tensor<float const>;
  using fused = cpu<float>;
  static constexpr std::size_t fields = field_count;

 public:
  explicit wild_call(std::uint64_t seed) : random_(seed) {
    testing::problem_extents e;
    e.batch = random_.between(1, 2);
    e.key_heads = random_.between(1, 2);
    e.heads = e.key_heads * random_.between(1, 2);
    e.value_heads = random_.chance(0.5) ? e.key_heads : 1;
    e.queries = random_.chance(0.05) ? 0 : random_.between(1, 6);
    e.keys = random_.chance(0.05) ? 0 : random_.chance(0.2) ? random_.between(60, 75) : random_.between(1, 9);
    e.width = random_.between(1, 5);
    e.value_width = random_.between(1, 5);
    e.gate_width = random_.between(1, 5);
    std::vector<int> used;
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) used.push_back(int(F));
    });
    // One tensor in two calls out of three: an input, a cotangent (20 to 22), a direction (40 and on) or an output (30
    // to 33).
    int const kind = int(random_.between(0, 5));
    int const victim = kind < 2    ? used[std::size_t(random_.between(0, index(used.size()) - 1))]
                       : kind == 2 ? int(random_.between(20, 22))
                       : kind == 3 ? int(random_.between(30, 33))
                                   : -1;
    auto const what = mishap(random_.between(1, 7));
    auto const of = [&](int place) { return place == victim ? what : mishap::none; };
    for (int f : used) {
      inputs_[std::size_t(f)] = wild_tensor(testing::extents_of(field(f), e), of(f), false, random_);
      bool const still = random_.chance(0.3);
      along_[std::size_t(f)] =
          wild_tensor(testing::extents_of(field(f), e), still ? mishap::absent : mishap::none, false, random_);
    }
    if (victim >= 0 && victim < int(fields) &&
        random_.chance(0.5))  // a direction that goes wrong with its tensor, or alone
      along_[std::size_t(victim)] = wild_tensor(testing::extents_of(field(victim), e), what, false, random_);
    shape const out = testing::extents_of(field::output_gate, e), row{e.batch, e.heads, e.queries, 1};
    by_out_ = wild_tensor(out, of(20), false, random_);
    by_lse_ = wild_tensor(row, random_.chance(0.3) ? mishap::absent : of(21), false, random_);
    by_ground_weight_ = wild_tensor(row, random_.chance(0.3) ? mishap::absent : of(22), false, random_);
    out_ = wild_tensor(out, of(30), true, random_);
    lse_ = wild_tensor(row, random_.chance(0.5) ? mishap::absent : of(31), true, random_);
    ground_weight_ = wild_tensor(row, random_.chance(0.5) ? mishap::absent : of(32), true, random_);
    threshold_ = wild_tensor(row, random_.chance(0.5) ? mishap::absent : of(33), true, random_);
    if (random_.chance(0.2)) offset_ = random_.between(-10, 10);
    if (random_.chance(0.02))
      offset_ = random_.pick<index_t>(
          {index_t(1) << 40, (std::numeric_limits<index_t>::max)(), (std::numeric_limits<index_t>::min)()});
    first_ = random_.between(0, e.keys), second_ = random_.between(first_, e.keys);
    if (random_.chance(0.1))
      second_ = random_.pick<index_t>({-1, first_ - 1, e.keys + 1, (std::numeric_limits<index_t>::max)()});
  }

  void forward(Op const& op, tally_of_calls& to) {
    writes(to, [&] { attune::forward(exec(), op, in<view>(), outs()); }, [&] { compare_outputs(op, to); });
  }
  void decode(Op const& op, tally_of_calls& to) {
    writes(to, [&] { attune::decode(exec(), op, in<view>(), outs()); }, [&] { compare_outputs(op, to); });
  }
  void forward_and_save(Op const& op, tally_of_calls& to) {
    writes(
        to, [&] { std::ignore = attune::forward_and_save(exec(), op, in<view>(), outs()); },
        [&] { compare_outputs(op, to); });
  }
  /// Three intervals of keys, sometimes not intervals.
  void accumulate_and_finish(Op const& op, tally_of_calls& to) {
    writes(
        to,
        [&] {
          index_t const keys = in<view>().v.extents().position;
          auto states = attune::accumulate(exec(), op, in<view>(), {second_, keys});
          states = merge(std::move(states), attune::accumulate(exec(), op, in<view>(), {0, first_}));
          states = merge(std::move(states), attune::accumulate(exec(), op, in<view>(), {first_, second_}));
          attune::finish(exec(), op, in<view>(), states, outs());
        },
        [&] { compare_outputs(op, to); });
  }
  /// With rows of another call now and then.
  void statistics(Op const& op, tally_of_calls& to, wild_call& other) {
    std::optional<row_statistics<float>> got;
    computes(
        to,
        [&] {
          wild_call& from = random_.chance(0.2) ? other : *this;
          auto const saved = attune::forward_and_save(exec(), op, from.template in<view>(), from.outs());
          got = attune::statistics(exec(), op, in<view>(), saved, {.entropy = true, .columns = true});
          if (&from != this) got.reset();
        },
        [&] {
          if (!got) return;
          auto const right =
              attune::statistics(attune::forward(reference<double>{}, op, in<any_tensor>()), {.entropy = true});
          same(to, "mass", got->mass, right.mass);
          same(to, "highest logit", got->highest_logit, right.highest_logit);
        });
  }
  void vjp(Op const& op, tally_of_calls& to) {
    std::optional<dense_gradients<float>> got;
    computes(
        to, [&] { got = random_.chance(0.5) ? attune::vjp(exec(), op, in<view>(), by<view>()) : saved_vjp(op); },
        [&] {
          auto const right = attune::vjp(reference<double>{}, op, in<any_tensor>(), by<any_tensor>());
          for (int f = 0; f < int(fields); ++f)
            same(to, "gradient", got->of(field(f)).values, right.of(field(f)).values);
        });
  }
  void jvp(Op const& op, tally_of_calls& to) {
    std::optional<directional_result<float>> got;
    computes(
        to,
        [&] {
          got = attune::jvp(exec(), op,
                            make_inputs<Op, moving_tensor<float>>(
                                [&]<field F>() {
                                  return moving_tensor<float>(inputs_[std::size_t(F)].read(),
                                                              along_[std::size_t(F)].read());
                                },
                                offset_));
        },
        [&] {
          auto const right = attune::forward(reference<double>{}, op, in<any_tensor>());
          std::vector<double> all;
          for (auto const& head : right.heads)
            for (index_t n = 0; n < head.out.size(); ++n) all.push_back(head.out.data()[n]);
          same(to, "out", got->out.values, all);
        });
  }

 private:
  fused exec() const { return fused{1}; }
  template <class View>
  inputs<Op, View> in() {
    return make_inputs<Op, View>([&]<field F>() { return View(inputs_[std::size_t(F)].read()); }, offset_);
  }
  template <class View>
  cotangents<Op, View> by() {
    cotangents<Op, View> d;
    d.out = by_out_.read();
    if constexpr (Op::has_lse) d.lse = by_lse_.read();
    if constexpr (Op::has_ground_weight) d.ground_weight = by_ground_weight_.read();
    return d;
  }
  outputs<Op, float> outs() {
    outputs<Op, float> to{.out = out_.view()};
    if constexpr (Op::has_lse) to.lse = natural_lse<float>(lse_.view());
    if constexpr (Op::has_ground_weight) to.ground_weight = ground_weight_.view();
    if constexpr (Op::has_threshold) to.threshold = threshold_.view();
    return to;
  }
  dense_gradients<float> saved_vjp(Op const& op) {
    auto const saved = attune::forward_and_save(exec(), op, in<view>(), outs());
    return attune::vjp(exec(), op, in<view>(), saved, by<view>());
  }

  void fail(tally_of_calls& to, std::string const& text) const {
    if (to.fault.empty()) to.fault = text;
  }
  /// Whether the call came back. Anything but an error of attune's is a fault.
  template <class Call>
  bool comes_back(tally_of_calls& to, Call const& call) {
    try {
      call();
      ++to.computed;
      return true;
    } catch (error const&) {
      ++to.refused;
    } catch (std::exception const& x) {
      fail(to, std::string("another exception: ") + x.what());
    }
    return false;
  }
  template <class Check>
  void as_the_reference(tally_of_calls& to, Check const& check) {
    try {
      check();
    } catch (error const& x) {
      fail(to, std::string("computed what the reference refuses: ") + x.what());
    }
  }
  template <class Call, class Check>
  void computes(tally_of_calls& to, Call const& call, Check const& check) {
    if (comes_back(to, call)) as_the_reference(to, check);
  }
  /// A call that writes the outputs.
  template <class Call, class Check>
  void writes(tally_of_calls& to, Call const& call, Check const& check) {
    std::array<wild_tensor const*, 4> const outputs{&out_, &lse_, &ground_weight_, &threshold_};
    if (comes_back(to, call)) {
      as_the_reference(to, check);
      for (auto const* x : outputs)
        if (!x->untouched_outside()) fail(to, "wrote outside an output");
      if (out_.coincides()) fail(to, "took an output whose elements share memory");
    } else {
      for (auto const* x : outputs)
        if (!x->untouched_everywhere()) fail(to, "wrote, and then refused");
    }
  }

  static bool close(double got, double want) {
    if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
    return got == want || std::fabs(got - want) <= 1e-3 * (1 + std::fabs(want));
  }
  template <class Got, class Want>
  void same(tally_of_calls& to, char const* what, Got const& got, Want const& want) const {
    if (got.size() != want.size()) return fail(to, std::string(what) + ": another number of elements");
    for (std::size_t n = 0; n < got.size(); ++n)
      if (!close(double(got[n]), double(want[n])))
        return fail(to, std::string(what) + " is " + std::to_string(got[n]) + ", not " + std::to_string(want[n]));
  }
  /// The shape that the inputs tell. `out` may have more of what the inputs share: they have one of it, and all of
  /// them.
  static bool fits(shape const& told, shape const& out) {
    auto const axis = [](index_t inputs, index_t outputs) { return inputs == outputs || inputs == 1; };
    return axis(told.batch, out.batch) && axis(told.head, out.head) && axis(told.position, out.position) &&
           told.feature == out.feature;
  }
  void compare_outputs(Op const& op, tally_of_calls& to) {
    auto const O = out_.view();
    if (!fits(attune::detail::output_shape(in<view>()), O.extents()))
      return fail(to, "took an output of another shape");
    auto const right = attune::forward(reference<double>{}, op, in<any_tensor>(), O.extents());
    problem_shape const& p = right.extents;
    for (index_t b = 0; b < p.batch; ++b)
      for (index_t h = 0; h < p.heads; ++h)
        for (index_t i = 0; i < p.queries; ++i) {
          auto const& head = right.at(b, h);
          for (index_t d = 0; d < p.value_width; ++d)
            if (!close(double(O(b, h, i, d)), head.out(i, d)))
              return fail(to, "out is " + std::to_string(O(b, h, i, d)) + ", not " + std::to_string(head.out(i, d)));
          if constexpr (Op::has_lse)
            if (!lse_.absent() && !close(double(lse_.view()(b, h, i, 0)), head.lse(i))) return fail(to, "lse is wrong");
        }
  }

  rng random_;
  std::array<wild_tensor, fields> inputs_, along_;
  wild_tensor by_out_, by_lse_, by_ground_weight_, out_, lse_, ground_weight_, threshold_;
  std::optional<index_t> offset_;
  index_t first_ = 0, second_ = 0;
};

}  // namespace attune::test
