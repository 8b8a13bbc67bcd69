// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every row of the catalogue is an operator for other languages. The names in its expression are found there, too, where
// nothing but namespace attune is visible. To compile the operators themselves takes most of an hour: scripts/wheel.
#include <type_traits>
#include <utility>

#include <attune/interop/c_operator.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../../python/native/extra.hpp"
#include "../../tools/catalogue/presets.hpp"

using attune::interop::call_constants;
using attune::interop::mask_policy;

#define PRESET(name, call, policies, names, note, operator_, ...)                                        \
  ATTUNE_C_MAKE(name, operator_)                                                                         \
  static_assert(std::is_class_v<decltype(attune::interop::make_##name::make(std::declval<mask_policy>(), \
                                                                            std::declval<call_constants const&>()))>);
ATTUNE_PRESETS(PRESET)
ATTUNE_EXTRA(PRESET)
#undef PRESET
