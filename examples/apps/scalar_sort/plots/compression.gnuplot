load common
set logscale xy
set xlabel 'width of a bin (deviations of the keys)'
set ylabel 'relative error of the output'
set format y '10^{%T}'
set key bmargin center horizontal nobox maxcols 2
set bmargin 7
file = data.'/compression.csv'
plot file using 'width':'without' with linespoints linewidth 2.5 pointtype 5 linecolor rgb orange title 'centroid and mean value, as printed', \
  '' using 'width':'with' with linespoints linewidth 2.5 pointtype 7 linecolor rgb blue title 'with + log M in the score'
