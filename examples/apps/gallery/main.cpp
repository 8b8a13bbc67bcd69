// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// attune_gallery: the experiments of the papers on the activations of a real model, as CSV, SVG and one page. --help
// says more.
#include "experiments.hpp"
#include "rows.hpp"
#include "shared/text.hpp"

namespace {

std::string introduction(apps::context const& c) {
  apps::layer const& l = c.layers.front();
  return apps::text(
             "<p class=\"lead\">What three papers say about the weights of attention, on the queries, keys and values "
             "of a "
             "real model: %zu layers "
             "of %td heads of width %td that read the first %td tokens of <em>Alice’s Adventures in "
             "Wonderland</em>.</p>\n",
             c.layers.size(), l.heads, l.width, l.length) +
         "<p>The papers measured GPT-2, or models of their own; this is a small sentence-embedding model "
         "(all-MiniLM-L6-v2, "
         "bidirectional). Where "
         "its numbers differ from theirs, the model may differ; where a bound is broken, the bound is wrong. Every "
         "number on "
         "this page was "
         "computed when it was written, by the functions of <code>attune/analysis</code> and the operators themselves. "
         "The "
         "program stops if an "
         "inequality that is proved fails on any row. Which claims of the papers hold is in "
         "<code>docs/explanation/claims.md</code>.</p>";
}

std::string method(apps::context const& c) {
  return apps::text(
             "<p>Rows: %td queries of every head, evenly spaced in the text (all of them under the eight systems, %td",
             gallery::queries_per_head(c), gallery::grid_queries_per_head(c)) +
         " in the grid); over L keys means a text cut short after L tokens. Sinks, thresholds, gates and α are set by "
         "fixed "
         "rules "
         "(<code>examples/apps/shared/layer.hpp</code>): the model was trained with softmax. The numbers behind the "
         "pictures "
         "are in CSV files "
         "beside this page; <code>scripts/gallery NAME</code> makes one experiment again.</p>\n";
}

}  // namespace

int main(int argc, char** argv) {
  using namespace gallery;
  return apps::run_program(
      {.name = "attune_gallery",
       .about = "Repeats the experiments of the papers on queries, keys and values of a real language model that reads "
                "Alice in\n"
                "Wonderland. Each writes CSV files and pictures (drawn by gnuplot) and prints what is to be seen; "
                "`page`, or no\n"
                "name at all, makes them all and one self-contained page, gallery.html. Ends with status 2 if a bound "
                "that is\n"
                "proved fails on these data, or if something prevents the run.",
       .plots = GALLERY_PLOTS,
       .page = "gallery",
       .title = "The limits of normalization, in pictures",
       .introduction = introduction,
       .method = method,
       .experiments = {distances(), critical(), separability(), sensitivity(), weights(), principled_grid()}},
      argc, argv);
}
