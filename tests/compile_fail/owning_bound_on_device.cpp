// expect-error: on Thrust what bind\(row\) of the normalizer policy returns is copied byte by byte
#include <vector>

#include <attune/exec/thrust/device_ready.hpp>
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{};
  template <class T>
  struct bound {
    std::vector<T> levels;
    T earned(T const& a, T const& m) const { return math::exp_nonpositive(T(a - m)); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
using op = decltype(attention(kernel::dot_product{}, mine{}));
static_assert(exec_thrust::require_device_ready<op>());
int main() {}
