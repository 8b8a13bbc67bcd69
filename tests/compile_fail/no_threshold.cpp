// expect-error: output \.threshold does not exist: the normalizer of this operator has no candidate set
#include "views.hpp"

auto const op = softmax_attention();
to<decltype(op)> const given{.out = y, .threshold = y};
int main() {}
