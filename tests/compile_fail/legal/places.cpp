// The nearest legal programs of the tests about rows of pairs, bounds of predicates and offsets.
#include <array>
#include <tuple>
#include <vector>

#include <attune/attune.hpp>

using namespace attune;

struct rows {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::gathered_by_pair;
  table values;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("values", &rows::values, table_width::one)}; }
  index_t index(index_t i, index_t j) const { return i + j; }
  template <class T>
  struct bound {
    T score(T const& x, key<T> const&) const { return x; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};

struct both : contraction::sum_of<contraction::by_feature<contraction::tables::metric>,
                                  contraction::by_pair<contraction::tables::values>> {};
int const operands = both::operands;

struct mine {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::predicate;
  static constexpr bool bounds_keys = true;
  bool visible(mask_row const&, index_t) const { return true; }
  key_interval may_see(mask_row const& r, index_t) const { return {0, r.keys}; }
};

auto op = (attention(rows{}, mine{}), 0);

void call(tensor<float const> x, tensor<float> out, std::vector<index_t> const& offsets) {
  forward(cpu{}, attention(kernel::dot_product{}, mine{}), {.q = x, .k = x, .v = x, .offsets = offsets}, {.out = out});
}

int main() {}
