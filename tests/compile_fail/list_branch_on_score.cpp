// expect-error: comparison_of_scores_is_not_a_bool_use_math_select
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::kernel;
  using contractions = contraction::list<contraction::dot, contraction::scalar_difference>;
  template <class T>
  struct bound {
    T score(T const& x, T const& y, key<T> const&) const { return x > y ? x : y; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(mine{}), 0);
int main() {}
