// expect-error: contraction::gathered_by_pair: the policy needs attune::table values
#include <attune/policies.hpp>

using namespace attune;

struct rows {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::gathered_by_pair;
  template <class T>
  struct bound {
    T score(T const& x, key<T> const&) const { return x; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};

auto op = (attention(rows{}), 0);
int main() {}
