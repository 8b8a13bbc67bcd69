// expect-error: uniform_share\(T const& earned, T const& visible\) const of the bound object belong together
#include "views.hpp"

struct mine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.uniform_share = true};
  template <class T>
  struct bound {
    T earned(T const& a, T const& m) const { return a - m; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
