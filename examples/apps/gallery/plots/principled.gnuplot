height = 480
load scripts.'/common.gnuplot'
file = data.'/principled.csv'
set multiplot layout 1,3
set logscale x 2
set xlabel 'number of keys K'
set xtics (16, 32, 64, 128, 256, 512)
set xrange [14:580]
# components: 4 alpha + 2 beta + gamma
array title[8] = ['softmax (all off)', 'γ', 'β', 'β γ', 'α', 'α γ', 'α β', 'α β γ']
array colour[8] = [black, blue, green, sky, orange, purple, yellow, '#882255']
of(n, name) = column('components') == n ? column(name) : 1/0
set ylabel 'mean ground weight'
set yrange [0:1]
set key top left
plot for [n in "1 3 5 7"] file using (of(int(n), 'keys')):'ground_low':'ground_high' with filledcurves @band linecolor rgb colour[int(n) + 1] notitle, \
  for [n in "1 3 5 7"] '' using (of(int(n), 'keys')):'ground' with linespoints linewidth 2 pointtype 7 pointsize 0.5 linecolor rgb colour[int(n) + 1] title title[int(n) + 1]
set ylabel 'entropy of w / Σw as a share of ln K'
set key bottom left
plot for [n=0:7] file using (of(n, 'keys')):'entropy_low':'entropy_high' with filledcurves @band linecolor rgb colour[n + 1] notitle, \
  for [n=0:7] '' using (of(n, 'keys')):'entropy' with linespoints linewidth 2 pointtype 7 pointsize 0.5 linecolor rgb colour[n + 1] title title[n + 1]
set ylabel 'mean largest weight of a row'
set yrange [0:*]
set key top right
plot for [n=0:7] file using (of(n, 'keys')):'highest_low':'highest_high' with filledcurves @band linecolor rgb colour[n + 1] notitle, \
  for [n=0:7] '' using (of(n, 'keys')):'highest' with linespoints linewidth 2 pointtype 7 pointsize 0.5 linecolor rgb colour[n + 1] title title[n + 1]
unset multiplot
