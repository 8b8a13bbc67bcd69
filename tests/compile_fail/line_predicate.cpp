// expect-error: attune: a mask by predicate is asked pair by pair, and an operator on a line does not meet all pairs
#include <attune/attune.hpp>
#include <attune/line.hpp>
using namespace attune;
auto const odd = mask::predicate{[](mask_row const&, index_t j) { return j % 2 == 1; }};
void call(inputs<line::laplacian<std::remove_const_t<decltype(odd)>>, tensor<float const>> const& in,
          outputs<line::laplacian<std::remove_const_t<decltype(odd)>>, float> const& out) {
  forward(cpu{}, line::laplacian{1.0, odd}, in, out);
}
