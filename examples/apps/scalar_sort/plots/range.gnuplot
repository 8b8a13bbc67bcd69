load common
set xlabel 'step of gradient descent'
set ylabel 'standard deviation of the keys'
set logscale y
set key bmargin center horizontal nobox maxcols 2
set bmargin 7
file = data.'/range.csv'
plot file using 'step':'adaptive' with lines linewidth 2.5 linecolor rgb orange title 'adaptive range, mean ± 3 deviations', \
  '' using 'step':'fixed' with lines linewidth 2.5 linecolor rgb blue title 'fixed range [−3, 3]'
