// expect-error: a policy has room for a parameter that parameters\(\) does not list
#include <tuple>

#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::none;
  parameter rate = 1, other = 2;
  static constexpr auto parameters() { return std::array{listed("rate", &mine::rate)}; }
  template <class T>
  struct bound {
    T rate, other;
    T score(key<T> const& k) const { return rate * k.position + other; }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(rate), r(other)};
  }
};
auto op = (attention(mine{}), 0);
int main() {}
