// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "layouts.hpp"

#include <algorithm>
#include <cstring>

#include <attune/testing/judging/read_tensor.hpp>

#include "catalogue.hpp"
#include "files.hpp"
#include "values.hpp"

namespace attune::tool {
namespace {

/// use(tensor) with the elements of an array in their own type, its axes in the order of `order`: "blhd".
template <class Use>
numbers with_view(std::string const& argument, io::array const& x, std::string const& order, Use const& use) {
  index_t extents[4] = {1, 1, 1, 1}, steps[4] = {0, 0, 0, 0}, step = 1;
  std::string const axes = "bhld";
  std::size_t const missing = order.size() - x.extents.size();
  for (std::size_t n = order.size(); n-- > missing;) {
    auto const axis = axes.find(order[n]);
    extents[axis] = x.extents[n - missing];
    steps[axis] = step;
    step *= extents[axis];
  }
  shape const e{extents[0], extents[1], extents[2], extents[3]};
  strides const s{steps[0], steps[1], steps[2], steps[3]};
  numbers to;
  io::detail::with_type(x.type, [&]<class E>(E) {
    if constexpr (std::is_integral_v<E>) {
      throw usage_error(argument + "; expected floating-point numbers; it holds " + io::name_of(x.type) +
                        (io::size_of(x.type) == 1   ? " (for float8 words say --cache-dtype e4m3 or e5m2)"
                         : io::size_of(x.type) == 2 ? " (for bfloat16 words say --dtype bf16)"
                                                    : ""));
    } else {
      std::vector<E> elements(x.bytes.size() / sizeof(E));
      std::memcpy(elements.data(), x.bytes.data(), elements.size() * sizeof(E));
      auto dense = naming(argument, [&] { return use(attune::tensor<E const>(elements.data(), e, s)); });
      to.extents = dense.extents();
      to.doubles = std::move(dense).take();
    }
  });
  return to;
}

void check_order(std::string const& argument, std::string& order, std::string const& given,
                 std::vector<std::string> const& known) {
  if (given.empty()) return;
  if (std::find(known.begin(), known.end(), given) == known.end()) {
    std::string all;
    for (auto const& k : known) all += (all.empty() ? "" : k == known.back() ? " or " : ", ") + k;
    throw usage_error(argument, given, all);
  }
  order = given;
}

/// 0, n0, n0 + n1, ...
std::vector<index_t> offsets_in(std::string const& argument, std::string const& value) {
  auto x = integer_list(argument, value, "cu_seqlens");
  if (x.size() < 2 || x[0] != 0 || !std::is_sorted(x.begin(), x.end()))
    throw usage_error(argument, value, "0, n0, n0 + n1, ..., total: one more than there are sequences");
  return x;
}

}  // namespace

void layout_words::add_to(CLI::App& command) {
  auto const option = [&](std::string const& name, std::string& to, char const* meaning, char const* type) {
    command.add_option(name, to, meaning)->type_name(type)->group("Layout");
  };
  option("--layout", tensors,
         "The axes of tensors and results: bhld (default), blhd or lbhd; b batch, h head, l position, d feature",
         "AXES");
  option("--lse-layout", rows, "The axes of lse and ground weight: bhl (default) or blh", "AXES");
  option("--cu-seqlens", cu_seqlens,
         "Packed sequences (total, H, D), as FlashAttention's varlen functions take them: where each begins, and the "
         "total. Masks see each sequence as a separate call",
         "LIST");
  option("--cu-seqlens-q", cu_seqlens_q, "The same for the queries alone, with --cu-seqlens-k", "LIST");
  option("--cu-seqlens-k", cu_seqlens_k, "The same for the keys alone, with --cu-seqlens-q", "LIST");
  option("--page-table", page_table,
         "k and v are pages (pages, Hk, keys of a page, D): the page numbers of each sequence, (B, pages each). -1: a "
         "page that no query sees",
         "FILE");
  command
      .add_option("--latent", latent,
                  "v is the first WIDTH features of k, in place of --v: multi-head latent attention")
      ->type_name("WIDTH")
      ->check(CLI::PositiveNumber)
      ->group("Layout");
  option("--cache-layout", cache, "The axes of k and v in pages: bhld (default) or blhd, b the page", "AXES");
  option("--cache-lengths", cache_lengths,
         "How many keys each sequence has, for --page-table. The last query stands at the last key", "LIST");
  option("--cache-dtype", cache_dtype, "What 8-bit words of k and v in .npy files are: e4m3 or e5m2", "TYPE");
  for (char const* name : {"k", "v"})
    option(std::string("--") + name + "-scale", scales[name],
           "Every element means element * scale: a number, a list with one for each head, or a file (1|B, 1|H, 1|L, 1)",
           "SCALE");
}

file_layout::file_layout(layout_words const& words) : latent_(words.latent) {
  bool const varlen = !words.cu_seqlens.empty() || !words.cu_seqlens_q.empty() || !words.cu_seqlens_k.empty();
  if (varlen) tensors_ = "blhd";  // (total, H, D)
  check_order("--layout", tensors_, words.tensors, {"bhld", "blhd", "lbhd"});
  check_order("--lse-layout", rows_, words.rows, {"bhl", "blh"});
  check_order("--cache-layout", cache_, words.cache, {"bhld", "blhd"});
  if (varlen) {
    if (!words.cu_seqlens.empty() && !(words.cu_seqlens_q.empty() && words.cu_seqlens_k.empty()))
      throw usage_error("--cu-seqlens: it says both; --cu-seqlens-q and --cu-seqlens-k go together without it");
    if (words.cu_seqlens.empty() && (words.cu_seqlens_q.empty() || words.cu_seqlens_k.empty()))
      throw usage_error("--cu-seqlens-q and --cu-seqlens-k: one of them is missing");
    if (!words.page_table.empty()) throw usage_error("--page-table and --cu-seqlens: expected one of them");
    cu_seqlens_q_ = words.cu_seqlens.empty() ? offsets_in("--cu-seqlens-q", words.cu_seqlens_q)
                                             : offsets_in("--cu-seqlens", words.cu_seqlens);
    cu_seqlens_k_ = words.cu_seqlens.empty() ? offsets_in("--cu-seqlens-k", words.cu_seqlens_k) : cu_seqlens_q_;
    if (cu_seqlens_q_.size() != cu_seqlens_k_.size())
      throw usage_error("--cu-seqlens-k", words.cu_seqlens_k,
                        std::to_string(cu_seqlens_q_.size()) + " numbers, as --cu-seqlens-q has");
  }
  if (!words.page_table.empty()) {
    io::array const x = read_array("--page-table", words.page_table, "page_table", std::nullopt);
    if (x.extents.size() != 2 || x.extents[0] < 1)
      throw usage_error("--page-table: shape " + io::to_string(x.extents) + "; expected (sequences, pages of each)");
    for (index_t n : naming("--page-table", [&] { return io::integers(x); })) {
      missing_.push_back(n == -1);
      pages_.push_back(n == -1 ? 0 : std::int32_t(n));
    }
    sequences_ = x.extents[0];
    if (words.cache_lengths.empty())
      throw usage_error("--cache-lengths is missing: --page-table needs it, how many keys each sequence has");
    lengths_ = integer_list("--cache-lengths", words.cache_lengths, "cache_lengths");
  } else if (!words.cache_lengths.empty() || !words.cache.empty()) {
    throw usage_error("--cache-lengths, --cache-layout: they need --page-table");
  }
  if (!words.cache_dtype.empty()) {
    if (words.cache_dtype != "e4m3" && words.cache_dtype != "e5m2")
      throw usage_error("--cache-dtype", words.cache_dtype, "e4m3 or e5m2");
    codes_ = words.cache_dtype == "e4m3" ? io::element_type::float8_e4m3fn : io::element_type::float8_e5m2;
  }
  for (auto const& [name, value] : words.scales) {
    if (value.empty()) continue;
    std::string const argument = "--" + name + "-scale";
    numbers const x = number_list(argument, value, name + "_scale");
    scales_[name].assign(x.doubles.begin(), x.doubles.end());
    scale_shapes_[name] = x.extents;
  }
}

numbers file_layout::tensor_in(std::string const& order, std::string const& argument, io::array const& x) const {
  std::size_t const most = order.size(), least = order == "bhld" ? 0 : 3;
  if (x.extents.size() > most || x.extents.size() < least || (order == "lbhd" && x.extents.size() != 4))
    throw usage_error(argument + ": shape " + io::to_string(x.extents) + "; expected " +
                      (least == 0 ? "at most 4 axes, (batch, head, position, feature)" : "the axes " + order));
  return with_view(argument, x, order, [](auto const& view) { return testing::read_tensor(view); });
}

numbers file_layout::from_cache(std::string const& argument, io::array const& x, std::string const& name) const {
  std::string const& order = paged() ? cache_ : tensors_;
  if (x.extents.size() > 4 || (paged() && x.extents.size() != 4))
    throw usage_error(argument + ": shape " + io::to_string(x.extents) + "; expected " +
                      (paged() ? "the axes " + order + ", b the page" : "at most 4 axes: " + order));
  testing::storage_layout how;
  if (auto const s = scales_.find(name); s != scales_.end())
    how.scales = attune::tensor<float const>(s->second, scale_shapes_.at(name));
  if (paged()) {
    how.pages = page_table(pages_, sequences_);
    how.lengths = &lengths_;
  }
  return with_view(argument, x, order, [&](auto const& view) { return testing::read_tensor(view, how); });
}

numbers file_layout::input(std::string const& argument, io::array const& x, field f) const {
  if (f == field::k || f == field::v) return from_cache(argument, x, name_of(f));
  if (is_per_position(f)) return per_position(tensors_.substr(0, 3), argument, x);
  bool const shared = f == field::scores || f == field::gates || f == field::bias;  // (B, H, Lq, Lk) in every layout
  return tensor_in(shared ? "bhld" : tensors_, argument, x);
}
numbers file_layout::result(std::string const& argument, io::array const& x) const {
  return tensor_in(tensors_, argument, x);
}
numbers file_layout::rows(std::string const& argument, io::array const& x) const {
  return per_position(rows_, argument, x);
}
numbers file_layout::per_position(std::string const& order, std::string const& argument, io::array const& x) const {
  io::array four = x;
  shape const e = naming(argument, [&] { return io::row_shape(x); });
  four.extents = {e.batch, e.head, e.position, 1};  // the axes as they are in memory
  return with_view(argument, four, order + "d", [](auto const& view) { return testing::read_tensor(view); });
}
numbers file_layout::in_shape(std::string const& argument, io::array const& x, shape const& e) {
  auto const essential = [](std::vector<index_t> all) {
    std::erase(all, 1);
    return all;
  };
  if (essential(x.extents) != essential({e.batch, e.head, e.position, e.feature}))
    throw usage_error(argument + ": shape " + io::to_string(x.extents) + "; expected " + to_string(e) +
                      ", axes of extent 1 may be missing");
  return {e, naming(argument, [&] { return io::numbers<double>(x); }), {}};
}
std::optional<io::element_type> file_layout::codes(field f) const {
  return f == field::k || f == field::v ? codes_ : std::nullopt;
}

void file_layout::check_pages(mask::runtime const& m, shape const& out, index_t keys, index_t rows) const {
  if (!paged()) return;
  index_t const each = index_t(pages_.size()) / sequences_;
  for (index_t b = 0; b < sequences_; ++b)
    for (index_t n = 0; n < each; ++n) {
      if (!missing_[std::size_t(b * each + n)]) continue;
      key_interval const page{n * rows, std::min((n + 1) * rows, keys)};
      for (index_t h = 0; h < out.head; ++h)
        for (index_t i = 0; i < out.position; ++i) {
          key_interval const seen = m.next({b, h, i, i, out.position, keys}, page.first);
          if (seen.first < page.last && seen.first < seen.last)
            throw usage_error("--page-table: page " + std::to_string(n) + " of sequence " + std::to_string(b) +
                              " is -1, and query " + std::to_string(i) + " sees key " + std::to_string(seen.first));
        }
    }
}

query_places file_layout::places(shape const& out, index_t keys, std::optional<index_t> offset) const {
  query_places to;
  to.offset = offset.value_or(keys - out.position);
  if ((ragged() || paged()) && offset)
    throw usage_error("--offset", std::to_string(*offset),
                      "no offset: in packed and in paged sequences the last query stands at the last key");
  if (ragged()) {
    auto const check = [](char const* argument, std::vector<index_t> const& x, index_t total, char const* of) {
      if (x.back() != total)
        throw usage_error(std::string(argument) + " ends with " + std::to_string(x.back()) + "; expected " +
                          std::to_string(total) + ", the number of " + of);
    };
    check("--cu-seqlens (of queries)", cu_seqlens_q_, out.position, "queries");
    check("--cu-seqlens (of keys)", cu_seqlens_k_, keys, "keys");
    to.cu_seqlens_q = cu_seqlens_q_;
    to.cu_seqlens_k = cu_seqlens_k_;
  }
  if (paged()) {
    if (sequences_ != out.batch)
      throw usage_error("--page-table has " + std::to_string(sequences_) + " sequences; expected " +
                        std::to_string(out.batch) + ", the batch elements of q");
    to.lengths = lengths_;
    for (index_t n : lengths_) to.offsets.push_back(n - out.position);
  }
  return to;
}

}  // namespace attune::tool
