// expect-error: comparison_of_scores_is_not_a_bool_use_math_select
#include "views.hpp"

struct mine {
  static constexpr auto role = policy_role::weight_gate;
  using contraction = contraction::given_gates;
  template <class T>
  struct bound {
    T factor(T const& u, key<T> const&) const { return u > T(0) ? u : T(0); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
