// expect-error: the bound object has weight_factor\(\) and weight_factor\(earned, visible\)
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = mass_reference::none, .weight_factor = true};
  template <class T>
  struct bound {
    T earned(T const& a, T const&) const { return a; }
    T weight_factor() const { return T(2); }
    T weight_factor(T const& earned, T const&) const { return earned; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
