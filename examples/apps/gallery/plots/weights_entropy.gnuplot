quantity = 'entropy'; what = 'entropy of w / Σw (nats)'; digits = '%.1f'; middle = 4.0; height = 420
load scripts.'/head_map.gnuplot'
