// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "judging.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include <attune/certify/number_format.hpp>
#include <attune/testing/candidate.hpp>
#include <attune/testing/interop/report_json.hpp>

#include "files.hpp"

namespace attune::tool {
namespace {

certify::storage storage_of(io::element_type type) {
  if (io::size_of(type) == 1) throw usage_error("a verdict on numbers of 8 bits: it knows f64, f32, f16 and bf16");
  return type == io::element_type::float64   ? certify::storage::fp64
         : type == io::element_type::float32 ? certify::storage::fp32
         : type == io::element_type::float16 ? certify::storage::fp16
                                             : certify::storage::bf16;
}

/// The extents of a parameter or table, by the name that the preset gives it, or by its path.
shape extents_of_policy(call_arguments::call const& c, std::string const& name) {
  std::string known;
  auto const found = [&](std::string const& shown, std::string const& path) {
    known += (known.empty() ? "" : ", ") + shown;
    return shown == name || path == name;
  };
  for (auto const& p : c.of->parameters)
    for (auto const& path : p.paths)
      if (found(p.name, path)) {
        auto const given = c.what.parameters.find(path);
        if (given != c.what.parameters.end()) return given->second.extents;
        return {1, 1, 1, 1};
      }
  for (auto const& t : c.of->tables)
    if (found(t.name, t.path)) return c.what.tables.at(t.path).extents;
  throw usage_error("--gradient", name, "an input of " + c.of->name + (known.empty() ? "" : ", or one of " + known));
}

/// Whether two results differ by no more than their rounding.
bool agree(std::vector<double> const& a, std::vector<double> const& b, double unit) {
  double difference = 0, size = 0;
  for (std::size_t n = 0; n < a.size(); ++n) {
    if (!std::isfinite(a[n]) || !std::isfinite(b[n])) continue;
    difference += (a[n] - b[n]) * (a[n] - b[n]);
    size += b[n] * b[n];
  }
  return difference <= 64 * unit * unit * size;
}

}  // namespace

std::string words_of_reference(testing::verdict_report const& out, testing::verdict_report const& reference,
                               bool alike) {
  using testing::judgement;
  if (reference.decision == judgement::undecidable) return "--reference-out is UNDECIDABLE: it tells nothing";
  if (reference.decision == judgement::pass)
    return out.decision == judgement::fail
               ? "--reference-out PASSes: the call is described as it was computed there, and the kernel is wrong"
               : "--reference-out PASSes, too";
  std::string const why = reference.reasons.empty() ? "" : ": " + reference.reasons[0];
  if (out.decision != judgement::fail) return "--reference-out FAILs, and --out does not" + why;
  return alike ? "--reference-out FAILs, too, and agrees with --out: the call is described wrongly (mask, --offset, "
                 "scale, a parameter), unless both have the same mistake"
               : "--reference-out FAILs, too, and differs from --out: describe the call so that --reference-out "
                 "PASSes first" +
                     why;
}

std::string with_hints(testing::verdict_report const& r, std::vector<std::string> const& hints) {
  std::ostringstream report;
  report << r;
  std::string text = report.str(), lines;
  for (auto const& hint : hints) lines += "  hint: " + hint + "\n";
  return text.insert(text.find('\n') + 1, lines);
}

testing::demanded demanded_of(std::string const& word) {
  auto const equals = word.rfind('=');
  testing::demanded d{word.substr(0, equals)};
  if (equals == std::string::npos) return d;
  std::string const size = word.substr(equals + 1);
  char* end = nullptr;
  d.size = std::strtod(size.c_str(), &end);
  if (size.empty() || end != size.c_str() + size.size() || !(d.size > 0))
    throw usage_error("--must-detect", word, "NAME, or NAME=SIZE with a number > 0");
  return d;
}

void strictness_words::add_to(CLI::App& command) {
  command.add_option(
      "--weights", weights,
      "The format of the probabilities when they meet the values (default: that of out): f32 holds a 16-bit kernel "
      "to unrounded ones");
  command.add_option("--arithmetic", arithmetic,
                     "The format of everything else: f32 or f64 (default: f32, f64 if out is f64)");
  command
      .add_option("--must-detect", must_detect,
                  "A defect that must not go unnoticed: a parameter and how large (kernel.scale=0.01), or a name that "
                  "a verdict "
                  "lists (\"sink or ground ignored\"); else the verdict is UNDECIDABLE. May be repeated")
      ->type_name("NAME[=SIZE]")
      ->allow_extra_args(false);
}

void result_words::add_to(CLI::App& command) {
  command.add_option("--out", out, "What the kernel computed, (B, H, Lq, Dv)")->type_name("FILE");
  command
      .add_option("--reference-out", reference_out,
                  "What another implementation computed of the same inputs: tells a wrong kernel from a call that is "
                  "described wrongly")
      ->type_name("FILE");
  command.add_option("--lse", lse, "Its log-sum-exp, (B, H, Lq)")->type_name("FILE");
  command.add_option("--lse-base", lse_base, "The base of its logarithm: e (default) or 2")->type_name("BASE");
  command.add_option("--ground-weight", ground_weight, "Its weight of ground or sink, (B, H, Lq)")->type_name("FILE");
  for (char const* name : {"q", "k", "v"})
    command
        .add_option("--d" + std::string(name), gradients[name],
                    "Its gradient by " + std::string(name) + ", shaped like it")
        ->type_name("FILE")
        ->group("Gradients");
  command
      .add_option("--gradient", more,
                  "Its gradient by any input, parameter or table, by the names of 'attune explain': logit=dlogit.npy, "
                  "shaped like it. May be repeated")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false)
      ->group("Gradients");
  command.add_option("--dout", dout, "The gradient by out that the backward pass started from, (B, H, Lq, Dv)")
      ->type_name("FILE")
      ->group("Gradients");
  command.add_option("--dlse", dlse, "The one by lse, (B, H, Lq); zero if it is not given")
      ->type_name("FILE")
      ->group("Gradients");
}

testing::judgement judged_call::decision() const {
  auto const any = [&](testing::judgement j) {
    return std::any_of(reports.begin(), reports.end(), [&](auto const& r) { return r.second.decision == j; });
  };
  for (auto const j : {testing::judgement::fail, testing::judgement::undecidable})
    if (any(j)) return j;
  return testing::judgement::pass;
}

judged_call judge(call_arguments const& arguments, result_words const& files, strictness_words const& how) {
  handed_back theirs;
  for (auto const& word : how.must_detect) theirs.how.must_detect.push_back(demanded_of(word));
  std::optional<certify::storage> weights, arithmetic;
  if (!how.weights.empty()) weights = storage_of(element_type_named("--weights", how.weights));
  if (!how.arithmetic.empty()) arithmetic = storage_of(element_type_named("--arithmetic", how.arithmetic));
  if (arithmetic && certify::format_of(*arithmetic).unit > certify::format_of(certify::storage::fp32).unit)
    throw usage_error("--arithmetic", how.arithmetic, "f32 or f64: in 16 bits nothing can be promised");
  if (!files.lse_base.empty() && files.lse_base != "e" && files.lse_base != "2")
    throw usage_error("--lse-base", files.lse_base, "e or 2");
  theirs.base_two = files.lse_base == "2";
  std::map<std::string, std::string> given = files.gradients, of_policies;
  std::erase_if(given, [](auto const& x) { return x.second.empty(); });
  for (auto const& word : files.more) {
    auto const equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size())
      throw usage_error("--gradient", word, "NAME=FILE");
    if (!given.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
      throw usage_error("--gradient", word, "each gradient once");
  }
  if (files.out.empty() && given.empty())
    throw usage_error("--out is missing: what the kernel computed, or its --dq, --dk, --dv");
  if (files.out.empty() && !files.reference_out.empty())
    throw usage_error("--out is missing: --reference-out is compared with it");
  if (files.out.empty() && !(files.lse.empty() && files.ground_weight.empty()))
    throw usage_error("--out is missing: --lse and --ground-weight are judged with it");
  if (given.empty() != (files.dout.empty() && files.dlse.empty()))
    throw usage_error(
        "--dq, --dk, --dv are judged with the --dout or --dlse that they belong to, and these with one of those");

  judged_call j{arguments.read(), {}, {}, {}, {}};
  auto& c = j.call;
  if (!(files.lse.empty() && files.dlse.empty()) && !c.of->has_lse)
    throw usage_error("--lse, --dlse: " + c.of->name + " has no lse");
  if (!files.ground_weight.empty() && !c.of->has_ground_weight)
    throw usage_error("--ground-weight: " + c.of->name + " has no ground and no sink");
  for (auto const& [name, file] : given) {
    if (c.what.tensors.count(name) != 0) continue;
    if (files.gradients.count(name) != 0) throw usage_error("--d" + name + ": " + c.of->name + " has no input " + name);
    of_policies[name] = file;
  }
  for (auto const& [name, file] : of_policies) given.erase(name);
  if (c.layout.paged() && !(given.empty() && of_policies.empty()))
    throw usage_error("--page-table: gradients are judged with keys and values in one piece");
  arguments.add_misaligned(c);

  if (c.places.cu_seqlens_q != c.places.cu_seqlens_k)
    j.hints.push_back(
        "packed queries and keys begin at different places: a score that reads positions (ALiBi, rotary, a relative "
        "bias) is judged at positions of the packed tensors; judge such sequences one by one");

  // 16-bit results in wider files are judged as what they are.
  std::optional<io::element_type> type = arguments.dtype();
  bool all_bf16 = true, all_fp16 = true;
  auto const take = [&](std::string const& argument, std::string const& file, std::string const& name,
                        shape const& expected, results& to) {
    auto x = arguments.read_extra(argument, file, name, c, expected);
    if (!type) type = x.type;
    auto const foreign = [&](certify::storage s) { return testing::foreign_to(s, x.values.doubles); };
    if (double const* const odd = foreign(storage_of(*type)))
      throw usage_error(
          argument, file,
          detail::text("numbers of the type ", io::name_of(*type), "; it holds ", *odd, ", which is none"));
    all_bf16 = all_bf16 && foreign(certify::storage::bf16) == nullptr;
    all_fp16 = all_fp16 && foreign(certify::storage::fp16) == nullptr;
    to.emplace(name, std::move(x.values));
  };
  if (!files.out.empty()) take("--out", files.out, "out", c.out, theirs.outputs);
  for (auto const& [name, file] : given)
    take("--d" + name, file, name, c.what.tensors.at(name).extents, theirs.gradients);
  // Parameters and tables are summed and stored in the format of the arithmetic, unless their files say otherwise.
  for (auto const& [name, file] : of_policies) {
    std::string const argument = "--gradient " + name;
    auto const like = extents_of_policy(c, name);
    auto x = arguments.read_extra(argument, file, name, c, like, file_axes::as_stored);
    if (!type) type = x.type;
    theirs.other_types[name] = storage_of(x.type);
    theirs.gradients.emplace(name, std::move(x.values));
  }
  theirs.stored = j.stored = storage_of(*type);
  if (j.stored == certify::storage::fp32 && (all_bf16 || all_fp16))
    j.hints.push_back(std::string("every number is a ") + (all_bf16 ? "bfloat16" : "float16") +
                      ": if the kernel wrote those, say --dtype " + (all_bf16 ? "bf16" : "f16"));

  auto const rows = [&](char const* argument, std::string const& file, char const* name, results& to, bool judged) {
    if (file.empty()) return;
    auto x = arguments.read_extra(argument, file, name, c, rows_of(c.out), file_axes::rows);
    if (judged) theirs.other_types[name] = storage_of(x.type);
    to.emplace(name, std::move(x.values));
  };
  rows("--lse", files.lse, "lse", theirs.outputs, true);
  rows("--ground-weight", files.ground_weight, "ground_weight", theirs.outputs, true);
  if (!files.dout.empty())
    c.what.cotangents["out"] = arguments.read_extra("--dout", files.dout, "out", c, c.out).values;
  rows("--dlse", files.dlse, "lse", c.what.cotangents, false);

  certify::precision precision(j.stored);
  if (weights) precision.weights = *weights;
  if (arithmetic) precision.arithmetic = *arithmetic;
  theirs.how.how = precision;
  theirs.how.page = c.page;
  std::string const& preset = c.of->name;
  bool const gives_outputs = !theirs.outputs.empty();
  handed_back other;
  bool same = false;
  if (!files.reference_out.empty()) {
    auto x = arguments.read_extra("--reference-out", files.reference_out, "out", c, c.out);
    certify::storage stored = storage_of(x.type);
    for (auto const narrow : {certify::storage::bf16, certify::storage::fp16})  // 16-bit results in wider files
      if (stored == certify::storage::fp32 && testing::foreign_to(narrow, x.values.doubles) == nullptr) stored = narrow;
    same = agree(theirs.outputs.at("out").doubles, x.values.doubles,
                 std::fmax(certify::format_of(stored).unit, certify::format_of(theirs.stored).unit));
    other.outputs.emplace("out", std::move(x.values));
    other.stored = stored;
    other.how.how = certify::precision(stored);
    other.how.page = c.page;
  }
  if (gives_outputs) {
    handed_back outputs{std::move(theirs.outputs), {}, theirs.stored, theirs.base_two, theirs.other_types, theirs.how};
    j.reports.emplace_back("outputs", runner_of(preset, entry::verdict).verdict(c.what, std::move(outputs)));
  }
  if (!other.outputs.empty()) {
    j.reference = runner_of(preset, entry::verdict).verdict(c.what, std::move(other));
    j.hints.insert(j.hints.begin(), words_of_reference(j.reports[0].second, *j.reference, same));
  }
  if (!theirs.gradients.empty()) {
    if (gives_outputs) theirs.how.must_detect.clear();  // asked of the outputs
    j.reports.emplace_back("gradients", runner_of(preset, entry::gradient_verdict).gradient_verdict(c.what, theirs));
  }
  return j;
}

exit_status status_of(testing::judgement j) {
  return j == testing::judgement::pass ? passed : j == testing::judgement::fail ? failed_check : undecidable;
}

nlohmann::ordered_json as_json(testing::verdict_report const& r) {
  return nlohmann::ordered_json::parse(testing::json_of(r));
}

}  // namespace attune::tool
