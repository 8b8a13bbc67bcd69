// expect-error: comparison_of_scores_is_not_a_bool_use_math_select
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = mass_reference::none};
  template <class T>
  struct bound {
    T earned(T const& a, T const&) const {
      if (a > T(0)) return a;
      return T(0);
    }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = attention(kernel::dot_product{}, mine{});
int main() {}
