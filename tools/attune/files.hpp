// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Arguments that name arrays: x.npy, x.npz:name, x.safetensors:name. The kind of a file follows from the end of its name.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <attune/io/array.hpp>

namespace attune::tool {

/// Bad usage or bad input: what the program says before it ends with status 2.
class usage_error : public std::runtime_error {
 public:
  /// "<argument>: the value '<value>'; expected <expected>"
  usage_error(std::string const& argument, std::string const& value, std::string const& expected)
      : std::runtime_error(argument + ": the value '" + value + "'; expected " + expected) {}
  explicit usage_error(std::string const& text) : std::runtime_error(text) {}
};

enum class file_kind { npy, npz, safetensors };

/// "x.npz:q" apart.
struct file_argument {
  std::filesystem::path path;
  std::string name;  ///< after the colon, or empty
  file_kind kind;
};
/// Nothing unless a file's end stands at the end or before a colon.
std::optional<file_argument> parse_file(std::string const& text);

/// The array that an argument names. In an archive without a name given it is the only one, or `own_name`. `words`: what 16-bit
/// words without a type are. Errors name the argument.
io::array read_array(std::string const& argument, std::string const& value, std::string const& own_name,
                     std::optional<io::element_type> words);
/// The names in an archive.
std::vector<std::string> names_in(std::string const& argument, file_argument const& archive);

/// Throws unless an array can be written there: called before anything is computed.
file_argument checked_output(std::string const& argument, std::string const& value);
/// Writes one array, or several into an archive.
void write_arrays(std::string const& argument, file_argument const& to, std::map<std::string, io::array> const& arrays);

}  // namespace attune::tool
