load common
set logscale xy 10
set logscale x 2
set xlabel 'keys in the window, k (of 1,024)'
set ylabel 'share of the weight that is missed'
set format y '10^{%T}'
set yrange [1e-4:1]
set key bmargin center horizontal nobox maxcols 2
set bmargin 7
file = data.'/half.csv'
plot file using 'k':'half' with linespoints linewidth 2.5 pointtype 5 linecolor rgb orange title 'k / 2 on each side, as printed', \
  '' using 'k':'nearest' with linespoints linewidth 2.5 pointtype 7 linecolor rgb blue title 'k nearest'
