// expect-error: input \.bias \(1 or batch, 1 or head, 1 or query, key\) is missing: the kernel of this operator adds a
// given bias
#include "views.hpp"

auto const op = biased_attention();
in<decltype(op)> const given{.q = x, .k = x, .v = x};
int main() {}
