// Weight gates with a random number, with a contraction, and with positions alone, in any order.
#include "../views.hpp"

template <class Contraction>
struct mine {
  static constexpr auto role = policy_role::weight_gate;
  using contraction = Contraction;
  std::uint64_t seed = 1;
  static constexpr auto parameters() { return std::tuple<>{}; }
  template <class T>
  struct bound {
    T factor(T const& u, key<T> const&) const { return math::larger(u, T(0)); }
    T factor(key<T> const& k) const { return k.position; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto a =
    attention(gate::dropout{.rate = 0.2, .seed = 3}, kernel::dot_product{}, gate::softplus{}, gate::sigmoid_value{});
auto b = attention(kernel::dot_product{}, mine<contraction::uniform>{}, mask::causal{});
auto c = attention(mine<contraction::given_gates>{}, kernel::dot_product{});
auto d = attention(kernel::dot_product{}, mine<contraction::none>{}, normalizer::sparsemax{});
static_assert(!decltype(a)::contractions::contains<contraction::uniform>);
static_assert(decltype(c)::uses(field::gates) && !decltype(d)::uses(field::gates));
int main() {}
