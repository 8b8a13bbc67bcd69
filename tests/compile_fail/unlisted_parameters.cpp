// expect-error: a policy with members must list its parameters
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{};
  parameter strength = 1;
  template <class T>
  normalizer::softmax::bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto op = (attention(kernel::dot_product{}, mine{}), 0);
int main() {}
