// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   detail::readable_name(typeid(T))  ==  "attune::normalizer::softmax"
//
// Names of types for messages, and for comparisons between processes. g++ and clang++ give the same names.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <typeinfo>

#include <cxxabi.h>

namespace attune::detail {

/// The name of a type as in its source.
inline std::string readable_name(std::type_info const& type) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> const name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 && name ? name.get() : type.name();
}

}  // namespace attune::detail
