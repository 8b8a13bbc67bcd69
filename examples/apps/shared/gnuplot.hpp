// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   gnuplot("plots/error.gnuplot", {{"data", folder}, {"out", "error.svg"}});
//
// Pictures by gnuplot: committed scripts that read CSV files and write SVG.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace apps {

/// Runs a script with these string variables set, and `common`, the path of common.gnuplot, which a script loads first.
/// `program`: which gnuplot, a path or a name to look up in PATH. Throws std::runtime_error if it is not there, fails,
/// or says
/// anything: it warns where a picture lacks its data.
void gnuplot(std::filesystem::path const& script, std::map<std::string, std::string> variables,
             std::string program = "gnuplot");

}  // namespace apps
