// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "drawn_call.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attune::pairs {

namespace {

/// A query-side or key-side input with a complete batch axis and head axis, but for groups.
bool is_complete(field f) {
  input_side const side = side_of(f);
  return (side == input_side::query && !shares_rows(f)) || (side == input_side::key && f != field::value_gate);
}
/// An input with a row per key has heads of its own.
bool has_own_heads(field f) { return side_of(f) == input_side::key && f != field::value_gate; }
/// Axes of extent 1 of these inputs are shared.
bool shares_axes(field f) { return !is_complete(f); }

double rounded(double x, number_grid grid) {
  switch (grid) {
    case number_grid::floats:
      return double(float(x));
    case number_grid::bfloat16:
      return double(float(bfloat16(float(x))));
    case number_grid::float16:
      return double(float(float16(float(x))));
    case number_grid::float8:
      return double(float(float8_e4m3fn(float(x))));
  }
  return x;
}

std::string named(char const* what, field f) { return std::string(what) + " " + name_of(f); }

}  // namespace

std::vector<call_fact> const& call_facts() {
  static std::vector<call_fact> const all = [] {
    std::vector<call_fact> to{{"offset", "offset", ""},
                              {"offsets", "offset", ""},
                              {"one query", "queries", ""},
                              {"several tiles of queries", "queries", ""},
                              {"no key", "keys", ""},
                              {"one key", "keys", ""},
                              {"several blocks of keys", "keys", ""},
                              {"width 1", "width", "input q", "contraction rotary_dot"},  // it turns pairs of features
                              {"value width 1", "value width", ""},
                              {"positions before heads", "layout", ""},
                              {"features apart", "layout", ""},
                              {"axes reversed", "layout", ""},
                              {"rows shared by stride 0", "layout", ""},
                              {"parameter per batch element", "parameter", "parameters"},
                              {"parameter per head", "parameter", "parameters"},
                              {"parameter per query", "parameter", "parameters", "one query"},
                              {"projected parameter", "parameter", "parameters"},
                              {"moving average", "parameter", "parameters"},
                              {"table per batch element", "table", "tables"},
                              {"table per head", "table", "tables"},
                              {"angles given", "angles", "contraction rotary_dot"},
                              {"angles counted", "angles", "contraction rotary_dot"},
                              {"turned keys", "stored keys", "contraction rotary_dot"},
                              {"interleaved pairs", "pairs of features", "contraction rotary_dot"}};
    for_each_field([&]<field F>() {
      std::string const input = named("input", F);
      if (has_own_heads(F)) to.push_back({named("fewer heads of", F), named("heads of", F), input});
      if (shares_axes(F))
        for (char const* axis : {"batch", "heads"})
          to.push_back(
              {std::string(axis) + " shared by " + name_of(F), std::string(axis) + " of " + name_of(F), input});
      if (shares_axes(F) && side_of(F) != input_side::key)
        to.push_back({named("queries shared by", F), named("queries of", F), input, "one query"});
      if (F == field::output_gate)
        to.push_back({named("one feature of", F), named("features of", F), input, "value width 1"});
    });
    return to;
  }();
  return all;
}

drawn_call::drawn_call(std::uint64_t seed, wishes const& w, number_grid grid) : random(seed * 2 + 1), wanted(w) {
  draw_extents();
  draw_offsets();
  for (std::size_t f = 0; f < field_count; ++f)
    if (wanted.reads[f]) draw_input(field(f), grid);
}

void drawn_call::draw_extents() {
  batch = between(1, 3);
  heads = std::array<index_t, 6>{1, 2, 2, 2, 4, 6}[std::size_t(random.below(6))];
  double const of_queries = random.uniform(), of_keys = random.uniform();
  queries = of_queries < 0.15 ? 1 : of_queries < 0.25 ? between(17, 36) : between(2, 6);
  keys = of_keys < 0.06 ? 0 : of_keys < 0.16 ? 1 : of_keys < 0.26 ? between(65, 100) : between(2, 12);
  if (queries > 16 || keys > 64) heads = (std::min<index_t>)(heads, 2);  // the reference takes its time for each pair
  width = chance(0.15) && !wanted.rotary ? 1 : between(2, 9);
  value_width = chance(0.15) ? 1 : between(2, 7);
  if (queries == 1) drawn.insert("one query");
  if (queries > 16) drawn.insert("several tiles of queries");
  if (keys == 0) drawn.insert("no key");
  if (keys == 1) drawn.insert("one key");
  if (keys > 64) drawn.insert("several blocks of keys");
  if (width == 1) drawn.insert("width 1");
  if (value_width == 1) drawn.insert("value width 1");
}

void drawn_call::draw_offsets() {
  // Rotary kernels read a row of angles for each position: none before 0.
  index_t const low = wanted.rotary ? 0 : -queries, high = keys + 3;
  if (batch > 1 && chance(0.45)) {
    for (index_t b = 0; b < batch; ++b) each_offset.push_back(between(low, high));
    drawn.insert("offsets");
  } else if (chance(0.5) || keys - queries < low) {
    offset = between(low, high);
    drawn.insert("offset");
  }
}

index_t drawn_call::axis(index_t n, std::string const& name) {
  if (n == 1) return 1;
  if (chance(0.5)) return n;
  drawn.insert(name);
  return 1;
}

void drawn_call::draw_input(field f, number_grid grid) {
  drawn_input& x = fields[std::size_t(f)];
  static constexpr index_t other_widths[] = {1, 2, 3, 5};
  // One width for each source of widths, drawn once.
  auto const features = [&]() -> index_t {
    if (attune::fields[std::size_t(f)].features[0] == '1') return 1;
    switch (width_source(f)) {
      case field::v:
        return value_width;
      case field::q:
        return width;
      case field::output_gate:
        if (value_width > 1 && chance(0.5)) return drawn.insert(named("one feature of", f)), 1;
        return value_width;
      default:
        break;
    }
    for (std::size_t g = 0; g < std::size_t(f); ++g)
      if (wanted.reads[g] && width_source(field(g)) == width_source(f)) return fields[g].extents.feature;
    return side_of(f) == input_side::pair ? keys : other_widths[random.below(4)];
  };
  index_t groups = heads;
  if (has_own_heads(f) && heads > 1 && chance(0.6)) {
    std::vector<index_t> divisors;
    for (index_t n = 1; n < heads; ++n)
      if (heads % n == 0) divisors.push_back(n);
    groups = divisors[std::size_t(random.below(index_t(divisors.size())))];
    drawn.insert(named("fewer heads of", f));
  }
  shape& e = x.extents;
  switch (side_of(f)) {
    case input_side::query:
    case input_side::pair:
    case input_side::ground:
      e = {batch, heads, queries,
           side_of(f) == input_side::pair     ? keys
           : side_of(f) == input_side::ground ? value_width
                                              : features()};
      if (shares_axes(f)) e.position = axis(queries, named("queries shared by", f));
      break;
    case input_side::key:
      e = {batch, f == field::value_gate ? fields[std::size_t(field::v)].extents.head : groups, keys, features()};
      break;
  }
  if (shares_axes(f)) {
    e.batch = axis(e.batch, named("batch shared by", f));
    e.head = axis(e.head, named("heads shared by", f));
  }
  lay_out(x, is_complete(f));
  bool const divides = f == field::spread;
  bool const by_key = side_of(f) == input_side::key;
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.head; ++h)
      for (index_t i = 0; i < e.position; ++i)
        for (index_t d = 0; d < e.feature; ++d) {
          double n = 0.8 * random();
          if (divides) n = n < 0 ? n - 0.5 : n + 0.5;
          x.doubles[std::size_t(x.origin + b * x.steps.batch + h * x.steps.head + i * x.steps.position +
                                d * x.steps.feature)] =
              rounded(n, by_key || grid != number_grid::float8 ? grid : number_grid::floats);
        }
  for (double const n : x.doubles) {
    x.floats.push_back(float(n));
    if (grid == number_grid::bfloat16) x.brains.push_back(bfloat16(float(n)));
    if (grid == number_grid::float16) x.halves.push_back(float16(float(n)));
    if (grid == number_grid::float8 && by_key) x.codes.push_back(float8_e4m3fn(float(n)));
  }
}

void drawn_call::lay_out(drawn_input& x, bool of_rows) {
  shape const& e = x.extents;
  std::array<index_t, 4> const extent{e.batch, e.head, e.position, e.feature};
  std::array<int, 4> order{0, 1, 2, 3};  // from the slowest axis to the fastest
  std::array<index_t, 4> step{};
  index_t gap = 1;
  bool reversed = false;
  int shared = -1;
  double const kind = random.uniform();
  if (kind < 0.25) {
    std::swap(order[1], order[2]);
    drawn.insert("positions before heads");
  } else if (kind < 0.35) {
    gap = 3;
    drawn.insert("features apart");
  } else if (kind < 0.45) {
    reversed = true;
    drawn.insert("axes reversed");
  } else if (kind < 0.55 && of_rows && (e.batch > 1 || e.head > 1)) {
    shared = e.batch > 1 ? 0 : 1;
    drawn.insert("rows shared by stride 0");
  }
  index_t size = gap;
  for (int n = 3; n >= 0; --n) {
    int const a = order[std::size_t(n)];
    if (a == shared) continue;
    step[std::size_t(a)] = size;
    size *= (std::max)(extent[std::size_t(a)], index_t(1));
  }
  if (reversed)
    for (int a = 0; a < 3; ++a)
      if (extent[std::size_t(a)] > 0)
        x.origin += (extent[std::size_t(a)] - 1) * step[std::size_t(a)], step[std::size_t(a)] *= -1;
  x.steps = {step[0], step[1], step[2], step[3]};
  x.doubles.assign(std::size_t(size), std::numeric_limits<double>::quiet_NaN());
}

std::vector<double>& drawn_call::numbers(index_t n, double size) {
  std::vector<double>& x = kept_.emplace_back();
  for (index_t i = 0; i < n; ++i) x.push_back(double(float(size * random())));
  return x;
}
std::vector<index_t>& drawn_call::integers(index_t n, index_t low, index_t high) {
  std::vector<index_t>& x = kept_integers_.emplace_back();
  for (index_t i = 0; i < n; ++i) x.push_back(between(low, high));
  return x;
}
std::vector<unsigned char>& drawn_call::blocks(index_t n) {
  std::vector<unsigned char>& x = kept_blocks_.emplace_back();
  for (index_t i = 0; i < n; ++i) x.push_back(chance(0.6) ? 1 : 0);
  return x;
}

parameter drawn_call::drawn_parameter(domain values) {
  double const kind = random.uniform();
  auto const inside = [&](double x) {
    switch (values) {
      case domain::positive:
        return double(float(0.4 + std::fabs(x)));
      case domain::above_one:
        return double(float(1.5 + std::fabs(x)));
      case domain::one_to_four:
        return double(float(1.25 + 2.5 * std::fabs(std::tanh(x))));
      default:
        return x;
    }
  };
  bool const everywhere = values == domain::real || values == domain::extended || values == domain::real_or_minus_inf;
  if (kind < 0.3) return inside(double(float(0.6 * random())));
  auto const of = [&](shape const& e) {
    std::vector<double>& x = numbers(e.size(), 0.6);
    for (double& n : x) n = inside(n);
    return tensor<double const>(x, e);
  };
  if (kind < 0.44) {
    if (batch > 1) drawn.insert("parameter per batch element");
    return of({batch, 1, 1, 1});
  }
  if (kind < 0.58) {
    if (heads > 1) drawn.insert("parameter per head");
    return of({1, heads, 1, 1});
  }
  if (kind < 0.72 || !everywhere) {
    if (queries > 1) drawn.insert("parameter per query");
    return of({chance(0.5) ? batch : 1, chance(0.5) ? heads : 1, queries, 1});
  }
  index_t const features = between(1, 3);
  projection from{.x = view({chance(0.5) ? batch : 1, chance(0.5) ? heads : 1, chance(0.7) ? queries : 1, features}),
                  .weight = view({1, chance(0.5) ? heads : 1, 1, features}),
                  .bias = view({1, chance(0.5) ? heads : 1, 1, 1}),
                  .activation = chance(0.5) ? activation::sigmoid : activation::identity};
  if (kind < 0.86) {
    drawn.insert("projected parameter");
    return from;
  }
  drawn.insert("moving average");
  return parameter::moving_average(from, 0.4, 0.5, chance(0.5) ? average_gradient::passed : average_gradient::stopped);
}

table drawn_call::drawn_table(index_t rows, index_t columns) {
  index_t const b = chance(0.4) ? batch : 1, h = chance(0.4) ? heads : 1;
  if (b > 1) drawn.insert("table per batch element");
  if (h > 1) drawn.insert("table per head");
  return view({b, h, rows, columns}, 0.5);
}

rotary_rows drawn_call::angles() {
  rotary_frequencies const turns = rotary_frequencies::plain(width / 2 * 2, 10);
  if (chance(0.6)) {
    index_t rows = keys;
    for (index_t b = 0; b < batch; ++b) rows = (std::max)(rows, offset_of(b) + queries);
    drawn.insert("angles counted");
    return kept_angles_.emplace_back(turns, rows);
  }
  drawn.insert("angles given");
  index_t const each = chance(0.5) ? batch : 1;
  auto const& of_queries = kept_angles_.emplace_back(turns, view({each, 1, queries, 1}, 3));
  auto const& of_keys = kept_angles_.emplace_back(turns, view({each, 1, (std::max)(keys, index_t(1)), 1}, 3));
  return {of_queries, of_keys};
}
rotary_layout drawn_call::layout() {
  if (chance(0.5)) return rotary_layout::half;
  drawn.insert("interleaved pairs");
  return rotary_layout::interleaved;
}
rotary_keys drawn_call::stored_keys() {
  if (chance(0.6)) return rotary_keys::plain;
  drawn.insert("turned keys");
  return rotary_keys::turned;
}

}  // namespace attune::pairs
