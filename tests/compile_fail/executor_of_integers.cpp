// expect-error: cpu<T> computes in float or double
#include "operators.hpp"

cpu<int> exec{};
int main() {}
