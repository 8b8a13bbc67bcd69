// expect-error: Mixtures and other folds cannot be folded
#include "views.hpp"

int main() { fold(fold(softmax_attention(), {1.0, -0.5}), {1.0, 2.0}); }
