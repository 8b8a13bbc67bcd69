quantity = 'sum'; what = 'sum of the weights'; digits = '%.2f'; middle = 0.6; height = 420
load scripts.'/head_map.gnuplot'
