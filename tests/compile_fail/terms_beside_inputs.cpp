// expect-error: contraction::by_term stands with other tables alone
#include <attune/attune.hpp>
using namespace attune;
struct waves
    : contraction::sum_of<contraction::of_query<field::q>, contraction::by_term<contraction::tables::frequency>> {
  template <class S>
  static S term(S const& q, S const& w, S const&, S const& n) {
    return q * math::cos(S(w * n));
  }
};
bool reads = waves::uses(field::q);
