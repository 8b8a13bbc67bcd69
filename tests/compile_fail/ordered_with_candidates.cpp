// expect-error: an ordered sum needs a normalizer of family masses
#include "ordered.hpp"

auto op = (attention(summed<later>{}, normalizer::sparsemax{}), 0);
int main() {}
