// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// affine_<visible | total>_<sigmoid | clipping>_<given | update_stop | update_grad>: all are one or two operators.
#pragma once

#include "instance.hpp"

namespace attune::instances {

using normalizer::affine_count;

/// All activations and averages: one operator for all of them.
/// Of each source its own: the same sources compile for Thrust too (tests/thrust), where `add` is another function.
template <affine_count Count, class K, class... Post>
static void add_affine_variants(std::map<std::string, entry>& to, named<K> const& kernel, std::string const& count,
                                named<Post> const&... post) {
  for (auto const& [phi, f] :
       {std::pair{"_sigmoid", activation::sigmoid}, std::pair{"_clipping", activation::linear_clipping}})
    for (auto const& [average, kind] :
         {std::pair{"_given", average_kind::fixed}, std::pair{"_update_stop", average_kind::update_stop},
          std::pair{"_update_grad", average_kind::update_grad}})
      add(to, kernel, no_length_scale, no_gate, affine<Count>("affine_" + count + phi + average, f, kind), post...);
}

}  // namespace attune::instances
