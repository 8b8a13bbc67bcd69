// expect-error: scores, gates and biases given for each pair are not read from 16 or 8 bits: use cpu<float>
#include "operators.hpp"

attune::tensor<attune::float16 const> halves;
attune::tensor<attune::float16> out;
int main() {
  forward(attune::cpu<attune::float16>{}, attune::attention(attune::kernel::given_scores{}),
          {.v = halves, .scores = halves}, {.out = out});
}
