// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sorted::forward(op, arrays, results, workers)  ->  forward(cpu{}, line::..., inputs, outputs)
//
// The calls of version 0.1, implemented by their replacements. Version 0.3 removes them.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include <attune/line.hpp>
#include <attune/policies/mask/runtime.hpp>
#include <attune/sorted/operators.hpp>

namespace attune::sorted {

namespace detail {

/// The keys that rows see, as a mask.
class mask_of {
 public:
  mask_of(char const* function, visibility const& sees, shape const& q, shape const& k) {
    (sees.check)(function, q.position, k.position);
    hulls_ = sees.intervals(q.position, k.position);
  }
  mask::runtime operator()() const { return {hulls_.data(), {1, 1, index_t(hulls_.size()), 1}}; }

 private:
  std::vector<key_interval> hulls_;
};

/// A parameter with one number for each element of the requested gradient.
template <class T>
class spread_parameter {
 public:
  spread_parameter(parameter const& p, tensor<T> const& gradient, double usual = 1) : use_(p) {
    if (gradient.absent()) return;
    shape const g = gradient.extents(), e = p.is_set() ? p.extents() : shape{1, 1, 1, 1};
    shape const all{(std::max)(g.batch, e.batch), (std::max)(g.head, e.head), (std::max)(g.position, e.position), 1};
    if (p.is_set() && all == e) return;
    for (index_t b = 0; b < all.batch; ++b)
      for (index_t h = 0; h < all.head; ++h)
        for (index_t i = 0; i < all.position; ++i) values_.push_back(p.is_set() ? p.at(b, h, i) : usual);
    use_ = tensor<double const>(values_.data(), all);
  }
  spread_parameter(spread_parameter const&) = delete;
  parameter const& operator()() const { return use_; }

 private:
  std::vector<double> values_;
  parameter use_;
};

/// Writes a gradient, summed over the axes that `to` shares.
template <class T>
void write(char const* argument, gradient_array<T> const& from, tensor<T> const& to) {
  if (to.absent()) return;
  shape const e = from.extents, x = to.extents();
  if ((x.batch != 1 && x.batch != e.batch) || (x.head != 1 && x.head != e.head) ||
      (x.position != 1 && x.position != e.position) || x.feature != e.feature)
    throw error("sorted::vjp", argument, attune::detail::text("shape ", to_string(x)),
                attune::detail::text("shape ", to_string(e), ", or 1 on an axis that is shared"));
  attune::detail::require_distinct("sorted::vjp", argument, to);
  std::vector<double> sums(std::size_t(x.size()), 0.0);
  auto const place = [&](index_t b, index_t h, index_t i, index_t f) {
    return std::size_t(
        (((x.batch == 1 ? 0 : b) * x.head + (x.head == 1 ? 0 : h)) * x.position + (x.position == 1 ? 0 : i)) *
            x.feature +
        f);
  };
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.head; ++h)
      for (index_t i = 0; i < e.position; ++i)
        for (index_t f = 0; f < e.feature; ++f) sums[place(b, h, i, f)] += double(from(b, h, i, f));
  for (index_t b = 0; b < x.batch; ++b)
    for (index_t h = 0; h < x.head; ++h)
      for (index_t i = 0; i < x.position; ++i)
        for (index_t f = 0; f < x.feature; ++f) to(b, h, i, f) = T(sums[place(b, h, i, f)]);
}
template <class T, class D>
void write_inputs(dense_gradients<T> const& from, D const& d) {
  write("d.sort_q", from.of(field::sort_q), d.sort_q);
  write("d.sort_k", from.of(field::sort_k), d.sort_k);
  write("d.v", from.of(field::v), d.v);
}

template <class T, class Arch>
cpu<T, Arch> executor_of(workers const& who) {
  cpu<T, Arch> exec;
  exec.threads = who.threads;
  exec.executor = who.executor;
  return exec;
}

template <class Op, class T>
outputs<Op, T> outputs_of(tensor<T> const& out, tensor<T> const& lse) {
  outputs<Op, T> to{.out = out};
  if constexpr (Op::has_lse)
    to.lse = natural_lse<T>(lse);
  else if (!lse.absent())
    throw error("sorted::forward", "lse", "a tensor",
                "none: weights that are not divided by their sum have no lse (divided_by = divisor::sum has)");
  return to;
}
template <class Op, class T>
attune::cotangents<Op, tensor<T const>> cotangents_of(cotangents<T> const& by) {
  attune::cotangents<Op, tensor<T const>> to;
  to.out = by.out;
  if constexpr (Op::has_lse)
    to.lse = by.lse;
  else if (!by.lse.absent())
    throw error("sorted::vjp", "by.lse", "a tensor",
                "none: weights that are not divided by their sum have no lse (divided_by = divisor::sum has)");
  return to;
}

template <class Op, class T, class Exec>
auto forward_as(Exec const& exec, Op const& op, arrays<T> const& in, results<T> const& to) {
  return attune::forward(exec, op, inputs<Op, tensor<T const>>{.v = in.v, .sort_q = in.sort_q, .sort_k = in.sort_k},
                         outputs_of<Op>(to.out, to.lse));
}
template <class Op, class T, class Exec>
auto vjp_as(Exec const& exec, Op const& op, arrays<T> const& in, cotangents<T> const& by) {
  return attune::vjp(exec, op, inputs<Op, tensor<T const>>{.v = in.v, .sort_q = in.sort_q, .sort_k = in.sort_k},
                     cotangents_of<Op>(by));
}

/// Calls use(operator of attune::line) for each divisor.
template <class Mask, class Use>
auto with_divisor(divisor by, Mask const& m, Use const& use) {
  if (by == divisor::sum) return use(line::sliced_relu{normalizer::normalized_relu{}, m});
  if (by == divisor::count) return use(line::sliced_relu{normalizer::mean_relu{}, m});
  return use(line::sliced_relu{normalizer::relu{}, m});
}

inline line::certified window_of(hybrid const& op) { return {op.tolerance}; }
inline line::half window_of(truncated const& op) { return {op.keys}; }
inline line::radius window_of(limited_radius const& op) { return {op.eps}; }
template <class Op>
concept by_windows = requires(Op const& op) { window_of(op); };

/// Calls use(operator of attune::line, its inputs) for a call with windows.
template <class T, class Op, class Use>
auto with_windows(Op const& op, parameter const& tau, parameter const& scale, parameter const& sink,
                  hybrid_arrays<T> const& in, mask::runtime const& m, Use const& use) {
  auto const given = [&]<class Of>(Of const& of) {
    inputs<Of, tensor<T const>> const all = make_inputs<Of, tensor<T const>>([&]<field F>() {
      if constexpr (F == field::q) return in.q;
      if constexpr (F == field::k) return in.k;
      if constexpr (F == field::v) return in.v;
      if constexpr (F == field::sort_q) return in.sort_q;
      if constexpr (F == field::sort_k) return in.sort_k;
      if constexpr (F == field::v0) return in.sink_v;
    });
    return use(of, all);
  };
  bool const vectors = !in.q.absent() || !in.k.absent();
  if (sink.is_set()) {
    line::sink const at{sink};
    if (vectors) return given(line::hybrid{tau, window_of(op), m, at, scale});
    return given(line::windowed{tau, window_of(op), m, at});
  }
  if (vectors) return given(line::hybrid{tau, window_of(op), m, line::no_sink{}, scale});
  return given(line::windowed{tau, window_of(op), m});
}
/// The value of a sink without one: zeros.
template <class T>
hybrid_arrays<T> with_sink_value(hybrid_arrays<T> in, std::vector<T>& zeros) {
  if (in.sink_k.absent() && !in.sink_v.absent())
    throw error("sorted::forward(hybrid)", "sink_k", "no data", "the sort key of the sink");
  if (in.sink_k.absent() || !in.sink_v.absent()) return in;
  zeros.assign(std::size_t((std::max)(in.v.extents().feature, index_t(1))), T(0));
  in.sink_v = tensor<T const>(zeros.data(), {1, 1, 1, in.v.extents().feature});
  return in;
}
template <class T>
parameter sink_of(tensor<T const> const& sink_k) {
  return sink_k.absent() ? parameter{} : parameter(sink_k);
}

}  // namespace detail

template <class T, class Arch = xsimd::default_arch>
ATTUNE_DEPRECATED("call forward(cpu{}, line::laplacian{tau, mask}, inputs, outputs)")
void forward(laplacian const& op, arrays<T> const& in, results<T> const& to, workers const& who = {}) {
  detail::mask_of const sees("sorted::forward(laplacian)", op.sees, in.sort_q.extents(), in.sort_k.extents());
  detail::forward_as(detail::executor_of<T, Arch>(who), line::laplacian{op.tau, sees()}, in, to);
}
template <class T, class Arch = xsimd::default_arch>
ATTUNE_DEPRECATED("call vjp(cpu{}, line::laplacian{tau, mask}, inputs, cotangents)")
void vjp(laplacian const& op, arrays<T> const& in, cotangents<T> const& by, gradients<T> const& d,
         workers const& who = {}) {
  detail::mask_of const sees("sorted::vjp(laplacian)", op.sees, in.sort_q.extents(), in.sort_k.extents());
  detail::spread_parameter<T> const tau(op.tau, d.tau);
  auto const g = detail::vjp_as(detail::executor_of<T, Arch>(who), line::laplacian{tau(), sees()}, in, by);
  detail::write_inputs(g, d);
  detail::write("d.tau", g.parameter("tau"), d.tau);
}

template <class T, class Arch = xsimd::default_arch>
ATTUNE_DEPRECATED("call forward(cpu{}, line::sliced_relu{normalizer, mask}, inputs, outputs)")
void forward(sliced_relu const& op, arrays<T> const& in, results<T> const& to, workers const& who = {}) {
  detail::mask_of const sees("sorted::forward(sliced_relu)", op.sees, in.sort_q.extents(), in.sort_k.extents());
  detail::with_divisor(op.divided_by, sees(),
                       [&](auto const& by) { detail::forward_as(detail::executor_of<T, Arch>(who), by, in, to); });
}
template <class T, class Arch = xsimd::default_arch>
ATTUNE_DEPRECATED("call vjp(cpu{}, line::sliced_relu{normalizer, mask}, inputs, cotangents)")
void vjp(sliced_relu const& op, arrays<T> const& in, cotangents<T> const& by, gradients<T> const& d,
         workers const& who = {}) {
  if (!d.tau.absent()) throw error("sorted::vjp", "d.tau", "a tensor", "none: this operator has no bandwidth");
  detail::mask_of const sees("sorted::vjp(sliced_relu)", op.sees, in.sort_q.extents(), in.sort_k.extents());
  detail::with_divisor(op.divided_by, sees(), [&](auto const& as) {
    detail::write_inputs(detail::vjp_as(detail::executor_of<T, Arch>(who), as, in, by), d);
  });
}

template <class T, class Arch = xsimd::default_arch>
ATTUNE_DEPRECATED("call forward(cpu{}, line::gaussian{tau, tolerance, mask}, inputs, outputs)")
gaussian_certificate forward(gaussian const& op, arrays<T> const& in, results<T> const& to, workers const& who = {}) {
  detail::mask_of const sees("sorted::forward(gaussian)", op.sees, in.sort_q.extents(), in.sort_k.extents());
  return detail::forward_as(detail::executor_of<T, Arch>(who), line::gaussian{op.tau, op.tolerance, sees()}, in, to);
}
template <class T, class Arch = xsimd::default_arch>
ATTUNE_DEPRECATED("call vjp(cpu{}, line::gaussian{tau, tolerance, mask}, inputs, cotangents)")
gaussian_certificate vjp(gaussian const& op, arrays<T> const& in, cotangents<T> const& by, gradients<T> const& d,
                         workers const& who = {}) {
  detail::mask_of const sees("sorted::vjp(gaussian)", op.sees, in.sort_q.extents(), in.sort_k.extents());
  detail::spread_parameter<T> const tau(op.tau, d.tau);
  auto const g = detail::vjp_as(detail::executor_of<T, Arch>(who), line::gaussian{tau(), op.tolerance, sees()}, in, by);
  detail::write_inputs(g, d);
  detail::write("d.tau", g.parameter("tau"), d.tau);
  return g.certificate;
}

template <class T, class Arch = xsimd::default_arch, detail::by_windows Op>
ATTUNE_DEPRECATED("call forward(cpu{}, line::hybrid{tau, window, mask}, inputs, outputs)")
hybrid_certificate
    forward(Op const& op, hybrid_arrays<T> const& in, hybrid_results<T> const& to, workers const& who = {}) {
  detail::mask_of const sees("sorted::forward(hybrid)", op.sees, in.sort_q.extents(), in.sort_k.extents());
  std::vector<T> zeros;
  return detail::with_windows<T>(op, op.tau, op.scale, detail::sink_of(in.sink_k), detail::with_sink_value(in, zeros),
                                 sees(), [&]<class Of>(Of const& of, auto const& all) {
                                   return attune::forward(detail::executor_of<T, Arch>(who), of, all,
                                                          detail::outputs_of<Of>(to.out, to.lse), to.discarded);
                                 });
}
template <class T, class Arch = xsimd::default_arch, detail::by_windows Op>
ATTUNE_DEPRECATED("call vjp(cpu{}, line::hybrid{tau, window, mask}, inputs, cotangents)")
hybrid_certificate vjp(Op const& op, hybrid_arrays<T> const& in, cotangents<T> const& by, hybrid_gradients<T> const& d,
                       workers const& who = {}) {
  if (in.q.absent() && !(d.q.absent() && d.k.absent() && d.scale.absent()))
    throw error("sorted::vjp(hybrid)", "d.q, d.k or d.scale", "a tensor", "none: there are no vectors");
  if (in.sink_k.absent() && !(d.sink_k.absent() && d.sink_v.absent()))
    throw error("sorted::vjp(hybrid)", "d.sink_k or d.sink_v", "a tensor", "none: there is no sink");
  detail::mask_of const sees("sorted::vjp(hybrid)", op.sees, in.sort_q.extents(), in.sort_k.extents());
  detail::spread_parameter<T> const tau(op.tau, d.tau),
      scale(op.scale, d.scale, 1 / std::sqrt(double(in.q.extents().feature))),
      sink(detail::sink_of(in.sink_k), d.sink_k);
  std::vector<T> zeros;
  hybrid_arrays<T> all_in = detail::with_sink_value(in, zeros);
  // One value for each element of the requested gradient.
  std::vector<T> spread;
  if (!d.sink_v.absent() && d.sink_v.extents().head != all_in.sink_v.extents().head && d.sink_v.extents().head > 1) {
    shape const e{1, d.sink_v.extents().head, 1, all_in.sink_v.extents().feature};
    for (index_t h = 0; h < e.head; ++h)
      for (index_t f = 0; f < e.feature; ++f) spread.push_back(all_in.sink_v(0, 0, 0, f));
    all_in.sink_v = tensor<T const>(spread.data(), e);
  }
  return detail::with_windows<T>(
      op, tau(), scale(), sink(), all_in, sees(), [&]<class Of>(Of const& of, auto const& all) {
        auto const g = attune::vjp(detail::executor_of<T, Arch>(who), of, all, detail::cotangents_of<Of>(by));
        detail::write_inputs(g, d);
        detail::write("d.tau", g.parameter("tau"), d.tau);
        if constexpr (Of::has_vectors) {
          detail::write("d.q", g.of(field::q), d.q);
          detail::write("d.k", g.of(field::k), d.k);
          detail::write("d.scale", g.parameter("scale"), d.scale);
        }
        if constexpr (Of::has_sink) {
          detail::write("d.sink_k", g.parameter("sort_k"), d.sink_k);
          detail::write("d.sink_v", g.of(field::v0), d.sink_v);
        }
        return g.certificate;
      });
}

template <class T>
ATTUNE_DEPRECATED("call forward(cpu{}, line::fourier_features{tau, features}, inputs, outputs)")
low_rank_report
    forward(fourier_features const& op, arrays<T> const& in, results<T> const& to, workers const& who = {}) {
  return detail::forward_as(detail::executor_of<T, xsimd::default_arch>(who),
                            line::fourier_features{op.tau, op.features, op.seed}, in, to);
}
template <class T>
ATTUNE_DEPRECATED("call forward(cpu{}, line::nystroem{tau, landmarks}, inputs, outputs)")
low_rank_report forward(nystroem const& op, arrays<T> const& in, results<T> const& to, workers const& who = {}) {
  return detail::forward_as(detail::executor_of<T, xsimd::default_arch>(who), line::nystroem{op.tau, op.landmarks}, in,
                            to);
}
template <class T>
ATTUNE_DEPRECATED("call vjp(cpu{}, line::fourier_features{tau, features}, inputs, cotangents)")
low_rank_report vjp(fourier_features const& op, arrays<T> const& in, cotangents<T> const& by, gradients<T> const& d,
                    workers const& who = {}) {
  detail::spread_parameter<T> const tau(op.tau, d.tau);
  auto const g = detail::vjp_as(detail::executor_of<T, xsimd::default_arch>(who),
                                line::fourier_features{tau(), op.features, op.seed}, in, by);
  detail::write_inputs(g, d);
  detail::write("d.tau", g.parameter("tau"), d.tau);
  return g.certificate;
}
template <class T>
ATTUNE_DEPRECATED("call vjp(cpu{}, line::nystroem{tau, landmarks}, inputs, cotangents)")
low_rank_report vjp(nystroem const& op, arrays<T> const& in, cotangents<T> const& by, gradients<T> const& d,
                    workers const& who = {}) {
  if (!d.tau.absent())
    throw error("sorted::vjp", "d.tau", "a tensor", "none: landmarks are held still, which leaves no gradient by tau");
  auto const g =
      detail::vjp_as(detail::executor_of<T, xsimd::default_arch>(who), line::nystroem{op.tau, op.landmarks}, in, by);
  detail::write_inputs(g, d);
  return g.certificate;
}

}  // namespace attune::sorted
