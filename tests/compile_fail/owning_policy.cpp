// expect-error: a policy must be trivially copyable
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::interval;
  std::vector<int> lengths;
  key_interval keys(mask_row const&) const { return {}; }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
