load common
load scripts.'/variants.gnuplot'
set xlabel 'nearest keys read, k (of 256)'
set ylabel 'share of the combined weight'
set logscale x 2
set xtics (8, 16, 32, 64)
set xrange [7:73]
set yrange [0:1]
set key outside right center vertical nobox
file = data.'/fit_captured.csv'
plot for [i=2:6] file using 'k':(only(word(variants, i), column('captured'))) with linespoints linewidth 2.5 pointtype int(word(marks, i)) linecolor rgb word(colours, i) title word(variants, i), \
  x / 256 with lines linewidth 1.5 dashtype 3 linecolor rgb black title 'random keys'
