// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Formats, options and the report of the two companions that judge.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <attune/interop/c_arguments.hpp>
#include <attune/testing/candidate.hpp>
#include <attune/testing/interop/report_json.hpp>
#include <attune/testing/verdict_options.hpp>

namespace attune::interop {

/// The format of an attune_type. Throws for types that no kernel stores.
inline certify::storage storage_of_type(std::int32_t type) {
  switch (type) {
    case attune_float64:
      return certify::storage::fp64;
    case attune_float32:
      return certify::storage::fp32;
    case attune_float16:
      return certify::storage::fp16;
    case attune_bfloat16:
      return certify::storage::bf16;
    default:
      throw error("verdict", "the stored type", name_of_type(type), "float32, float64, bfloat16 or float16");
  }
}
/// A view of a tensor that must be given.
inline tensor<double const> required(std::string_view name, attune_tensor const& x) {
  if (!x.given) throw error("verdict", name, "no tensor", "what the kernel computed");
  return view<double const>(name, x);
}
/// The options of a verdict.
inline testing::verdict_options options_of(attune_verdict const& given, certify::storage stored) {
  testing::verdict_options how;
  certify::precision formats(stored);
  if (given.weights >= 0) formats.weights = storage_of_type(given.weights);
  if (given.arithmetic >= 0) formats.arithmetic = storage_of_type(given.arithmetic);
  how.how = formats;
  for (std::int64_t n = 0; n < given.must_detect_count; ++n)
    how.must_detect.push_back({given.must_detect[n], given.sizes[n]});
  return how;
}
/// Hands the report to the caller: the report's own JSON, its text, and a narrower format that has all `numbers`.
inline void send(attune_verdict const& given, certify::storage stored,
                 std::vector<std::vector<double> const*> const& numbers, testing::verdict_report const& report) {
  std::ostringstream text;
  text << report;
  testing::json_object to;
  to.with("stored", certify::name_of(stored)).with("report", report).with("text", text.str());
  auto const all_are = [&](certify::storage s) {
    return std::all_of(numbers.begin(), numbers.end(),
                       [&](auto const* x) { return testing::foreign_to(s, *x) == nullptr; });
  };
  bool const wide = stored == certify::storage::fp64 || stored == certify::storage::fp32;
  for (auto const s : {certify::storage::bf16, certify::storage::fp16, certify::storage::fp32})
    if (wide && s != stored && all_are(s)) {
      to.with("also_fits", certify::name_of(s));
      break;
    }
  given.receive(to.text().c_str());
}

}  // namespace attune::interop
