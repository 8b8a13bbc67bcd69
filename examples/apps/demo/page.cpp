// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "report.hpp"

namespace demo {

char const* const report_style = R"css(
tr.next-mask > * { border-top: 2px solid var(--soft); }
td.bar { background: linear-gradient(var(--bar), var(--bar)) no-repeat left center / var(--share) 70%; min-width: 7.5em; }
.grids { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(405px, 100%), 1fr)); gap: 14px; }
.grids figure { padding: 10px 8px; overflow-x: auto; } .grids table { width: 100%; font-size: .77rem; margin: .3em 0; } .grids td, .grids th { padding: .22em .2em; text-align: center; }
.grids td, .grids th { border: 1px solid var(--card); } .grids tbody th { font-weight: 400; color: var(--soft); }
.pair { margin-bottom: 18px; display: grid; grid-template-columns: repeat(auto-fit, minmax(min(560px, 100%), 1fr)); gap: 18px 26px; }
text { fill: var(--ink); font-size: 10px; dominant-baseline: central; }
image { image-rendering: crisp-edges; image-rendering: pixelated; }
/* The labels are seen through <use>, where selectors with ancestors do not reach. */
.query { text-anchor: end; } .ground { font-weight: 700; }
.heat .empty { fill: none; stroke: var(--rule); } .heat .note { fill: var(--soft); text-anchor: middle; }
.heat image { cursor: crosshair; }
.legends { display: flex; flex-wrap: wrap; gap: 6px 40px; margin: 12px 0; } .legend { width: min(600px, 100%); } .legend text { text-anchor: middle; font-size: 12px; }
.chart text { font-size: 12px; } .chart .tick { text-anchor: end; fill: var(--soft); } .chart .head { text-anchor: middle; fill: var(--soft); }
.chart .rule { stroke: var(--rule); } .chart .band { fill: var(--band); }
.chart .bound { stroke: var(--soft); stroke-dasharray: 5 4; } .chart .bound-name { text-anchor: end; fill: var(--soft); }
.s0 { fill: var(--s0); } .s1 { fill: var(--s1); } .s2 { fill: var(--s2); } .s3 { fill: var(--s3); } .s4 { fill: var(--s4); }
.key-list span { display: inline-flex; align-items: center; gap: 5px; margin-right: 1.4em; } .key-list svg { width: 15px; height: 15px; }
details { margin: 0; } summary { cursor: pointer; padding: .12em 0; color: var(--accent); }
details > .pair { margin: .6em 0 1.2em; }
#tip { position: fixed; z-index: 9; pointer-events: none; background: var(--ink); color: var(--page); padding: .25em .6em; border-radius: 5px; font-size: .85rem; white-space: nowrap; visibility: hidden; }
@media print { details { display: none; } figure { break-inside: avoid; } }
)css";

// A pointer over a heat map reads its number. Without the script the page lacks only that.
char const* const page_script = R"js(
(() => {
  const tip = document.createElement('div'); tip.id = 'tip'; document.body.append(tip);
  const words = [...document.querySelectorAll('#labels .query')].map(t => t.textContent), n = words.length;
  document.querySelectorAll('svg.heat').forEach(svg => {
    let weights;
    svg.addEventListener('pointerleave', () => tip.style.visibility = 'hidden');
    svg.addEventListener('pointermove', e => {
      weights ||= Uint8Array.from(atob(svg.dataset.weights), c => c.charCodeAt(0));
      const images = [...svg.querySelectorAll('image')], hit = images.findIndex(m => {
        const r = m.getBoundingClientRect();
        return e.clientX >= r.left && e.clientX < r.right && e.clientY >= r.top && e.clientY < r.bottom;
      });
      tip.style.visibility = hit < 0 ? 'hidden' : 'visible';
      if (hit < 0) return;
      const r = images[hit].getBoundingClientRect(), i = Math.floor((e.clientY - r.top) / r.height * n);
      const j = hit === 1 ? -1 : Math.floor((e.clientX - r.left) / r.width * n);
      const shade = weights[i * (n + 1) + j + 1];
      const w = j < 0 ? (shade / 255).toFixed(2) : shade === 0 ? 'at most 0.0001' : 'about ' + (10 ** ((shade / 255 - 1) * 4)).toPrecision(2);
      tip.textContent = `query “${words[i]}” → ${j < 0 ? 'ground' : `key “${words[j]}”`}: ${w}`;
      tip.style.left = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8) + 'px';
      tip.style.top = e.clientY + 16 + 'px';
    });
  });
})();
)js";

}  // namespace demo
