// expect-error: fold\(\) needs at least one coefficient
#include "views.hpp"

int main() { fold(softmax_attention(), {}); }
