load common
load scripts.'/variants.gnuplot'
set multiplot layout 1,2
set logscale xy
set xlabel 'nearest keys read, k (of 256)'
set ylabel 'relative error of the output'
set xtics (4, 8, 16, 32, 64, 128)
set xrange [3.5:150]
set key bmargin center horizontal nobox maxcols 3
set bmargin 7
file = data.'/error.csv'
plot for [i=2:6] file using 'k':(only(word(variants, i), column('nearest'))) with linespoints linewidth 2.5 pointtype int(word(marks, i)) linecolor rgb word(colours, i) title word(variants, i)
set ylabel 'share of the weight outside'
plot for [i=2:6] file using 'k':(only(word(variants, i), column('missing'))) with linespoints linewidth 2.5 pointtype int(word(marks, i)) linecolor rgb word(colours, i) notitle, \
  for [i=2:6] '' using 'k':(only(word(variants, i), column('bound'))) with lines linewidth 1.5 dashtype 2 linecolor rgb word(colours, i) notitle, \
  NaN with lines linewidth 2 linecolor rgb black title 'true', NaN with lines linewidth 1.5 dashtype 2 linecolor rgb black title 'bound'
unset multiplot
