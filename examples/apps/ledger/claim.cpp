// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
#include "claim.hpp"

namespace ledger {

char const* name_of(status s) {
  switch (s) {
    case status::holds:
      return "holds";
    case status::conditional:
      return "holds under conditions";
    case status::incorrect:
      return "false";
    case status::inconsistent:
      return "inconsistent";
    case status::undecidable:
      break;
  }
  return "not decidable here";
}

std::string objection(claim const& c, evidence const& e) {
  if (!e.stands()) return "the evidence no longer holds";
  if (c.quantified && e.instances() < evidence::enough)
    return "the correction was not tried on enough random instances";
  switch (c.verdict) {
    case status::holds:
      return e.confirmed() + e.instances() > 0 ? "" : "nothing was checked";
    case status::conditional:
      if (e.refuted() == 0) return "no counterexample outside the conditions";
      return e.confirmed() + e.instances() > 0 ? "" : "nothing was checked under the conditions";
    case status::incorrect:
      return e.refuted() > 0 ? "" : "no counterexample";
    case status::inconsistent:
    case status::undecidable:
      break;
  }
  return "";
}

}  // namespace ledger
