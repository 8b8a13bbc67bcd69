// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "plan.hpp"

#include <algorithm>
#include <set>

#include "mapping.hpp"

namespace attune::golden {
namespace {

// Two values that no weight times 0 can hide.
constexpr double some_ground_values[] = {0.75, -1234.5};

/// The stages of a case; null where the tables lack one.
struct pipeline {
  std::string score_name, normalizer_name, length_name, post_name;
  stage const *score = nullptr, *length = nullptr, *gate = nullptr, *normalizer = nullptr, *post = nullptr;

  /// Everything the pipeline reads, in order.
  std::vector<binding> reads() const {
    std::vector<binding> all;
    for (stage const* s : {score, length, gate, normalizer, post})
      all.insert(all.end(), s->reads.begin(), s->reads.end());
    all.push_back({"v", "v", layout::sequence});
    return all;
  }
};

/// Whether the case fixes what distinguishes a stage from others of its name.
bool applies(stage const& s, golden_case const& c) {
  return std::all_of(s.when.begin(), s.when.end(), [&](auto const& condition) {
    auto const found = c.params.find(std::string(condition.first));
    return found != c.params.end() &&
           (found->is_string() ? found->template get<std::string>() : found->dump()) == condition.second;
  });
}

stage const* find(std::vector<stage> const& table, std::string const& name, golden_case const& c) {
  auto const found =
      std::find_if(table.begin(), table.end(), [&](stage const& s) { return s.golden == name && applies(s, c); });
  return found == table.end() ? nullptr : &*found;
}

bool has(golden_case const& c, std::string_view name) {
  std::string const key(name);
  return c.inputs.count(key) > 0 || c.params.contains(key);
}

stage const* gate_of(golden_case const& c) {
  for (stage const& gate : gates())
    if (gate.reads.empty() || has(c, gate.reads.front().source)) return &gate;
  return nullptr;
}

/// False if the case is not an attention case at all.
bool parse(golden_case const& c, pipeline& p) {
  if (auto const normalizer = text_param(c, "normalizer")) {
    p.normalizer_name = *normalizer;
    p.score_name = text_param(c, "score").value_or("dot");
  } else {
    auto const& table = implied_pipelines();
    auto const implied =
        std::find_if(table.begin(), table.end(), [&](implied_pipeline const& i) { return i.operation == c.operation; });
    if (implied == table.end()) return false;
    p.normalizer_name = implied->normalizer;
    p.score_name = implied->score;
  }
  p.length_name = text_param(c, "length").value_or("");
  p.post_name = text_param(c, "post").value_or("");
  p.score = find(scores(), p.score_name, c);
  p.length = find(lengths(), p.length_name, c);
  p.gate = gate_of(c);
  p.normalizer = find(normalizers(), p.normalizer_name, c);
  p.post = find(posts(), p.post_name, c);
  return true;
}

/// Numbers of an input or parameter, whichever the case has under this name.
tensor values_of(golden_case const& c, std::string const& name) {
  if (auto const input = c.inputs.find(name); input != c.inputs.end()) return input->second;
  auto const& value = c.params.at(name);
  tensor result;
  if (value.is_array()) {
    for (auto const& entry : value) {
      auto const x = number(entry);
      if (!x) throw unplannable("params." + name + " has an entry that is not a number");
      result.data.push_back(*x);
    }
  } else if (auto const x = number(value)) {
    result.data.push_back(*x);
  } else {
    throw unplannable("params." + name + " is not a number");
  }
  result.shape = {static_cast<index>(result.data.size())};
  return result;
}

/// Places the inputs of a case in a problem and remembers which it used.
class placement {
 public:
  explicit placement(golden_case const& c) : case_(c) {}

  void place(binding const& b) {
    std::string const source(b.source), target(b.target);
    if (!has(case_, source)) {
      if (b.required) throw unplannable("has neither an input nor a parameter " + source);
      return;
    }
    used_.insert(source);
    if (case_.params.contains(source) && case_.params.at(source) == "any") return;  // see make_problems
    tensor const values = values_of(case_, source);
    auto const size = static_cast<index>(values.data.size());
    if (b.as == layout::per_row)
      result_.parameters[target] = with_axes({size}, values.data, 3);
    else if (b.as == layout::per_head)
      result_.parameters[target] = with_axes({size, 1}, values.data, 3);
    else
      (b.as == layout::table ? result_.tables : result_.tensors)[target] = arrange(values, b.as, source);
  }

  /// The conditions under which a stage was chosen are understood.
  void note(stage const& s) {
    for (auto const& condition : s.when) used_.emplace(condition.first);
  }

  void place_mask() {
    used_.insert("mask");
    if (case_.params.contains("mask")) {
      auto const offset = case_.params.at("mask").value("offset", nlohmann::json());
      if (!offset.is_number_integer()) throw unplannable("params.mask.offset is not an integer");
      result_.offset = offset.get<index>();
    }
    auto const mask = case_.inputs.find("mask");
    if (mask == case_.inputs.end()) return;
    for (double x : mask->second.data) {
      if (x != 0 && x != 1) throw unplannable("inputs.mask has an entry that is neither 0 nor 1");
      result_.visible.push_back(x != 0);
    }
    result_.visible_shape = with_axes(mask->second.shape, {}, 4).shape;
  }

  /// Nothing of the case may go unnoticed: an input that no stage reads would be another operator than the one we run.
  void check_all_used() const {
    static std::set<std::string> const harmless{"normalizer", "score", "length", "post", "policy", "do", "H", "G"};
    auto const unknown = [&](std::string const& name) {
      return used_.count(name) == 0 && harmless.count(name) == 0 && !(name == "w0" && is_convention(case_));
    };
    for (auto const& [name, value] : case_.inputs)
      if (unknown(name)) throw unplannable("inputs." + name + " is read by no stage of the operator");
    for (auto const& [name, value] : case_.params.items())
      if (unknown(name)) throw unplannable("params." + name + " is read by no stage of the operator");
  }

  instances::problem const& result() const { return result_; }

 private:
  instances::array arrange(tensor const& values, layout as, std::string const& source) const {
    if (as == layout::pairs && values.data.size() == 1) {  // one number for all pairs; the scores tell how many
      auto const& all = values_of(case_, "s");
      return with_axes(all.shape, std::vector<double>(all.data.size(), values.data.front()), 4);
    }
    std::size_t const rank = values.shape.size();
    if (!fits(as, rank)) throw unplannable("inputs." + source + " has " + std::to_string(rank) + " axes");
    if (as == layout::numbers) {
      auto shape = values.shape;
      shape.push_back(1);
      return with_axes(std::move(shape), values.data, 4);
    }
    return with_axes(values.shape, values.data, 4);
  }

  static bool fits(layout as, std::size_t rank) {
    switch (as) {
      case layout::sequence:
        return rank == 2 || rank == 3;
      case layout::pairs:
        return rank == 2;
      case layout::numbers:
      case layout::table:
        return rank == 1 || rank == 2;
      case layout::features:
      case layout::per_row:
      case layout::per_head:
        break;
    }
    return rank == 1;
  }

  golden_case const& case_;
  instances::problem result_;
  std::set<std::string> used_;
};

}  // namespace

choice choose(golden_case const& c) {
  pipeline p;
  if (!parse(c, p)) return {"", "", "no runner"};
  if (!p.score) return {"", "", "score " + p.score_name + " not mapped"};
  if (!p.length) return {"", "", "length " + p.length_name + " not mapped"};
  if (!p.normalizer) return {"", "", "normalizer " + p.normalizer_name + " not mapped"};
  if (!p.post) return {"", "", "post " + p.post_name + " not mapped"};
  if (!p.normalizer->length.empty() && !p.length_name.empty())
    return {"", "", "length " + p.length_name + " under " + p.normalizer_name + " not mapped"};
  std::string const length(p.normalizer->length.empty() ? p.length->registry : p.normalizer->length);
  std::string const ungated = std::string(p.score->registry) + "/" + length + "/" + std::string(p.gate->registry) +
                              "/" + std::string(p.normalizer->registry);
  return {p.post->registry.empty() ? ungated : ungated + "/" + std::string(p.post->registry), ungated, ""};
}

std::string gradient_target(golden_case const& c, std::string const& source) {
  pipeline p;
  parse(c, p);
  for (binding const& b : p.reads())
    if (b.source == source) return std::string(b.target);
  return "";
}

std::vector<instances::problem> make_problems(golden_case const& c) {
  pipeline p;
  parse(c, p);
  placement placed(c);
  for (binding const& b : p.reads()) placed.place(b);
  for (stage const* s : {p.score, p.length, p.gate, p.normalizer, p.post}) placed.note(*s);
  placed.place_mask();
  placed.check_all_used();
  if (!c.params.contains("v0") || c.params.at("v0") != "any") return {placed.result()};
  std::vector<instances::problem> result;
  index const width = c.inputs.at("v").shape.back();
  for (double x : some_ground_values) {
    result.push_back(placed.result());
    result.back().tensors["v0"] = with_axes({width}, std::vector<double>(static_cast<std::size_t>(width), x), 4);
  }
  return result;
}

std::map<std::string, tensor> forward_expectations(golden_case const& c) {
  std::map<std::string, tensor> result;
  for (auto const& [name, expected] : c.expected)
    if (!is_gradient(c, name)) result.emplace(name, expected);
  if (is_convention(c) && c.params.contains("w0")) result.emplace("w0", values_of(c, "w0"));
  return result;
}

instances::array with_axes(std::vector<index> shape, std::vector<double> data, std::size_t axes) {
  if (shape.size() < axes) shape.insert(shape.begin(), axes - shape.size(), 1);
  return {std::move(shape), std::move(data)};
}

}  // namespace attune::golden
