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
@media screen and (prefers-color-scheme: dark) { :root:not(.paper) {
  --back: #14171c; --card: #1d2128; --ink: #e8eaed;
  --soft: #a3abb6; --line: #363c46; --idle: #2a2f38; --f: #3d9bd9; --schedule: #7d8793;
  --other: #c3c9d1; } }
.paper { color-scheme: light; }
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
.change { stroke: var(--ink); stroke-width: 1; vector-effect: non-scaling-stroke; }
.mark { stroke: var(--ink); stroke-width: 2; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
th, td { padding: 3px 12px 3px 0; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { color: var(--soft); font-weight: 500; }
th:first-child, td:first-child { text-align: left; }
tr.figures td { border-bottom: 0; }
tr.why td { text-align: left; white-space: normal; color: var(--soft); padding-top: 0; }
figure + .wide, .wide + .wide { padding-top: 18px; } .rung svg { width: 180px; height: 12px; } th.rung { text-align: left; }
.about td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.about td:first-child { color: var(--soft); white-space: nowrap; }
td.same { color: var(--reduction); } td.differs { color: var(--transfer); font-weight: 600; }
.grid2 { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr));
  gap: 14px 28px; }
figure { margin: 0; }
figcaption { font-size: 13px; font-weight: 600; margin: 6px 0 2px; }
figcaption span { color: var(--soft); font-weight: 400; }
button.save { display: none; margin-left: 8px; padding: 0 6px; font-size: 11px;
  color: var(--soft); }
.script button.save { display: inline-block; }
.plot { position: relative; margin: 4px 14px 24px 56px; }
.plot svg { width: 100%; height: 100%; overflow: visible; }
.plot span { position: absolute; font-size: 12px; color: var(--soft); white-space: nowrap; }
.plot .y { right: calc(100% + 8px); transform: translateY(-50%); }
.plot .x { top: calc(100% + 3px); transform: translateX(-50%); }
.plot.marked { margin-top: 20px; }
.plot .m { bottom: calc(100% + 1px); transform: translateX(-50%); font-size: 11px; }
.plot .unit { right: 0; top: calc(100% + 20px); transform: none; font-size: 11px; }
.line { fill: none; stroke-width: 1.8; vector-effect: non-scaling-stroke; stroke: var(--f);
  stroke-linejoin: round; }
.line.faint { stroke-opacity: .45; stroke-width: 1; }
.line.held { stroke: var(--transfer); }
.line.dots { stroke-width: 6; stroke-linecap: round; }
.kh { fill: var(--transfer); }
.plot .read { display: none; right: 0; top: 0; padding: 0 6px; border-radius: 4px;
  background: var(--card); color: var(--ink); font-variant-numeric: tabular-nums; }
.plot .rule { display: none; top: 0; bottom: 0; width: 1px; background: var(--soft); }
.plot:hover .read, .plot:hover .rule { display: block; }
.area.frozen, .kf { fill: var(--w); fill-opacity: .28; }
.area.expected { fill: var(--b); fill-opacity: .4; }
.line.boundary { stroke: var(--reduction); stroke-width: 1.2; }
.ke { fill: var(--b); fill-opacity: .4; } .kb { fill: var(--reduction); }
pre { background: var(--card); border-radius: 8px; padding: 12px 16px; overflow: auto;
  font-size: 12px; max-height: 420px; }
summary { cursor: pointer; color: var(--soft); margin-top: 14px; }
@media print {
  button, .script button.save, .script .bar .zoom, .plot .read, .plot .rule { display: none; }
  body { print-color-adjust: exact; -webkit-print-color-adjust: exact; font-size: 12px; }
  main { max-width: none; padding: 0; }
  h2 { break-after: avoid; margin-top: 20px; }
  .lead, .bar { break-after: avoid; }
  figure, .tile, .gantt, tr { break-inside: avoid; }
  .chart { min-width: 0; width: 100% !important; }
  .scroll, pre { overflow: visible; max-height: none; }
  pre { white-space: pre-wrap; }
}
)";

/// Zoom: the axis is in per cent, so a wider picture is a closer look. Values: a curve's own path,
/// read back through the plot's axes. Saving: what the browser has laid out, shape by shape with
/// the style that it computed, so that the file needs neither style sheet nor script; in light
/// colours. No '<' and '&' here: the page is XML as well.
inline constexpr const char* kReportScript = R"(
document.documentElement.classList.add("script");
var chart = document.getElementById("chart");  // the timeline, where there is one
var view = chart ? chart.parentNode : document.body;
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

function pointsOf(path) {
  return (path.getAttribute("d").match(/[ML][-\d.]+ [-\d.]+/g) || []).map(function (pair) {
    return pair.slice(1).split(" ").map(Number);
  });
}
document.querySelectorAll(".plot").forEach(function (plot) {
  var svg = plot.querySelector("svg"), axes = svg.dataset.axes.split(" ").map(Number), curves;
  var read = plot.appendChild(document.createElement("span"));
  var rule = plot.appendChild(document.createElement("span"));
  read.className = "read";
  rule.className = "rule";
  plot.addEventListener("mousemove", function (event) {
    curves = curves || Array.from(svg.querySelectorAll("[data-name]")).map(function (path) {
      return { name: path.dataset.name, points: pointsOf(path) };
    });
    var box = svg.getBoundingClientRect(), at = 1000 * (event.clientX - box.left) / box.width;
    var where = null;
    var parts = curves.filter(function (c) { return c.points.length > 0; }).map(function (curve) {
      var best = curve.points[0];
      curve.points.forEach(function (p) {
        if (Math.abs(best[0] - at) > Math.abs(p[0] - at)) best = p;
      });
      if (where === null) where = best[0];
      var y = axes[3] - best[1] / 1000 * (axes[3] - axes[2]);
      return curve.name + " " + Number(y.toPrecision(5));
    });
    if (where === null) return;
    var x = axes[0] + where / 1000 * (axes[1] - axes[0]), unit = plot.dataset.x;
    read.textContent = (unit === "step" ? "step " + Math.round(x) : x.toPrecision(4) + " ms") +
      ": " + parts.join(", ");
    rule.style.left = where / 10 + "%";
  });
});

var words = ["text-anchor", "font-family", "font-size", "font-weight"];
var lines = ["stroke-width", "stroke-opacity", "stroke-linecap", "stroke-linejoin"];
function copyStyle(style, name, to) {
  var kept = ["fill", "fill-opacity", "stroke"].concat(name === "text" ? words : []);
  if (style.stroke !== "none") kept = kept.concat(lines);
  kept.forEach(function (key) {
    var value = style.getPropertyValue(key);
    if (["1", "butt", "miter"].indexOf(value) === -1) to.setAttribute(key, value);
  });
}
function moved(data, m) {
  return data.replace(/([MLHVhvz])([^MLHVhvz]*)/g, function (all, letter, rest) {
    var n = (rest.match(/[-\d.]+/g) || []).map(Number);
    if (letter === "H") n = [m.a * n[0] + m.e];
    else if (letter === "V") n = [m.d * n[0] + m.f];
    else if (letter === "h") n = [m.a * n[0]];
    else if (letter === "v") n = [m.d * n[0]];
    else if (n.length > 1) n = [m.a * n[0] + m.e, m.d * n[1] + m.f];
    return letter + n.map(function (v) { return v.toFixed(2); }).join(" ");
  });
}
function drawing(figure) {
  var space = document.querySelector("svg").namespaceURI, out = document.createElementNS(space, "svg");
  var base = figure.getBoundingClientRect(), width = base.width, height = base.height;
  function add(name, values, source) {
    var shape = document.createElementNS(space, name), style = getComputedStyle(source);
    Object.keys(values).forEach(function (key) { shape.setAttribute(key, values[key]); });
    copyStyle(style, name, shape);
    return out.appendChild(shape);
  }
  function place(x, y) { return { x: (x - base.left).toFixed(2), y: (y - base.top).toFixed(2) }; }
  figure.querySelectorAll("rect, line, path, svg text").forEach(function (shape) {
    if (getComputedStyle(shape).display === "none") return;
    var m = shape.getScreenCTM(), name = shape.tagName.toLowerCase();
    function at(v) { return shape[v].baseVal.value; }
    if (name === "rect") {
      var corner = place(m.a * at("x") + m.e, m.d * at("y") + m.f);
      corner.width = (m.a * at("width")).toFixed(2);
      corner.height = (m.d * at("height")).toFixed(2);
      add(name, corner, shape);
    } else if (name === "line") {
      var from = place(m.a * at("x1") + m.e, m.d * at("y1") + m.f);
      var to = place(m.a * at("x2") + m.e, m.d * at("y2") + m.f);
      add(name, { x1: from.x, y1: from.y, x2: to.x, y2: to.y }, shape);
    } else if (name === "path") {
      var own = { a: m.a, d: m.d, e: m.e - base.left, f: m.f - base.top };
      add(name, { d: moved(shape.getAttribute("d"), own) }, shape);
    } else {
      var start = place(m.a * shape.x.baseVal.getItem(0).value + m.e,
        m.d * shape.y.baseVal.getItem(0).value + m.f);
      add(name, start, shape).textContent = shape.textContent;
    }
    width = Math.max(width, shape.getBoundingClientRect().right - base.left);
  });
  var walker = document.createTreeWalker(figure, NodeFilter.SHOW_TEXT), range, node;
  while ((node = walker.nextNode())) {
    if (!node.data.trim() || node.parentNode.closest("svg, button, .zoom, .read")) continue;
    range = document.createRange();
    range.selectNodeContents(node);
    var box = range.getBoundingClientRect();
    width = Math.max(width, box.right - base.left);
    height = Math.max(height, box.bottom - base.top);
    var word = add("text", place(box.left, box.top + 0.78 * box.height), node.parentNode);
    word.setAttribute("fill", getComputedStyle(node.parentNode).color);
    word.textContent = node.data;
  }
  var paper = document.createElementNS(space, "rect");
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", "#ffffff");
  out.insertBefore(paper, out.firstChild);
  width = Math.ceil(width + 8);
  height = Math.ceil(height + 4);
  out.setAttribute("width", width);
  out.setAttribute("height", height);
  out.setAttribute("viewBox", "0 0 " + width + " " + height);
  return new XMLSerializer().serializeToString(out);
}
document.querySelectorAll("button.save").forEach(function (button) {
  button.addEventListener("click", function () {
    var scrolled = view.scrollLeft, link = document.createElement("a"), text;
    document.documentElement.classList.add("paper");
    view.scrollLeft = 0;
    text = drawing(button.closest("figure"));
    view.scrollLeft = scrolled;
    document.documentElement.classList.remove("paper");
    link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    link.download = button.dataset.name + ".svg";
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  });
});
)";

}  // namespace concertina
