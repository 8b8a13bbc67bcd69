// expect-error: KernelPolicy: name what it needs: using contraction
#include <attune/policies.hpp>

using namespace attune;

struct misspelled {
  static constexpr auto role = policy_role::kernel;
  using contractions = contraction::list<contraction::dot>;
  template <class T>
  struct bound {};
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};

auto op = (attention(misspelled{}), 0);
int main() {}
