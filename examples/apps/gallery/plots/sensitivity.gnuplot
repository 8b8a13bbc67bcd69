load common
file = data.'/sensitivity.csv'
set logscale xy
set xlabel 'temperature T (1: the model''s own)'
set ylabel 'largest change of weights per unit of logits'
set format '10^{%T}'
set xrange [0.008:12]
set yrange [0.01:100]
set key top right
plot file using 'temperature':'g_1e-3' with points pointtype 7 pointsize 0.7 linecolor rgb blue title 'g(T, ε), ε = 0.001', \
  '' using 'temperature':'g_1e-1' with points pointtype 5 pointsize 0.7 linecolor rgb green title 'ε = 0.1', \
  '' using 'temperature':'g_10' with points pointtype 9 pointsize 0.8 linecolor rgb orange title 'ε = 10', \
  '' using 'temperature':'spectral' with lines linewidth 1.5 linecolor rgb sky title '|J|_2, the limit ε → 0', \
  '' using 'temperature':'bound' with lines linewidth 2 linecolor rgb black title '1 / (2T)', \
  '' using 'temperature':'bound_1e-1' with lines linewidth 1.5 linecolor rgb green title 'min(1 / (2T), √2 / 0.1)', \
  '' using 'temperature':'bound_10' with lines linewidth 1.5 linecolor rgb orange title 'min(1 / (2T), √2 / 10)', \
  '' using 'temperature':'printed' with lines linewidth 2 dashtype 3 linecolor rgb black title 'as printed: min(1 / (4T), √2)'
