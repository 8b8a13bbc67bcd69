load scripts.'/common.gnuplot'
set multiplot layout 1,2
set logscale x
set xlabel 'number of keys L'
set ylabel 'critical N / L'
set xtics (32, 64, 128, 256, 512)
set xrange [28:580]
set yrange [0:1.02]
set key top right
file = data.'/critical.csv'
plot file using 'keys':'rows' with linespoints linewidth 2.5 pointtype 7 linecolor rgb blue title 'rows of all heads', \
  '' using 'keys':'heads' with linespoints linewidth 2.5 pointtype 5 linecolor rgb green title 'means of the heads', \
  '' using 'keys':'rows_printed' with linespoints linewidth 2 dashtype 3 pointtype 6 linecolor rgb blue title 'rows, as printed', \
  '' using 'keys':'heads_printed' with linespoints linewidth 2 dashtype 3 pointtype 4 linecolor rgb green title 'heads, as printed', \
  0.06 with lines linewidth 1.5 dashtype 2 linecolor rgb black title 'paper, GPT-2: 0.06'
set xlabel 'number of selected keys N (of 512)'
set ylabel 'p of the Kolmogorov-Smirnov test'
set xtics autofreq
set xrange [0.9:600]
set logscale xy
set yrange [1e-20:3]
set format y '10^{%T}'
set key bottom right
file = data.'/critical_p.csv'
plot file using 'selected':(column('rows') > 1e-20 ? column('rows') : 1e-20) with lines linewidth 2.5 linecolor rgb blue title 'rows of all heads', \
  '' using 'selected':(column('heads') > 1e-20 ? column('heads') : 1e-20) with lines linewidth 2.5 linecolor rgb green title 'means of the heads', \
  '' using 'selected':(column('rows_printed') > 1e-20 ? column('rows_printed') : 1e-20) with lines linewidth 2 dashtype 3 linecolor rgb blue title 'rows, as printed', \
  0.01 with lines linewidth 1.5 dashtype 2 linecolor rgb black title 'level 0.01'
unset multiplot
