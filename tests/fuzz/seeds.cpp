// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// seeds FOLDER: small valid files for the fuzzers to start from, in FOLDER/{npy,npz,safetensors}.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <attune/io/npy.hpp>
#include <attune/io/npz.hpp>
#include <attune/io/safetensors.hpp>

int main(int argc, char** argv) {
  namespace io = attune::io;
  std::filesystem::path const folder = argc > 1 ? argv[1] : ".";
  for (char const* kind : {"npy", "npz", "safetensors"}) std::filesystem::create_directories(folder / kind);
  std::vector<double> const values{0, 1, -2, 0.5, 3, 4};
  std::map<std::string, io::array> arrays;
  for (auto type :
       {io::element_type::float64, io::element_type::float32, io::element_type::float16, io::element_type::bfloat16}) {
    std::string const name = io::name_of(type);
    arrays[name] = io::make_array<double>(values, {2, 3}, type);
    io::write_npy(folder / "npy" / name, arrays[name]);
    io::write_npz(folder / "npz" / name, arrays);
    io::write_safetensors(folder / "safetensors" / name, arrays, {{"format", "pt"}});
  }
}
