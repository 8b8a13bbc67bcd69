// expect-error: takes one mask, two were given: combine them
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

auto op = (attention(kernel::dot_product{}, mask::causal{}, mask::window{3}), 0);
int main() {}
