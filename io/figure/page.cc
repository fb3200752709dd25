#include "io/figure/page.h"

#include <fmt/format.h>

#include <cmath>

namespace concertina::html {
namespace {

constexpr const char* kStyle = R"(
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
button { font: inherit; font-size: 12px; color: var(--soft); background: var(--card);
  border: 1px solid var(--line); border-radius: 6px; padding: 0 7px; cursor: pointer; }
button[aria-pressed=true] { background: var(--ink); color: var(--back); }
figure { margin: 0 0 4px; position: relative; }
.tools { position: absolute; right: 0; top: 0; display: none; gap: 4px; font-size: 12px;
  color: var(--soft); }
.script .tools { display: flex; }
.zooms .tools { position: static; justify-content: flex-end; }
.scroll { overflow-x: auto; overflow-y: hidden; }
svg { display: block; width: 100%; min-width: var(--least); }
svg text { pointer-events: none; }
svg text.still { paint-order: stroke; stroke: var(--back); stroke-width: 3px; }
rect:hover { stroke: var(--ink); stroke-width: 1; }
.grid2 { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr));
  gap: 14px 28px; }
.read { position: absolute; display: none; right: 0; padding: 0 6px; border-radius: 4px;
  background: var(--card); font-size: 12px; font-variant-numeric: tabular-nums; }
.rule { position: absolute; display: none; width: 1px; background: var(--soft);
  pointer-events: none; }
figure:hover .read, figure:hover .rule { display: block; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
figure + .wide, .wide + .wide { padding-top: 18px; }
th, td { padding: 3px 12px 3px 0; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { color: var(--soft); font-weight: 500; }
th:first-child, td:first-child, th.rung, td.rung { text-align: left; }
tr.figures td { border-bottom: 0; }
tr.why td { text-align: left; white-space: normal; color: var(--soft); padding-top: 0; }
td.rung { width: 192px; }
.rung i { display: block; height: 12px; background: var(--blue); }
.about td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.about td:first-child { color: var(--soft); white-space: nowrap; }
td.same { color: var(--green); } td.differs { color: var(--vermillion); font-weight: 600; }
pre { background: var(--card); border-radius: 8px; padding: 12px 16px; overflow: auto;
  font-size: 12px; max-height: 420px; }
summary { cursor: pointer; color: var(--soft); margin-top: 14px; }
@media print {
  .script .tools, .read, .rule { display: none; }
  body { print-color-adjust: exact; -webkit-print-color-adjust: exact; font-size: 12px; }
  main { max-width: none; padding: 0; }
  h2 { break-after: avoid; margin-top: 20px; }
  .lead { break-after: avoid; }
  figure, .tile, tr { break-inside: avoid; }
  svg { min-width: 0; width: 100% !important; }
  .scroll, pre { overflow: visible; max-height: none; }
  pre { white-space: pre-wrap; }
}
)";

/// Zoom: shapes and words right of the axis and below its top move apart, the others stay in sight.
/// Values: a curve's own path, read back through the drawing's axes. No '<' and '&' here: the page
/// is XML as well.
constexpr const char* kScript = R"(
document.documentElement.classList.add("script");

function numbers(text) { return (text.match(/[-\d.]+/g) || []).map(Number); }
function axesOf(svg) { return svg.dataset.axes.split(" ").map(Number); }

function zoom(svg, times) {
  var axes = axesOf(svg), box = svg.viewBox.baseVal;
  function at(x) { return axes[0] + (x - axes[0]) * times; }
  svg.plain = svg.plain || { shapes: svg.innerHTML, width: box.width };
  svg.innerHTML = svg.plain.shapes;
  Array.from(svg.children).slice(1).forEach(function (shape) {  // the first is the paper
    var path = shape.getAttribute("d"), first = path ? numbers(path.slice(0, 40)) :
      [shape.getAttribute("x"), shape.getAttribute("y")].map(Number);
    if (axes[0] > first[0] || axes[2] > first[1])  // on top of what moves below it
      return svg.appendChild(shape).classList.add("still");
    if (path) return shape.setAttribute("d", path.replace(/([MLH])([-\d.]+)/g,
      function (all, letter, x) { return letter + at(Number(x)).toFixed(2); }));
    shape.setAttribute("x", at(first[0]).toFixed(2));
    if (shape.hasAttribute("width"))
      shape.setAttribute("width", (times * shape.getAttribute("width")).toFixed(2));
    if (shape.dataset.zoom)
      shape.setAttribute("display", shape.dataset.zoom > times ? "none" : "inline");
  });
  svg.setAttribute("viewBox", "0 0 " + at(svg.plain.width) + " " + box.height);
  svg.style.width = 100 * at(svg.plain.width) / svg.plain.width + "%";
}
function keepInSight(view) {
  var svg = view.firstElementChild, by = view.scrollLeft * svg.viewBox.baseVal.width / svg.clientWidth;
  svg.querySelectorAll('.still:not([transform^="rotate"])').forEach(function (shape) {
    shape.setAttribute("transform", "translate(" + by.toFixed(2) + ", 0) ");
  });
}
document.querySelectorAll(".zooms").forEach(function (figure) {
  var view = figure.querySelector(".scroll"), svg = view.firstElementChild;
  var buttons = figure.querySelectorAll("[data-times]");
  view.addEventListener("scroll", function () { keepInSight(view); });
  buttons.forEach(function (button) {
    button.addEventListener("click", function () {
      var middle = (view.scrollLeft + view.clientWidth / 2) / svg.clientWidth;
      zoom(svg, Number(button.dataset.times));
      view.scrollLeft = middle * svg.clientWidth - view.clientWidth / 2;
      keepInSight(view);
      buttons.forEach(function (other) {
        other.setAttribute("aria-pressed", String(other === button));
      });
    });
  });
});

function curvesOf(svg) {
  return Array.from(svg.querySelectorAll("path[fill=none] title"), function (title) {
    var points = [], x, y;
    title.parentNode.getAttribute("d").replace(/([MLHV])([-\d.]+) ?([-\d.]*)/g,
      function (all, letter, first, second) {
        if (letter !== "V") x = Number(first);
        if (letter !== "H") y = Number(letter === "V" ? first : second);
        points.push([x, y]);
      });
    return { name: title.textContent, points: points };
  });
}
document.querySelectorAll("figure:not(.zooms) svg[data-axes]").forEach(function (svg) {
  var figure = svg.closest("figure"), axes = axesOf(svg), curves;
  var read = figure.appendChild(document.createElement("span"));
  var rule = figure.appendChild(document.createElement("span"));
  function value(share, low, high) {
    var v = low + share * (high - low);
    return Math.abs(v) >= 1000 ? Math.round(v) : Number(v.toPrecision(4));
  }
  read.className = "read";
  rule.className = "rule";
  figure.addEventListener("mousemove", function (event) {
    var box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
    var at = (event.clientX - box.left) / scale, where = null, parts;
    curves = curves || curvesOf(svg);
    parts = curves.map(function (curve) {
      var best = curve.points[0];
      curve.points.forEach(function (p) {
        if (Math.abs(best[0] - at) > Math.abs(p[0] - at)) best = p;
      });
      if (where === null) where = best[0];
      return curve.name + " " +
        value((axes[3] - best[1]) / (axes[3] - axes[2]), axes[6], axes[7]);
    });
    if (where === null) return;
    read.textContent = svg.dataset.x + " " +
      value((where - axes[0]) / (axes[1] - axes[0]), axes[4], axes[5]) + ": " + parts.join(", ");
    read.style.top = axes[2] * scale + "px";
    rule.style.cssText = "left:" + where * scale + "px;top:" + axes[2] * scale + "px;height:" +
      (axes[3] - axes[2]) * scale + "px";
  });
});

document.querySelectorAll("button.save").forEach(function (button) {
  button.addEventListener("click", function () {
    var link = document.createElement("a"), svg = button.closest("figure").querySelector("svg");
    var text = new XMLSerializer().serializeToString(svg);
    link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    link.download = button.dataset.name + ".svg";
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  });
});
)";

}  // namespace

std::string escape(std::string_view text) {
  return xml_text(text);
}

std::string share_text(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}

std::string page(std::string_view title, std::string_view body, std::string_view style) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"/>\n<title>{} · concertina</title>\n<style>{}"
      "{}{}</style></head>\n<body><main>\n{}</main>\n<script>{}</script>\n</body></html>\n",
      escape(title), page_colours(), kStyle, style, body, kScript);
}

std::string tile(std::string_view value, std::string_view text) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", escape(value),
                     escape(text));
}

std::string table(const std::vector<std::vector<std::string>>& rows, std::string_view style) {
  std::string text = "<div class=\"wide\"><table";
  text += style.empty() ? ">\n" : fmt::format(" class=\"{}\">\n", style);
  const char* tag = "th";
  for (const auto& row : rows) {
    text += "<tr>";
    for (const std::string& cell : row) text += fmt::format("<{0}>{1}</{0}>", tag, escape(cell));
    text += "</tr>\n";
    tag = "td";
  }
  return text + "</table></div>\n";
}

std::string folded(std::string_view summary, std::string_view text) {
  if (text.empty()) return {};
  return fmt::format("<details><summary>{}</summary><pre>{}</pre></details>\n", escape(summary),
                     escape(text));
}

/// Below three quarters of its size letters are too small: it scrolls then.
std::string figure(std::string_view name, const Drawing& drawing, bool zooms) {
  std::string buttons;
  for (int times = 1; zooms && times <= 16; times *= 2)
    buttons += fmt::format("<button data-times=\"{0}\" aria-pressed=\"{1}\">{0}×</button>", times,
                           times == 1);
  return fmt::format(
      "<figure{} style=\"--least: {:.0f}px\"><div class=\"tools\">{}<button class=\"save\" "
      "data-name=\"{}\" title=\"save this "
      "figure as an SVG file\">SVG</button></div><div class=\"scroll\">{}</div></figure>\n",
      zooms ? " class=\"zooms\"" : "", drawing.width, buttons, escape(name), svg_in_page(drawing));
}

LineSeries smoothed(LineSeries series, double span, bool rates) {
  const double keep = span > 1 ? 1 - 1 / span : 0;
  const std::vector<double> x = std::move(series.x), y = std::move(series.y);
  series.x.clear(), series.y.clear();
  double sum = 0, weight = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double value = rates ? 1 / y[i] : y[i];
    if (!(std::abs(value) < 1e300)) continue;
    sum = keep * sum + (1 - keep) * value;
    weight = keep * weight + (1 - keep);
    series.x.push_back(x[i]);
    series.y.push_back(rates ? weight / sum : sum / weight);
  }
  return series;
}

}  // namespace concertina::html
