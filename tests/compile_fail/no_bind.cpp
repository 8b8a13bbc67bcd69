// expect-error: a policy must bind to a row: template <class T> bound<T> bind
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::length_scale;
  static constexpr length_scale_traits traits{};
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
