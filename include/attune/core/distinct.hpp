// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   an output whose elements share memory is an error: rows would overwrite each other
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include <attune/core/tensor.hpp>

namespace attune::detail {

/// Whether two elements of a view have the same address. Constant time if each axis steps over all axes with smaller
/// steps, as in any slice of a dense tensor. Otherwise n log n time and linear memory in the number n of elements.
ATTUNE_NOINLINE inline bool elements_coincide(shape const& extents, strides const& steps) {
  struct axis {
    index_t extent, step;
  };
  std::array<axis, 4> axes{{{extents.batch, steps.batch},
                            {extents.head, steps.head},
                            {extents.position, steps.position},
                            {extents.feature, steps.feature}}};
  if (extents.size() == 0) return false;
  for (axis& a : axes) {
    if (a.extent > 1 && a.step == 0) return true;
    if (a.step < 0) a.step = -a.step;
  }
  std::sort(axes.begin(), axes.end(), [](axis const& a, axis const& b) { return a.step < b.step; });
  index_t reach = 0;  // distance from the first to the last element of the axes so far
  bool nested = true;
  for (axis const& a : axes) {
    if (a.extent == 1) continue;
    nested = nested && a.step > reach;
    reach += (a.extent - 1) * a.step;
  }
  if (nested) return false;
  std::vector<index_t> places;
  places.reserve(std::size_t(extents.size()));
  for (index_t b = 0; b < extents.batch; ++b)
    for (index_t h = 0; h < extents.head; ++h)
      for (index_t i = 0; i < extents.position; ++i)
        for (index_t d = 0; d < extents.feature; ++d)
          places.push_back(b * steps.batch + h * steps.head + i * steps.position + d * steps.feature);
  std::sort(places.begin(), places.end());
  return std::adjacent_find(places.begin(), places.end()) != places.end();
}

/// Throws unless every element of an output has its own address.
ATTUNE_NOINLINE inline void require_distinct(char const* function, char const* argument, shape const& extents,
                                             strides const& steps) {
  if (elements_coincide(extents, steps))
    throw error(function, argument,
                text("strides (", steps.batch, ", ", steps.head, ", ", steps.position, ", ", steps.feature,
                     ") for the shape ", to_string(extents)),
                "elements that share no memory: rows of an output would overwrite each other");
}
template <class T>
void require_distinct(char const* function, char const* argument, tensor<T> const& x) {
  detail::require_distinct(function, argument, x.extents(), x.steps());
}

}  // namespace attune::detail
