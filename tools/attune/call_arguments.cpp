// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "call_arguments.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>

#include <attune/operators/inputs.hpp>

#include "files.hpp"
#include "masks.hpp"
#include "values.hpp"

namespace attune::tool {
namespace {

std::string option_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

std::map<std::string, io::element_type> const dtypes{{"f64", io::element_type::float64},
                                                     {"f32", io::element_type::float32},
                                                     {"f16", io::element_type::float16},
                                                     {"bf16", io::element_type::bfloat16}};

void add_floats(numbers& x) { x.floats.assign(x.doubles.begin(), x.doubles.end()); }

/// (B, H, Lq, Dv) of the output, from the first input that has queries.
shape output_shape(problem const& p) {
  for (char const* name : {"q", "scores", "gate_q", "gates", "sort_q", "position_q", "center", "bias", "output_gate"})
    if (auto const found = p.tensors.find(name); found != p.tensors.end()) return found->second.extents;
  throw usage_error("no input tells the number of queries");
}

}  // namespace

void call_arguments::add_to(CLI::App& command) {
  command.add_option("PRESET", preset_, "The operator: a name that 'attune presets' lists")->required();
  for (int f = 0; f <= int(field::v0); ++f)
    command
        .add_option(option_of(name_of(field(f))), tensors_[name_of(field(f))],
                    std::string("Input ") + name_of(field(f)) + " " + shape_of(field(f)))
        ->type_name("FILE")
        ->group("Inputs");
  command.add_option("--from", from_, "An archive that holds the inputs not given one by one, under their names")
      ->type_name("FILE")
      ->group("Inputs");
  command
      .add_option("-p,--parameter", parameters_,
                  "A parameter, a table or a constant of the preset: a number, a list (one per head) or a file")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_option("--mask", masks_, std::string("Which keys a query sees; may be repeated, they intersect. ") + mask_help())
      ->type_name("MASK")
      ->allow_extra_args(false);
  command.add_option("--offset", offset_, "Position of query 0 among the keys (default: Lk - Lq, so that the ends align)");
  command.add_option("--executor", executor_,
                     "cpu: fused, float, or double if an input is float64. reference: dense, double, for checking");
  command.add_option("--dtype", dtype_,
                     "What outputs are stored as, f64, f32, f16 or bf16 (default: as v; f64 from the reference); f16 and bf16 "
                     "also say what 16-bit words in .npy files are");
  command.add_option("--threads", threads_, "Threads of the cpu executor (default: all)");
}

std::optional<io::element_type> call_arguments::words() const {
  if (dtype_ == "f16" || dtype_ == "bf16") return dtypes.at(dtype_);
  return std::nullopt;
}

call_arguments::call call_arguments::read() const {
  call c{&find_preset(preset_), {}, io::element_type::float32, {}};
  preset const& of = *c.of;
  if (executor_ != "cpu" && executor_ != "reference") throw usage_error("--executor", executor_, "cpu or reference");
  if (!dtype_.empty() && dtypes.count(dtype_) == 0) throw usage_error("--dtype", dtype_, "f64, f32, f16 or bf16");
  if (threads_ < 0) throw usage_error("--threads", std::to_string(threads_), "a number >= 0");
  c.what.on = executor_ == "cpu" ? executor::cpu : executor::reference;
  c.what.threads = threads_;
  if (offset_) c.what.offset = *offset_;

  for (auto const& given : tensors_)
    if (!given.second.empty() &&
        std::none_of(of.inputs.begin(), of.inputs.end(), [&](field f) { return given.first == name_of(f); }))
      throw usage_error(option_of(given.first) + ": " + of.name + " has no such input; 'attune explain " + of.name +
                        "' lists them");
  set_parameters(of, parameters_, c.what);  // before the large files are read

  std::vector<std::string> in_archive;
  if (!from_.empty()) {
    auto const archive = parse_file(from_);
    if (!archive) throw usage_error("--from", from_, "an .npz or .safetensors file");
    in_archive = names_in("--from", *archive);
  }
  for (field f : of.inputs) {
    std::string const name = name_of(f);
    std::string argument = option_of(name), value = tensors_.at(name);
    if (value.empty() && std::find(in_archive.begin(), in_archive.end(), name) != in_archive.end()) {
      argument = "--from";
      value = from_ + ":" + name;
    }
    if (value.empty() && f == field::v0) continue;
    if (value.empty()) throw usage_error(argument + " is missing: " + of.name + " needs it, " + shape_of(f));
    io::array const x = read_array(argument, value, name, words());
    c.types[name] = x.type;
    if (!io::is_floating(x.type))
      throw usage_error(argument, value,
                        std::string("floating-point numbers; it holds ") + io::name_of(x.type) +
                            (x.type == io::element_type::uint16 ? " (for bfloat16 words say --dtype bf16)" : ""));
    c.what.tensors[name] = {is_per_position(f) ? io::row_shape(x) : io::tensor_shape(x), io::numbers<double>(x), {}};
  }
  if (std::find(of.inputs.begin(), of.inputs.end(), field::v0) != of.inputs.end() && c.what.tensors.count("v0") == 0) {
    index_t const width = c.what.tensors.at("v").extents.feature;  // no ground value: the missing mass buys nothing
    c.what.tensors["v0"] = {{1, 1, 1, width}, std::vector<double>(std::size_t(width)), {}};
  }

  bool any_double = false;
  for (auto const& [name, type] : c.types) any_double = any_double || type == io::element_type::float64;
  c.what.in = c.what.on == executor::reference || any_double ? arithmetic::float64 : arithmetic::float32;
  if (c.what.in == arithmetic::float32)
    for (auto& [name, x] : c.what.tensors) add_floats(x);
  c.stored = !dtype_.empty()                    ? dtypes.at(dtype_)
             : c.what.on == executor::reference ? io::element_type::float64
                                                : c.types.at("v");

  shape const out = output_shape(c.what);
  index_t const keys = c.what.tensors.at("v").extents.position;
  c.what.mask = make_mask(masks_, {out.batch, out.head, out.position, keys}, c.what.offset.value_or(keys - out.position));
  return c;
}

numbers call_arguments::read_extra(std::string const& argument, std::string const& value, std::string const& own_name,
                                   call const& with, bool per_position) const {
  io::array const x = read_array(argument, value, own_name, words());
  if (!io::is_floating(x.type))
    throw usage_error(argument, value, std::string("floating-point numbers; it holds ") + io::name_of(x.type));
  numbers n{per_position ? io::row_shape(x) : io::tensor_shape(x), io::numbers<double>(x), {}};
  shape expected = output_shape(with.what);
  expected.feature = per_position ? 1 : with.what.tensors.at("v").extents.feature;
  if (!(n.extents == expected))
    throw usage_error(argument, value, "the shape " + to_string(expected) + "; it has " + to_string(n.extents));
  if (with.what.in == arithmetic::float32) add_floats(n);
  return n;
}

nlohmann::ordered_json call_arguments::report(call const& c) const {
  nlohmann::ordered_json r;
  r["preset"] = c.of->name;
  r["executor"] = executor_;
  r["arithmetic"] = c.what.in == arithmetic::float32 ? "float32" : "float64";
  for (auto const& [name, x] : c.what.tensors) {
    auto const type = c.types.find(name);
    r["inputs"][name] = {{"type", type == c.types.end() ? "none: zeros" : io::name_of(type->second)},
                         {"shape", {x.extents.batch, x.extents.head, x.extents.position, x.extents.feature}}};
  }
  r["parameters"] = parameters_;
  r["mask"] = masks_;
  shape const out = output_shape(c.what);
  r["offset"] = c.what.offset.value_or(c.what.tensors.at("v").extents.position - out.position);
  return r;
}

io::array stored_as(numbers const& x, io::element_type type, bool per_position) {
  shape const e = x.extents;
  std::vector<index_t> extents{e.batch, e.head, e.position, e.feature};
  if (per_position && e.feature == 1) extents.pop_back();
  return io::make_array<double>(x.doubles, std::move(extents), type);
}

std::string describe(std::string const& file, io::array const& x) {
  return file + ": " + io::name_of(x.type) + " " + io::to_string(x.extents);
}

nlohmann::ordered_json report_of(std::string const& file, io::array const& x) {
  nlohmann::ordered_json r{{"file", file}, {"type", io::name_of(x.type)}, {"shape", x.extents}};
  double low = 0, high = 0;
  std::size_t finite = 0, nan = 0, infinite = 0;
  for (double e : io::numbers<double>(x)) {
    if (e != e)
      ++nan;
    else if (std::isinf(e))
      ++infinite;
    else {
      low = finite == 0 ? e : std::min(low, e);
      high = finite == 0 ? e : std::max(high, e);
      ++finite;
    }
  }
  r["smallest"] = low;
  r["largest"] = high;
  r["nan"] = nan;
  r["infinite"] = infinite;
  return r;
}

void write_report(std::string const& to, nlohmann::ordered_json const& report) {
  std::string const text = report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (to == "-") {
    std::cout << text;
    return;
  }
  std::ofstream out(to);
  out << text;
  out.close();
  if (!out) throw usage_error("--json", to, "a file that can be written, or -");
}

}  // namespace attune::tool
