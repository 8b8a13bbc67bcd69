load common
load scripts.'/variants.gnuplot'
set multiplot layout 1,2
set logscale x 2
set xlabel 'rank of the key by weight'
set ylabel 'mean distance (deviations of the keys)'
set xtics (1, 2, 4, 8, 16, 32, 64, 128, 256)
set xrange [0.9:280]
set yrange [0:]
set key bmargin center horizontal nobox maxcols 3
set bmargin 7
file = data.'/alignment.csv'
by(which, name, y) = stringcolumn('weights') eq which ? only(name, y) : NaN
set title 'weights of the hybrid head'
plot for [i=1:6] file using 'rank':(by('hybrid', word(variants, i), column('distance'))) with linespoints linewidth 2 pointtype int(word(marks, i)) linecolor rgb word(colours, i) title word(variants, i)
set title 'weights of the model'
plot for [i=1:6] file using 'rank':(by('model', word(variants, i), column('distance'))) with linespoints linewidth 2 pointtype int(word(marks, i)) linecolor rgb word(colours, i) title word(variants, i)
unset multiplot
