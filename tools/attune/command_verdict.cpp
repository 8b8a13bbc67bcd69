// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// attune verdict PRESET
#include <fstream>
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "files.hpp"
#include "judging.hpp"
#include "verdict_page.hpp"

namespace attune::tool {
namespace {

struct verdict_arguments {
  call_arguments call;
  result_words files;
  strictness_words how;
  std::string json, html;

  exit_status execute() const {
    judged_call const j = judge(call, files, how);
    if (json != "-") {
      for (auto const& [what, report] : j.reports) {
        bool const first = &report == &j.reports[0].second;
        std::cout << (j.reports.size() > 1 ? what + ": " : std::string())
                  << with_hints(report, first ? j.hints : std::vector<std::string>());
      }
      if (j.decision() == testing::judgement::undecidable)
        std::cout << "  hint: 'attune probes write " << j.call.of->name
                  << " --to FOLDER ...' writes inputs with more power\n";
    }
    auto report = call.report(j.call);
    report.erase("executor");  // it is the kernel's that counts
    report.erase("arithmetic");
    report["stored"] = testing::name_of(j.stored);
    report["decision"] = testing::name_of(j.decision());
    if (!html.empty()) write_text("--html", html, verdict_page(report, j));
    for (auto const& [what, one] : j.reports) report["verdict"][what] = as_json(one);
    if (j.reference) report["verdict"]["reference_out"] = as_json(*j.reference);
    report["hints"] = j.hints;
    if (!json.empty()) write_report(json, report);
    return status_of(j.decision());
  }
};

}  // namespace

void add_verdict(CLI::App& program, exit_status& status) {
  auto* const command = program.add_subcommand(
      "verdict", "Judge what somebody's kernel computed: PASS, FAIL with the cause, or UNDECIDABLE");
  auto const a = std::make_shared<verdict_arguments>();
  a->call.add_operator_to(*command);
  a->call.add_inputs_to(*command);
  a->call.add_layout_to(*command);
  a->files.add_to(*command);
  a->call.add_dtype_to(
      *command,
      "What the kernel stores its results as, f64, f32, f16 or bf16 (default: the type of their files), also where "
      "files hold such numbers in a wider type");
  a->how.add_to(*command);
  command->add_option("--json", a->json, "Write a report as JSON to a file, or to standard output for -")
      ->type_name("FILE");
  command->add_option("--html", a->html, "Write a page with pictures of where the error sits")->type_name("FILE");
  command->footer(
      "PASS (status 0): every element is within the error bound of its type, and no defect is noticed; the report says "
      "how "
      "small\neach would have had to be. FAIL (1): the first line names the cause, if it is a known one. UNDECIDABLE "
      "(3): the "
      "problem is\nill-conditioned, or a defect of --must-detect would not show on these inputs.\n\n"
      "Examples:\n"
      "  attune verdict softmax --q q.npy --k k.npy --v v.npy --mask causal --out theirs.npy --lse their_lse.npy\n"
      "  attune verdict sink --from tensors.safetensors -p logit=0.5,-1 --out tensors.safetensors:o --html "
      "report.html\n"
      "  attune verdict softmax --from x.npz --out out.npy --dtype bf16 --must-detect kernel.scale=0.01\n"
      "  attune verdict softmax --from x.npz --dout dout.npy --dq dq.npy --dk dk.npy --dv dv.npy");
  command->callback([a, &status] { status = a->execute(); });
}

}  // namespace attune::tool
