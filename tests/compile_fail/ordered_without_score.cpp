// expect-error: KernelPolicy of an ordered sum: bind\(row\) must return an object with T score\(T const& x, T const& sum
#include "ordered.hpp"

struct one_number {
  static constexpr auto role = policy_role::kernel;
  using contraction = later;
  template <class T>
  struct bound {
    T score(T const& sum, key<T> const&) const { return sum; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(one_number{}), 0);
int main() {}
