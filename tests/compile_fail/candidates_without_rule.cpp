// expect-error: say how the threshold comes about, for the gradient follows from it
#include <attune/policies.hpp>

using namespace attune;

struct undeclared {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.family = row_family::sparse_support};
  template <class T>
  struct bound {
    template <class Column>
    candidate_threshold<T> solve(Column&) const {
      return {};
    }
    T weight(candidate_threshold<T> const&, T const& a, key<T> const&) const { return math::larger(a, T(0)); }
    T reported(candidate_threshold<T> const& at) const { return at.level; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};

auto op = attention(kernel::dot_product{}, undeclared{});
int main() {}
