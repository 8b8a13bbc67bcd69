// expect-error: a score map is applied to the kernel, not given beside it
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

auto op = (attention(kernel::dot_product{}, kernel::softcap{30}), 0);
int main() {}
