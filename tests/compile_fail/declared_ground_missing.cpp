// expect-error: traits declare ground_mass but the bound object has no T ground
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.ground_mass = true};
  template <class T>
  struct bound {
    T earned(T const& a, T const& m) const { return a - m; }
    T lowest_reference() const { return T(0); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
