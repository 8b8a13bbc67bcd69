// expect-error: a value gate or output gate: bind\(row\) must return an object with T factor\(T const& x\) const
#include "views.hpp"

struct mine {
  static constexpr auto role = policy_role::output_gate;
  template <class T>
  struct bound {
    T map(T const& x) const { return x; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
