// expect-error: takes one output gate, two were given
#include "views.hpp"

auto op = (attention(kernel::dot_product{}, gate::sigmoid_output{}, gate::sigmoid_output{}), 0);
int main() {}
