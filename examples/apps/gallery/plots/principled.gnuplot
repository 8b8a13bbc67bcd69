height = 780
load common
file = data.'/principled.csv'
set multiplot layout 2,2
set logscale x 2
set xlabel 'number of keys K'
set xtics (16, 32, 64, 128, 256, 512)
set xrange [14:580]
unset key
# components: 4 alpha + 2 beta + gamma
array title[8] = ['softmax: all off', 'γ', 'β', 'β γ', 'α', 'α γ', 'α β', 'α β γ']
array colour[8] = [black, blue, green, sky, orange, purple, yellow, '#882255']
array dash[8] = [1, 1, 1, 1, 2, 2, 2, 2]
of(n, name) = column('components') == n ? column(name) : 1/0
set ylabel 'mean ground weight'
set yrange [0:1]
plot for [n in "1 3 5 7"] file using (of(int(n), 'keys')):'ground_low':'ground_high' with filledcurves @band linecolor rgb colour[int(n) + 1], \
  for [n in "1 3 5 7"] '' using (of(int(n), 'keys')):'ground' with linespoints linewidth 2 dashtype dash[int(n) + 1] pointtype 7 pointsize 0.5 linecolor rgb colour[int(n) + 1]
set ylabel 'entropy of w / Σw as a share of ln K'
set yrange [0.55:0.75]
plot for [n=0:7] file using (of(n, 'keys')):'entropy_low':'entropy_high' with filledcurves @band linecolor rgb colour[n + 1], \
  for [n=0:7] '' using (of(n, 'keys')):'entropy' with linespoints linewidth 2 dashtype dash[n + 1] pointtype 7 pointsize 0.5 linecolor rgb colour[n + 1]
set ylabel 'mean largest weight of a row'
set yrange [0:*]
plot for [n=0:7] file using (of(n, 'keys')):'highest_low':'highest_high' with filledcurves @band linecolor rgb colour[n + 1], \
  for [n=0:7] '' using (of(n, 'keys')):'highest' with linespoints linewidth 2 dashtype dash[n + 1] pointtype 7 pointsize 0.5 linecolor rgb colour[n + 1]
# The fourth place: what the lines mean.
unset logscale; unset border; unset tics; unset grid; unset xlabel; unset ylabel
set xrange [0:1]
set yrange [0:1]
set key center Left reverse nobox title 'components that are on' left
plot for [n=0:7] keyentry with linespoints linewidth 2 dashtype dash[n + 1] pointtype 7 pointsize 0.5 linecolor rgb colour[n + 1] title title[n + 1], \
  0 with lines linecolor rgb '#ffffff' notitle
unset multiplot
