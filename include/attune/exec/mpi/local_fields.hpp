// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   at_positions(x, local, {first, last}, positions)     row first + n of the view is row local + n of x
//
// Tensors of one rank: as views with the positions of the whole problem, and as messages.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <attune/exec/mpi/collective.hpp>
#include <attune/operators/inputs.hpp>
#include <attune/policies/fields.hpp>

namespace attune::exec_mpi {

/// A view with `positions` positions. The positions of `at` are rows of x, from row `local` on. The view has no others.
template <class E>
tensor<E> at_positions(tensor<E> const& x, index_t local, key_interval at, index_t positions) {
  static std::remove_const_t<E> nothing{};
  if (x.absent()) return x;
  shape e = x.extents();
  e.position = positions;
  if (at.empty() || x.data() == nullptr) return {&nothing, e, strides{}};
  strides const s = x.steps();
  return {x.data() + (local - at.first) * s.position, e, s};
}

/// True if the elements of x follow one another in memory.
template <class E>
bool is_dense(tensor<E> const& x) {
  shape const e = x.extents();
  strides const has = x.steps(), needs = strides::dense(e);
  auto const fits = [](index_t extent, index_t a, index_t b) { return extent <= 1 || a == b; };
  return fits(e.batch, has.batch, needs.batch) && fits(e.head, has.head, needs.head) &&
         fits(e.position, has.position, needs.position) && fits(e.feature, has.feature, needs.feature);
}

/// The tensors of one rank with a row per key, or with a row per query. Each has the positions of the rank, one after
/// another. Absent: not one of them.
template <class E>
using rank_fields = std::array<tensor<E>, field_count>;

/// Their extents.
using field_shapes = std::array<shape, field_count>;

/// Memory for the tensors of a rank: dense, one after another.
template <class T>
class field_memory {
 public:
  /// Views of these extents, in memory that is kept from call to call; the numbers are not defined.
  rank_fields<T> const& of(field_shapes const& shapes) {
    index_t size = 0;
    for (shape const& e : shapes) size += e.size();
    if (index_t(numbers_.size()) < size) numbers_.resize(std::size_t(size));
    T* next = numbers_.data();
    for (std::size_t f = 0; f < field_count; ++f) {
      fields_[f] = shapes[f].size() == 0 ? tensor<T>() : tensor<T>(next, shapes[f]);
      next += shapes[f].size();
    }
    size_ = std::size_t(size);
    return fields_;
  }
  rank_fields<T> const& fields() const { return fields_; }
  /// All numbers of the views.
  std::span<T> numbers() { return std::span<T>(numbers_).first(size_); }
  void clear() { std::fill_n(numbers_.begin(), size_, T(0)); }

 private:
  std::vector<T> numbers_;
  std::size_t size_ = 0;
  rank_fields<T> fields_;
};

/// The tensors of this rank, ready to be sent: where they are, or a copy of those that are not dense.
template <class T>
class sendable_fields {
 public:
  explicit sendable_fields(rank_fields<T const> const& own) : fields_(own) {
    for (std::size_t f = 0; f < field_count; ++f) {
      tensor<T const> const& x = own[f];
      if (x.absent() || is_dense(x)) continue;
      shape const e = x.extents();
      std::vector<T>& copy = copies_[f];
      copy.reserve(std::size_t(e.size()));
      for (index_t b = 0; b < e.batch; ++b)
        for (index_t h = 0; h < e.head; ++h)
          for (index_t i = 0; i < e.position; ++i)
            for (index_t d = 0; d < e.feature; ++d) copy.push_back(x(b, h, i, d));
      fields_[f] = {copy.data(), e};
    }
  }
  sendable_fields(sendable_fields const&) = delete;
  sendable_fields& operator=(sendable_fields const&) = delete;

  void send(exchange& messages, int to) const {
    for (tensor<T const> const& x : fields_)
      if (x.extents().size() != 0) messages.send(std::span<T const>(x.data(), std::size_t(x.extents().size())), to);
  }

 private:
  rank_fields<T const> fields_;
  std::array<std::vector<T>, field_count> copies_;
};

/// Sends dense tensors.
template <class T>
void send_fields(exchange& messages, rank_fields<T> const& from, int to, int tag) {
  for (tensor<T> const& x : from)
    if (x.extents().size() != 0) messages.send(std::span<T>(x.data(), std::size_t(x.extents().size())), to, tag);
}
/// Receives what send_fields or sendable_fields::send sends.
template <class T>
void receive_fields(exchange& messages, rank_fields<T> const& to, int from, int tag = 0) {
  for (tensor<T> const& x : to)
    if (x.extents().size() != 0) messages.receive(std::span<T>(x.data(), std::size_t(x.extents().size())), from, tag);
}
template <class T>
rank_fields<T const> read_only(rank_fields<T> const& x) {
  rank_fields<T const> to;
  for (std::size_t f = 0; f < field_count; ++f) to[f] = x[f];
  return to;
}

}  // namespace attune::exec_mpi
