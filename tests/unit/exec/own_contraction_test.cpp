// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A contraction is operands and a term: yours runs by every call of every executor, with its gradients.
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/forward_check.hpp>
#include <attune/testing/gradient_check.hpp>

#include "../../support/own_contractions.hpp"
#include "../../support/report.hpp"
#include "../check.hpp"

namespace attune::test {
namespace {

/// Tables of random numbers for 2 heads.
struct own_tables {
  testing::detail::normal_numbers random{5};
  std::vector<std::vector<double>> kept;
  table operator()(index_t rows, index_t columns) {
    auto& x = kept.emplace_back();
    for (index_t n = 0; n < 2 * rows * columns; ++n) x.push_back(0.7 * random());
    return tensor<double const>(x, {1, 2, rows, columns});
  }
};

template <class Call>
std::string text_of(Call const& call) {
  try {
    call();
  } catch (error const& e) {
    return e.what();
  }
  return "";
}

/// Reads a table that its policy does not list.
struct behind_pointer {
  template <class P>
  static table const& of(P const& p) {
    return *p.at;
  }
};
struct hidden : contraction::sum_of<contraction::of_query<field::q>, contraction::by_feature<behind_pointer>> {
  template <class S>
  static S term(S const& q, S const& w, S const&, S const&) {
    return q * w;
  }
};
struct unlisted_kernel : tableless_kernel<hidden> {
  table const* at;
};
/// Reads inputs of different widths.
struct unequal : contraction::sum_of<contraction::of_query<field::q>, contraction::of_key<field::key_bias>> {
  template <class S>
  static S term(S const& q, S const& bias, S const&, S const&) {
    return q * bias;
  }
};

TEST_CASE("own contractions: forward, decode, split and statistics agree with 50 digits") {
  own_tables t;
  auto const check = [](auto const& op) {
    for (index_t const queries : {2, 21}) {
      auto const r =
          testing::check_forward(op, {.heads = 2, .queries = queries, .keys = 70, .width = 5, .key_heads = 1}, 3);
      INFO(printed(r));
      CHECK(r.passed());
    }
  };
  check(attention(warped_kernel{t(30, 5)}, mask::causal{}));
  check(attention(tableless_kernel<own::fading>{} + tableless_kernel<own::agreement>{}, mask::causal{}));
  check(attention(
      kernel::dot_product{} + warped_kernel{t(9, 5)} + weighted_bias_kernel{t(1, 1)} + cauchy_kernel{t(3, 1), t(3, 1)},
      gate::softplus{}));
}

TEST_CASE("own contractions: gradients where the distance matters, and where it does not") {
  auto const op = attention(tableless_kernel<own::fading>{} + tableless_kernel<own::agreement>{});
  auto const r = testing::check_gradients(op, {.heads = 2, .queries = 4, .keys = 6, .width = 3, .key_heads = 1}, 5);
  INFO(printed(r));
  CHECK(r.passed());
}

/// Forward, decode and gradients.
template <class Op>
void check_all(Op const& op) {
  testing::problem_extents const e{.heads = 2, .queries = 3, .keys = 6, .width = 3, .key_heads = 1};
  auto const computed = testing::check_forward(op, e, 6);
  INFO(printed(computed));
  CHECK(computed.passed());
  auto const r = testing::check_gradients(op, e, 7);
  INFO(printed(r));
  CHECK(r.passed());
}

TEST_CASE("own contractions: operands in any order, a number of the pair among many terms") {
  check_all(attention(tableless_kernel<own::scaled_query>{} + tableless_kernel<own::squared_bias>{}));
  check_all(attention(tableless_kernel<own::weighted_dot>{}));
}

TEST_CASE("own contractions: products that executors do not know") {
  own_tables t;
  check_all(attention(tableless_kernel<own::squared_dot>{} + sloped_kernel<own::bent_dot>{t(1, 3)}));
  check_all(attention(sloped_kernel<own::distant_dot>{t(4, 3)} + sloped_kernel<own::weighted_query>{t(1, 3)}));
  check_all(attention(kernel::scalar_sort{1.0} + sloped_kernel<own::weighted_key>{t(1, 3)}));
}

TEST_CASE("own contractions: gradients of every operand") {
  own_tables t;
  auto const op = attention(warped_kernel{t(5, 3)} + weighted_bias_kernel{t(1, 1)} + cauchy_kernel{t(2, 1), t(2, 1)});
  auto const r = testing::check_gradients(op, {.heads = 2, .queries = 4, .keys = 6, .width = 3, .key_heads = 1}, 4);
  INFO(printed(r));
  CHECK(r.passed());
  for (char const* of : {"input q", "input k", "input bias", "input sort_q", "table kernel.0.0.slopes",
                         "table kernel.0.1.weights", "table kernel.1.weights", "table kernel.1.decays"})
    CHECK(r.line(of).magnitude > 1e-3);
}

TEST_CASE("own contractions: a table that does not fit is named") {
  own_tables t;
  std::vector<double> const one(4, 1);
  tensor<double const> const v(one, {1, 2, 2, 1});
  auto op = attention(cauchy_kernel{t(2, 1), t(3, 1)});
  std::vector<double> out(4);
  inputs<decltype(op), tensor<double const>> const in{.v = v};
  outputs<decltype(op), double> const to{.out = tensor<double>(out, {1, 2, 2, 1})};
  CHECK_THROWS_WITH_AS(forward(cpu<double>{}, op, in, to),
                       "attune::forward: table decays has 3 rows; expected 2, as many as the contraction has terms",
                       error);
  table const some = t(1, 1);
  auto const refused = [&]<class Op>(Op const& other) {
    auto const all = make_inputs<Op, tensor<double const>>([&]<field F>() { return v; });
    return text_of(
        [&] { forward(cpu<double>{}, other, all, outputs<Op, double>{.out = tensor<double>(out, {1, 2, 2, 1})}); });
  };
  CHECK(refused(attention(warped_kernel{t(2, 3)})) ==
        "attune::forward: table slopes has 3 columns; expected 1, as many as the contraction has terms");
  CHECK(refused(attention(sloped_kernel<own::weighted_query>{t(2, 1)})) ==
        "attune::forward: table slopes has 2 rows; expected 1, as many as the contraction has terms");
  CHECK(refused(attention(unlisted_kernel{{}, &some})).find("no entry in the policy's tables()") != std::string::npos);
}

TEST_CASE("own contractions: inputs of different widths are named") {
  std::vector<double> const some(8, 1);
  tensor<double const> const wide(some, {1, 2, 2, 2}), narrow(some.data(), {1, 2, 2, 1});
  auto const op = attention(tableless_kernel<unequal>{});
  using op_type = std::remove_const_t<decltype(op)>;
  std::vector<double> out(4);
  inputs<op_type, tensor<double const>> const in{.q = wide, .v = narrow, .key_bias = narrow};
  CHECK(text_of([&] { forward(cpu<double>{}, op, in, {.out = tensor<double>(out, {1, 2, 2, 1})}); }) ==
        "attune::forward: key_bias has feature extent 1; expected 2, the terms of a contraction that reads it");
}

}  // namespace
}  // namespace attune::test
