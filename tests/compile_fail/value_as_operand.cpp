// expect-error: values and their gates are no operands of a contraction
#include <attune/attune.hpp>
using namespace attune;
struct product_with_value
    : contraction::product<contraction::plain_left, contraction::of_query<field::q>, contraction::of_key<field::v>> {};
bool reads = product_with_value::uses(field::v);
