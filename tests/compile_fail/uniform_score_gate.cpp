// expect-error: contraction::uniform is for weight gates alone
#include "views.hpp"

struct mine {
  static constexpr auto role = policy_role::gate;
  using contraction = contraction::uniform;
  template <class T>
  struct bound {
    T gate(T const& a, T const& u) const { return a + u; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
