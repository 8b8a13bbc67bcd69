// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The kernels of a group of operators (presets.hpp), for ATTUNE_ELEMENT and tiles of ATTUNE_WIDTH. Compiled, never run.
#include <cstring>
#include <optional>

#include <attune/cuda.hpp>

#include "presets.hpp"

namespace attune::cuda_check {

void calls(tensor<ATTUNE_ELEMENT const> const& x, tensor<ATTUNE_ELEMENT> const& out) {
  host_place place;
  learned<host_place> of{place};
  presets<ATTUNE_GROUP>([&](char const*, sizes const&, auto const& make, double = 1) {
    auto const op = make(of);
    using Op = std::remove_const_t<decltype(op)>;
    auto const in = make_inputs<Op, tensor<ATTUNE_ELEMENT const>>([&]<field F>() { return x; });
    cuda<ATTUNE_ELEMENT, exec_cuda::widths<ATTUNE_WIDTH>> const exec;
    outputs<Op, ATTUNE_ELEMENT> const to{.out = out};
    prepare(exec, op, in, to);
    forward(exec, op, in, to);
  });
}

}  // namespace attune::cuda_check
