// expect-error: decode\(\) wants a normalizer with an O\(1\) state
// needs: mpi.h
#include "ranks.hpp"

int main() {
  decode(over_ranks(), attention(kernel::dot_product{}, normalizer::top_k{2}), {.q = x, .k = x, .v = x}, {.out = y});
}
