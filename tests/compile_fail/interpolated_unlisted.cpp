// expect-error: contraction::interpolated<S> reads a row at the index that the sum S of the same kernel gives: list S
#include "interpolated.hpp"

auto op = (attention(lookup<contraction::dot, contraction::interpolated<later>, later>{}), 0);
int main() {}
