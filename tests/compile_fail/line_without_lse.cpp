// expect-error: attune: output .lse does not exist: the weights of this normalizer are not divided by a sum
#include <attune/attune.hpp>
#include <attune/line.hpp>
using namespace attune;
void call(tensor<float const> s, tensor<float const> v, tensor<float> out, tensor<float> lse) {
  forward(cpu{}, line::sliced_relu{}, {.v = v, .sort_q = s, .sort_k = s}, {.out = out, .lse = natural_lse(lse)});
}
