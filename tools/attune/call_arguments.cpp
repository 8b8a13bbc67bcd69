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

/// (B, H, Lq, Dv) of the output, from the first input that has queries.
shape output_shape(problem const& p) {
  for (char const* name : {"q", "scores", "gate_q", "gates", "sort_q", "position_q", "center", "bias", "output_gate"})
    if (auto const found = p.tensors.find(name); found != p.tensors.end()) return found->second.extents;
  throw usage_error("no input tells the number of queries");
}

/// The first features of each key.
numbers first_features(numbers const& k, index_t width) {
  shape e = k.extents;
  if (width > e.feature)
    throw usage_error("--latent", std::to_string(width), "at most " + std::to_string(e.feature) + ", the width of k");
  numbers v{{e.batch, e.head, e.position, width}, {}, {}};
  for (index_t row = 0; row < e.batch * e.head * e.position; ++row)
    v.doubles.insert(v.doubles.end(), k.doubles.begin() + row * e.feature, k.doubles.begin() + row * e.feature + width);
  return v;
}

/// A tensor (B, H, Lq, Lk) of numbers whose batch, heads or queries are shared: copies for each.
void share(numbers& x, shape const& out) {
  shape const e = x.extents;
  shape const to{e.batch == 1 ? out.batch : e.batch, e.head == 1 ? out.head : e.head,
                 e.position == 1 ? out.position : e.position, e.feature};
  if (to == e) return;
  std::vector<double> all;
  all.reserve(std::size_t(to.size()));
  for (index_t b = 0; b < to.batch; ++b)
    for (index_t h = 0; h < to.head; ++h)
      for (index_t i = 0; i < to.position; ++i) {
        index_t const row =
            ((e.batch == 1 ? 0 : b) * e.head + (e.head == 1 ? 0 : h)) * e.position + (e.position == 1 ? 0 : i);
        auto const at = x.doubles.begin() + row * e.feature;
        all.insert(all.end(), at, at + e.feature);
      }
  x = {to, std::move(all), {}};
}

}  // namespace

void call_arguments::add_operator_to(CLI::App& command) {
  command.add_option("PRESET", words_.preset, "The operator: a name that 'attune presets' lists")->required();
  command
      .add_option("-p,--parameter", words_.parameters,
                  "A parameter, a table or a constant of the preset: a number, a list (one per head) or a file")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--mask", words_.masks,
                  std::string("Which keys a query sees; may be repeated, they intersect. ") + mask_help())
      ->type_name("MASK")
      ->allow_extra_args(false);
  command.add_option("--offset", words_.offset,
                     "Position of query 0 among the keys (default: Lk - Lq, so that the ends align)");
}

void call_arguments::add_inputs_to(CLI::App& command) {
  for (int f = 0; f < int(field_count); ++f)
    command
        .add_option(option_of(name_of(field(f))), words_.tensors[name_of(field(f))],
                    std::string("Input ") + name_of(field(f)) + " " + shape_of(field(f)))
        ->type_name("FILE")
        ->group("Inputs");
  command.add_option("--from", words_.from, "An archive that holds the inputs not given one by one, under their names")
      ->type_name("FILE")
      ->group("Inputs");
}

void call_arguments::add_dtype_to(CLI::App& command, std::string const& meaning) {
  command.add_option("--dtype", words_.dtype, meaning + "; f16 and bf16 also say what 16-bit words in .npy files are");
}

void call_arguments::add_to(CLI::App& command) {
  add_operator_to(command);
  add_inputs_to(command);
  add_dtype_to(command, "What outputs are stored as, f64, f32, f16 or bf16 (default: as v; f64 from the reference)");
  command.add_option("--executor", words_.executor,
                     "cpu: fused, float, or double if an input is float64. reference: dense, double, for checking");
  command.add_option("--threads", words_.threads, "Threads of the cpu executor (default: all)");
}

std::optional<io::element_type> call_arguments::dtype() const {
  if (words_.dtype.empty()) return std::nullopt;
  return element_type_named("--dtype", words_.dtype);
}
/// What 16-bit words without a type are.
std::optional<io::element_type> call_arguments::narrow() const {
  auto const type = dtype();
  return type == io::element_type::float16 || type == io::element_type::bfloat16 ? type : std::nullopt;
}

mask_memory call_arguments::mask(mask_shape const& of, index_t offset) const {
  return make_mask(words_.masks, of, offset);
}

void call_arguments::add_misaligned(call& c) const {
  mask_shape const of{c.out.batch, c.out.head, c.out.position, c.what.tensors.at("v").extents.position};
  auto const add = [&](misaligned_mask wrong) {
    wrong.memory = make_mask(words_.masks, of, c.places, {wrong.by, wrong.top_left});
    c.what.misaligned.push_back(std::move(wrong));
  };
  for (index_t by : {index_t(1), index_t(-1)}) add({by, false, {}});
  if (c.places.offset != 0 || !c.places.offsets.empty()) add({-c.places.offset, true, {}});
}

call_arguments::call call_arguments::read_operator() const {
  std::string const& executor_name = words_.executor;
  call c{&find_preset(words_.preset), {}, io::element_type::float32, {}, {}, {}, 0, {}};
  if (executor_name != "cpu" && executor_name != "reference")
    throw usage_error("--executor", executor_name, "cpu or reference");
  dtype();  // throws where it is none
  if (words_.threads < 0) throw usage_error("--threads", std::to_string(words_.threads), "a number >= 0");
  c.what.on = executor_name == "cpu" ? executor::cpu : executor::reference;
  c.what.threads = words_.threads;
  if (words_.offset) c.what.offset = *words_.offset;
  set_parameters(*c.of, words_.parameters, c.what);
  return c;
}

call_arguments::call call_arguments::read() const {
  auto const& tensors = words_.tensors;
  std::string const& from = words_.from;
  call c = read_operator();  // before the large files are read
  c.layout = file_layout(words_.layout);
  preset const& of = *c.of;
  for (auto const& given : tensors)
    if (!given.second.empty() &&
        std::none_of(of.inputs.begin(), of.inputs.end(), [&](field f) { return given.first == name_of(f); }))
      throw usage_error(option_of(given.first) + ": " + of.name + " has no such input; 'attune explain " + of.name +
                        "' lists them");

  std::vector<std::string> in_archive;
  if (!from.empty()) {
    auto const archive = parse_file(from);
    if (!archive) throw usage_error("--from", from, "an .npz or .safetensors file");
    in_archive = names_in("--from", *archive);
  }
  for (field f : of.inputs) {
    std::string const name = name_of(f);
    std::string argument = option_of(name), value = tensors.count(name) == 0 ? std::string() : tensors.at(name);
    if (value.empty() && std::find(in_archive.begin(), in_archive.end(), name) != in_archive.end()) {
      argument = "--from";
      value = from + ":" + name;
    }
    if (value.empty() && f == field::v0) continue;
    if (f == field::v && c.layout.latent() > 0) {
      if (!value.empty()) throw usage_error("--latent: v is given as well; expected one of them");
      c.types[name] = c.types.at("k");
      c.what.tensors[name] = first_features(c.what.tensors.at("k"), c.layout.latent());
      continue;
    }
    if (value.empty()) throw usage_error(argument + " is missing: " + of.name + " needs it, " + shape_of(f));
    auto const codes = c.layout.codes(f);
    io::array const x = read_array(argument, value, name, codes ? codes : narrow());
    c.types[name] = x.type;
    c.what.tensors[name] = c.layout.input(argument + ": the value '" + value + "'", x, f);
    if (f == field::k && c.layout.paged()) c.page = c.layout.page(x);
  }
  if (std::find(of.inputs.begin(), of.inputs.end(), field::v0) != of.inputs.end() && c.what.tensors.count("v0") == 0) {
    index_t const width = c.what.tensors.at("v").extents.feature;  // no ground value: the missing mass buys nothing
    c.what.tensors["v0"] = {{1, 1, 1, width}, std::vector<double>(std::size_t(width)), {}};
  }

  c.out = output_shape(c.what);
  for (char const* name : {"bias", "scores", "gates"})
    if (auto const x = c.what.tensors.find(name); x != c.what.tensors.end() && c.what.tensors.count("q") != 0)
      share(x->second, c.out);

  bool any_double = false;
  for (auto const& [name, type] : c.types) any_double = any_double || type == io::element_type::float64;
  c.what.in = c.what.on == executor::reference || any_double ? arithmetic::float64 : arithmetic::float32;
  if (c.what.in == arithmetic::float32)
    for (auto& [name, x] : c.what.tensors) x.narrow();
  c.stored = dtype() ? *dtype() : c.what.on == executor::reference ? io::element_type::float64 : c.types.at("v");

  index_t const keys = c.what.tensors.at("v").extents.position;
  c.out.feature = c.what.tensors.at("v").extents.feature;
  c.places = c.layout.places(c.out, keys, c.what.offset);
  c.what.offsets = c.places.offsets;
  c.what.mask = make_mask(words_.masks, {c.out.batch, c.out.head, c.out.position, keys}, c.places);
  c.layout.check_pages(c.what.mask.view, c.out, keys, c.page);
  return c;
}

io::element_type element_type_named(std::string const& argument, std::string const& value) {
  std::map<std::string, io::element_type> const all{{"f64", io::element_type::float64},
                                                    {"f32", io::element_type::float32},
                                                    {"f16", io::element_type::float16},
                                                    {"bf16", io::element_type::bfloat16}};
  auto const found = all.find(value);
  if (found == all.end()) throw usage_error(argument, value, "f64, f32, f16 or bf16");
  return found->second;
}

shape rows_of(shape const& out) { return {out.batch, out.head, out.position, 1}; }

call_arguments::extra call_arguments::read_extra(std::string const& argument, std::string const& value,
                                                 std::string const& own_name, call const& with, shape const& expected,
                                                 file_axes axes) const {
  io::array const x = read_array(argument, value, own_name, narrow());
  std::string const named = argument + ": the value '" + value + "'";
  extra e{axes == file_axes::as_stored ? file_layout::in_shape(named, x, expected)
          : axes == file_axes::rows    ? with.layout.rows(named, x)
                                       : with.layout.result(named, x),
          x.type};
  if (!(e.values.extents == expected))
    throw usage_error(argument, value, "the shape " + to_string(expected) + "; it has " + to_string(e.values.extents));
  return e;
}

nlohmann::ordered_json call_arguments::report(call const& c) const {
  nlohmann::ordered_json r;
  r["preset"] = c.of->name;
  r["executor"] = words_.executor;
  r["arithmetic"] = c.what.in == arithmetic::float32 ? "float32" : "float64";
  for (auto const& [name, x] : c.what.tensors) {
    auto const type = c.types.find(name);
    r["inputs"][name] = {{"type", type == c.types.end() ? "none: zeros" : io::name_of(type->second)},
                         {"shape", {x.extents.batch, x.extents.head, x.extents.position, x.extents.feature}}};
  }
  r["parameters"] = words_.parameters;
  r["mask"] = words_.masks;
  if (!c.places.offsets.empty()) r["offsets"] = c.places.offsets;
  if (!c.places.cu_seqlens_q.empty()) r["cu_seqlens"] = {c.places.cu_seqlens_q, c.places.cu_seqlens_k};
  r["offset"] = c.what.offset.value_or(c.what.tensors.at("v").extents.position - c.out.position);
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
  write_text("--json", to, text);
}

void write_text(std::string const& argument, std::string const& to, std::string const& text) {
  std::ofstream out(to, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw usage_error(argument, to, "a file that can be written");
}

}  // namespace attune::tool
