// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Prints the tables of the executors (Exec::offers) for scripts/operator_tables, in lines of words between tabs:
//
//   offer    executor   call     the kinds of operators that the call refuses
//   preset   function   family   executor   the calls that the executor offers for the preset
#include <cstdio>
#include <string>
#include <utility>

#include <attune/exec/cpu/bf16/executor.hpp>
#include <attune/exec/cpu/bf16/tiles.hpp>
#include <attune/exec/cuda/facts.hpp>
#include <attune/exec/thrust/offers.hpp>
#include <attune/float8_cache.hpp>
#include <attune/operators/presets.hpp>

#include "presets.hpp"

using namespace attune;

namespace {

constexpr char const* calls[] = {"forward", "forward_and_save", "vjp",        "jvp",
                                 "decode",  "paged_decode",     "accumulate", "statistics"};
constexpr std::pair<char const*, bool offer::*> kinds[] = {{"folds", &offer::folds},
                                                           {"mixtures", &offer::mixtures},
                                                           {"candidate sets", &offer::candidate_sets},
                                                           {"self-adjusted rows", &offer::extremes},
                                                           {"ordered sums", &offer::ordered_sums},
                                                           {"value gates", &offer::value_gates},
                                                           {"numbers per pair", &offer::pair_inputs}};
constexpr char const* families[] = {"masses", "adjusted", "candidates"};  // by row_family

template <class Exec>
struct named {
  char const* name;
};
// Executors that need Thrust or nvcc. Their tables do not.
struct on_thrust {
  static constexpr call_table offers = exec_thrust::offers;
};
struct on_tensor_cores {
  static constexpr call_table offers = exec_cuda::offers;
};
// The instruction set is named, so that every machine prints the same.
using arch = xsimd::avx512bw;

template <class F>
void for_each_executor(F const& f) {
  f(named<cpu<>>{"cpu"});
  f(named<cpu<bfloat16>>{"cpu<bfloat16>"});
  f(named<cpu_float8_cache<float8_e4m3fn>>{"cpu_float8_cache"});
  f(named<cpu_bf16_products<arch>>{"cpu_bf16_products"});
  f(named<cpu_bf16_products<arch, bfloat16, amx_tiles>>{"cpu_bf16_products, AMX"});
  f(named<on_thrust>{"thrust"});
  f(named<on_tensor_cores>{"cuda"});
}

template <class Op, class Exec, int... Call>
std::string offered(std::integer_sequence<int, Call...>) {
  std::string text;
  (..., (text += offers_call<Exec, call_kind(Call), Op> ? std::string("\t") + calls[Call] : ""));
  return text;
}

// What a row of the catalogue may name.
parameter const open{};
constexpr auto constant = [](char const*, long fallback) { return fallback; };

template <class Make>
void print_preset(char const* call, Make const&) {
  using op = decltype(std::declval<Make>()(constant, mask::none{}));
  std::string const whole = call, function = whole.substr(0, whole.find_first_of("<("));
  for_each_executor([&]<class Exec>(named<Exec> exec) {
    std::printf("preset\t%s\t%s\t%s%s\n", function.c_str(), families[int(op::normalizer_is.family)], exec.name,
                offered<op, Exec>(std::make_integer_sequence<int, 8>{}).c_str());
  });
}

}  // namespace

int main() {
  for_each_executor([]<class Exec>(named<Exec> exec) {
    for (int c = 0; c < 8; ++c) {
      offer const& x = Exec::offers.of(call_kind(c));
      if (!x.operators) continue;
      std::printf("offer\t%s\t%s", exec.name, calls[c]);
      for (auto const& [word, accepted] : kinds)
        if (!(x.*accepted)) std::printf("\t%s", word);
      std::printf("\n");
    }
  });
#define ATTUNE_PRINT(name, call, policies, names, note, operator_, ...) \
  print_preset(call, []([[maybe_unused]] auto c, [[maybe_unused]] auto m) { return operator_; });
  ATTUNE_PRESETS(ATTUNE_PRINT)
}
