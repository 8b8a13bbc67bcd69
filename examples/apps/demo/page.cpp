// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "report.hpp"

namespace demo {

char const* const page_style = R"css(
:root { color-scheme: light dark; --page: #fbfbfa; --card: #fff; --ink: #1d2129; --soft: #5d6573; --rule: #dfe2e7; --band: #f4f5f7;
  --good: #17704a; --bad: #b3261e; --accent: #31688e; --bar: #cfe3ef;
  --s0: #3b4252; --s1: #e08e0b; --s2: #2a7fba; --s3: #9a4f96; --s4: #159a6c; }
@media (prefers-color-scheme: dark) { :root { --page: #14171c; --card: #1b1f26; --ink: #e4e7ec; --soft: #9aa3b2; --rule: #323945; --band: #20252d;
  --good: #5ccf9a; --bad: #ff8a80; --accent: #7fb8dc; --bar: #27465a;
  --s0: #c9d1de; --s1: #f0b04a; --s2: #63b3ed; --s3: #cf8fcb; --s4: #4fd1a1; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1340px; margin: 0 auto; padding: 28px 24px 60px; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .3em; }
h2 { font-size: 1.35rem; margin: 2.4em 0 .4em; padding-top: .6em; border-top: 1px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 1.4em 0 .3em; }
p { max-width: 84ch; margin: .5em 0; } sup, sub { line-height: 0; }
.lead { font-size: 1.1rem; color: var(--soft); }
.verdict { display: inline-block; margin: .6em 0; padding: .35em .9em; border-radius: 99px; border: 1.5px solid currentColor; font-weight: 600; }
.pass { color: var(--good); } .fail { color: var(--bad); }
.soft { color: var(--soft); font-size: .9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; background: var(--card); font-variant-numeric: tabular-nums; font-size: .92rem; margin: .8em 0; }
th, td { padding: .38em .8em; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
thead tr.group th { text-align: center; border-bottom: 1px solid var(--rule); }
th.name, td.name { text-align: left; } tbody th { text-align: left; font-weight: 600; }
tr.next-mask > * { border-top: 2px solid var(--soft); }
td.bar { background: linear-gradient(var(--bar), var(--bar)) no-repeat left center / var(--share) 70%; min-width: 7.5em; }
.grids { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(405px, 100%), 1fr)); gap: 14px; }
.grids figure { padding: 10px 8px; overflow-x: auto; } .grids table { width: 100%; font-size: .77rem; margin: .3em 0; } .grids td, .grids th { padding: .22em .2em; text-align: center; }
.grids td, .grids th { border: 1px solid var(--card); } .grids tbody th { font-weight: 400; color: var(--soft); }
.pair { margin-bottom: 18px; display: grid; grid-template-columns: repeat(auto-fit, minmax(min(560px, 100%), 1fr)); gap: 18px 26px; }
figure { margin: 0; background: var(--card); border: 1px solid var(--rule); border-radius: 8px; padding: 10px 12px; }
figcaption { font-weight: 600; margin: 0 0 4px; } figcaption span { font-weight: 400; color: var(--soft); font-size: .88rem; }
svg { display: block; width: 100%; height: auto; } svg.hidden { position: absolute; width: 0; height: 0; }
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
code { font: .9em ui-monospace, "DejaVu Sans Mono", monospace; background: var(--band); padding: .05em .3em; border-radius: 4px; }
.formula { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .9rem; background: var(--band); padding: .6em .9em; border-radius: 6px; max-width: none; overflow-x: auto; white-space: pre; }
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
