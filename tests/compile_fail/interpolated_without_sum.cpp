// expect-error: contraction::interpolated<S> reads a row at the index that an ordered sum S gives
#include "interpolated.hpp"

auto op = (attention(lookup<contraction::dot, later, contraction::interpolated<contraction::dot>>{}), 0);
int main() {}
