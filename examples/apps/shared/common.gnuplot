# What all pictures share. Callers set data (folder of the CSV files), out (the picture) and, for a look at it, format = 'png'.
if (!exists("format")) format = 'svg'
if (!exists("width")) width = 1000
if (!exists("height")) height = 460
if (format eq 'png') { set terminal pngcairo size width, height font "DejaVu Sans,12" background rgb '#ffffff' } \
else { set terminal svg size width, height font "DejaVu Sans,13" background rgb '#ffffff' }
set output out
set datafile separator ','
set datafile columnheaders
set border 3 linecolor rgb '#555555'
set tics nomirror out textcolor rgb '#333333'
set grid linecolor rgb '#dddddd' linewidth 1 linetype 1
set key opaque box linecolor rgb '#dddddd' samplen 2.5 spacing 1.15 left
# Distinct in grey and to the colour-blind (Okabe and Ito).
blue = '#0072b2'; orange = '#d55e00'; green = '#009e73'; purple = '#aa4499'; sky = '#56b4e9'; yellow = '#e69f00'; black = '#222222'
band = 'fillstyle transparent solid 0.18 noborder'
