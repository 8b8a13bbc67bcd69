// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Relative values of Shaw et al. against 50 digits of mpmath: output and every gradient. The numbers come from the
// formulas themselves, with loops over pairs: n = clamp(j - i - 1, -1, 1) + 1, g_j = <do, v_j + t_n>,
// da_j = w_j (g_j - sum w g), dt_n = sum w do.
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

#include "../../unit/check.hpp"

namespace attune::test {
namespace {

constexpr index_t heads = 2, queries = 3, keys = 4, width = 2;
constexpr shape of_queries{1, heads, queries, width}, of_keys{1, heads, keys, width}, of_rows{1, heads, 3, width};

// clang-format off
constexpr char const* out[] = {
    "0.096948160170786663075247170624503136755396467247352",
    "0.092324415590112008619406790501192471787048478606354",
    "0.40657256172958945045581543781852234190291804695060",
    "0.54471909128841474062315421621094641539573942926445",
    "-0.29955659824859543453481114001535061747222769545402",
    "-0.083252580326663404893225971924114835105127710826218",
    "-0.31296304301128153926861094966486451553264250508531",
    "0.43703695698871846073138905033513548446735749491469",
    "-0.16064129394657892529206097804298311464028617318346",
    "0.58935870605342107470793902195701688535971382681654",
    "-0.37584555551670795587592540150583384794422710614217",
    "0.37415444448329204412407459849416615205577289385783"};
constexpr char const* by_q[] = {
    "0.094883067894038720070369839948101039916205300914641",
    "0.094883067894038720070369839948101039916205300914641",
    "0.055230120045779343420729544382174298946546267489787",
    "0.055230120045779343420729544382174298946546267489787",
    "0.038285061198904075813202745094693344924014557253250",
    "0.038285061198904075813202745094693344924014557253250",
    "-0.27030739541891928852715399987242799042228612555987",
    "-0.27030739541891928852715399987242799042228612555987",
    "0.19126870585448680293785751398717647661683427315691",
    "0.19126870585448680293785751398717647661683427315691",
    "0.00031670338166424834254695381204631614115526137108022",
    "0.00031670338166424834254695381204631614115526137108022"};
constexpr char const* by_k[] = {
    "-0.26994022910360466882956755391577175259625240239950",
    "-0.24892065512593944238159959275843112218773989953481",
    "0.10549470629201407209548562112300962943648428283118",
    "0.14125317205235525429072307568874737630739002705028",
    "0.17186260660760029468135466415554964357507619470604",
    "0.10395894117557933911724015138828998567269583491567",
    "-0.0074170837960096979472727313627875204153080751377183",
    "0.0037085418980048489736363656813937602076540375688592",
    "-0.16928770867801227028000268817577337019588127102927",
    "-0.21073987515243869480246198718904612549931841390904",
    "0.26415076452041265386342002987105964137677523571773",
    "0.26351033331288062626922801228331940157676686529528",
    "-0.096682373254698425510812019844158118696213646979092",
    "-0.049131823335845847611976668796529581046809086804972",
    "0.0018193174122980419273946781488718475153196822906370",
    "-0.0036386348245960838547893562977436950306393645812741"};
constexpr char const* by_v[] = {
    "0.28252866508567900449986623749299624053502499250909",
    "0.0059998764856661772519549747630057509293334257110643",
    "0.19470410632311978842311851323930341898497309490012",
    "0.31183381100110143597126823127321614968156780968931",
    "0.49091402978123041248414299267232203962225704089229",
    "-0.44283368748676761322322320603622190061090123540037",
    "-0.093146801190029205407127743404621699142255128301504",
    "0.0",
    "0.081407908881905029532657170215895896524487909778192",
    "0.53242865596788174585860385609946607923643168923381",
    "-0.55268015010392124592787694772515340457544027613408",
    "-0.17335135602089161383682348966721927250951150019213",
    "-0.33795042221809247997625455507708194376795469142033",
    "-0.14196596822693578383604320013907708081746666015357",
    "-0.065777336559891303628525667413660548181092942223790",
    "0.032888668279945651814262833706830274090546471111895"};
constexpr char const* by_vectors[] = {
    "0.21648114860932038633959567027279375302987873466662",
    "-0.085218152342445723701529623339274962633702297352277",
    "0.65851885139067961366040432972720624697012126533338",
    "-0.039781847657554276298470376660725037366297702647723",
    "0.0",
    "0.0",
    "-0.61083974327752651259950339279001838720112953740379",
    "0.23383795285679624216680401761316756850991034024394",
    "-0.26416025672247348740049660720998161279887046259621",
    "0.016162047143203757833195982386832431490089659756056",
    "0.0",
    "0.0"};
// clang-format on

/// Exact in float: eighths.
template <class T>
std::vector<T> eighths(int seed, shape const& e) {
  std::vector<T> x;
  for (int n = 0; n < int(e.size()); ++n) x.push_back(T((37 * n + 11 * seed) % 17 - 8) / 8);
  return x;
}
template <class T>
struct problem {
  std::vector<T> q = eighths<T>(1, of_queries), k = eighths<T>(2, of_keys), v = eighths<T>(3, of_keys),
                 d = eighths<T>(4, of_queries), rows = eighths<T>(5, of_rows);
  auto op() const {
    return attention(kernel::dot_product{}, value_term::relative{tensor<T const>(rows, of_rows)}, mask::causal{});
  }
  template <class View, class Op>
  inputs<Op, View> of(Op const&) const {
    auto const view = [](std::vector<T> const& x, shape const& e) { return View(tensor<T const>(x, e)); };
    return {.q = view(q, of_queries), .k = view(k, of_keys), .v = view(v, of_keys)};
  }
};

template <class Numbers, std::size_t N>
double worst(Numbers const& x, char const* const (&exact)[N]) {
  if (x.size() != N) return inf;
  double far = 0;
  for (std::size_t n = 0; n < N; ++n)
    far = std::fmax(far, double(math::abs(digits50(digits50(x[n]) - digits50(exact[n])))));
  return far;
}
template <class Gradients>
double worst_of(Gradients const& g) {
  return (std::max)({worst(g.of(field::q).values, by_q), worst(g.of(field::k).values, by_k),
                     worst(g.of(field::v).values, by_v), worst(g.table("value_term.vectors").values, by_vectors)});
}

template <class T>
void check_cpu(double allowed) {
  problem<T> const p;
  auto const op = p.op();
  auto const in = p.template of<tensor<T const>>(op);
  cpu<T> const exec{1};
  std::vector<T> y(std::size(out));
  tensor<T> const to(y, of_queries);
  auto const saved = forward_and_save(exec, op, in, {.out = to});
  CHECK(worst(y, out) < allowed);
  CHECK(worst_of(vjp(exec, op, in, saved, {.out = tensor<T const>(p.d, of_queries)})) < 4 * allowed);
  y.assign(y.size(), T(0));
  decode(exec, op, in, {.out = to});
  CHECK(worst(y, out) < allowed);
  y.assign(y.size(), T(0));
  finish(exec, op, in, merge(accumulate(exec, op, in, {2, keys}), accumulate(exec, op, in, {0, 2})), {.out = to});
  CHECK(worst(y, out) < allowed);
}

TEST_CASE("relative values: the CPU against 50 digits") {
  check_cpu<double>(1e-15);
  check_cpu<float>(4e-7);
}

TEST_CASE("relative values: the reference has 50 digits") {
  problem<double> const p;
  auto const op = p.op();
  auto const in = p.of<any_tensor>(op);
  auto const rows = [](dense_result<digits50> const& r) {
    std::vector<digits50> y;
    for (index_t h = 0; h < heads; ++h)
      for (index_t i = 0; i < queries; ++i)
        for (index_t d = 0; d < width; ++d) y.push_back(r.at(0, h).out(i, d));
    return y;
  };
  CHECK(worst(rows(forward(reference<digits50>{}, op, in)), out) < 1e-48);
  any_tensor const d = tensor<double const>(p.d, of_queries);
  CHECK(worst_of(vjp(reference<digits50>{}, op, in, {.out = d})) < 1e-48);
}

}  // namespace
}  // namespace attune::test
