// expect-error: attention\(\) needs a KernelPolicy
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

auto op = (attention(normalizer::softmax{}), 0);
int main() {}
