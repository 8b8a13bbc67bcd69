# A map of systems by heads with the numbers in its cells. Callers set quantity (a column), what (title of the colours), digits.
load common
file = data.'/weights_heads.csv'
unset grid
unset key
set border 0
set xtics out scale 0
set ytics out scale 0
stats file using 'head' nooutput name 'heads'
count = int(heads_max) + 1
set xlabel sprintf('head (left: layer 0, 0 to %d; right: layer 2, 0 to %d)', count / 2 - 1, count / 2 - 1)
set xtics ()
do for [h=0:count-1] { set xtics add (sprintf('%d', h < count / 2 ? h : h - count / 2) h) }
set ytics ('softmax' 0, 'off-by-one' 1, 'sink' 2, 'affine-scaled' 3, 'principled' 4, 'sparsemax' 5, '1.5-entmax' 6, 'SSMax' 7)
set xrange [-0.5:count-0.5]
set yrange [7.5:-0.5]
set cblabel what
set arrow from count / 2 - 0.5, graph 0 to count / 2 - 0.5, graph 1 nohead linewidth 2 linecolor rgb '#ffffff' front
# viridis: equal steps look equal, in print too.
set palette defined (0 '#440154', 1 '#414487', 2 '#2a788e', 3 '#22a884', 4 '#7ad151', 5 '#fde725')
plot file using 'head':'system':quantity with image pixels, \
  '' using 'head':'system':(sprintf(digits, column(quantity))):(column(quantity) > middle ? 0x111111 : 0xffffff) with labels font ',8.5' textcolor rgb variable
