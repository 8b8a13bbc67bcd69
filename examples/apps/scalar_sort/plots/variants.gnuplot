# One style per variant of the fits; only(name, y): y in the rows of that variant, nothing elsewhere.
set datafile missing NaN
only(name, y) = stringcolumn('variant') eq name ? y : NaN
variants = "random none a a+τ a+s all"
colours = "#999999 #222222 #0072b2 #56b4e9 #e69f00 #d55e00"
marks = "6 4 7 9 5 13"
