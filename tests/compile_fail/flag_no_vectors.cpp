// expect-error: attune: the target has no vector instructions
// flags: -mno-sse2
#include <attune/attune.hpp>
int main() {}
