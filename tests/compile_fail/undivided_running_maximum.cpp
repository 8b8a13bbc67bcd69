// expect-error: masses that are divided by nothing or by the count are held as they are
#include <attune/attune.hpp>

struct forgot_the_reference {
  static constexpr auto role = attune::policy_role::normalizer;
  static constexpr attune::normalizer_traits traits{.divided_by = attune::divisor::one};
  template <class T>
  struct bound {
    T earned(T const& a, T const&) const { return attune::math::sigmoid(a); }
  };
  template <class T>
  bound<T> bind(attune::row<T> const&) const {
    return {};
  }
};

auto const op = attune::attention(attune::kernel::dot_product{}, forgot_the_reference{});
