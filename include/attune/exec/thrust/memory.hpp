// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   settled(exec, op).op   the operator with every moving average replaced by its values
//
// A moving average reads B Lq numbers each time a row is bound. So it is computed once per call, in the memory of its
// numbers. Projections are computed by the row that they belong to.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/exec/thrust/rows.hpp>
#include <attune/operators/entries.hpp>

namespace attune::exec_thrust {

/// Numbers that programs of a policy read and write, 0 at first. Moving the object does not move the numbers.
template <class T, class Policy, memory_kind = memory_of_policy<Policy>>
class numbers {
 public:
  template <class Exec>
  numbers(Exec const&, index_t n) : values_(std::size_t(n)) {}
  template <class Exec>
  numbers(Exec const&, std::vector<T> const& from) : values_(from) {}
  T* data() { return values_.data(); }
  /// Copies all numbers to the host.
  void copy_to(T* host) const { std::copy(values_.begin(), values_.end(), host); }
  std::vector<T> copied() const { return values_; }

 private:
  std::vector<T> values_;
};

#if defined(__CUDACC__)
/// Bytes of a CUDA device, 0 at first, in the order of a stream. Uses CUDA's own functions: a device_vector brings
/// kernels for every type that it holds, and fills and copies on its own stream.
class device_bytes {
 public:
  device_bytes(cudaStream_t stream, std::size_t size) : stream_(stream), size_(size) {
    if (size == 0) return;
    void* there = nullptr;
    if (cudaMalloc(&there, size) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());  // reported by the exception, not by the next launch
      throw std::bad_alloc();
    }
    there_.reset(there);
    ::thrust::cuda_cub::throw_on_error(cudaMemsetAsync(there, 0, size, stream), "attune: memory was not set to 0");
  }
  void* data() const { return there_.get(); }
  void copy_from(void const* host) { copy(there_.get(), host, cudaMemcpyHostToDevice); }
  void copy_to(void* host) const { copy(host, there_.get(), cudaMemcpyDeviceToHost); }

 private:
  /// Waits: when this returns, the host memory may be read or freed.
  void copy(void* to, void const* from, cudaMemcpyKind direction) const {
    if (size_ == 0) return;
    ::thrust::cuda_cub::throw_on_error(cudaMemcpyAsync(to, from, size_, direction, stream_), "attune: a copy failed");
    ::thrust::cuda_cub::throw_on_error(cudaStreamSynchronize(stream_), "attune: a copy failed");
  }
  struct release {
    void operator()(void* there) const { static_cast<void>(cudaFree(there)); }
  };

  std::unique_ptr<void, release> there_;
  cudaStream_t stream_;
  std::size_t size_;
};

template <class T, class Policy>
class numbers<T, Policy, memory_kind::device> {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  template <class Exec>
  numbers(Exec const& exec, index_t n)
      : bytes_(stream_of(exec.policy), std::size_t(n) * sizeof(T)), size_(std::size_t(n)) {}
  template <class Exec>
  numbers(Exec const& exec, std::vector<T> const& from) : numbers(exec, index_t(from.size())) {
    bytes_.copy_from(from.data());
  }
  T* data() { return static_cast<T*>(bytes_.data()); }
  void copy_to(T* host) const { bytes_.copy_to(host); }
  std::vector<T> copied() const {
    std::vector<T> to(size_);
    copy_to(to.data());
    return to;
  }

 private:
  device_bytes bytes_;
  std::size_t size_;
};
#endif

/// Host arrays that programs of an executor write: the arrays themselves if programs can write them, otherwise copies
/// that fetch() brings back.
template <class T, class Policy>
class written {
 public:
  explicit written(thrust_executor<T, Policy> const& exec) : exec_(exec) {}
  template <class E>
  E* of(std::vector<E>& array) {
    if constexpr (memory_of_policy<Policy> == memory_kind::host) {
      return array.data();
    } else {
      auto& copy = copies_.emplace_back(bytes_of(array), bytes(exec_, index_t(array.size() * sizeof(E))));
      return reinterpret_cast<E*>(copy.second.data());
    }
  }
  void fetch() const {
    for (auto const& [array, copy] : copies_) copy.copy_to(array);
  }

 private:
  using bytes = numbers<unsigned char, Policy>;
  template <class E>
  static unsigned char* bytes_of(std::vector<E>& array) {
    return reinterpret_cast<unsigned char*>(array.data());
  }

  thrust_executor<T, Policy> exec_;
  std::vector<std::pair<unsigned char*, bytes>> copies_;
};

/// Computes the values of a computed parameter, one task each.
template <class T>
struct parameter_program {
  parameter from;
  double* to;
  ATTUNE_HD void operator()(index_t n) const {
    shape const e = from.extents();
    to[n] = from.at(n / (e.head * e.position), n / e.position % e.head, n % e.position);
  }
};

/// The values of moving averages.
template <class T, class Policy>
class settled_averages {
 public:
  /// Replaces a moving average by a view of its values.
  void settle(thrust_executor<T, Policy> const& exec, parameter& p) {
    if (!p.is_average()) return;
    shape const e = p.extents();
    double* const to = values_.emplace_back(exec, e.size()).data();
    for_each_task(exec, e.size(), parameter_program<T>{p, to});
    p = parameter(tensor<double const>(to, e));
  }

 private:
  std::vector<numbers<double, Policy>> values_;
};

/// Not copyable: the operator points into the values.
template <class T, class Policy, class Op>
class settled {
 public:
  settled(thrust_executor<T, Policy> const& exec, Op const& original) : op(original) {
    for (operator_parameter const& p : listed_parameters(op))
      averages_.settle(exec, const_cast<parameter&>(*p.at));  // points into our own copy
    attune::detail::number(op);
    if constexpr (attune::detail::has_entries<Op>) attune::detail::number_entries(listed_tables(op));
    if constexpr (Op::uses(field::v0) && memory_of_policy<Policy> == memory_kind::device)
      zero_.emplace_back(exec, std::vector<T>{T(0)});
  }
  settled(settled const&) = delete;
  settled& operator=(settled const&) = delete;

  Op op;

  /// The inputs. A v0 that points to the host's zero of `zeros` points to a zero of the device instead.
  inputs<Op, tensor<T const>> readable(inputs<Op, tensor<T const>> in) const {
    if constexpr (Op::uses(field::v0) && memory_of_policy<Policy> == memory_kind::device)
      if (in.v0.data() == &attune::detail::zero<T>)
        in.v0 = tensor<T const>(zero_.front().data(), in.v0.extents(), in.v0.steps());
    return in;
  }

 private:
  settled_averages<T, Policy> averages_;
  mutable std::vector<numbers<T, Policy>> zero_;  // none, or one
};

}  // namespace attune::exec_thrust
