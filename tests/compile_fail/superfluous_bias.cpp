// expect-error: input \.bias is superfluous: the kernel of this operator has no bias that is given
#include "views.hpp"

auto const op = alibi_attention(1);
in<decltype(op)> const given{.q = x, .k = x, .v = x, .bias = x};
int main() {}
