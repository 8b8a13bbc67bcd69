// expect-error: has row_constant\(\) but traits do not declare it
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::length_scale;
  static constexpr length_scale_traits traits{};
  template <class T>
  struct bound {
    T scale(T const& s) const { return s; }
    T row_constant() const { return T(0); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
