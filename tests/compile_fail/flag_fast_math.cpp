// expect-error: attune: -ffast-math, -Ofast and -ffinite-math-only
// flags: -ffast-math
#include <attune/attune.hpp>
int main() {}
