// expect-error: a weight gate: bind\(row\) must return an object with T factor\(T const& contraction, attune::key<T> const& key\) const
#include "views.hpp"

struct mine {
  static constexpr auto role = policy_role::weight_gate;
  using contraction = contraction::gate_dot;
  template <class T>
  struct bound {
    T factor(T const& u) const { return u; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
