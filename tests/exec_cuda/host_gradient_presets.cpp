// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The gradients of a group of operators on emulated warps, at D 64, 128 and 256, in bf16 or in ATTUNE_ELEMENT, against
// gradient_error_bound(). Operators and inputs whose gradients the tiles do not have are listed, with the reason; with
// ATTUNE_TABLE_ALONE, nothing else happens.
#include <cstdio>
#include <exception>
#include <string>

#include "../unit/exec/cuda/gradients.hpp"
#include "presets.hpp"

#if !defined(ATTUNE_ELEMENT)
#define ATTUNE_ELEMENT bfloat16
#endif

namespace attune::test {
namespace {
using element = ATTUNE_ELEMENT;
#if defined(ATTUNE_TABLE_ALONE)
constexpr bool runs = false;
#else
constexpr bool runs = true;
#endif
int failures = 0, operators = 0;

char const* words_of(exec_cuda::gradient_refusal x) {
  switch (x) {
    case exec_cuda::gradient_refusal::number_type:
      return "the type of the tensors";
    case exec_cuda::gradient_refusal::family:
      return "the family of the normalizer";
    case exec_cuda::gradient_refusal::policies:
      return "what bind(row) returns is not made of numbers";
    case exec_cuda::gradient_refusal::none:
      return "";
  }
  return "";
}

template <int Width, class Op>
void check_width(char const* name, Op const& op, cuda_check::sizes const& n, double loose) {
  std::string line;
  bool right = false;
  try {
    gradient_problem<Op, element> p(op, {.batch = n.batch,
                                         .heads = n.heads,
                                         .key_heads = n.key_heads,
                                         .value_heads = n.value_heads,
                                         .queries = n.queries,
                                         .keys = n.keys,
                                         .width = Width,
                                         .value_width = Width});
    if constexpr (Op::uses(field::bias))
      for (element& x : p.numbers(field::bias))
        if (n.positive_bias) x = element(0.01f + std::fabs(float(x)));
    line = p.beyond_bound(p.template on_host<exec_cuda::widths<Width>>(), loose);
    right = line.empty() && p.compared > 0;
    if (line.empty()) line = attune::detail::text("share of bound ", p.worst / loose, " of ", p.compared, " numbers");
  } catch (std::exception const& e) {
    line = e.what();
  }
  failures += right ? 0 : 1;
  std::printf("%s  %-22s D%d  %s\n", right ? "PASS" : "FAIL", name, Width, line.c_str());
}

/// Runs one operator if the tiles accept it. `make` is called for each width, for tables that depend on it.
template <class Make>
void check(char const* name, cuda_check::sizes const& n, Make const& make, double loose) {
  ++operators;
  auto const at_width = [&]<int Width>() {
    cuda_check::host_place place;
    cuda_check::learned<cuda_check::host_place> of{place, Width};
    auto const op = make(of);
    using Op = std::remove_cvref_t<decltype(op)>;
    constexpr auto refusal = exec_cuda::refusal_of_gradients<Op, element>();
    if constexpr (refusal == exec_cuda::gradient_refusal::none) {
      std::string missing;
      for_each_field([&]<field F>() {
        if constexpr (Op::uses(F))
          if (!exec_cuda::has_gradient<Op>(F)) missing += std::string(" ") + name_of(F);
      });
      if constexpr (parameter_count<Op> > 0)
        if (!exec_cuda::has_parameter_gradients<Op>) missing += " parameters";
      if (Width == 64 && !missing.empty()) std::printf("----  %-22s none by%s\n", name, missing.c_str());
      if constexpr (runs) check_width<Width>(name, op, n, loose);
    } else if (Width == 64) {
      std::printf("----  %-22s refused: %s\n", name, words_of(refusal));
    }
    std::fflush(stdout);
  };
  at_width.template operator()<64>();
  at_width.template operator()<128>();
  at_width.template operator()<256>();
}

}  // namespace
}  // namespace attune::test

int main() {
  using namespace attune::test;
  auto const on = [](char const* name, attune::cuda_check::sizes const& n, auto const& make, double loose = 1) {
    check(name, n, make, loose);
  };
#if defined(ATTUNE_GROUP)
  attune::cuda_check::presets<ATTUNE_GROUP>(on);
#else
  [&]<int... Group>(std::integer_sequence<int, Group...>) {
    (..., attune::cuda_check::presets<Group>(on));
  }(std::make_integer_sequence<int, 15>{});
#endif
  std::printf("%s  %d operators, %d failures\n", failures == 0 && operators > 0 ? "PASS" : "FAIL", operators, failures);
  return failures != 0 || operators == 0;
}
