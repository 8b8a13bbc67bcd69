load common
file = data.'/distances_by_length.csv'
set logscale xy
set xlabel 'number of keys L'
set ylabel 'distance (units of the values)'
set xtics (32, 64, 128, 256, 512)
set xrange [28:580]
set key top left
plot file using 'keys':'distance_25':'distance_75' with filledcurves @band linecolor rgb green notitle, \
  '' using 'keys':'distance_50' with linespoints linewidth 2.5 pointtype 7 pointsize 0.7 linecolor rgb green title 'distance of the 5 largest weights', \
  '' using 'keys':'bound_25':'bound_75' with filledcurves @band linecolor rgb orange notitle, \
  '' using 'keys':'bound_50' with linespoints linewidth 2.5 pointtype 5 pointsize 0.7 linecolor rgb orange title 'its bound, Theorem 1 (1)', \
  '' using 'keys':'expected_low_50':'expected_high_50' with filledcurves fillstyle solid 0.6 noborder linecolor rgb blue notitle, \
  '' using 'keys':'expected_low_50' with linespoints linewidth 2 pointtype 9 pointsize 0.8 linecolor rgb blue title 'expected of 5 random keys: bounds that hold', \
  '' using 'keys':'printed_50' with linespoints linewidth 2 dashtype 3 pointtype 2 pointsize 0.7 linecolor rgb black title 'expected: main term as printed'
