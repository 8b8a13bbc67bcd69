# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Plots of scripts/training as small SVG files."""

from __future__ import annotations

import html
import math

COLORS = "#000000 #0072b2 #d55e00 #009e73 #cc79a7 #56b4e9 #e69f00 #7f7f7f #8c564b #bcbd22".split()
LEFT, TOP, WIDE, RIGHT = 62, 26, 460, 150


class Plot:
    """A frame with axes. points() and line() take numbers of these axes."""

    def __init__(self, title, x, y, height=280, left=LEFT):
        """x, y: (label, least, greatest, ticks); a tick is a number, or a pair of number and text."""
        self.left, self.height, self.x, self.y = left, height, x, y
        self.parts = [self.text(left, 16, title, size=13)]
        self.parts.append(f'<rect x="{left}" y="{TOP}" width="{WIDE}" height="{height}" fill="none" stroke="#888"/>')
        for at, words in map(as_tick, x[3]):
            self.parts.append(self.rule(self.px(at), TOP, self.px(at), TOP + height))
            self.parts.append(self.text(self.px(at), TOP + height + 15, words, "middle"))
        for at, words in map(as_tick, y[3]):
            self.parts.append(self.rule(left, self.py(at), left + WIDE, self.py(at)))
            self.parts.append(self.text(left - 6, self.py(at) + 4, words, "end"))
        self.parts.append(self.text(left + WIDE / 2, TOP + height + 32, x[0], "middle"))
        turned = f'transform="translate(14 {TOP + height / 2}) rotate(-90)"'
        self.parts.append(f'<text {turned} text-anchor="middle">{html.escape(y[0])}</text>')
        self.named = 0

    def px(self, at):
        return round(self.left + WIDE * (at - self.x[1]) / (self.x[2] - self.x[1]), 1)

    def py(self, at):
        return round(TOP + self.height * (1 - (at - self.y[1]) / (self.y[2] - self.y[1])), 1)

    @staticmethod
    def text(x, y, words, anchor="start", size=11, color="#000"):
        return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" fill="{color}">{html.escape(str(words))}</text>'

    @staticmethod
    def rule(a, b, c, d, color="#ddd", width=1):
        return f'<line x1="{a}" y1="{b}" x2="{c}" y2="{d}" stroke="{color}" stroke-width="{width}"/>'

    def line(self, xs, ys, color, name=None):
        part = []  # of the line, inside the frame
        for x, y in [*zip(xs, ys), (None, math.inf)]:
            if self.y[1] <= y <= self.y[2]:
                part.append(f"{self.px(x)},{self.py(y)}")
            elif part:
                self.parts.append(f'<polyline points="{" ".join(part)}" fill="none" stroke="{color}" stroke-width="1.6"/>')
                part = []
        if name:
            y = TOP + 10 + 16 * self.named
            self.named += 1
            self.parts.append(self.rule(self.left + WIDE + 8, y, self.left + WIDE + 26, y, color, 2))
            self.parts.append(self.text(self.left + WIDE + 31, y + 4, name))

    def points(self, xs, ys, color):
        for x, y in zip(xs, ys):
            self.parts.append(f'<circle cx="{self.px(x)}" cy="{self.py(y)}" r="2.6" fill="{color}" fill-opacity="0.7"/>')

    def segment(self, x0, y0, x1, y1, color, width=2):
        self.parts.append(self.rule(self.px(x0), self.py(y0), self.px(x1), self.py(y1), color, width))

    def write(self, path):
        width, height = self.left + WIDE + (RIGHT if self.named else 16), TOP + self.height + 40
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        body = "\n".join(['<rect width="100%" height="100%" fill="#fff"/>', *self.parts])
        path.write_text(f'{head} font-family="sans-serif" font-size="11">\n{body}\n</svg>\n')


def as_tick(tick):
    return tick if isinstance(tick, tuple) else (tick, f"{tick:g}")
