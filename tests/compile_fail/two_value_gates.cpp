// expect-error: takes one value gate, two were given
#include "views.hpp"

auto op = (attention(kernel::dot_product{}, gate::sigmoid_value{}, gate::sigmoid_value{}), 0);
int main() {}
