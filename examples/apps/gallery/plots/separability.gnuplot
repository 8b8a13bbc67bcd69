load common
file = data.'/separability.csv'
set logscale x 2
set xlabel 'number of selected keys N (of 512)'
set ylabel 'separable share N_s / N'
set yrange [0:1.05]
set xrange [1.8:300]
set key bottom right maxrows 5
plot file using 'selected':'share_10':'share_90' with filledcurves fillstyle transparent solid 0.13 noborder linecolor rgb green title 'rows: middle 80 %', \
  '' using 'selected':'share_25':'share_75' with filledcurves fillstyle transparent solid 0.25 noborder linecolor rgb green title 'rows: middle half', \
  '' using 'selected':'share_50' with lines linewidth 1.5 dashtype 2 linecolor rgb green title 'rows: median', \
  '' using 'selected':'share_mean' with linespoints linewidth 2.5 pointtype 7 pointsize 0.7 linecolor rgb green title 'rows: mean', \
  '' using 'selected':'as_they_are_mean' with linespoints linewidth 2 pointtype 6 pointsize 0.7 linecolor rgb purple title 'mean, values not normalised', \
  '' using 'selected':'lower_mean' with lines linewidth 2 linecolor rgb blue title 'lower bound, cut off at 0', \
  '' using 'selected':'upper_mean' with lines linewidth 2 linecolor rgb orange title 'upper bound that holds', \
  '' using 'selected':'printed_mean' with lines linewidth 2 dashtype 3 linecolor rgb black title 'upper bound as printed', \
  0.7 with lines linewidth 1 dashtype 4 linecolor rgb '#888888' title 'paper, GPT-2: 0.7 to 0.85', 0.85 with lines linewidth 1 dashtype 4 linecolor rgb '#888888' notitle
