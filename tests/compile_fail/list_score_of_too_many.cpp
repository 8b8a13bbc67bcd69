// expect-error: KernelPolicy with a list of contractions: bind\(row\) must return an object with T score\(T const& x, T const& y
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::kernel;
  using contractions = contraction::list<contraction::dot, contraction::scalar_difference>;
  template <class T>
  struct bound {
    T score(T const& x, T const& y, T const&, key<T> const&) const { return x + y; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(mine{}), 0);
int main() {}
