// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// attune run PRESET, attune gradient PRESET
#include <iostream>
#include <memory>

#include "call_arguments.hpp"
#include "commands.hpp"
#include "files.hpp"

namespace attune::tool {
namespace {

/// Numbers per row are written as what is computed in, whatever `out` is stored as: an lse in 16 bits is of no use.
io::element_type row_type(problem const& p) {
  return p.in == arithmetic::float32 ? io::element_type::float32 : io::element_type::float64;
}

struct run_arguments {
  call_arguments call;
  std::string out, lse, ground_weight, threshold, json;

  void execute() const {
    std::map<std::string, std::string> const wanted{
        {"out", out}, {"lse", lse}, {"ground_weight", ground_weight}, {"threshold", threshold}};
    output_files files;
    for (auto const& [name, file] : wanted)
      if (!file.empty()) files.add(option_of(name), file, name);
    files.add_report("--json", json);
    auto const c = call.read();
    auto const refuse = [&](std::string const& file, bool has, char const* argument, char const* what) {
      if (!file.empty() && !has) throw usage_error(std::string(argument) + ": " + c.of->name + " has no " + what);
    };
    refuse(lse, c.of->has_lse, "--lse", "lse: its weights are not divided by a sum of masses");
    refuse(ground_weight, c.of->has_ground_weight, "--ground-weight", "ground and no sink");
    refuse(threshold, c.of->has_threshold, "--threshold", "threshold");

    results const r = runner_of(c.of->name, entry::run).run(c.what);
    auto report = call.report(c);
    std::map<std::string, io::array> arrays;
    for (auto const& [name, file] : wanted) {
      if (file.empty()) continue;
      io::array const x = stored_as(r.at(name), name == "out" ? c.stored : row_type(c.what), name != "out");
      report["outputs"][name] = report_of(file, x);
      if (json != "-") std::cout << describe(file, x) << "\n";
      arrays.emplace(name, x);
    }
    files.write(arrays);
    if (!json.empty()) write_report(json, report);
  }
};

struct gradient_arguments {
  call_arguments call;
  std::string out, dout, dlse, dground_weight, json;

  void execute() const {
    auto const file = checked_output("--out", out);
    output_files files;
    files.add("--out", out, "");
    files.add_report("--json", json);
    if (file.kind == file_kind::npy)
      throw usage_error("--out", out, "an .npz or .safetensors file: there are several gradients");
    auto c = call.read();
    c.what.cotangents["out"] = call.read_extra("--dout", dout, "out", c, c.out).values;
    if (!dlse.empty()) {
      if (!c.of->has_lse) throw usage_error("--dlse: " + c.of->name + " has no lse");
      c.what.cotangents["lse"] = call.read_extra("--dlse", dlse, "lse", c, rows_of(c.out), file_axes::rows).values;
    }
    if (!dground_weight.empty()) {
      if (!c.of->has_ground_weight) throw usage_error("--dground-weight: " + c.of->name + " has no ground and no sink");
      c.what.cotangents["ground_weight"] =
          call.read_extra("--dground-weight", dground_weight, "ground_weight", c, rows_of(c.out), file_axes::rows)
              .values;
    }
    if (c.what.in == arithmetic::float32)
      for (auto& [name, x] : c.what.cotangents) x.narrow();
    results const r = runner_of(c.of->name, entry::gradient).gradient(c.what);
    std::map<std::string, io::array> arrays;
    auto report = call.report(c);
    for (auto const& [name, x] : r) {
      bool const of_parameter =
          name.find('.') != std::string::npos;  // a path: its precision is that of the sum, not of v
      io::array a = stored_as(x, of_parameter ? row_type(c.what) : c.stored, false);
      report["gradients"][name] = report_of(out + ":" + name, a);
      if (json != "-") std::cout << describe(out + ":" + name, a) << "\n";
      arrays.emplace(name, std::move(a));
    }
    write_arrays("--out", file, arrays);
    if (!json.empty()) write_report(json, report);
  }
};

constexpr char const* json_help = "Write a report as JSON to a file, or to standard output for -";

}  // namespace

void add_run(CLI::App& program, exit_status&) {
  auto* const command = program.add_subcommand("run", "Compute an operator's outputs from files");
  auto const a = std::make_shared<run_arguments>();
  a->call.add_to(*command);
  command->add_option("--out", a->out, "Where the output goes, (B, H, Lq, Dv)")->type_name("FILE")->required();
  command->add_option("--lse", a->lse, "Where the log-sum-exp goes, (B, H, Lq), natural logarithm")->type_name("FILE");
  command->add_option("--ground-weight", a->ground_weight, "Where the weight of ground or sink goes, (B, H, Lq)")
      ->type_name("FILE");
  command->add_option("--threshold", a->threshold, "Where the threshold of a candidate set goes, (B, H, Lq)")
      ->type_name("FILE");
  command->add_option("--json", a->json, json_help)->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  attune run softmax --q q.npy --k k.npy --v v.npy --mask causal --out out.npy --lse lse.npy\n"
      "  attune run sink --from tensors.safetensors -p logit=0.5,-1 --executor reference --out out.npy\n"
      "  attune run principled --from x.npz -p alpha=-3 -p gamma=gamma.npy --mask padding=100,87 --out out.npz");
  command->callback([a] { a->execute(); });
}

void add_gradient(CLI::App& program, exit_status&) {
  auto* const command =
      program.add_subcommand("gradient", "Compute the gradients of <dout, out> by every input, parameter and table");
  auto const a = std::make_shared<gradient_arguments>();
  a->call.add_to(*command);
  command->add_option("--dout", a->dout, "The gradient by the output, (B, H, Lq, Dv)")->type_name("FILE")->required();
  command->add_option("--dlse", a->dlse, "The gradient by the lse, (B, H, Lq); zero if it is not given")
      ->type_name("FILE");
  command->add_option("--dground-weight", a->dground_weight, "The gradient by the ground weight, (B, H, Lq)")
      ->type_name("FILE");
  command
      ->add_option("--out", a->out,
                   "An archive (.npz, .safetensors): q, k, v, ..., and parameters by path, normalizer.gamma")
      ->type_name("FILE")
      ->required();
  command->add_option("--json", a->json, json_help)->type_name("FILE");
  command->footer(
      "Example:\n"
      "  attune gradient softmax --q q.npy --k k.npy --v v.npy --dout dout.npy --mask causal --out gradients.npz");
  command->callback([a] { a->execute(); });
}

}  // namespace attune::tool
