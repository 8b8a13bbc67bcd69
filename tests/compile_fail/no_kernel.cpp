// expect-error: attention\(\) needs a KernelPolicy
#include "operators.hpp"

auto op = (attention(normalizer::softmax{}), 0);
int main() {}
