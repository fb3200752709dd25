// Style and script of the report page.
// Invariant: colours are those of Okabe and Ito ("Color Universal Design", 2008), which people with
// any colour vision tell apart; light and dark follow the reader's setting.
#pragma once

namespace concertina {

inline constexpr const char* kReportStyle = R"(
:root { --back: #ffffff; --card: #f6f7f9; --ink: #1d2129; --soft: #5c6470; --line: #dde1e6;
  --idle: #eceef1; --f: #0072b2; --b: #e69f00; --i: #f6d28b; --w: #56b4e9; --o: #cc79a7;
  --schedule: #9aa3ae; --imbalance: #f0e442; --variation: #56b4e9; --transfer: #d55e00;
  --reduction: #009e73; --optimizer: #cc79a7; --other: #4d545e; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --back: #14171c; --card: #1d2128; --ink: #e8eaed;
  --soft: #a3abb6; --line: #363c46; --idle: #2a2f38; --f: #3d9bd9; --schedule: #7d8793;
  --other: #c3c9d1; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 28px 24px 60px; }
h1 { font-size: 26px; line-height: 1.2; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 40px 0 4px; }
.sub, .note, .lead { color: var(--soft); margin: 2px 0 12px; }
.note { font-size: 13px; }
.lead { max-width: 92ch; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 12px;
  margin-top: 20px; }
.tile { background: var(--card); border-radius: 8px; padding: 12px 16px; }
.tile b { display: block; font-size: 24px; font-weight: 600; line-height: 1.25; }
.tile span { color: var(--soft); font-size: 13px; }
.bar { display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: center; margin: 8px 0;
  font-size: 13px; color: var(--soft); }
.bar .zoom { margin-left: auto; display: none; gap: 4px; }
.script .bar .zoom { display: flex; }
.key { display: inline-flex; align-items: center; gap: 6px; }
.key svg { width: 14px; height: 14px; border-radius: 3px; }
button { font: inherit; color: var(--ink); background: var(--card); border: 1px solid var(--line);
  border-radius: 6px; padding: 1px 9px; cursor: pointer; }
button[aria-pressed=true] { background: var(--ink); color: var(--back); }
.gantt { display: flex; }
.names { flex: none; overflow: visible; }
.scroll { flex: 1; overflow-x: auto; overflow-y: hidden; }
svg { display: block; }
.chart { min-width: 600px; }
svg text { fill: var(--ink); font-size: 12px; }
text.rank { text-anchor: end; fill: var(--soft); }
text.title { font-size: 13px; font-weight: 600; }
text.tick { text-anchor: middle; fill: var(--soft); font-size: 12px; }
text.tick.first { text-anchor: start; }
text.tick.last { text-anchor: end; }
text.on { text-anchor: middle; font-size: 11px; pointer-events: none; display: none; }
text.f-on, text.o-on { fill: #fff; }
text.b-on, text.i-on, text.w-on { fill: #241a00; }
[data-z="1"] .z1, [data-z="2"] .z1, [data-z="2"] .z2, [data-z="4"] .z1, [data-z="4"] .z2,
[data-z="4"] .z4, [data-z="8"] .on:not(.z16), [data-z="16"] .on { display: inline; }
.grid { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }
rect.f, rect.b, rect.i, rect.w, rect.o { stroke: var(--back); stroke-width: .6; }
.f { fill: var(--f); } .b { fill: var(--b); } .i { fill: var(--i); } .w { fill: var(--w); }
.o { fill: var(--o); } .idle { fill: var(--idle); } .odd { fill-opacity: .72; }
.wt { fill: var(--transfer); } .wr { fill: var(--reduction); } .wo { fill: var(--other); }
.chart rect:hover { stroke: var(--ink); stroke-width: 1.5; }
.c0 { fill: var(--schedule); } .c1 { fill: var(--imbalance); } .c2 { fill: var(--variation); }
.c3 { fill: var(--transfer); } .c4 { fill: var(--reduction); } .c5 { fill: var(--optimizer); }
.c6 { fill: var(--other); }
.mark { stroke: var(--ink); stroke-width: 2; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
th, td { padding: 3px 12px 3px 0; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { color: var(--soft); font-weight: 500; }
th:first-child, td:first-child { text-align: left; }
td.same { color: var(--reduction); } td.differs { color: var(--transfer); font-weight: 600; }
.grid2 { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr));
  gap: 14px 28px; }
figure { margin: 0; }
figcaption { font-size: 13px; font-weight: 600; margin: 6px 0 2px; }
figcaption span { color: var(--soft); font-weight: 400; }
.plot { position: relative; margin: 4px 14px 24px 56px; }
.plot svg { width: 100%; height: 100%; overflow: visible; }
.plot span { position: absolute; font-size: 12px; color: var(--soft); white-space: nowrap; }
.plot .y { right: calc(100% + 8px); transform: translateY(-50%); }
.plot .x { top: calc(100% + 3px); transform: translateX(-50%); }
.plot .unit { right: 0; top: calc(100% + 20px); transform: none; font-size: 11px; }
.line { fill: none; stroke-width: 1.8; vector-effect: non-scaling-stroke; stroke: var(--f);
  stroke-linejoin: round; }
.area.expected { fill: var(--b); fill-opacity: .4; }
.line.boundary { stroke: var(--reduction); stroke-width: 1.2; }
.ke { fill: var(--b); fill-opacity: .4; } .kb { fill: var(--reduction); }
pre { background: var(--card); border-radius: 8px; padding: 12px 16px; overflow: auto;
  font-size: 12px; max-height: 420px; }
summary { cursor: pointer; color: var(--soft); margin-top: 14px; }
)";

/// Zoom: the axis is in per cent, so a wider picture is a closer look.
inline constexpr const char* kReportScript = R"(
document.documentElement.classList.add("script");
var chart = document.getElementById("chart"), view = chart.parentNode;
document.querySelectorAll(".zoom button").forEach(function (button) {
  button.addEventListener("click", function () {
    var middle = (view.scrollLeft + view.clientWidth / 2) / chart.clientWidth;
    chart.dataset.z = button.dataset.z;
    chart.style.width = 100 * button.dataset.z + "%";
    view.scrollLeft = middle * chart.clientWidth - view.clientWidth / 2;
    document.querySelectorAll(".zoom button").forEach(function (other) {
      other.setAttribute("aria-pressed", String(other === button));
    });
  });
});
)";

}  // namespace concertina
