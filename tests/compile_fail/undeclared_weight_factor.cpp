// expect-error: weight_factor = true\} and T weight_factor\(\) const of the bound object belong together
#include "views.hpp"

struct mine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{};
  template <class T>
  struct bound {
    T earned(T const& a, T const& m) const { return a - m; }
    T weight_factor() const { return T(2); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
