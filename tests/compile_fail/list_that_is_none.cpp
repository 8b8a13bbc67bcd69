// expect-error: contractions of a policy is no list
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::kernel;
  using contractions = contraction::dot;
  template <class T>
  struct bound {
    T score(T const& x, key<T> const&) const { return x; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(mine{}), 0);
int main() {}
