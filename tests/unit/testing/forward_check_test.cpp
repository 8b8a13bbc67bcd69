// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The forward check passes what is right, finds what one executor or one call computes differently, and says what it
// left out.
#include <sstream>
#include <string>
#include <type_traits>

#include <attune/attune.hpp>
#include <attune/testing/forward_check.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

using testing::check_forward;
using testing::problem_extents;

constexpr problem_extents few{.heads = 2, .queries = 3, .keys = 40, .width = 4};

template <class T>
inline constexpr bool is_batch = false;
template <class T, class Arch>
inline constexpr bool is_batch<xsimd::batch<T, Arch>> = true;

/// What a policy may do to a score: nothing, add a constant in SIMD, scale it in floats, lose one key to NaN.
enum class defect { none, off_in_simd, off_in_floats, nan_at_key_7 };

template <defect D>
struct scored {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::dot;
  template <class T>
  struct bound {
    T scale;
    T score(T const& x, key<T> const& k) const {
      T const s = scale * x;
      if constexpr (D == defect::off_in_simd && is_batch<T>) return s + T(0.001f);
      if constexpr (D == defect::off_in_floats && std::is_same_v<T, xsimd::batch<float>>) return s * T(1.001f);
      if constexpr (D == defect::nan_at_key_7 && is_batch<T>)
        return math::select(k.position == T(7), T(s + math::infinity<T>() - math::infinity<T>()), s);
      return s;
    }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r.inverse_sqrt_width};
  }
};

template <class Op>
auto checked(Op const& op, problem_extents const& e = few) {
  return check_forward(op, e, 1);
}

/// cpu<double>, but for something that only other calls than the caller's own show.
template <class Wrong>
struct wrong_cpu {
  using value_type = double;
  using view = tensor<double const>;
};
template <class Wrong, class Op>
void forward(wrong_cpu<Wrong>, Op const& op, inputs<Op, tensor<double const>> in, outputs<Op, double> const& out) {
  Wrong::spoil(in, out.out.extents().head);
  attune::forward(cpu<double>{serial{}}, op, in, out);
}
struct one_offset {
  template <class Inputs>
  static void spoil(Inputs& in, index_t) {
    if (in.offsets.has_value()) in.offset = in.offsets->front(), in.offsets.reset();
  }
};
/// Reads the keys of the wrong head where heads share keys.
struct first_heads {
  template <class Inputs>
  static void spoil(Inputs& in, index_t heads) {
    if (shape const e = in.k.extents(); e.head > 1 && e.head < heads)
      in.k = {in.k.data(), {e.batch, 1, e.position, e.feature}, in.k.steps()};
  }
};
struct first_row_of_bias {
  template <class Inputs>
  static void spoil(Inputs& in, index_t heads) {
    if (shape const e = in.bias.extents(); e.head == 1 && heads > 1)
      in.bias = {in.bias.data(), {e.batch, 1, 1, e.feature}, in.bias.steps()};
  }
};
/// How many of some seeds show what is wrong.
template <class Wrong, class Op>
int found(Op const& op, problem_extents const& e, bool vary) {
  int n = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed)
    n += !check_forward(op, e, seed, {.vary = vary}, wrong_cpu<Wrong>{}).passed();
  return n;
}

TEST_SUITE("forward check") {
  TEST_CASE("a second problem draws offsets, heads and shared inputs, and says so") {
    auto const causal = attention(kernel::dot_product{} + kernel::bias{}, mask::causal{});
    problem_extents const four{.heads = 4, .queries = 3, .keys = 9, .width = 3};
    CHECK(found<one_offset>(causal, four, true) >= 4);
    CHECK(found<one_offset>(causal, four, false) == 0);
    CHECK(found<first_heads>(causal, four, true) >= 1);
    CHECK(found<first_heads>(causal, four, false) == 0);
    CHECK(found<first_row_of_bias>(causal, four, true) >= 1);
    CHECK(found<first_row_of_bias>(causal, four, false) == 0);

    auto const r = check_forward(causal, four, 1);
    CHECK(r.varied.find("batch 2") == 0);
    CHECK(r.varied.find("offsets ") != std::string::npos);
    CHECK(r.varied_lines.size() + 1 == r.lines.size());  // Thrust is left out once
    CHECK(check_forward(causal, four, 1, {.vary = false}).varied.empty());
  }

  TEST_CASE("the second problem keeps what the operator needs") {
    rotary_angles<double> const angles(rotary_frequencies::plain(4), 40);  // 40 positions
    auto const turned = check_forward(attention(kernel::rotary{angles}, mask::causal{}), few, 2);
    CHECK(turned.passed());
    CHECK(turned.varied.find("offsets") != std::string::npos);
    std::vector<double> const slopes(24, 0.2);  // for 2 heads and 12 queries
    auto const sloped =
        check_forward(attention(kernel::dot_product{} + kernel::alibi{per_query(slopes, 2)}, mask::causal{}),
                      {.heads = 2, .queries = 12, .keys = 40, .width = 4}, 2);
    CHECK(sloped.passed());
    CHECK(sloped.varied.find("queries") == std::string::npos);
    CHECK(sloped.varied.find("offsets") != std::string::npos);
    // A mask whose data no call checks: positions stay.
    struct hidden {
      bool const* keys;
      bool operator()(mask_row const&, index_t j) const { return keys[j]; }
    };
    bool keys[40] = {true, true, false, true};
    auto const masked = check_forward(attention(kernel::dot_product{}, mask::predicate{hidden{keys}}), few, 2);
    CHECK(masked.passed());
    CHECK(masked.varied.find("offsets") == std::string::npos);
  }

  TEST_CASE("what is right passes, and what an operator does not have is named") {
    auto const softmax = checked(attention(scored<defect::none>{}, mask::causal{}));
    CHECK(softmax.passed());
    CHECK(softmax.lines.size() == 11);  // five calls of two executors, and Thrust
    CHECK(softmax.line("cpu<float>", "decode").made());
    CHECK(softmax.line("cpu<double>", "split and merge").share > 0);
    CHECK(softmax.line("cpu<double>", "statistics").share > 0);
    CHECK(softmax.line("Thrust", "every call").left_out.find("thrust_on") != std::string::npos);
    auto const sparse = checked(attention(kernel::dot_product{}, normalizer::sparsemax{}));
    CHECK(sparse.passed());
    CHECK(sparse.line("cpu<float>", "decode").left_out.find("candidate set") != std::string::npos);
    auto const grounded = checked(principled_attention({-1.0, 0.2, 0.3}, mask::causal{}));
    CHECK(grounded.passed());
    CHECK(grounded.line("cpu<float>", "forward").share > 0);
    CHECK(checked(attention(kernel::dot_product{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{}))
              .passed());
  }

  TEST_CASE("an executor that computes something else is found, and only that one") {
    auto const wrong = checked(attention(scored<defect::off_in_floats>{}));
    CHECK_FALSE(wrong.passed());
    CHECK_FALSE(wrong.line("cpu<float>", "forward").passed());
    CHECK_FALSE(wrong.line("cpu<float>", "split and merge").passed());
    CHECK(wrong.line("cpu<float>", "forward").where.find(" (0, ") != std::string::npos);
    CHECK(wrong.line("cpu<double>", "forward").passed());
    std::ostringstream text;
    text << wrong;
    CHECK(text.str().find("WRONG cpu<float>   forward") != std::string::npos);
    CHECK(text.str().find("FORWARD IS WRONG (seed 1)") != std::string::npos);
  }

  TEST_CASE("a constant that softmax forgets is found where it shows: in the log-sum-exp and in logits") {
    auto const wrong = checked(attention(scored<defect::off_in_simd>{}));
    CHECK(wrong.line("cpu<double>", "forward").where.find("lse") == 0);
    CHECK_FALSE(wrong.line("cpu<double>", "statistics").passed());
  }

  TEST_CASE("NaN in one key is the largest error there is") {
    auto const wrong = checked(attention(scored<defect::nan_at_key_7>{}));
    CHECK(wrong.line("cpu<float>", "forward").share == inf);
    CHECK(wrong.line("cpu<float>", "decode").share == inf);
  }

  TEST_CASE("misuse") {
    CHECK(error_of([] { checked(attention(kernel::dot_product{}), {.keys = 0}); }) ==
          "attune::check_forward: extents.keys has the value 0; expected at least 1");
    CHECK(error_of([] { checked(attention(kernel::dot_product{})).line("cpu<half>", "forward"); }).find("cpu<half>") !=
          std::string::npos);
  }
}

}  // namespace
}  // namespace attune::test
