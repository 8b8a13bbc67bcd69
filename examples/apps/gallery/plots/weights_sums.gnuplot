height = 620
load common
# The order of weights.cpp.
shown = "1 2 3 4 8"
array title[5] = ['off-by-one', 'sink', 'affine-scaled, N = visible keys', 'principled', 'affine-scaled, causal mask, N = L']
set multiplot layout 2,3
set xlabel 'sum of the weights of a row'
set ylabel 'share of the rows (%)'
set xrange [0:1.2]
set yrange [0:*]
set xtics 0.2
unset key
set style fill solid 0.5 noborder
set boxwidth 0.02
do for [n=1:5] {
  s = int(word(shown, n))
  stats data.'/weights_sums_means.csv' using (column('system') == s ? column('mean') : 1/0) nooutput name 'mean'
  stats data.'/weights_sums_means.csv' using (column('system') == s ? column('median') : 1/0) nooutput name 'median'
  set title sprintf("%s\nmean %.3f, median %.3f", title[n], mean_mean, median_mean)
  set arrow 1 from first mean_mean, graph 0 to first mean_mean, graph 1 nohead linewidth 1.5 linecolor rgb black
  set arrow 2 from first median_mean, graph 0 to first median_mean, graph 1 nohead linewidth 1.5 dashtype 2 linecolor rgb black
  plot data.'/weights_sums.csv' using (column('system') == s ? column('sum') : 1/0):'single' with boxes linecolor rgb sky, \
    '' using (column('system') == s ? column('sum') : 1/0):'heads_together' with steps linewidth 1.5 linecolor rgb orange
}
# The sixth place: what the marks mean.
unset title; unset arrow; unset border; unset tics; unset grid; unset xlabel; unset ylabel
set yrange [0:1]
set key center Left reverse nobox
plot keyentry with boxes linecolor rgb sky title 'single rows of all heads', keyentry with lines linewidth 1.5 linecolor rgb orange title 'mean over the heads of a layer', \
  keyentry with lines linewidth 1.5 linecolor rgb black title 'mean of the rows', keyentry with lines linewidth 1.5 dashtype 2 linecolor rgb black title 'median of the rows', \
  0 with lines linecolor rgb '#ffffff' notitle
unset multiplot
