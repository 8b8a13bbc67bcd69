// expect-error: takes one weight gate, two were given
#include "views.hpp"

auto op = (attention(kernel::dot_product{}, gate::dropout{}, gate::dropout{.rate = 0.2}), 0);
int main() {}
