// expect-error: attune: the target has no vector instructions
// flags: -mno-sse2
// unless: xsimd/arch/xsimd_emulated.hpp
#include <attune/attune.hpp>
int main() {}
