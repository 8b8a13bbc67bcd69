// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   settled(exec, op).op   the operator with every moving average replaced by its values
//
// A moving average costs B Lq numbers wherever a row is bound: it is formed once per call, where its numbers lie. Projections
// are computed by the row that they belong to.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include <thrust/copy.h>
#include <thrust/device_vector.h>

#include <attune/exec/frozen.hpp>
#include <attune/exec/thrust/rows.hpp>

namespace attune::exec_thrust {

/// Numbers that programs of a policy read and write, 0 at first. On a device they are bytes: a device_vector has kernels of its own for
/// every type that it holds, and each operator has types of its own.
template <class T, class Policy>
class numbers {
  static_assert(std::is_trivially_copyable_v<T>);
  static constexpr bool on_device = memory_of_policy<Policy> == memory_kind::device;

 public:
  numbers() = default;
  explicit numbers(index_t n) : values_(bytes_of(n)) {}
  explicit numbers(std::vector<T> const& from) : numbers(index_t(from.size())) {
    if constexpr (on_device) {
      auto const first = reinterpret_cast<unsigned char const*>(from.data());
      ::thrust::copy(first, first + values_.size(), values_.begin());
    } else {
      values_ = from;
    }
  }
  T* data() {
    if constexpr (on_device)
      return reinterpret_cast<T*>(::thrust::raw_pointer_cast(values_.data()));
    else
      return values_.data();
  }
  /// A copy on the host.
  std::vector<T> copied() const {
    if constexpr (on_device) {
      std::vector<T> to(values_.size() / sizeof(T));
      ::thrust::copy(values_.begin(), values_.end(), reinterpret_cast<unsigned char*>(to.data()));
      return to;
    } else {
      return values_;
    }
  }

 private:
  static std::size_t bytes_of(index_t n) { return std::size_t(n) * (on_device ? sizeof(T) : 1); }
  std::conditional_t<on_device, ::thrust::device_vector<unsigned char>, std::vector<T>> values_;
};

/// Arrays of the host that programs of a policy write: themselves where programs can, else copies that fetch() brings back.
template <class Policy>
class written {
 public:
  template <class T>
  T* of(std::vector<T>& array) {
    if constexpr (memory_of_policy<Policy> == memory_kind::host) {
      return array.data();
    } else {
      auto const there = std::make_shared<numbers<T, Policy>>(index_t(array.size()));
      back_.push_back([&array, there] { array = there->copied(); });
      return there->data();
    }
  }
  void fetch() const {
    for (auto const& bring : back_) bring();
  }

 private:
  std::vector<std::function<void()>> back_;
};

/// The values of a computed parameter, one task each.
template <class T>
struct parameter_program {
  parameter from;
  double* to;
  ATTUNE_HD void operator()(index_t n) const {
    shape const e = from.extents();
    to[n] = from.at(n / (e.head * e.position), n / e.position % e.head, n % e.position);
  }
};

/// Not copyable: the operator points into the values.
template <class T, class Policy, class Op>
class settled {
 public:
  settled(thrust_executor<T, Policy> const& exec, Op const& original) : op(original) {
    attune::detail::for_each_part(op, attune::detail::no_path{}, [&](auto const& policy, attune::detail::no_path) {
      using policy_type = std::remove_cvref_t<decltype(policy)>;
      auto& own = const_cast<policy_type&>(policy);  // a part of our own copy
      std::apply([&](auto const&... p) { (settle(exec, own.*p.member), ...); }, parameters_of<policy_type>());
    });
  }
  settled(settled const&) = delete;
  settled& operator=(settled const&) = delete;

  Op op;

 private:
  void settle(thrust_executor<T, Policy> const& exec, parameter& p) {
    if (!p.is_average()) return;
    shape const e = p.extents();
    double* const to = values_.emplace_back(e.size()).data();
    for_each_task(exec, e.size(), parameter_program<T>{p, to});
    p = parameter(tensor<double const>(to, e));
  }
  std::vector<numbers<double, Policy>> values_;  // moving one leaves its numbers where they are
};

}  // namespace attune::exec_thrust
