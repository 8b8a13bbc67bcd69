// expect-error: weight_factor = true\} and T weight_factor\(\) const of the bound object belong together
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = mass_reference::none};
  template <class T>
  struct bound {
    T earned(T const& a, T const&) const { return a; }
    T weight_factor(T const& earned, T const&) const { return earned; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
