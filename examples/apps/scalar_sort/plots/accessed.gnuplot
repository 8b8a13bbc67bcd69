load common
set datafile missing NaN
places = '"uniform centre" "uniform end" "normal centre" "normal 3 deviations out"'
colours = "#0072b2 #56b4e9 #d55e00 #009e73"
marks = "7 5 9 13"
at(place, y) = stringcolumn('place') eq place ? y : NaN
size(eps) = eps < 1e-4 ? 1.3 : 0.7
set multiplot layout 1,2
set logscale xy 10
set format xy '10^{%T}'
set xlabel 'predicted: 2 √(−τ log ε) ρ(q)'
set ylabel 'keys inside the radius'
set xrange [1:1e5]
set yrange [1:1e5]
set key bmargin center horizontal nobox maxcols 2
set bmargin 10
file = data.'/accessed.csv'
plot for [i=1:4] file using 'predicted':(at(word(places, i), column('radius'))):(size(column('eps'))) with points pointtype int(word(marks, i)) pointsize variable linecolor rgb word(colours, i) title word(places, i), \
  x with lines linewidth 1.5 linecolor rgb black title 'as predicted'
set ylabel 'keys scored, certified'
plot for [i=1:4] file using 'predicted':(at(word(places, i), column('certified'))):(size(column('eps'))) with points pointtype int(word(marks, i)) pointsize variable linecolor rgb word(colours, i) title word(places, i), \
  x with lines linewidth 1.5 linecolor rgb black title 'as predicted'
unset multiplot
