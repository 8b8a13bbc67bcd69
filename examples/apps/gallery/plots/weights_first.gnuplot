quantity = 'first_key'; what = 'weight of the first token'; digits = '%.2f'; middle = 0.55; height = 420
load scripts.'/head_map.gnuplot'
