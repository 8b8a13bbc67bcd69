// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// From a run-time problem to a compile-time operator and back: `add<Kernel, LengthScale, Gate, Normalizer>(registry)`
// instantiates one operator on every executor and type.
#pragma once

#include <algorithm>
#include <limits>
#include <random>
#include <stdexcept>
#include <utility>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

#include "registry.hpp"

namespace attune::instances {

/// The parameters of a problem, as views.
class parameter_source {
 public:
  explicit parameter_source(problem const& p) : problem_(&p) {}
  /// The parameter if the problem has it, else `fallback`.
  parameter operator()(char const* name, parameter fallback = {}) const {
    auto const found = problem_->parameters.find(name);
    if (found == problem_->parameters.end()) return fallback;
    auto const& s = found->second.shape;
    if (s.size() != 3) throw std::invalid_argument(std::string("parameter ") + name + " needs shape (batch, head, query)");
    return tensor<double const>(found->second.data, shape{s[0], s[1], s[2], 1});
  }

 private:
  problem const* problem_;
};

/// One policy as the registry knows it: its name, the parameters it reads, how it is made.
template <class Make>
struct named {
  char const* name;
  std::vector<std::string> parameters;
  Make make;
};
template <class Make>
named(char const*, std::vector<std::string>, Make) -> named<Make>;

namespace detail {

inline shape shape4(array const& a, char const* name) {
  if (a.shape.size() != 4) throw std::invalid_argument(std::string("tensor ") + name + " needs 4 axes");
  return {a.shape[0], a.shape[1], a.shape[2], a.shape[3]};
}

/// A tensor in memory of its own, dense or scattered with NaN between the elements.
template <class T>
struct storage {
  std::vector<T> memory;
  shape extents;
  strides steps;

  storage() = default;
  storage(shape const& s, bool odd, int salt) : extents(s) {
    if (!odd) {
      steps = strides::dense(s);
      memory.assign(std::size_t(std::max<index_t>(s.size(), 1)), T(0));
      return;
    }
    index_t const feature = salt % 3 == 2 ? 2 : 1;  // some tensors have gaps between features
    steps.feature = feature;
    steps.head = s.feature * feature + 3;
    steps.position = s.head * steps.head + 5;  // head and position change places
    steps.batch = s.position * steps.position + 7;
    memory.assign(std::size_t(std::max<index_t>(s.batch * steps.batch, 1)), std::numeric_limits<T>::quiet_NaN());
  }
  storage(array const& a, char const* name, bool odd, int salt) : storage(shape4(a, name), odd, salt) {
    if (index_t(a.data.size()) != extents.size())
      throw std::invalid_argument(std::string("tensor ") + name + ": data and shape disagree");
    std::size_t n = 0;
    for_each([&](index_t at) { memory[std::size_t(at)] = T(a.data[n++]); });
  }
  template <class Visit>
  void for_each(Visit const& visit) const {
    for (index_t b = 0; b < extents.batch; ++b)
      for (index_t h = 0; h < extents.head; ++h)
        for (index_t i = 0; i < extents.position; ++i)
          for (index_t d = 0; d < extents.feature; ++d)
            visit(b * steps.batch + h * steps.head + i * steps.position + d * steps.feature);
  }
  tensor<T const> view() const { return {memory.data(), extents, steps}; }
  tensor<T> view() { return {memory.data(), extents, steps}; }
  array dense() const {
    array a{{extents.batch, extents.head, extents.position, extents.feature}, {}};
    for_each([&](index_t at) { a.data.push_back(double(memory[std::size_t(at)])); });
    return a;
  }
};

/// All tensors of a problem in memory, and the inputs that view them.
template <class T>
struct loaded {
  std::map<std::string, storage<T>> tensors;
  loaded(problem const& p, bool odd) {
    int salt = 0;
    for (auto const& [name, a] : p.tensors) tensors.emplace(name, storage<T>(a, name.c_str(), odd, salt++));
  }
  tensor<T const> at(char const* name) const { return tensors.at(name).view(); }
};

template <class Op, class View, class T>
inputs<Op, View> view_inputs(loaded<T> const& from, problem const& p) {
  // Assembled field by field: a braced list would have to differ between operators.
  auto take = [&]<field F, class Unused>(char const* name) {
    if constexpr (Op::uses(F))
      return View(from.at(name));
    else
      return Unused{};
  };
  using namespace attune::detail;
  return {.q = take.template operator()<field::q, no_q>("q"),
          .k = take.template operator()<field::k, no_k>("k"),
          .v = View(from.at("v")),
          .gate_q = take.template operator()<field::gate_q, no_gate_q>("gate_q"),
          .gate_k = take.template operator()<field::gate_k, no_gate_k>("gate_k"),
          .scores = take.template operator()<field::scores, no_scores>("scores"),
          .gates = take.template operator()<field::gates, no_gates>("gates"),
          .v0 = take.template operator()<field::v0, no_v0>("v0"),
          .offset = p.offset};
}

/// The outputs of an operator in memory.
template <class Op, class T>
struct results {
  storage<T> out, lse, ground_weight;
  results(shape const& s, bool odd)
      : out(s, odd, 0), lse({s.batch, s.head, s.position, 1}, odd, 1), ground_weight({s.batch, s.head, s.position, 1}, odd, 2) {
  }
  outputs<Op, T> views() {
    outputs<Op, T> o{.out = out.view()};
    if constexpr (Op::has_lse) o.lse = natural_lse<T>(lse.view());
    if constexpr (Op::has_ground_weight) o.ground_weight = ground_weight.view();
    return o;
  }
  result dense() const {
    result r{.out = out.dense(), .lse = {}, .ground_weight = {}, .scores = {}, .logits = {}, .weights = {}};
    if constexpr (Op::has_lse) r.lse = lse.dense();
    if constexpr (Op::has_ground_weight) r.ground_weight = ground_weight.dense();
    return r;
  }
};

/// States of all parts, merged pairwise in a random order.
template <class T, class Exec, class Op, class Inputs>
row_states<T> merged_states(Exec const& exec, Op const& op, Inputs const& in, index_t keys, options const& o) {
  std::vector<row_states<T>> parts;
  index_t from = 0;
  for (std::size_t c = 0; c <= o.cuts.size(); ++c) {
    index_t const to = c < o.cuts.size() ? o.cuts[c] : keys;
    parts.push_back(accumulate(exec, op, in, {from, to}));
    from = to;
  }
  std::mt19937_64 random(o.tree_seed);
  while (parts.size() > 1) {
    std::swap(parts[random() % parts.size()], parts.back());
    row_states<T> last = std::move(parts.back());
    parts.pop_back();
    row_states<T>& other = parts[random() % parts.size()];
    other = merge(std::move(other), last);
  }
  return std::move(parts.front());
}

template <class T, class Op>
result run_cpu(Op const& op, problem const& p, options const& o) {
  loaded<T> const from(p, o.odd_strides);
  auto const in = view_inputs<Op, tensor<T const>>(from, p);
  results<Op, T> to(attune::detail::output_shape(in), o.odd_strides);
  cpu<T> const exec(o.threads);
  if (o.cuts.empty())
    forward(exec, op, in, to.views());
  else
    finish(op, in, merged_states<T>(exec, op, in, in.v.extents().position, o), to.views());
  return to.dense();
}

template <class T, class Op>
result run_reference(Op const& op, problem const& p, options const& o) {
  loaded<double> const from(p, o.odd_strides);
  auto const in = view_inputs<Op, any_tensor>(from, p);
  shape const s = attune::detail::output_shape(in);
  reference<T> const exec{};
  if (!o.cuts.empty()) {
    results<Op, T> to(s, false);
    finish(op, in, merged_states<T>(exec, op, in, in.v.extents().position, o), to.views());
    return to.dense();
  }
  auto const dense = forward(exec, op, in);
  index_t const keys = dense.extents.keys;
  result r;
  auto const rows = [&](index_t width) { return array{{s.batch, s.head, s.position, width}, {}}; };
  r.out = rows(s.feature);
  r.scores = r.logits = r.weights = rows(keys);
  if constexpr (Op::has_lse) r.lse = rows(1);
  if constexpr (Op::has_ground_weight) r.ground_weight = rows(1);
  for (auto const& head : dense.heads)
    for (index_t i = 0; i < s.position; ++i) {
      for (index_t d = 0; d < s.feature; ++d) r.out.data.push_back(double(head.out(i, d)));
      for (index_t j = 0; j < keys; ++j) {
        bool const seen = head.visible(i, j);
        r.scores.data.push_back(seen ? double(head.scores(i, j)) : 0);
        r.logits.data.push_back(seen ? double(head.logits(i, j)) : 0);
        r.weights.data.push_back(double(head.weights(i, j)));
      }
      if constexpr (Op::has_lse) r.lse.data.push_back(double(head.lse(i)));
      if constexpr (Op::has_ground_weight) r.ground_weight.data.push_back(double(head.ground_weight(i)));
    }
  return r;
}

inline mask::runtime mask_of(problem const& p) {
  if (p.visible.empty()) return {};
  if (p.visible_shape.size() != 4) throw std::invalid_argument("visible needs 4 axes");
  auto const& s = p.visible_shape;
  mask::runtime m;
  m.visible = p.visible.data();
  m.visible_shape = {s[0], s[1], s[2], s[3]};
  if (index_t(p.visible.size()) != m.visible_shape.size()) throw std::invalid_argument("visible: data and shape disagree");
  return m;
}

inline void check_names(problem const& p, entry const& e) {
  auto const known = [](std::vector<std::string> const& names, std::string const& x) {
    return std::find(names.begin(), names.end(), x) != names.end();
  };
  for (auto const& name : e.tensors)
    if (p.tensors.find(name) == p.tensors.end()) throw std::invalid_argument(e.name + ": tensor " + name + " is missing");
  for (auto const& t : p.tensors)
    if (!known(e.tensors, t.first)) throw std::invalid_argument(e.name + ": tensor " + t.first + " is superfluous");
  for (auto const& t : p.parameters)
    if (!known(e.parameters, t.first)) throw std::invalid_argument(e.name + ": parameter " + t.first + " is superfluous");
}

}  // namespace detail

/// Instantiates one operator on all executors and types and registers it.
template <class K, class L, class G, class N>
void add(std::map<std::string, entry>& to, named<K> const& kernel, named<L> const& length_scale, named<G> const& gate,
         named<N> const& normalizer) {
  entry e;
  e.name = std::string(kernel.name) + "/" + length_scale.name + "/" + gate.name + "/" + normalizer.name;
  auto const make = [=](problem const& p) {
    parameter_source const from(p);
    return attention(kernel.make(from), length_scale.make(from), gate.make(from), normalizer.make(from), detail::mask_of(p));
  };
  using op = decltype(make(problem{}));
  for (auto const& [f, name] : {std::pair{field::q, "q"},
                                {field::k, "k"},
                                {field::v, "v"},
                                {field::gate_q, "gate_q"},
                                {field::gate_k, "gate_k"},
                                {field::scores, "scores"},
                                {field::gates, "gates"},
                                {field::v0, "v0"}})
    if (op::uses(f)) e.tensors.emplace_back(name);
  for (auto const* names : {&kernel.parameters, &length_scale.parameters, &gate.parameters, &normalizer.parameters})
    for (auto const& n : *names)
      if (std::find(e.parameters.begin(), e.parameters.end(), n) == e.parameters.end()) e.parameters.push_back(n);
  e.has_lse = op::has_lse;
  e.has_ground_weight = op::has_ground_weight;
  e.has_ground_value = op::uses(field::v0);
  entry const described = e;
  e.run = [make, described](problem const& p, backend on, options const& o) {
    detail::check_names(p, described);
    op const made = make(p);
    switch (on) {
      case backend::reference_double:
        return detail::run_reference<double>(made, p, o);
      case backend::reference_50:
        return detail::run_reference<digits50>(made, p, o);
      case backend::cpu_float:
        return detail::run_cpu<float>(made, p, o);
      case backend::cpu_double:
        return detail::run_cpu<double>(made, p, o);
    }
    throw std::logic_error("unknown backend");
  };
  to.emplace(e.name, std::move(e));
}

// The policies of the registry, each named once.
inline auto const dot = named{"dot", {"scale"}, [](parameter_source const& p) { return kernel::dot_product{p("scale")}; }};
inline auto const given = named{"given", {}, [](parameter_source const&) { return kernel::given_scores{}; }};
inline auto const dot_alibi = named{"dot+alibi", {"scale", "slope"}, [](parameter_source const& p) {
                                      return kernel::dot_product{p("scale")} + kernel::alibi{p("slope", 0)};
                                    }};
inline auto const dot_softcap = named{"dot|softcap", {"scale", "cap"}, [](parameter_source const& p) {
                                        return kernel::dot_product{p("scale")} | kernel::softcap{p("cap", 30)};
                                      }};
inline auto const given_softcap = named{
    "given|softcap", {"cap"}, [](parameter_source const& p) { return kernel::given_scores{} | kernel::softcap{p("cap", 30)}; }};
inline auto const dot_alibi_softcap =
    named{"dot+alibi|softcap", {"scale", "slope", "cap"}, [](parameter_source const& p) {
            return (kernel::dot_product{p("scale")} + kernel::alibi{p("slope", 0)}) | kernel::softcap{p("cap", 30)};
          }};

inline auto const no_length_scale = named{"none", {}, [](parameter_source const&) { return length_scale::none{}; }};
inline auto const margin = named{"margin", {"alpha", "gamma"}, [](parameter_source const& p) {
                                   return length_scale::margin{.alpha = p("alpha", 0), .gamma = p("gamma", 0)};
                                 }};
inline auto const ssmax = named{"ssmax", {"ss_scale", "ss_bias"}, [](parameter_source const& p) {
                                  return length_scale::ssmax{.scale = p("ss_scale", 1), .bias = p("ss_bias", 0)};
                                }};
inline auto const logn =
    named{"logn", {"length0"}, [](parameter_source const& p) { return length_scale::log_n{p("length0", 512)}; }};

inline auto const no_gate = named{"none", {}, [](parameter_source const&) { return gate::none{}; }};
inline auto const softplus_gate =
    named{"softplus", {"beta"}, [](parameter_source const& p) { return gate::softplus{p("beta", 0)}; }};
inline auto const given_softplus_gate =
    named{"given_softplus", {"beta"}, [](parameter_source const& p) { return gate::given_softplus{p("beta", 0)}; }};

inline auto const softmax = named{"softmax", {}, [](parameter_source const&) { return normalizer::softmax{}; }};
inline auto const off_by_one = named{"off_by_one", {}, [](parameter_source const&) { return normalizer::off_by_one{}; }};
inline auto const off_by_one_value =
    named{"off_by_one_value", {}, [](parameter_source const&) { return normalizer::valued_off_by_one{}; }};
inline auto const sink = named{"sink", {"sink"}, [](parameter_source const& p) { return normalizer::sink{p("sink", 0)}; }};
inline auto const sink_value =
    named{"sink_value", {"sink"}, [](parameter_source const& p) { return normalizer::valued_sink{p("sink", 0)}; }};
inline auto const grounded =
    named{"grounded", {"gamma"}, [](parameter_source const& p) { return normalizer::grounded{p("gamma", 0)}; }};

}  // namespace attune::instances
