// expect-error: attune: -ffast-math, -Ofast and -ffinite-math-only
// flags: -ffinite-math-only
#include <attune/attune.hpp>
int main() {}
