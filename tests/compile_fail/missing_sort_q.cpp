// expect-error: input \.sort_q \(batch, head, query, 1\) is missing: the kernel of this operator compares scalars
#include "views.hpp"

auto const op = scalar_sort_attention(1);
in<decltype(op)> const given{.v = x, .sort_k = x};
int main() {}
