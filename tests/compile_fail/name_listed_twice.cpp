// expect-error: lists a member or a name twice
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::none;
  parameter rate, slope;
  static constexpr auto parameters() { return std::array{listed("rate", &mine::rate), listed("rate", &mine::slope)}; }
  template <class T>
  struct bound {
    T rate, slope;
    T score(key<T> const& k) const { return rate + slope * k.position; }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(rate), r(slope)};
  }
};
auto op = (attention(kernel::dot_product{} + mine{}), 0);
int main() {}
