# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
#
# Time of an insertion and of a decoded row of the sorted cache against n, with a + b log2(n) fitted to each, from the CSV of attune_sorted:
#
#   attune_sorted > sorted.csv && gnuplot -e "csv='sorted.csv'; svg='sorted.svg'" benchmarks/sorted.gp
#
# Prints the fits and, between n and 10 n, the power of n by which each grows.
if (!exists("csv")) csv = "sorted.csv"
if (!exists("svg")) svg = "sorted.svg"

set datafile separator ","
set datafile commentschars "#"
of(name, x) = strcol(1) eq name ? x : NaN
log2(x) = log(x) / log(2)
set fit quiet logfile "/dev/null"

scalar(x) = a1 + b1 * log2(x)
hybrid(x) = a2 + b2 * log2(x)
inserting(x) = a3 + b3 * log2(x)
fit scalar(x) csv every ::1 using 2:(of("scalar", column(6))) via a1, b1
fit hybrid(x) csv every ::1 using 2:(of("hybrid", column(6))) via a2, b2
# At n = 1000 the last tenth is too short to be timed.
fit inserting(x) csv every ::1 using 2:(of("scalar", $2 > 1000 ? 1e6 / $5 : NaN)) via a3, b3
print sprintf("certified row, scalar: %.3g us + %.3g us per doubling of n", a1, b1)
print sprintf("certified row, hybrid: %.3g us + %.3g us per doubling of n", a2, b2)
print sprintf("insertion:             %.3g us + %.3g us per doubling of n", a3, b3)

set terminal svg size 760,520 background "white" font "sans,12"
set output svg
set logscale xy
set format x "10^{%T}"
set format y "10^{%T}"
set xlabel "keys in the cache"
set ylabel "microseconds"
set key top left
set grid
set title "Sorted cache: windows of about 1,000 keys, one thread"
plot csv every ::1 using 2:(of("scalar", column(7) > 0 ? column(7) : NaN)) with points pointtype 5 linecolor rgb "#888888" title "dense row, scalar", \
     csv every ::1 using 2:(of("hybrid", column(7) > 0 ? column(7) : NaN)) with points pointtype 4 linecolor rgb "#888888" title "dense row, hybrid", \
     csv every ::1 using 2:(of("scalar", column(6))) with points pointtype 7 linecolor rgb "#1f77b4" title "certified row, scalar", \
     scalar(x) with lines linecolor rgb "#1f77b4" title sprintf("%.0f + %.1f log_2 n", a1, b1), \
     csv every ::1 using 2:(of("hybrid", column(6))) with points pointtype 9 linecolor rgb "#d62728" title "certified row, hybrid", \
     hybrid(x) with lines linecolor rgb "#d62728" title sprintf("%.0f + %.1f log_2 n", a2, b2), \
     csv every ::1 using 2:(of("scalar", $2 > 1000 ? 1e6 / $5 : NaN)) with points pointtype 13 linecolor rgb "#2ca02c" title "insertion", \
     inserting(x) with lines linecolor rgb "#2ca02c" title sprintf("%.2f + %.3f log_2 n", a3, b3)
