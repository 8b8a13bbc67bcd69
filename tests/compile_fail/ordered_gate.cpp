// expect-error: an ordered sum belongs to the kernel
#include "ordered.hpp"

struct gate_of_sum {
  static constexpr auto role = policy_role::gate;
  using contraction = later;
  template <class T>
  struct bound {
    T gate(T const& a, T const& x) const { return a + x; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, gate_of_sum{}), 0);
int main() {}
