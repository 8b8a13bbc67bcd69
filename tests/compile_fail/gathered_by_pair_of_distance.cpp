// expect-error: index\(attune::index_t i, attune::index_t j\) const, the row of values for a query at position i and key j
#include <array>

#include <attune/policies.hpp>

using namespace attune;

struct rows {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::gathered_by_pair;
  table values;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("values", &rows::values, table_width::one)}; }
  index_t index(index_t distance) const { return distance; }
  template <class T>
  struct bound {
    T score(T const& x, key<T> const&) const { return x; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};

auto op = (attention(rows{}), 0);
int main() {}
