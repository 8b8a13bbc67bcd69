// expect-error: none of these is a companion of by_term
#include <attune/policies.hpp>

using namespace attune;

struct mixed : contraction::sum_of<contraction::by_term<contraction::tables::cosine>,
                                   contraction::by_pair<contraction::tables::values>> {};
static_assert(mixed::operands == 2);
int main() {}
