// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#pragma once

#include <memory>
#include <vector>

#include "fit.hpp"

namespace scalar_sort {

/// The fits that several experiments look at, made when the first of them asks.
class shared_fits {
 public:
  static constexpr double cost = 25;  ///< rough seconds
  std::vector<fitted> const& operator()(apps::context const& c) {
    if (all_.empty()) {
      c.bar->stage("fitting");
      all_ = fit_all(c, cost);
    }
    return all_;
  }

 private:
  std::vector<fitted> all_;
};
using fits = std::shared_ptr<shared_fits>;

apps::experiment fitting(fits f);
apps::experiment error_of_windows(fits f);
apps::experiment alignment(fits f);
apps::experiment context_length(fits f);
apps::experiment accessed(fits f);
apps::experiment counterexamples();

/// The widths of windows that the paper proposes.
inline constexpr index_t window_sizes[] = {8, 16, 32, 64};

}  // namespace scalar_sort
