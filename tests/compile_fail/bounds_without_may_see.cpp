// expect-error: bounds_keys is declared but there is no key_interval may_see
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::predicate;
  static constexpr bool bounds_keys = true;
  bool visible(mask_row const&, index_t) const { return true; }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
