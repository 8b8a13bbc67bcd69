// expect-error: fold\(\) of several operators needs one coefficient per operator
#include "views.hpp"

int main() { fold({1.0, -0.5}, softmax_attention(), softmax_attention(), softmax_attention()); }
