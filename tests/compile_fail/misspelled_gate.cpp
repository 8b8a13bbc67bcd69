// expect-error: GatePolicy: bind\(row\) must return an object with T gate
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::gate;
  using contraction = contraction::gate_dot;
  template <class T>
  struct bound {
    T gates(T const& s, T const& g) const { return s + g; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
