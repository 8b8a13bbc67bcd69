// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   pool.reserve(n);  i = pool.take();  pool[i];  pool.give(i)      nodes refer to each other by 32-bit numbers
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace attune::line::detail {

/// Nodes in chunks that never move. Growing copies nothing, and a node is identified by a 32-bit number. `take` and
/// `give` do not allocate and do not throw. Code that changes a structure reserves first, so that a failed allocation
/// changes nothing.
template <class Node>
class node_pool {
  static_assert(std::is_trivially_copyable_v<Node>);

 public:
  node_pool() = default;
  node_pool(node_pool const& other) : free_(other.free_) {
    free_.reserve(other.chunks_.size() * chunk);
    chunks_.reserve(other.chunks_.size());
    for (auto const& from : other.chunks_) {
      chunks_.push_back(std::make_unique<Node[]>(chunk));
      std::copy_n(from.get(), chunk, chunks_.back().get());
    }
  }
  node_pool(node_pool&&) noexcept = default;
  node_pool& operator=(node_pool const& other) {
    node_pool copy(other);
    return *this = std::move(copy);
  }
  node_pool& operator=(node_pool&&) noexcept = default;
  ~node_pool() = default;

  Node& operator[](std::uint32_t i) { return chunks_[i / chunk][i % chunk]; }
  Node const& operator[](std::uint32_t i) const { return chunks_[i / chunk][i % chunk]; }

  /// Guarantees that the next `count` calls of take() find a node.
  void reserve(std::size_t count) {
    while (free_.size() < count) {
      free_.reserve((chunks_.size() + 1) * chunk);
      chunks_.push_back(std::make_unique<Node[]>(chunk));
      auto const first = static_cast<std::uint32_t>((chunks_.size() - 1) * chunk);
      for (auto i = static_cast<std::uint32_t>(chunk); i-- > 0;) free_.push_back(first + i);
    }
  }
  /// Returns a node in the state in which it was given back, or default-constructed.
  std::uint32_t take() noexcept {
    std::uint32_t const i = free_.back();
    free_.pop_back();
    return i;
  }
  void give(std::uint32_t i) noexcept { free_.push_back(i); }

  std::size_t bytes() const { return chunks_.size() * chunk * sizeof(Node) + free_.capacity() * sizeof(std::uint32_t); }

 private:
  static constexpr std::size_t chunk = std::bit_floor(32768 / sizeof(Node));
  std::vector<std::unique_ptr<Node[]>> chunks_;
  std::vector<std::uint32_t> free_;  ///< never grows beyond its capacity, which is enough for all chunks
};

}  // namespace attune::line::detail
