// expect-error: has room for a parameter that parameters\(\) does not list
#include "views.hpp"

struct mine {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::metric_dot;
  table metric, other;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("metric", &mine::metric, table_width::query)}; }
  template <class T>
  struct bound {
    T score(T const& dot, key<T> const&) const { return dot; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(mine{}), 0);
int main() {}
