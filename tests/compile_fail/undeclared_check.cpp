// expect-error: check\(\) is there but not declared: static constexpr bool checks_shape = true
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::interval;
  key_interval keys(mask_row const&) const { return {}; }
  void check(mask_shape const&) const {}
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
