// expect-error: a gate of contraction::none changes nothing
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::gate;
  using contraction = contraction::none;
  template <class T>
  struct bound {
    T gate(T const& s, key<T> const& k) const { return s - k.position; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
