// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every policy and preset attune ships: no executor, no third-party header.
#pragma once

#include <attune/operators/attention.hpp>
#include <attune/operators/inputs.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies/gate/none.hpp>
#include <attune/policies/gate/softplus.hpp>
#include <attune/policies/kernel/alibi.hpp>
#include <attune/policies/kernel/compose.hpp>
#include <attune/policies/kernel/dot_product.hpp>
#include <attune/policies/kernel/given_scores.hpp>
#include <attune/policies/kernel/softcap.hpp>
#include <attune/policies/length_scale/log_n.hpp>
#include <attune/policies/length_scale/margin.hpp>
#include <attune/policies/length_scale/none.hpp>
#include <attune/policies/length_scale/ssmax.hpp>
#include <attune/policies/mask/block_sparse.hpp>
#include <attune/policies/mask/causal.hpp>
#include <attune/policies/mask/combine.hpp>
#include <attune/policies/mask/documents.hpp>
#include <attune/policies/mask/none.hpp>
#include <attune/policies/mask/padding.hpp>
#include <attune/policies/mask/predicate.hpp>
#include <attune/policies/mask/prefix.hpp>
#include <attune/policies/mask/runtime.hpp>
#include <attune/policies/mask/sink_window.hpp>
#include <attune/policies/mask/sliding_window.hpp>
#include <attune/policies/normalizer/grounded.hpp>
#include <attune/policies/normalizer/off_by_one.hpp>
#include <attune/policies/normalizer/sink.hpp>
#include <attune/policies/normalizer/softmax.hpp>
