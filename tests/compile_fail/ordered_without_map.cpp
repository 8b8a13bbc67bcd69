// expect-error: write in F: template <class T> static T map\(T const& x\)
#include "ordered.hpp"

struct unnamed {
  template <class T>
  static T of(T const& x) {
    return x;
  }
};
auto op = (attention(summed<contraction::later_sum<contraction::dot, unnamed>>{}), 0);
int main() {}
