// expect-error: input \.key_bias \(batch, key head, key, 1\) is missing
#include "views.hpp"

auto const op = attention(kernel::dot_product{} + kernel::key_bias{});
in<decltype(op)> const given{.q = x, .k = x, .v = x};
int main() {}
