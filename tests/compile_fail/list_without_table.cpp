// expect-error: the contraction of this policy reads tables
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::kernel;
  using contractions = contraction::list<contraction::dot, contraction::metric_dot>;
  template <class T>
  struct bound {
    T score(T const& x, T const& y, key<T> const&) const { return x + y; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(mine{}), 0);
int main() {}
