// expect-error: has ground\(\) but traits do not declare it
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{};
  template <class T>
  struct bound {
    T earned(T const& a, T const& m) const { return a - m; }
    T ground(T const& a, T const& m) const { return a - m; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
