load common
load scripts.'/variants.gnuplot'
set xlabel 'keys in the context'
set ylabel 'share of the combined weight on the 64 nearest keys'
set xtics (128, 192, 256, 384, 512)
set xrange [110:530]
set yrange [0:1]
set key outside right center vertical nobox
file = data.'/context_real.csv'
at64(name) = column('k') == 64 ? only(name, column('captured')) : NaN
plot for [i=2:6] file using 'keys':(at64(word(variants, i))) with linespoints linewidth 2.5 pointtype int(word(marks, i)) linecolor rgb word(colours, i) title word(variants, i), \
  64 / x with lines linewidth 1.5 dashtype 3 linecolor rgb black title 'random keys'
