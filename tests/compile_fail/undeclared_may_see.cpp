// expect-error: may_see\(\) is there but not declared: static constexpr bool bounds_keys = true
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::predicate;
  bool visible(mask_row const&, index_t) const { return true; }
  key_interval may_see(mask_row const& r, index_t) const { return {0, r.keys}; }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
