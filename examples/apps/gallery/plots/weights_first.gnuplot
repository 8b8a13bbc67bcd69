quantity = 'first_key'; what = 'weight of the first token'; digits = '%.3f'; middle = 0.02; height = 420
load scripts.'/head_map.gnuplot'
