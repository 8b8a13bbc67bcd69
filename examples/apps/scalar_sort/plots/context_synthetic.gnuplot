load common
set datafile missing NaN
growths = '"fixed density" "τ as 1/n²" "far keys"'
colours = "#0072b2 #009e73 #d55e00"
at(growth, heads, k, y) = stringcolumn('growth') eq growth && stringcolumn('heads') eq heads && column('k') == k ? y : NaN
set multiplot layout 1,2
set logscale x 10
set format x '10^{%T}'
set xlabel 'keys in the context, n'
set xrange [100:50000]
set ylabel 'share of the weight on the 64 nearest keys'
set yrange [0:1.02]
set key bmargin center horizontal nobox maxcols 2
set bmargin 7
file = data.'/context_synthetic.csv'
plot for [i=1:3] file using 'keys':(at(word(growths, i), 'scalar', 64, column('captured'))) with linespoints linewidth 2.5 pointtype 7 linecolor rgb word(colours, i) title word(growths, i), \
  for [i=1:3] '' using 'keys':(at(word(growths, i), 'hybrid', 64, column('captured'))) with linespoints linewidth 1.5 dashtype 2 pointtype 6 linecolor rgb word(colours, i) notitle, \
  NaN with linespoints linewidth 1.5 dashtype 2 pointtype 6 linecolor rgb black title 'hybrid heads'
set ylabel 'weight of the nearest key'
set logscale y
set format y '10^{%T}'
set yrange [1e-5:1]
plot for [i=1:3] file using 'keys':(at(word(growths, i), 'scalar', 1, column('captured'))) with linespoints linewidth 2.5 pointtype 7 linecolor rgb word(colours, i) title word(growths, i), \
  6 / x with lines linewidth 1.5 dashtype 3 linecolor rgb black title '6 / n'
unset multiplot
