// expect-error: of form predicate: write bool visible
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::predicate;
  bool visibel(mask_row const&, index_t) const { return true; }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
