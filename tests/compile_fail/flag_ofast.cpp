// expect-error: attune: -ffast-math, -Ofast and -ffinite-math-only
// flags: -Ofast
#include <attune/attune.hpp>
int main() {}
