#include "experiments/serve/live_page.h"

#include <fmt/format.h>

#include "io/figure/page.h"

namespace concertina {
namespace {

constexpr const char* kLiveStyle = R"(
.bar { height: 6px; border-radius: 3px; background: var(--line); margin-top: 12px; }
.bar i { display: block; height: 6px; border-radius: 3px; background: var(--blue); width: 0; }
.live svg { min-width: 0; }
.live path { fill: none; stroke: var(--blue); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
.live path.held { stroke: var(--vermillion); }
.live line { stroke: var(--line); }
.live text { fill: var(--soft); font-size: 11px; }
.live h3 { font-size: 13px; margin: 14px 0 2px; }
#notes td, #trials td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
#notes td:first-child { white-space: nowrap; }
a { color: var(--blue); }
.gone { color: var(--vermillion); }
)";

constexpr const char* kBody = R"(
<h1 id="name">{}</h1>
<p class="sub" id="sub">asks for its state</p>
<div id="run"{}>
<div class="bar"><i id="done"></i></div>
<div class="tiles" id="tiles"></div>
<div class="grid2 live" id="charts"></div>
<h2>Events</h2>
<div class="wide"><table id="notes"></table></div>
<details id="log" hidden="hidden"><summary>the end of its log</summary><pre></pre></details>
<p class="note"><a id="report" href="report">the report on it</a>, as of now</p>
</div>
<div id="study"{}>
<h2>Trials</h2>
<div class="wide"><table id="trials"></table></div>
</div>
<script>{}</script>
)";

constexpr const char* kLiveScript = R"(//<![CDATA[
(function () {
  var study = STUDY, trial = null, points = [], held = [], after = -1, failures = 0;
  function by(id) { return document.getElementById(id); }
  function el(tag, text, parent) {
    var made = document.createElement(tag);
    made.textContent = text;
    if (parent) parent.appendChild(made);
    return made;
  }
  function duration(s) {
    if (s === null || s === undefined) return "?";
    s = Math.round(s);
    if (s < 60) return s + " s";
    if (s < 3600) return Math.floor(s / 60) + " min " + (s % 60) + " s";
    return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
  }
  function number(v) {
    if (v === null || v === undefined) return "-";
    return Math.abs(v) >= 1e4 ? Math.round(v).toLocaleString("en") : String(Number(v.toPrecision(5)));
  }
  function tile(value, text) {
    var made = el("div", "", by("tiles"));
    made.className = "tile";
    el("b", value, made);
    el("span", text, made);
  }
  function shape(svg, tag, attributes, text) {
    var made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (var key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    svg.appendChild(made);
  }
  function chart(title, series) {
    var all = [].concat.apply([], series.map(function (one) { return one.points; }));
    if (all.length < 2) return;
    var xs = all.map(function (p) { return p[0]; }), ys = all.map(function (p) { return p[1]; });
    var x0 = Math.min.apply(null, xs), x1 = Math.max.apply(null, xs);
    var y0 = Math.min.apply(null, ys), y1 = Math.max.apply(null, ys);
    if (y1 === y0) { y1 += 1; y0 -= 1; }
    var w = 460, h = 180, left = 52, low = h - 18;
    function at(p) {
      return (left + (w - left - 6) * (p[0] - x0) / (x1 - x0 || 1)).toFixed(1) + " " +
             (low - (low - 8) * (p[1] - y0) / (y1 - y0)).toFixed(1);
    }
    var box = el("div", "", by("charts"));
    el("h3", title, box);
    var svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 " + w + " " + h);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", title);
    for (var tick = 0; tick < 4; ++tick) {
      var value = y0 + (y1 - y0) * tick / 3, y = low - (low - 8) * tick / 3;
      shape(svg, "line", { x1: left, x2: w - 6, y1: y, y2: y });
      shape(svg, "text", { x: left - 6, y: y + 4, "text-anchor": "end" }, number(Number(value.toPrecision(3))));
    }
    shape(svg, "text", { x: left, y: h - 4 }, "step " + x0);
    shape(svg, "text", { x: w - 6, y: h - 4, "text-anchor": "end" }, String(x1));
    series.forEach(function (one) {
      if (one.points.length > 1)
        shape(svg, "path", { d: "M" + one.points.map(at).join("L"), "class": one.look || "" });
    });
    box.appendChild(svg);
  }
  function column(c) {
    return points.filter(function (p) { return p[c] !== null; }).map(function (p) { return [p[0], p[c]]; });
  }
  function row(table, cells, tag) {
    var made = el("tr", "", table);
    cells.forEach(function (cell) { el(tag || "td", cell, made); });
    return made;
  }
  function showRun(state) {
    if (state.reset) points = [];
    points = points.concat(state.points);
    held = state.validations.filter(function (p) { return p[1] !== null; });
    after = points.length ? points[points.length - 1][0] : -1;
    var last = points.length ? points[points.length - 1] : [];
    by("name").textContent = state.name;
    by("sub").textContent = (state.ended ? "ended" : "the last step was written " + duration(state.age_s) + " ago") +
      (state.layout ? ", " + state.layout : "") + (state.restarts ? ", restarts: " + state.restarts : "");
    by("done").style.width = (state.steps ? Math.min(100, 100 * state.done / state.steps) : 0) + "%";
    by("tiles").textContent = "";
    tile(number(state.done) + " of " + number(state.steps), "steps");
    tile(state.ended ? "0 s" : duration(state.left_s), "left");
    tile(number(last[1]), "loss");
    if (held.length) tile(number(held[held.length - 1][1]), "held-out loss");
    tile(number(last[2]), "tokens per second");
    if (state.host) tile(number(state.host.load), "load of " + state.host.cores + " cores");
    by("charts").textContent = "";
    chart(held.length > 1 ? "loss, and held-out loss" : "loss", [{ points: column(1) }, { points: held, look: "held" }]);
    chart("tokens per second", [{ points: column(2) }]);
    chart("bubble, share of a step", [{ points: column(4) }]);
    chart("gradient norm", [{ points: column(5) }]);
    by("notes").textContent = "";
    row(by("notes"), ["time", "step", "event", ""], "th");
    state.notes.slice().reverse().forEach(function (note) {
      row(by("notes"), [note.time.slice(11, 19), note.step, note.event, note.text]);
    });
    by("log").hidden = !state.log;
    by("log").lastElementChild.textContent = state.log || "";
    by("report").href = "report" + (trial === null ? "" : "?trial=" + trial);
  }
  function showStudy(state) {
    var done = state.trials.filter(function (t) { return t.state !== "open"; }).length;
    if (trial === null) {
      by("name").textContent = state.name;
      by("sub").textContent = done + " of " + state.trials.length + " trials have ended" +
        (state.host ? ", load " + number(state.host.load) + " of " + state.host.cores + " cores" : "");
    }
    by("trials").textContent = "";
    row(by("trials"), ["trial", "settings", "state", "steps", "loss", "left"], "th");
    state.trials.forEach(function (t) {
      var running = t.state === "open" && t.has_run;
      var made = row(by("trials"), ["", t.settings, running ? "runs" : t.state + (t.error ? ": " + t.error : ""),
        t.has_run ? number(t.done) + " of " + number(t.steps) : "", t.has_run ? number(t.loss) : "",
        running ? duration(t.left_s) : ""]);
      if (!t.has_run) { made.firstChild.textContent = t.number; return; }
      var link = el("a", String(t.number), made.firstChild);
      link.href = "#" + t.number;
    });
  }
  function choose() {
    var wanted = location.hash.slice(1);
    trial = study && /^[0-9]+$/.test(wanted) ? Number(wanted) : null;
    points = []; after = -1;
    by("run").hidden = study && trial === null;
  }
  function get(path, show) {
    return fetch(path).then(function (answer) {
      if (!answer.ok) return answer.text().then(function (text) { throw new Error(text); });
      return answer.json();
    }).then(show);
  }
  function ask() {
    var asked = study ? get("study", showStudy) : Promise.resolve();
    if (!study || trial !== null)
      asked = asked.then(function () {
        return get("state?after=" + after + (trial === null ? "" : "&trial=" + trial), showRun);
      });
    asked.then(function () { failures = 0; by("sub").className = "sub"; }, function (error) {
      if (++failures < 2) return;
      by("sub").className = "sub gone";
      by("sub").textContent = "no answer (" + error.message + "): does `concertina report --serve` still run?";
    }).then(function () { setTimeout(ask, 2000); });
  }
  window.addEventListener("hashchange", choose);
  choose();
  ask();
})();
//]]>)";

}  // namespace

std::string live_page(const std::string& name, bool study) {
  std::string script = kLiveScript;
  script.replace(script.find("STUDY"), 5, study ? "true" : "false");
  const std::string hidden = " hidden=\"hidden\"";
  return html::page(
      name,
      fmt::format(kBody, html::escape(name), study ? hidden : "", study ? "" : hidden, script),
      kLiveStyle);
}

}  // namespace concertina
