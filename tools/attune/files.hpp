// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Arguments that name arrays: x.npy, x.npz:name, x.safetensors:name. The kind of a file follows from the end of its
// name.
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

/// "--ground-weight" for "ground_weight".
std::string option_of(std::string name);

/// call(), whose attune::error becomes a usage_error that names the argument.
template <class Call>
auto naming(std::string const& argument, Call const& call) {
  try {
    return call();
  } catch (error const& e) {
    throw usage_error(argument + ": " + e.what());
  }
}

enum class file_kind { npy, npz, safetensors };

/// "x.npz:q" apart.
struct file_argument {
  std::filesystem::path path;
  std::string name;  ///< after the colon, or empty
  file_kind kind;
};
/// Nothing unless a file's end stands at the end or before a colon.
std::optional<file_argument> parse_file(std::string const& text);

/// The array that an argument names. In an archive without a name given it is the only one, or `own_name`. `words`:
/// what 16-bit words without a type are. Errors name the argument.
io::array read_array(std::string const& argument, std::string const& value, std::string const& own_name,
                     std::optional<io::element_type> words);
/// The names in an archive.
std::vector<std::string> names_in(std::string const& argument, file_argument const& archive);

/// Throws unless an array can be written there: called before anything is computed.
file_argument checked_output(std::string const& argument, std::string const& value);
/// The files of a command. Arguments may name one archive for several arrays; each .npy file holds one.
class output_files {
 public:
  /// Throws unless the array `name` can be written there beside those that have been added: called before anything is
  /// computed.
  void add(std::string const& argument, std::string const& value, std::string const& name);
  /// Throws if a report there would overwrite arrays.
  void add_report(std::string const& argument, std::string const& value) const;
  /// Writes what has been added.
  void write(std::map<std::string, io::array> const& arrays) const;

 private:
  struct output {
    std::string argument;
    file_argument file;
    std::vector<std::string> names;
  };
  std::map<std::filesystem::path, output> files_;
};

/// Writes one array, or several into an archive.
void write_arrays(std::string const& argument, file_argument const& to, std::map<std::string, io::array> const& arrays);

}  // namespace attune::tool
