// expect-error: takes one KernelPolicy, two were given: add them
#include "operators.hpp"

auto op = (attention(kernel::dot_product{}, kernel::alibi{1}), 0);
int main() {}
