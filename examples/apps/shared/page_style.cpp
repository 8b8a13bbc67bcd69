// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "page_style.hpp"

namespace apps {

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
figure { margin: 0; background: var(--card); border: 1px solid var(--rule); border-radius: 8px; padding: 10px 12px; }
figcaption { font-weight: 600; margin: 0 0 4px; } figcaption span { font-weight: 400; color: var(--soft); font-size: .88rem; }
svg { display: block; width: 100%; height: auto; } svg.hidden { position: absolute; width: 0; height: 0; }
code { font: .9em ui-monospace, "DejaVu Sans Mono", monospace; background: var(--band); padding: .05em .3em; border-radius: 4px; }
.formula { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .9rem; background: var(--band); padding: .6em .9em; border-radius: 6px; max-width: none; overflow-x: auto; white-space: pre; }
)css";

}  // namespace apps
