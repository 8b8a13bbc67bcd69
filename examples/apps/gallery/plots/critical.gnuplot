load common
set multiplot layout 1,2
set logscale x
set xlabel 'number of keys L'
set ylabel 'critical N / L'
set xtics (32, 64, 128, 256, 512)
set xrange [28:580]
set yrange [0:1.02]
set key at graph 0.98, 0.52 right top
file = data.'/critical.csv'
# Where the samples differ at every N there is no critical N: below the axis, so nothing is drawn.
share(name) = column(name) > 0 ? column(name) : -1
plot file using 'keys':(share('rows')) with linespoints linewidth 2.5 pointtype 7 linecolor rgb blue title 'rows of all heads', \
  '' using 'keys':(share('heads')) with linespoints linewidth 2.5 pointtype 5 linecolor rgb green title 'means of the heads', \
  '' using 'keys':(share('rows_printed')) with linespoints linewidth 2 dashtype 3 pointtype 6 linecolor rgb blue title 'rows, main term as printed', \
  '' using 'keys':(share('heads_printed')) with linespoints linewidth 2 dashtype 3 pointtype 4 linecolor rgb green title 'heads, main term as printed', \
  0.06 with lines linewidth 1.5 dashtype 2 linecolor rgb black title 'paper, GPT-2: 0.06'
set xlabel 'number of selected keys N (of 512)'
set ylabel 'p of the Kolmogorov-Smirnov test'
set xtics autofreq
set xrange [0.9:600]
set logscale xy
set yrange [1e-20:1e11]
set ytics 1e-20, 1e5, 1
set format y '10^{%T}'
set key at graph 0.02, 0.99 left top
file = data.'/critical_p.csv'
p(name) = column(name) > 1e-20 ? column(name) : 1e-20
plot file using 'selected':(p('rows')) with lines linewidth 2.5 linecolor rgb blue title 'rows', \
  '' using 'selected':(p('heads')) with lines linewidth 2.5 linecolor rgb green title 'heads', \
  '' using 'selected':(p('rows_printed')) with lines linewidth 2 dashtype 3 linecolor rgb blue title 'rows, as printed', \
  '' using 'selected':(p('heads_printed')) with lines linewidth 2 dashtype 3 linecolor rgb green title 'heads, as printed', \
  0.01 with lines linewidth 1.5 dashtype 2 linecolor rgb black title 'level 0.01'
unset multiplot
