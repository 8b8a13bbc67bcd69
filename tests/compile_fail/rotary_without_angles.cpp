// expect-error: contraction::rotary_dot: the policy needs attune::rotary_rows angles
#include <attune/policies.hpp>

using namespace attune;

struct turned {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::rotary_dot;
  template <class T>
  struct bound {
    T score(T const& x, key<T> const&) const { return x; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};

auto op = (attention(turned{}), 0);
int main() {}
