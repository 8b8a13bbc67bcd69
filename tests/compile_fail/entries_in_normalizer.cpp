// expect-error: only kernels, score maps, length scales and score gates may read tables in bind
#include <array>

#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = mass_reference::none};
  table w;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("w", &mine::w, table_width::one, table_use::bind)}; }
  template <class T>
  struct bound {
    table_entries<T> w;
    T earned(T const& a, T const&) const { return a * w[0]; }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r.entries(w)};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
