// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// attune_scalar_sort: the experiments that Scalar Sort Attention proposes, as CSV, SVG and one page. --help says more.
#include "experiments.hpp"

namespace {

std::string introduction(apps::context const&) {
  return "<p class=\"lead\">Scalar Sort Attention scores a key by its distance from the query on a line, so that keys "
         "can be "
         "sorted and "
         "searched; the hybrid adds that term to the usual dot product. The paper proposes experiments and prints few "
         "results. Here they "
         "are, on a small scale.</p>\n<p>What this can show and what not: nothing was trained end to end. Heads of a "
         "small "
         "model "
         "(all-MiniLM-L6-v2, bidirectional) keep their q, k and v; only the scalar coordinate and its temperature are "
         "learned, from 256 "
         "tokens, to change the head's outputs as little as possible. A model that grows up with the scalar term may "
         "find "
         "better "
         "coordinates than 32 frozen features hold. Which claims of the paper hold is in "
         "<code>docs/explanation/claims.md</code>.</p>";
}

std::string method(apps::context const& c) {
  return "<p>Real heads: q, k and v of " + std::to_string(c.layers.size()) + " layers with " +
         std::to_string(c.layers.front().heads) +
         " heads each, frozen. Learned are the scalar projections and the temperature of every head: 120 steps of Adam "
         "on the "
         "first half "
         "of the text, measured on the other half, so that no query and no key that is measured has been learned from "
         "(but for "
         "the "
         "longest contexts of the context experiment). Windows and exact rows come from the sorted cache, gradients "
         "from the "
         "CPU executor, "
         "regularizers from the library. The numbers behind each picture are in the CSV files beside this page; "
         "<code>scripts/scalar_sort NAME</code> makes one experiment again.</p>\n";
}

}  // namespace

int main(int argc, char** argv) {
  using namespace scalar_sort;
  auto const shared = std::make_shared<shared_fits>();
  return apps::run_program(
      {.name = "attune_scalar_sort",
       .about =
           "Makes the experiments that Scalar Sort Attention proposes: on queries, keys and values of a real language "
           "model that reads\n"
           "Alice in Wonderland, and on keys drawn at random. Each writes CSV files and pictures (drawn by gnuplot) "
           "and "
           "prints what is\n"
           "to be seen; `page`, or no name at all, makes them all and one self-contained page.",
       .plots = SCALAR_SORT_PLOTS,
       .page = "scalar_sort",
       .title = "Scalar Sort Attention, tried",
       .introduction = introduction,
       .method = method,
       .experiments = {fitting(shared), error_of_windows(shared), alignment(shared), context_length(shared),
                       accessed(shared), counterexamples()}},
      argc, argv);
}
