// expect-error: it cannot have sums over later keys and sums over earlier keys
#include "ordered.hpp"

auto op = (attention(summed<later>{} + summed<earlier>{}), 0);
int main() {}
