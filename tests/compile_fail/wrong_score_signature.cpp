// expect-error: must return an object with T score\(T const& contraction
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::dot;
  template <class T>
  struct bound {
    T score(T const& x) const { return x; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(mine{}), 0);
int main() {}
