// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Moved to attune/certify/enclosure.hpp, and to namespace attune::certify. This file goes with version 0.3.
#pragma once

#include <attune/certify/enclosure.hpp>

#ifndef ATTUNE_ALLOW_OLD_NAMES
#pragma message( \
    "attune: include <attune/certify/enclosure.hpp> instead of <attune/testing/enclosure.hpp>, or define ATTUNE_ALLOW_OLD_NAMES")
#endif

namespace attune::testing {
using namespace certify;
}
