// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   told t = judge(p, stored_result);   t.failed, t.text
//
// The verdict on a result of the held-out kernels, as its user reads it.
#pragma once

#include <sstream>
#include <string>

#include <attune/policies/mask/expression.hpp>

#include "backward.hpp"

namespace attune::test::held {

struct told {
  bool failed = false;
  std::string text;
};

/// `page`: keys of a page of the cache, which the caller of a paged kernel knows.
told judge(problem const& p, forward_result const& r, int page = 0);
told judge(problem const& p, backward_result const& r);

inline std::vector<float> floats(array const& x) { return {x.x.begin(), x.x.end()}; }

inline mask::expression mask_of(problem const& p) {
  if (p.mask == "none") return mask::none{};
  if (p.mask == "window") return mask::causal_window{p.window};
  if (p.mask == "band") return mask::band{p.before, p.after};
  if (p.mask == "pad") return mask::padding(p.lengths);
  if (p.mask == "prefix") return mask::prefix{p.prefix};
  if (p.mask == "firstwindow") return mask::sink_window{p.first, p.window};
  mask::expression const causal = mask::causal{};
  if (p.mask == "padcausal") return causal & mask::expression(mask::padding(p.lengths));
  if (p.mask == "docs" || p.mask == "chunk")
    return causal & mask::expression(mask::documents(p.query_documents, p.key_documents, p.batch));
  return causal;
}

/// use(operator) of a problem.
template <class Use>
told with_operator(problem const& p, Use const& use) {
  mask::expression const e = mask_of(p);
  auto const seen = e.mask();
  kernel::dot_product const dot{};
  if (p.term == "cap") return use(attention(dot | kernel::softcap{p.cap}, seen));
  if (p.term == "sink") return use(attention(dot, normalizer::sink{per_head(p.sink)}, seen));
  if (p.term == "alibi") return use(attention(dot + kernel::alibi{per_head(p.slope)}, seen));
  if (p.term == "bias") return use(attention(dot + kernel::bias{}, seen));
  if (p.term == "bias+cap") return use(attention((dot + kernel::bias{}) | kernel::softcap{p.cap}, seen));
  return use(attention(dot, seen));
}

/// use(inputs) of a problem, for an operator.
template <class Op, class Use>
told with_inputs(problem const& p, Op const&, Use const& use) {
  std::vector<float> const q = floats(p.q), k = floats(p.k), v = floats(p.v), bias = floats(p.bias);
  tensor const Q(q, p.q.extents()), K(k, p.k.extents()), V(v, p.v.extents());
  if constexpr (Op::uses(field::bias))
    return use(inputs<Op, any_tensor>{
        .q = Q, .k = K, .v = V, .bias = tensor<float const>(bias, p.bias.extents()), .offset = p.offset});
  else
    return use(inputs<Op, any_tensor>{.q = Q, .k = K, .v = V, .offset = p.offset});
}

template <class Report>
told told_by(Report const& r) {
  std::ostringstream to;
  to << r;
  return {to.str().rfind("FAIL", 0) == 0, to.str()};
}

}  // namespace attune::test::held
