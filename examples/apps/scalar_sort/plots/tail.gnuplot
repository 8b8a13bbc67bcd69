load common
set datafile missing NaN
of(keys, y) = stringcolumn('keys') eq keys ? y : NaN
set xlabel 'radius r about the query (units of the keys)'
set ylabel 'share of the weight beyond r'
set yrange [0:1.05]
set key bmargin center horizontal nobox maxcols 2
set bmargin 7
file = data.'/tail.csv'
plot file using 'radius':(of('even', column('outside'))) with points pointtype 6 pointsize 0.7 linecolor rgb blue title 'even keys', \
  '' using 'radius':(of('even', column('printed'))) with lines linewidth 2 linecolor rgb black title 'erfc(r / √τ), as printed', \
  '' using 'radius':(of('counterexample', column('outside'))) with linespoints linewidth 2 pointtype 7 pointsize 0.5 linecolor rgb orange title 'keys 1 and 1.01 … 1.059', \
  '' using 'radius':(of('counterexample', column('bound'))) with lines linewidth 2 dashtype 2 linecolor rgb orange title 'bound for these keys: T / (Z + T)'
