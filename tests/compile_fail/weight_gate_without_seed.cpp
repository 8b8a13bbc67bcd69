// expect-error: a weight gate with contraction::uniform: give it the member std::uint64_t seed
#include "views.hpp"

struct mine {
  static constexpr auto role = policy_role::weight_gate;
  using contraction = contraction::uniform;
  template <class T>
  struct bound {
    T factor(T const& u, key<T> const&) const { return u; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
