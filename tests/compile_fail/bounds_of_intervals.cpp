// expect-error: bounds_keys is for masks of form predicate
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::interval;
  static constexpr bool bounds_keys = true;
  key_interval keys(mask_row const& r) const { return {0, r.keys}; }
  key_interval may_see(mask_row const& r, index_t) const { return {0, r.keys}; }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
