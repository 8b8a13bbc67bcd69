// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   --layout blhd    --cu-seqlens 0,5,46    --page-table pages.npy --cache-lengths 57,20 --k-scale 0.02
//
// How the files of somebody's kernel are laid out. They are converted when they are read: the judge reads dense
// (batch, head, position, feature).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <attune/io/array.hpp>
#include <attune/operators/inputs.hpp>

#include "masks.hpp"
#include "problem.hpp"

namespace attune::tool {

/// The arguments as they were given; empty: not given.
struct layout_words {
  std::string tensors, rows, cu_seqlens, cu_seqlens_q, cu_seqlens_k;
  std::string page_table, cache, cache_lengths, cache_dtype;
  std::map<std::string, std::string> scales;  ///< by input: k, v
  index_t latent = 0;                         ///< v is so many features of k; 0: v is a file

  void add_to(CLI::App& command);
};

/// The same, read and checked. A default-constructed one reads (batch, head, position, feature).
class file_layout {
 public:
  file_layout() = default;
  /// Throws usage_error.
  explicit file_layout(layout_words const& words);

  /// An input.
  numbers input(std::string const& argument, io::array const& x, field f) const;
  /// A tensor of results, shaped as `f` or, without one, as out.
  numbers result(std::string const& argument, io::array const& x) const;
  /// An array of these extents in row-major order, where the file may leave out axes of extent 1.
  static numbers in_shape(std::string const& argument, io::array const& x, shape const& e);
  /// One number per row: lse, ground weight.
  numbers rows(std::string const& argument, io::array const& x) const;
  /// What 8-bit words of .npy files are, for k and v.
  std::optional<io::element_type> codes(field f) const;

  bool ragged() const { return !cu_seqlens_q_.empty(); }
  /// Keys of a page, of an array of pages.
  index_t page(io::array const& x) const { return x.extents[cache_ == "bhld" ? 2 : 1]; }
  bool paged() const { return sequences_ > 0; }
  /// How many features of k are v; 0: none.
  index_t latent() const { return latent_; }
  /// Throws usage_error where a query sees a key of a page that the page table does not have.
  void check_pages(mask::runtime const& m, shape const& out, index_t keys, index_t page) const;
  /// Where the queries of these extents stand. `offset`: what the command line says, if anything.
  query_places places(shape const& out, index_t keys, std::optional<index_t> offset) const;

 private:
  numbers tensor_in(std::string const& order, std::string const& argument, io::array const& x) const;
  numbers per_position(std::string const& order, std::string const& argument, io::array const& x) const;
  numbers from_cache(std::string const& argument, io::array const& x, std::string const& name) const;

  std::string tensors_ = "bhld", rows_ = "bhl", cache_ = "bhld";
  std::vector<index_t> cu_seqlens_q_, cu_seqlens_k_, lengths_;
  std::vector<std::int32_t> pages_;  ///< with page 0 in place of those that are missing
  std::vector<bool> missing_;        ///< whether the file says -1
  index_t latent_ = 0;
  index_t sequences_ = 0;
  std::map<std::string, std::vector<float>> scales_;
  std::map<std::string, shape> scale_shapes_;
  std::optional<io::element_type> codes_;
};

}  // namespace attune::tool
