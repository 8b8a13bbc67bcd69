// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <string>
#include <vector>

#include <attune/operators/attention.hpp>
#include <attune/operators/listing.hpp>
#include <attune/policies.hpp>

#include "../check.hpp"
#include "../policies/row.hpp"

namespace attune::test {
namespace {

double const unit = std::log(std::expm1(1.0));  // softplus(unit) = 1

TEST_CASE("pipeline: contractions, score, cap, length scale, gate, in this order") {
  auto const op = attention(gate::softplus{unit}, length_scale::margin{unit, 0.2},
                            (kernel::dot_product{} + kernel::alibi{0.5}) | kernel::softcap{2.0});
  auto const f = op.bind(row_with(2, 7));   // kappa = 2
  double const x[2] = {4 * ln2 + 4, -ln3};  // dot, gate
  // score:  2 tanh((0.5 (4 log 2 + 4) - 0.5 |7 - 3|) / 2) = 2 tanh(log 2) = 1.2
  // margin: 1.2 + 2 (1.2 - 0.2) = 3.2;   gate: softplus(log 3) = log 4
  CHECK(near(f.score(x, {3}), 1.2));
  CHECK(near(f.logit(x, {3}), 3.2 - 2 * ln2));
  CHECK(near(f.logit_of_score(1.2, x), 3.2 - 2 * ln2));
}

TEST_CASE("row constant: the normalizer hears of it") {
  auto const op = attention(kernel::given_scores{}, length_scale::margin{unit, 100.0}, normalizer::grounded{100.0});
  auto const f = op.bind(row_with(2));
  double const x[1] = {4};
  CHECK(near(f.logit_shift, -200));                    // -kappa gamma
  CHECK(near(f.logit(x, {0}), 12));                    // 4 + 2 * 4
  CHECK(near(f.logit(x, {0}) + f.logit_shift, -188));  // 4 + 2 (4 - 100)
  CHECK(near(f.normalizer.lowest_reference(), 300));   // 100 in the units of the shifted logits
}

TEST_CASE("listed_parameters: every part, in the order of the pipeline") {
  auto const op =
      attention(normalizer::grounded{1.0}, gate::softplus{2.0}, length_scale::margin{3.0, 1.0},
                (kernel::dot_product{4.0} + kernel::alibi{5.0} + kernel::given_scores{}) | kernel::softcap{6.0});
  std::string names, paths;
  std::vector<double> values;
  for (operator_parameter const& p : listed_parameters(op)) {
    names += std::string(p.name) + ' ';
    paths += p.path() + ' ';
    values.push_back(p.at->at(0, 0, 0));
  }
  CHECK(names == "scale slope cap alpha gamma beta gamma ");
  CHECK(paths ==
        "kernel.0.0.scale kernel.0.1.slope kernel.map.cap length_scale.alpha length_scale.gamma gate.beta "
        "normalizer.gamma ");
  CHECK(parameter_count<decltype(op)> == 7);
  CHECK(values == std::vector<double>{4, 5, 6, 3, 1, 2, 1});
}

TEST_CASE("lse_convention_of: what is inside") {
  auto const words = [](lse_convention const& c) {
    return std::string(c.scale ? "scale " : "") + (c.length_scale ? "length_scale " : "") + (c.gate ? "gate " : "") +
           (c.constant ? "constant " : "") + (c.ground ? "ground " : "");
  };
  CHECK(words(lse_convention_of(attention(kernel::dot_product{}))) == "scale ");
  CHECK(words(lse_convention_of(attention(kernel::dot_product{}, normalizer::off_by_one{}, length_scale::ssmax{}))) ==
        "scale length_scale constant ");
  CHECK(words(lse_convention_of(attention(kernel::dot_product{}, normalizer::grounded{}, gate::softplus{}))) ==
        "scale gate ground ");
}

}  // namespace
}  // namespace attune::test
