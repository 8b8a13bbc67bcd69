// expect-error: input \.place \(batch, key head, key, axes\) is missing: the kernel of this operator has a spatial
// prior
#include "views.hpp"

auto const op = smca_attention(1);
in<decltype(op)> const given{.q = x, .k = x, .v = x, .center = x, .spread = x};
int main() {}
