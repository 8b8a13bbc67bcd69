width = 1000
height = 640
load common
load scripts.'/variants.gnuplot'
set logscale xy 10
set xlabel 'predicted: 2 √(−τ log ε) ρ(q)'
set ylabel 'keys inside the radius'
set xrange [1:1e4]
set yrange [0.8:400]
set format x '10^{%T}'
unset key
file = data.'/accessed_real.csv'
set multiplot layout 2,3
do for [i=2:6] {
  set title word(variants, i)
  plot file using 'predicted':(only(word(variants, i), column('radius'))) with points pointtype 7 pointsize 0.3 linecolor rgb word(colours, i), \
    x with lines linewidth 1.5 linecolor rgb black
}
unset multiplot
