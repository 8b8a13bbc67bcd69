// expect-error: KernelPolicy: name what it needs: using contraction
#include "operators.hpp"

struct mine {
  static constexpr auto role = policy_role::kernel;
  template <class T>
  struct bound {
    T score(T const& x, key<T> const&) const { return x; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const { return {}; }
};
auto op = (attention(mine{}), 0);
int main() {}
