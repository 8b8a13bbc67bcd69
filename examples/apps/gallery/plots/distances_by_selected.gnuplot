load common
file = data.'/distances_by_selected.csv'
set logscale xy
set xlabel 'number of selected keys N (of 512)'
set ylabel 'distance (units of the values)'
set xrange [0.9:700]
set yrange [1:100000]
set key top left
plot file using 'selected':'distance_25':'distance_75' with filledcurves @band linecolor rgb green notitle, \
  '' using 'selected':'distance_50' with linespoints linewidth 2.5 pointtype 7 pointsize 0.7 linecolor rgb green title 'distance of the N largest weights', \
  '' using 'selected':'bound_25':'bound_75' with filledcurves @band linecolor rgb orange notitle, \
  '' using 'selected':'bound_50' with linespoints linewidth 2.5 pointtype 5 pointsize 0.7 linecolor rgb orange title 'its bound, Theorem 1 (1)', \
  '' using 'selected':'expected_low_50':'expected_high_50' with filledcurves fillstyle solid 0.6 noborder linecolor rgb blue notitle, \
  '' using 'selected':'expected_low_50' with linespoints linewidth 2 pointtype 9 pointsize 0.8 linecolor rgb blue title 'expected of N random keys: bounds that hold', \
  '' using 'selected':'printed_50' with linespoints linewidth 2 dashtype 3 pointtype 2 pointsize 0.7 linecolor rgb black title 'expected: main term as printed'
