// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "files.hpp"

#include <system_error>

#include <attune/io/npy.hpp>
#include <attune/io/npz.hpp>
#include <attune/io/safetensors.hpp>
#include <attune/io/zlib.hpp>

namespace attune::tool {
namespace {

#if __has_include(<zlib.h>)
constexpr io::inflate_function inflate = io::zlib_inflate;
#else
constexpr io::inflate_function inflate = nullptr;
#endif

constexpr char const* kinds = "a file whose name ends with .npy, .npz or .safetensors (in the last two: FILE:NAME)";

template <class Archive>
io::array from_archive(Archive& archive, std::string const& argument, std::string const& value, std::string const& name,
                       std::string const& own_name, auto const& read) {
  auto const names = archive.names();
  if (!name.empty()) return read(name);
  if (names.size() == 1) return read(names[0]);
  for (auto const& n : names)
    if (n == own_name) return read(n);
  std::string all;
  for (auto const& n : names) all += (all.empty() ? "" : ", ") + n;
  throw usage_error(argument, value, "FILE:NAME, NAME one of " + all.substr(0, 500));
}

}  // namespace

std::string option_of(std::string name) {
  for (char& c : name)
    if (c == '_') c = '-';
  return "--" + name;
}

std::optional<file_argument> parse_file(std::string const& text) {
  std::pair<char const*, file_kind> const ends[] = {
      {".npy", file_kind::npy}, {".npz", file_kind::npz}, {".safetensors", file_kind::safetensors}};
  for (auto const& [end, kind] : ends)  // first, for the name may end as a file does: x.npz:q.npy
    if (auto const at = text.find(std::string(end) + ":"); kind != file_kind::npy && at != std::string::npos) {
      auto const colon = at + std::string(end).size();
      return file_argument{text.substr(0, colon), text.substr(colon + 1), kind};
    }
  for (auto const& [end, kind] : ends)
    if (text.ends_with(end)) return file_argument{text, "", kind};
  return std::nullopt;
}

io::array read_array(std::string const& argument, std::string const& value, std::string const& own_name,
                     std::optional<io::element_type> words) {
  auto const file = parse_file(value);
  if (!file) throw usage_error(argument, value, kinds);
  return naming(argument, [&]() -> io::array {
    io::npy_options const options{.words = words};
    if (file->kind == file_kind::npy) return io::read_npy(file->path, options);
    if (file->kind == file_kind::npz) {
      io::npz_file archive(file->path, inflate);
      return from_archive(archive, argument, value, file->name, own_name,
                          [&](std::string const& name) { return archive.read(name, options); });
    }
    io::safetensors_file archive(file->path);
    return from_archive(archive, argument, value, file->name, own_name,
                        [&](std::string const& name) { return archive.read(name); });
  });
}

std::vector<std::string> names_in(std::string const& argument, file_argument const& archive) {
  if (archive.kind == file_kind::npy || !archive.name.empty())
    throw usage_error(argument, archive.path.string() + (archive.name.empty() ? "" : ":" + archive.name),
                      "an .npz or .safetensors file without a name behind it");
  return naming(argument, [&] {
    return archive.kind == file_kind::npz ? io::npz_file(archive.path, inflate).names()
                                          : io::safetensors_file(archive.path).names();
  });
}

file_argument checked_output(std::string const& argument, std::string const& value) {
  auto const file = parse_file(value);
  if (!file || !file->name.empty())
    throw usage_error(argument, value, "a file whose name ends with .npy, .npz or .safetensors");
  auto const folder = file->path.parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
    throw usage_error(argument, value, "a file in a folder that exists");
  return *file;
}

void output_files::add(std::string const& argument, std::string const& value, std::string const& name) {
  auto const file = checked_output(argument, value);
  std::error_code ignored;
  auto const key = std::filesystem::weakly_canonical(file.path, ignored);
  auto const [at, first] = files_.emplace(key, output{argument, file, {}});
  if (!first && file.kind == file_kind::npy)
    throw usage_error(argument, value,
                      "another file than that of " + at->second.argument + ": an .npy file holds one array");
  at->second.names.push_back(name);
}
void output_files::add_report(std::string const& argument, std::string const& value) const {
  std::error_code ignored;
  auto const at = files_.find(std::filesystem::weakly_canonical(value, ignored));
  if (at != files_.end()) throw usage_error(argument, value, "another file than that of " + at->second.argument);
}
void output_files::write(std::map<std::string, io::array> const& arrays) const {
  for (auto const& [path, file] : files_) {
    std::map<std::string, io::array> mine;
    for (auto const& name : file.names) mine.emplace(name, arrays.at(name));
    write_arrays(file.argument, file.file, mine);
  }
}

void write_arrays(std::string const& argument, file_argument const& to,
                  std::map<std::string, io::array> const& arrays) {
  naming(argument, [&] {
    if (to.kind == file_kind::npz)
      io::write_npz(to.path, arrays);
    else if (to.kind == file_kind::safetensors)
      io::write_safetensors(to.path, arrays);
    else if (arrays.size() == 1)
      io::write_npy(to.path, arrays.begin()->second);
    else
      throw usage_error(argument, to.path.string(), "an .npz or .safetensors file, for several arrays");
  });
}

}  // namespace attune::tool
