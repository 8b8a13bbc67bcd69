// expect-error: takes one KernelPolicy, two were given: add them
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

auto op = (attention(kernel::dot_product{}, kernel::alibi{1}), 0);
int main() {}
