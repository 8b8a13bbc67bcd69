// expect-error: a length scale with a row_constant reads no table in bind
#include <array>

#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::length_scale;
  static constexpr length_scale_traits traits{.row_constant = true};
  table w;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("w", &mine::w, table_width::one, table_use::bind)}; }
  template <class T>
  struct bound {
    table_entries<T> w;
    T scale(T const& s) const { return s; }
    T row_constant() const { return w[0]; }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r.entries(w)};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
