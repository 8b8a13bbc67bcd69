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
static_assert(both::operands == 2);

struct mine {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::predicate;
  static constexpr bool bounds_keys = true;
  bool visible(mask_row const&, index_t) const { return true; }
  key_interval may_see(mask_row const& r, index_t) const { return {0, r.keys}; }
};

auto op = (attention(rows{}, mine{}), 0);

void call(tensor<float const> Q, tensor<float const> K, tensor<float const> V, tensor<float> O) {
  auto const causal = attention(kernel::dot_product{}, mask::causal{});
  // [snippet: offsets]
  std::vector<index_t> const offsets{4095, 17, 1023};  // the position of query 0 in each of 3 batch elements
  decode(cpu{}, causal, {.q = Q, .k = K, .v = V, .offsets = offsets}, {.out = O});
  // [/snippet]
}

int main() {}
