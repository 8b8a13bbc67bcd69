load common
load scripts.'/variants.gnuplot'
set logscale xy 10
set xlabel 'predicted: 2 √(−τ log ε) ρ(q)'
set ylabel 'keys inside the radius'
set xrange [1:1e4]
set yrange [0.8:400]
set key bottom right
file = data.'/accessed_real.csv'
plot for [i=2:6] file using 'predicted':(only(word(variants, i), column('radius'))) with points pointtype 7 pointsize 0.25 linecolor rgb word(colours, i) notitle, \
  for [i=2:6] NaN with points pointtype 7 pointsize 1 linecolor rgb word(colours, i) title word(variants, i), \
  x with lines linewidth 1.5 linecolor rgb black title 'as predicted'
