// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// attune probes write PRESET, attune probes judge FOLDER
//
// A pack is a folder: manifest.json, which says what the kernel is meant to compute, and a folder per probe with its
// inputs as .npy files. A kernel puts its results beside them; the pack is then judged by what the manifest says.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include <attune/operators/attention.hpp>
#include <attune/operators/listing.hpp>
#include <attune/testing/drawn/probe_contract.hpp>

#include "commands.hpp"
#include "files.hpp"
#include "judging.hpp"

namespace attune::tool {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;
constexpr char const* pack_format = "attune probe pack, version 1";

/// "values one-hot" as the name of a folder.
std::string folder_name(std::string name) {
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

/// NAME=FILE with a path that means the same from everywhere.
std::string from_everywhere(std::string const& word) {
  auto const equals = word.find('=');
  if (equals == std::string::npos) return word;
  auto const file = parse_file(word.substr(equals + 1));
  if (!file) return word;
  return word.substr(0, equals + 1) + fs::absolute(file->path).string() + (file->name.empty() ? "" : ":" + file->name);
}

json extents_of(shape const& e, file_axes axes) {
  json all{e.batch, e.head, e.position};
  if (axes == file_axes::tensor) all.push_back(e.feature);
  return all;
}

struct write_arguments {
  call_arguments call;
  testing::problem_extents extents{.batch = 1, .heads = 4, .queries = 64, .keys = 256, .width = 64};
  std::string folder;
  std::uint64_t seed = 1;
  bool strict = false;

  void execute() const {
    auto c = call.read_operator();
    testing::problem_extents e = extents;
    if (c.what.offset) e.offset = c.what.offset;
    for (index_t heads : {e.key_heads, e.value_heads})
      if (heads < 1 || e.heads < 1 || e.heads % heads != 0)
        throw usage_error("--key-heads, --value-heads", std::to_string(heads),
                          "a divisor of --heads " + std::to_string(e.heads));
    io::element_type const stored = call.dtype().value_or(io::element_type::float32);
    auto const probes =
        runner_of(c.of->name, entry::probes)
            .probes(
                c.what, e,
                [&](mask_shape const& of, index_t offset) {
                  try {
                    return call.mask(of, offset);
                  } catch (usage_error const& bad) {
                    throw error("probes", "--mask", bad.what(), "a mask that fits the extents of the probe");
                  }
                },
                seed);
    if (probes.empty())
      throw usage_error(
          "no probe fits: masks and parameters that are files must fit --batch, --heads, --queries and --keys");

    call_words const& words = call.words();
    json manifest{{"format", pack_format}, {"preset", c.of->name}};
    manifest["parameters"] = json::array();
    for (auto const& word : words.parameters) manifest["parameters"].push_back(from_everywhere(word));
    manifest["mask"] = json::array();
    for (auto const& word : words.masks) manifest["mask"].push_back(from_everywhere(word));
    manifest["offset"] = words.offset ? json(*words.offset) : json(nullptr);
    manifest["dtype"] = words.dtype.empty() ? "f32" : words.dtype;
    manifest["probes"] = json::array();
    for (probe_inputs const& probe : probes)
      if (strict || testing::contract_of_probe(probe.name).empty())
        manifest["probes"].push_back(write_probe(probe, c, stored));
    write_text("--to", (fs::path(folder) / "manifest.json").string(), manifest.dump(2) + "\n");
    std::cout << "For each of these folders: run the kernel on its inputs and put out.npy there"
              << (c.of->has_lse ? " (and lse.npy, if it has one)" : "")
              << ";\nif it has a backward pass, dq.npy, dk.npy and dv.npy of <dout, out>.\nThen: attune probes judge "
              << folder << "\n";
  }

 private:
  /// Exactly what the kernel's type can hold, in files that every NumPy reads.
  static io::array as_the_kernel_reads(io::array const& x, io::element_type stored) {
    return io::size_of(stored) < 4 ? io::make_array<float>(io::numbers<float>(x), x.extents) : x;
  }
  json write_probe(probe_inputs const& probe, call_arguments::call const& c, io::element_type stored) const {
    fs::path const place = fs::path(folder) / folder_name(probe.name);
    std::error_code problem;
    fs::create_directories(place, problem);
    if (problem) throw usage_error("--to", folder, "a folder that can be made: " + problem.message());
    json entry{{"folder", place.filename().string()}, {"name", probe.name}, {"reveals", probe.reveals}};
    for (auto const& [name, x] : probe.tensors) {
      field f{};
      for (field one : c.of->inputs)
        if (name == name_of(one)) f = one;
      io::array const array = as_the_kernel_reads(stored_as(x, stored, is_per_position(f)), stored);
      write_arrays("--to", {place / (name + ".npy"), "", file_kind::npy}, {{name, array}});
      entry["inputs"][name] = array.extents;
    }
    shape const out = probe.dout.extents;
    entry["results"]["out"] = extents_of(out, file_axes::tensor);
    if (c.of->has_lse) entry["results"]["lse"] = extents_of(out, file_axes::rows);
    if (c.of->has_ground_weight) entry["results"]["ground_weight"] = extents_of(out, file_axes::rows);
    io::array const dout = as_the_kernel_reads(stored_as(probe.dout, stored, false), stored);
    write_arrays("--to", {place / "dout.npy", "", file_kind::npy}, {{"dout", dout}});
    std::cout << place.string() << ": " << probe.reveals << "\n";
    return entry;
  }
};

/// The smallest amount of each defect that any probe would have shown.
struct powers {
  std::vector<testing::finding> best;

  void note(testing::verdict_report const& r) {
    for (auto const& f : r.findings) {
      if (!f.tested) continue;
      auto const same = std::find_if(best.begin(), best.end(), [&](auto const& x) { return x.name == f.name; });
      if (same == best.end())
        best.push_back(f);
      else if (f.power < same->power)
        *same = f;
    }
  }
};

struct judge_arguments {
  std::string folder, json_file;
  strictness_words how;

  exit_status execute() const {
    json const manifest = read_manifest();
    strictness_words each = how;
    each.must_detect.clear();  // one probe that shows it is enough
    json report{{"folder", folder}, {"preset", manifest.at("preset")}};
    powers seen;
    std::vector<std::string> missing;
    int failed = 0, judged = 0, blind = 0;
    std::pair<std::string, testing::verdict_report> most;  // the failure that tells most
    for (auto const& probe : manifest.at("probes")) {
      fs::path const place = fs::path(folder) / probe.at("folder").get<std::string>();
      if (!fs::exists(place / "out.npy")) {
        missing.push_back((place / "out.npy").string());
        continue;
      }
      judged_call const j = judge_one(manifest, probe, place, each);
      ++judged;
      failed += j.decision() == testing::judgement::fail;
      blind += j.decision() == testing::judgement::undecidable;
      json entry{{"name", probe.at("name")}, {"decision", testing::name_of(j.decision())}};
      for (auto const& [what, one] : j.reports) {
        seen.note(one);
        if (testing::tells_more(one, most.second)) most = {probe.at("name").get<std::string>(), one};
        entry["verdict"][what] = as_json(one);
      }
      report["probes"].push_back(std::move(entry));
      if (json_file != "-") {
        std::string const name = probe.at("name"), contract = testing::contract_of_probe(name);
        std::cout << testing::name_of(j.decision()) << "  " << name << "\n";
        if (!contract.empty()) std::cout << "      contract of --strict: " << contract << "\n";
        for (auto const& [what, one] : j.reports)
          for (auto const& reason : one.reasons) std::cout << "      " << what << ": " << reason << "\n";
        for (auto const& hint : j.hints) std::cout << "      hint: " << hint << "\n";
      }
    }
    std::vector<std::string> unseen;
    for (auto const& word : how.must_detect) {
      testing::demanded const wanted = demanded_of(word);
      auto const f = std::find_if(seen.best.begin(), seen.best.end(),
                                  [&](auto const& x) { return attune::detail::is_called(x.name, wanted.name); });
      if (f == seen.best.end()) {
        unseen.push_back(wanted.name + ": no probe shows it at all");
      } else if (!(f->power < wanted.size)) {
        unseen.push_back(f->name + attune::detail::text(": ", wanted.size,
                                                        " would go unnoticed, the smallest to be seen is ", f->power));
      }
    }
    testing::judgement const all = failed > 0 ? testing::judgement::fail
                                   : !unseen.empty() || (judged > 0 && blind == judged)
                                       ? testing::judgement::undecidable
                                       : testing::judgement::pass;
    if (json_file != "-") {
      std::cout << testing::name_of(all) << ": " << judged << " probes judged, " << failed << " failed\n";
      for (auto const& text : unseen) std::cout << "  " << text << "\n";
      if (failed > 1 && !most.second.reasons.empty())
        std::cout << "  the probe '" << most.first << "' tells most: " << most.second.reasons.front() << "\n";
    }
    report["decision"] = testing::name_of(all);
    report["unseen"] = unseen;
    report["missing"] = missing;
    if (!json_file.empty()) write_report(json_file, report);
    if (!missing.empty() && failed == 0)
      throw usage_error(missing[0] + " is missing" +
                        (missing.size() > 1 ? ", and so are " + std::to_string(missing.size() - 1) + " more" : "") +
                        ": every probe wants a result");
    return status_of(all);
  }

 private:
  json read_manifest() const {
    std::string const file = (fs::path(folder) / "manifest.json").string();
    std::ifstream in(file, std::ios::binary);
    if (!in) throw usage_error("FOLDER", folder, "a folder with a manifest.json, as 'attune probes write' makes it");
    json m = json::parse(in, nullptr, false);
    auto const is = [&](char const* key, auto const& holds) { return m.contains(key) && holds(m.at(key)); };
    auto const texts = [](json const& x) {
      return x.is_array() && std::all_of(x.begin(), x.end(), [](json const& y) { return y.is_string(); });
    };
    bool const fits =
        m.is_object() && is("format", [](json const& x) { return x == pack_format; }) &&
        is("preset", [](json const& x) { return x.is_string(); }) && is("parameters", texts) && is("mask", texts) &&
        is("offset", [](json const& x) { return x.is_null() || x.is_number_integer(); }) &&
        is("dtype", [](json const& x) { return x.is_string(); }) && is("probes", [](json const& x) {
          return x.is_array() && std::all_of(x.begin(), x.end(), [](json const& y) {
                   return y.is_object() && y.contains("folder") && y["folder"].is_string() && y.contains("name") &&
                          y["name"].is_string() && y.contains("inputs") && y["inputs"].is_object();
                 });
        });
    if (!fits) throw usage_error(file + " is no manifest of an " + pack_format + ": was it edited?");
    return m;
  }

  static judged_call judge_one(json const& manifest, json const& probe, fs::path const& place,
                               strictness_words const& how) {
    call_words words;
    words.preset = manifest.at("preset").get<std::string>();
    words.parameters = manifest.at("parameters").get<std::vector<std::string>>();
    words.masks = manifest.at("mask").get<std::vector<std::string>>();
    words.dtype = manifest.at("dtype").get<std::string>();
    if (!manifest.at("offset").is_null()) words.offset = manifest.at("offset").get<long>();
    for (auto const& [name, extents] : probe.at("inputs").items())
      words.tensors[name] = (place / (name + ".npy")).string();
    result_words files;
    auto const if_there = [&](char const* name) {
      fs::path const file = place / (std::string(name) + ".npy");
      return fs::exists(file) ? file.string() : std::string();
    };
    files.out = if_there("out");
    files.lse = if_there("lse");
    files.ground_weight = if_there("ground_weight");
    for (char const* name : {"q", "k", "v"}) files.gradients[name] = if_there(("d" + std::string(name)).c_str());
    bool const backward =
        std::any_of(files.gradients.begin(), files.gradients.end(), [](auto const& x) { return !x.second.empty(); });
    if (backward) files.dout = if_there("dout");
    return judge(call_arguments(words), files, how);
  }
};

}  // namespace

void add_probes(CLI::App& program, exit_status& status) {
  auto* const command =
      program.add_subcommand("probes", "Inputs with power: write them, run a kernel on them, have it judged");
  command->require_subcommand(1);

  auto* const write = command->add_subcommand("write", "Write a pack of inputs that shows what random numbers hide");
  auto const w = std::make_shared<write_arguments>();
  w->call.add_operator_to(*write);
  w->call.add_dtype_to(*write,
                       "What the kernel computes in, f64, f32, f16 or bf16 (default f32): inputs are such numbers");
  write->add_option("--to", w->folder, "The folder")->type_name("FOLDER")->required();
  auto const extent = [&](char const* option, index_t& to, char const* what) {
    write->add_option(option, to, what)
        ->check(CLI::Range(index_t(1), index_t(1) << 20))
        ->capture_default_str()
        ->group("Extents");
  };
  extent("--batch", w->extents.batch, "B");
  extent("--heads", w->extents.heads, "H");
  extent("--key-heads", w->extents.key_heads, "Hk, of everything that has a row per key");
  extent("--value-heads", w->extents.value_heads, "Hv, of the values");
  extent("--queries", w->extents.queries, "Lq");
  extent("--keys", w->extents.keys, "Lk; some probes have other lengths, where mask and parameters allow it");
  extent("--width", w->extents.width, "D");
  write->add_option("--value-width", w->extents.value_width, "Dv (default: D)")->group("Extents");
  write->add_option("--gate-width", w->extents.gate_width, "Dg (default: D)")->group("Extents");
  write->add_option("--position-width", w->extents.position_width, "Dp (default: D)")->group("Extents");
  extent("--axes", w->extents.axes, "A, of spatial priors");
  write->add_option("--seed", w->seed, "Of the random numbers")->capture_default_str();
  write->add_flag("--strict", w->strict, "Also probes of what kernels need not promise: NaN that no query sees");
  write->footer(
      "Example:\n"
      "  attune probes write softmax --mask causal --heads 8 --key-heads 2 --value-heads 2 --width 128 --dtype bf16 "
      "--to pack");
  write->callback([w] { w->execute(); });

  auto* const judging = command->add_subcommand("judge", "Judge the results that a kernel has put into a pack");
  auto const j = std::make_shared<judge_arguments>();
  judging
      ->add_option("FOLDER", j->folder, "The pack: out.npy (lse.npy, ground_weight.npy) in the folder of every probe")
      ->required();
  j->how.add_to(*judging);
  judging->add_option("--json", j->json_file, "Write a report as JSON to a file, or to standard output for -")
      ->type_name("FILE");
  judging->callback([j, &status] { status = j->execute(); });
}

}  // namespace attune::tool
