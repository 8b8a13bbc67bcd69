// expect-error: a policy has no role\. Write in it: static constexpr auto role
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

struct mine {
  template <class T>
  int bind(row<T> const&) const {
    return 0;
  }
};
auto op = attention(kernel::dot_product{}, mine{});
int main() {}
