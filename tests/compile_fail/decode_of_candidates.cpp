// expect-error: decode\(\) wants a normalizer with an O\(1\) state
#include "operators.hpp"

int main() {
  decode(cpu{}, attention(kernel::dot_product{}, normalizer::sparsemax{}), {.q = x, .k = x, .v = x}, {.out = y});
}
