// expect-error: attune: reports wrong arguments by exceptions
// flags: -fno-exceptions
#include <attune/attune.hpp>
int main() {}
