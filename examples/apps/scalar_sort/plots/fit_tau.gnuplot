load common
load scripts.'/variants.gnuplot'
set xlabel 'step of the fit'
set ylabel 'temperature τ (median over heads)'
set logscale y
set yrange [0.09:0.7]
set ytics (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
set key outside right center vertical nobox
file = data.'/fit_history.csv'
plot for [i=2:6] file using 'step':(only(word(variants, i), column('tau_50'))) with lines linewidth 2.5 linecolor rgb word(colours, i) title word(variants, i)
