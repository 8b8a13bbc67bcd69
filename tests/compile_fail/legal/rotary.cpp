// The nearest legal program to rotary_without_angles.cpp.
#include <attune/policies.hpp>

using namespace attune;

struct turned {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::rotary_dot;
  rotary_rows angles;
  rotary_layout layout = rotary_layout::half;
  rotary_keys keys = rotary_keys::plain;
  static constexpr std::size_t constants = sizeof(rotary_rows) + sizeof(rotary_layout) + sizeof(rotary_keys);
  static constexpr auto parameters() { return std::tuple<>{}; }
  template <class T>
  struct bound {
    T score(T const& x, key<T> const&) const { return x; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};

auto op = (attention(turned{}), 0);
int main() {}
