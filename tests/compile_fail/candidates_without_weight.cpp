// expect-error: of family sparse_support: bind\(row\) must return an object with attune::candidate_threshold<T> solve
#include "views.hpp"

struct mine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.family = row_family::sparse_support, .threshold = threshold_rule::sum};
  template <class T>
  struct bound {
    template <class Column>
    candidate_threshold<T> solve(Column&) const {
      return {};
    }
    T reported(candidate_threshold<T> const& at) const { return at.level; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
