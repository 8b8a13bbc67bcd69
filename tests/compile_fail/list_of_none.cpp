// expect-error: has an entry that is no contraction
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::gate;
  using contractions = contraction::list<contraction::none, contraction::dot>;
  template <class T>
  struct bound {
    T gate(T const& s, T const& x) const { return s + x; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
