// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The head of every shared library of the C interface: version, compiler, threads. Companions are further libraries for
// the calls of an operator.
#pragma once

#include <string>

#include <attune/core/error.hpp>
#ifndef ATTUNE_C_ON_DEVICE
#include <attune/core/xsimd.hpp>
#endif
#include <attune/interop/c_abi.h>
#include <attune/interop/c_arguments.hpp>
#include <attune/threads/pool.hpp>
#include <attune/version.hpp>

namespace attune::interop {

/// The instruction set that a library was compiled for.
inline char const* instructions() {
#ifdef ATTUNE_C_ON_DEVICE
  return "CUDA";
#else
  return xsimd::default_arch::name();
#endif
}
/// Version, instruction set and compiler of a library, as JSON.
inline char const* built_for() {
  static std::string const text = attune::detail::text(
      "{\"version\": \"", ATTUNE_VERSION_MAJOR, ".", ATTUNE_VERSION_MINOR, ".", ATTUNE_VERSION_PATCH,
      "\", \"instructions\": \"", instructions(), "\", \"compiler\": \"", __VERSION__, "\"}");
  return text.c_str();
}
/// attune_library::use_pool.
inline int use_pool_of(void const* pool, attune_text text) {
  return guarded(text, [&] { use_pool(static_cast<pool_functions const*>(pool)); });
}

/// A library with one function on calls: attune_companion.
template <auto Run>
attune_companion const* companion_of() {
  static attune_companion const one{ATTUNE_ABI_VERSION, 0, built_for(), &own_pool(), &use_pool_of, Run};
  return &one;
}

}  // namespace attune::interop

/// Exports a companion: ATTUNE_C_COMPANION(statistics, run_statistics<make_mine>).
#define ATTUNE_C_COMPANION(KIND, ...)                                                             \
  extern "C" __attribute__((visibility("default"))) attune_companion const* attune_##KIND##_1() { \
    using namespace ::attune::interop;                                                            \
    return companion_of<&__VA_ARGS__>();                                                          \
  }
