// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A group of operators on emulated warps, in bf16 or in ATTUNE_ELEMENT. Floats are added as tensor cores do.
#include <cstring>
#include <optional>

#include <attune/exec/cuda/host/forward.hpp>

#include "presets.hpp"

#if !defined(ATTUNE_ELEMENT)
#define ATTUNE_ELEMENT bfloat16
#endif

namespace attune::cuda_check {
using element = ATTUNE_ELEMENT;
struct warp_place : host_place {
  template <class Op, class E>
  void forward(Op const& op, inputs<Op, tensor<E const>> const& in, outputs<Op, E> const& to) {
    testing::forward_on_host_warps<exec_cuda::widths<64>>(op, in, to);
  }
};
}  // namespace attune::cuda_check

int main() {
  using namespace attune::cuda_check;
  warp_place place;
  attune::testing::host_warp::truncates = std::is_same_v<element, float>;
  auto const on = [&](char const* name, sizes const& n, auto const& make, double loose = 1) {
    check<element>(place, name, n, make, loose);
  };
#if defined(ATTUNE_GROUP)
  presets<ATTUNE_GROUP>(on);
#else
  presets<0>(on), presets<1>(on), presets<2>(on), presets<3>(on), presets<4>(on), presets<5>(on);
  presets<6>(on), presets<7>(on), presets<8>(on), presets<9>(on), presets<10>(on), presets<11>(on);
  presets<12>(on), presets<13>(on), presets<14>(on);
#endif
  return failures;
}
