// expect-error: KernelPolicy of contraction::interpolated: bind\(row\) must return an object with T score\(T const& x, T
#include "ordered.hpp"

struct two_numbers {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::interpolated<later>;
  template <class T>
  struct bound {
    T score(T const& x, T const& z, key<T> const&) const { return x + z; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(two_numbers{}), 0);
int main() {}
