// expect-error: output \.lse does not exist
#include "views.hpp"

auto const op = sparsemax_attention();
to<decltype(op)> const given{.out = y, .lse = natural_lse(y)};
int main() {}
