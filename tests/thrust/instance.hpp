// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The operators of tests/instances on Thrust: `add(registry, policies...)` puts the Thrust executor in the place of the
// CPU executor of the same scalar, so that every test of the registry is one of it. The sources that
// tests/CMakeLists.txt generates compile with this header where ATTUNE_INSTANCES_THRUST is defined.
#pragma once

#include <stdexcept>
#include <type_traits>
#include <utility>

#include <thrust/system/cpp/execution_policy.h>

#include <attune/thrust.hpp>
#if defined(_OPENMP)
#include <omp.h>
#include <thrust/system/omp/execution_policy.h>
#endif
#if defined(ATTUNE_TEST_TBB)
#include <thrust/system/tbb/execution_policy.h>
#endif

#include "../instances/policies.hpp"
#include "../instances/views.hpp"
#include "system.hpp"

namespace attune::instances {

namespace detail {

/// f(executor) on the system that the program was asked to test; of OpenMP's threads one more than the test wants, for
/// most want one.
template <class T, class F>
auto on_thrust([[maybe_unused]] int threads, F const& f) {
  switch (thrust_tests::chosen_system()) {
#if defined(_OPENMP)
    case thrust_tests::host_system::omp:
      omp_set_num_threads(threads + 1);
      return f(thrust_on<T>(::thrust::omp::par));
#endif
#if defined(ATTUNE_TEST_TBB)
    case thrust_tests::host_system::tbb:
      return f(thrust_on<T>(::thrust::tbb::par));
#endif
    default:
      return f(thrust_on<T>(::thrust::cpp::par));
  }
}

template <class T, class Op>
result run_thrust(Op const& op, problem const& p, options const& o) {
  loaded<T> const from(p, o.odd_strides);
  auto const in = view_inputs<Op, tensor<T const>>(from, p);
  results<Op, T> to(attune::detail::output_shape(in), o.odd_strides);
  on_thrust<T>(o.threads, [&](auto const& exec) { forward(exec, op, in, to.views()); });
  result r = to.dense();
  r.average = average_of<T>(op);
  return r;
}

template <class T, class Op>
gradients vjp_thrust(Op const& op, problem const& p, cotangent const& by, slot_names const& names, options const& o) {
  loaded<T> const from(p, o.odd_strides);
  loaded_cotangents<T> const d(by, o.odd_strides);
  return on_thrust<T>(o.threads, [&](auto const& exec) {
    return named_gradients(
        vjp(exec, op, view_inputs<Op, tensor<T const>>(from, p), d.template views<Op, tensor<T const>>()), p, names);
  });
}

}  // namespace detail

/// Makes this function another one than that of instances/instance.hpp for the linker.
struct thrust_run;

template <class Run = thrust_run, class K, class L, class G, class N, class... Post>
void add(std::map<std::string, entry>& to, named<K> const& kernel, named<L> const& length_scale, named<G> const& gate,
         named<N> const& normalizer, named<Post> const&... post) {
  std::string name = kernel.name + "/" + length_scale.name + "/" + gate.name + "/" + normalizer.name;
  ((name += "/" + post.name), ...);
  auto const found = to.find(name);
  if (found == to.end()) throw std::logic_error("tests/thrust: " + name + " is not in the registry");
  entry& e = found->second;
  auto const make = [=](parameter_source const& from, mask::runtime const& mask) {
    return attention(kernel.make(from), length_scale.make(from), gate.make(from), normalizer.make(from),
                     post.make(from)..., mask);
  };
  e.run = [make, other = e.run](problem const& p, backend on, options const& o) {
    if (!o.cuts.empty()) return other(p, on, o);  // this executor has no states to merge: splits stay with the CPU
    if (on == backend::cpu_float) return detail::run_thrust<float>(make(parameter_source(p), detail::mask_of(p)), p, o);
    if (on == backend::cpu_double)
      return detail::run_thrust<double>(make(parameter_source(p), detail::mask_of(p)), p, o);
    return other(p, on, o);
  };
  problem recorded;
  auto const names = detail::names_of_slots(make(parameter_source::recording(recorded), {}), recorded);
  e.vjp = [make, names, other = e.vjp](problem const& p, backend on, cotangent const& by, options const& o) {
    if (on == backend::cpu_float)
      return detail::vjp_thrust<float>(make(parameter_source(p), detail::mask_of(p)), p, by, names, o);
    if (on == backend::cpu_double)
      return detail::vjp_thrust<double>(make(parameter_source(p), detail::mask_of(p)), p, by, names, o);
    return other(p, on, by, o);
  };
  thrust_tests::replaced(name);
}

}  // namespace attune::instances
