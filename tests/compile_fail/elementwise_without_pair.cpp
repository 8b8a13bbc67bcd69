// expect-error: static T pair\(T const& q, T const& k\)
#include "views.hpp"

struct city_block {
  template <class T>
  static T between(T const& q, T const& k) {
    return -math::abs(T(q - k));
  }
};
auto op = (attention(kernel::elementwise<city_block>{}), 0);
int main() {}
