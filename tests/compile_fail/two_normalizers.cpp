// expect-error: takes one NormalizerPolicy, two were given
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

auto op = (attention(kernel::dot_product{}, normalizer::softmax{}, normalizer::off_by_one{}), 0);
int main() {}
