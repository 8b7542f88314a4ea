#include "report/html_style.h"

namespace spillway::report {

// Six hues that stay apart in the common kinds of colour blindness (after Okabe and Ito), darkened for white
// and lightened for black until each has a contrast of at least 4.5 to 1 with the ground.
std::string_view style_sheet() {
  return R"css(
:root {
  color-scheme: light dark;
  --ground: #ffffff; --sheet: #f6f7f9; --ink: #1b1f24; --soft: #57606a; --rule: #d5dae0; --faint: #e8ebef;
  --accent: #0b62a8; --warn-ground: #fff6e0; --warn-edge: #b87900; --good-ground: #e9f3fb;
  --c0: #0b6aa8; --c1: #bb4a06; --c2: #007a57; --c3: #a3417e; --c4: #80660a; --c5: #4b5563;
  --on-part: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171b; --sheet: #1b1f25; --ink: #e6e9ed; --soft: #a0a9b4; --rule: #3a414a; --faint: #272c33;
    --accent: #7cc0f5; --warn-ground: #2e2612; --warn-edge: #e0a83a; --good-ground: #15283a;
    --c0: #5db5f0; --c1: #ff9157; --c2: #35c79a; --c3: #e895c6; --c4: #e3c14a; --c5: #b8c0ca;
    --on-part: #101316;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
  overflow-wrap: break-word;
}
main { max-width: 916px; margin: 0 auto; padding: 32px 16px 64px; }
header { border-bottom: 1px solid var(--rule); margin-bottom: 24px; }
header p { color: var(--soft); margin: 4px 0 16px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0; letter-spacing: -0.01em; }
h2 { font-size: 21px; line-height: 1.3; margin: 40px 0 10px; }
h3 { font-size: 17px; line-height: 1.35; margin: 28px 0 6px; }
figcaption .title { font-size: 16px; font-weight: 600; line-height: 1.35; margin: 0 0 2px; color: var(--ink); }
h2, h3 { text-wrap: balance; }
p { margin: 0 0 12px; max-width: 70ch; }
ul { padding-left: 20px; margin: 0 0 12px; max-width: 70ch; }
li { margin-bottom: 4px; }
.conclusion, .warning { border-left: 4px solid var(--accent); background: var(--good-ground); padding: 10px 14px; border-radius: 0 6px 6px 0; max-width: none; }
.warning { border-color: var(--warn-edge); background: var(--warn-ground); }
ul.conclusion, ul.warning { padding-left: 32px; }
figure { margin: 16px 0 28px; padding: 14px 16px 10px; background: var(--sheet); border: 1px solid var(--faint); border-radius: 8px; }
figcaption .about { color: var(--soft); font-size: 14px; line-height: 1.45; margin-bottom: 10px; max-width: 90ch; }
figure svg { display: block; }
figure .wide svg, figure .narrow svg { width: 100%; height: auto; }
.narrow { display: none; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 0 0 6px; padding: 0; font-size: 13px; line-height: 1.4; max-width: none; }
.legend li { display: flex; align-items: center; gap: 6px; margin: 0; min-width: 0; }
.legend svg { flex: none; overflow: visible; }
.legend span { min-width: 0; overflow-wrap: anywhere; }
.scroll {
  overflow-x: auto; margin: 8px 0 16px;
  /* A shade at the side where there is more to be scrolled to. */
  background:
    linear-gradient(to right, var(--ground) 40%, transparent) 0 0 / 40px 100% no-repeat local,
    linear-gradient(to left, var(--ground) 40%, transparent) 100% 0 / 40px 100% no-repeat local,
    linear-gradient(to right, var(--rule), transparent) 0 0 / 10px 100% no-repeat scroll,
    linear-gradient(to left, var(--rule), transparent) 100% 0 / 10px 100% no-repeat scroll;
}
figure .scroll { --ground: var(--sheet); }
.scroll:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: collapse; font-size: 14px; line-height: 1.4; font-variant-numeric: tabular-nums; min-width: 50%; }
caption { text-align: left; font-weight: 600; padding-bottom: 4px; }
th, td { text-align: left; vertical-align: top; padding: 5px 12px 5px 0; border-bottom: 1px solid var(--faint); }
th:last-child, td:last-child { padding-right: 0; }
thead th { color: var(--soft); font-weight: 600; font-size: 13px; border-bottom: 1px solid var(--rule); vertical-align: bottom; }
th, td { max-width: 26em; overflow-wrap: break-word; }
tbody th { font-weight: 500; min-width: 11em; }
td.text { min-width: 6em; }
td.long { min-width: 16em; }
.number { text-align: right; }
td.number { white-space: nowrap; }
details { margin: 6px 0 12px; }
summary { cursor: pointer; color: var(--accent); font-size: 14px; }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; fill: var(--soft); }
svg text.axis { font-weight: 600; }
svg text.name { fill: var(--ink); }
svg text.on-part { fill: var(--on-part); font-size: 11px; font-weight: 600; pointer-events: none; }
.grid { stroke: var(--faint); fill: none; }
.base, .notch { stroke: var(--rule); fill: none; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); }
.c3 { color: var(--c3); } .c4 { color: var(--c4); } .c5 { color: var(--c5); }
.line { fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linejoin: round; }
.band { fill: currentColor; fill-opacity: 0.16; stroke: none; }
.full { fill: currentColor; stroke: var(--sheet); stroke-width: 1; }
.hollow { fill: var(--sheet); stroke: currentColor; stroke-width: 1.7; }
.ring { fill: none; stroke: currentColor; stroke-width: 1.4; stroke-dasharray: 3 2; }
.whisker { fill: none; stroke: currentColor; stroke-width: 1.4; }
.part { fill: currentColor; stroke: var(--sheet); stroke-width: 1; }
.whole { stroke: var(--ink); stroke-width: 3; fill: none; }
@media (max-width: 620px) {
  main { padding: 20px 12px 48px; }
  h1 { font-size: 24px; }
  figure { margin-left: -12px; margin-right: -12px; padding: 12px; border-left: 0; border-right: 0; border-radius: 0; }
  /* Two columns fit: texts wrap within them rather than being cut off at the side. */
  tbody th { min-width: 6em; }
  td.text { min-width: 4em; }
  td.long { min-width: 12em; overflow-wrap: anywhere; }
  .wide { display: none; }
  .narrow { display: block; }
}
@media print {
  details > * { display: block; }
  .scroll { overflow: visible; }
  figure { break-inside: avoid; }
}
)css";
}

}  // namespace spillway::report
