// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Any bytes: read or refused by attune::error, nothing else.
#include <attune/io/npy.hpp>

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  for (auto words : {std::optional<attune::io::element_type>{}, std::optional(attune::io::element_type::bfloat16)})
    try {
      attune::io::array const x = attune::io::read_npy({data, size}, "memory", {.words = words});
      if (attune::io::is_floating(x.type)) (void)attune::io::numbers<float>(x);
      (void)attune::io::tensor_shape(x);
    } catch (attune::error const&) {
    }
  return 0;
}
