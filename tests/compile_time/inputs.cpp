// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The inputs and outputs of an operator have a view where it uses the field, and a stand-in that takes no room
// elsewhere; executors say what their views are.
#include <type_traits>

#include <attune/attune.hpp>
#include <attune/exec/reference/executor.hpp>

using namespace attune;

namespace {

// Views.
static_assert(std::is_same_v<cpu<>::view, tensor<float const>> &&
              std::is_same_v<cpu<double>::view, tensor<double const>>);
static_assert(std::is_same_v<cpu<>::value_type, float> && std::is_same_v<cpu<>::arch, xsimd::default_arch>);
static_assert(std::is_same_v<reference<>::value_type, double> && std::is_same_v<reference<float>::value_type, float>);
static_assert(std::is_same_v<reference<float>::view, any_tensor>);
static_assert(std::is_trivially_copyable_v<cpu<>> && std::is_empty_v<reference<>> && cpu{}.threads == 0 &&
              cpu{3}.threads == 3);
static_assert(!std::is_convertible_v<int, cpu<>>);
static_assert(std::is_trivially_copyable_v<tensor<float>> && std::is_convertible_v<tensor<float>, tensor<float const>>);
static_assert(std::is_convertible_v<tensor<float>, any_tensor> &&
              std::is_convertible_v<tensor<double const>, any_tensor>);
static_assert(!std::is_constructible_v<tensor<float>, std::vector<float> const&, shape>);

using view = tensor<float const>;
using plain = decltype(attention(kernel::dot_product{}));
using full = decltype(attention(kernel::dot_product{}, gate::softplus{}, normalizer::grounded{}));
using given = decltype(attention(kernel::given_scores{}, gate::given_softplus{}, normalizer::sink{}));

template <class Member>
struct member_type;
template <class Class, class Type>
struct member_type<Type Class::*> {
  using type = Type;
};
template <auto Member>
using type_of = typename member_type<decltype(Member)>::type;
template <auto Member, class T>
inline constexpr bool is = std::is_same_v<type_of<Member>, T>;

using plain_in = inputs<plain, view>;
static_assert(is<&plain_in::q, view> && is<&plain_in::k, view> && is<&plain_in::v, view>);
static_assert(is<&plain_in::gate_q, detail::no_gate_q> && is<&plain_in::gate_k, detail::no_gate_k>);
static_assert(is<&plain_in::scores, detail::no_scores> && is<&plain_in::gates, detail::no_gates> &&
              is<&plain_in::v0, detail::no_v0>);

using full_in = inputs<full, view>;
static_assert(is<&full_in::q, view> && is<&full_in::k, view> && is<&full_in::v, view>);
static_assert(is<&full_in::gate_q, view> && is<&full_in::gate_k, view> && is<&full_in::v0, view>);
static_assert(is<&full_in::scores, detail::no_scores> && is<&full_in::gates, detail::no_gates>);

using given_in = inputs<given, any_tensor>;
static_assert(is<&given_in::scores, any_tensor> && is<&given_in::gates, any_tensor> && is<&given_in::v, any_tensor>);
static_assert(is<&given_in::q, detail::no_q> && is<&given_in::k, detail::no_k> && is<&given_in::v0, detail::no_v0>);
static_assert(is<&given_in::gate_q, detail::no_gate_q> && is<&given_in::gate_k, detail::no_gate_k>);

// Stand-ins take a byte each.
constexpr std::size_t positions = sizeof(std::optional<index_t>) + sizeof(std::optional<std::span<index_t const>>);
static_assert(sizeof(plain_in) <= 3 * sizeof(view) + positions + 64);
static_assert(sizeof(full_in) <= 6 * sizeof(view) + positions + 64);

struct sigmoid {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.divided_by = divisor::one, .reference = mass_reference::none};
  template <class T>
  struct bound {
    T earned(T const& a, T const&) const { return math::sigmoid(a); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
using undivided = decltype(attention(kernel::dot_product{}, sigmoid{}));

static_assert(is<&outputs<plain, float>::out, tensor<float>> && is<&outputs<plain, float>::lse, natural_lse<float>>);
static_assert(is<&outputs<plain, float>::ground_weight, detail::no_ground_weight>);
static_assert(is<&outputs<full, float>::ground_weight, tensor<float>> &&
              is<&outputs<given, float>::ground_weight, tensor<float>>);
static_assert(is<&outputs<undivided, float>::lse, detail::no_lse>);
static_assert(is<&outputs<undivided, float>::ground_weight, detail::no_ground_weight>);

}  // namespace
