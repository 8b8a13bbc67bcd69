// expect-error: input \.sort_k is superfluous: the kernel of this operator has no scalar difference
#include "views.hpp"

auto const op = softmax_attention();
in<decltype(op)> const given{.q = x, .k = x, .v = x, .sort_k = x};
int main() {}
