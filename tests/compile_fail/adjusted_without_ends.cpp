// expect-error: of family range_weighted: bind\(row\) must return an object with attune::adjustment<T> ends
#include "views.hpp"

struct mine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.family = row_family::range_weighted};
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
