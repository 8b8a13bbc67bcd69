// expect-error: a score map: bind\(row\) must return an object with T map
#include <attune/policies.hpp>

using namespace attune;

struct unfinished {
  static constexpr auto role = policy_role::score_map;
  template <class T>
  struct bound {};
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};

auto op = (kernel::dot_product{} | unfinished{}, 0);
int main() {}
