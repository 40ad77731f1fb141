// Style and script of the page of a report.
#pragma once

namespace greta::cli {

inline constexpr char kReportStyle[] = R"css(
:root{color-scheme:light dark;--ink:#2e3436;--ground:#fff;--line:#d3d7cf;--pale:#f3f3f2}
@media(prefers-color-scheme:dark){:root{--ink:#eeeeec;--ground:#1d2021;--line:#4a4f50;--pale:#2a2e2f}}
*{box-sizing:border-box}
body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--ground)}
body{margin:0 auto;max-width:1000px;padding:16px}
h1{font-size:1.4em;margin:.2em 0}h2{font-size:1.15em;margin:1.6em 0 .5em}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:3px 8px;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}tr.stage td{font-weight:600;background:var(--pale)}
.bar{display:flex;height:26px;border-radius:4px;overflow:hidden;background:var(--pale)}
.bar i{display:block}
.legend span{display:inline-block;margin:4px 12px 0 0}
.legend b{display:inline-block;width:11px;height:11px;margin-right:5px}
canvas{width:100%;height:230px;border:1px solid var(--line);border-radius:4px;touch-action:none}
.picture svg{max-width:100%;height:auto}button{font:inherit;margin-right:6px}
@media print{body{max-width:none}button{display:none}:root{--ink:#000;--ground:#fff;--pale:#eee;--line:#bbb}}
)css";

// Draws the timeline. Wheel and buttons zoom, dragging moves; a click tells the span.
inline constexpr char kReportScript[] = R"js(
"use strict";
const spans = JSON.parse(document.getElementById("timeline").textContent);
const canvas = document.getElementById("chart"), told = document.getElementById("told");
const tracks = [...new Set(spans.map(s => s[0]))];
const last = Math.max(1, ...spans.map(s => s[2] + s[3]));
let from = 0, to = last;
canvas.style.height = `${Math.max(5, Math.min(tracks.length, 40)) * 42 + 20}px`;
const depth = [];  // how many spans of its track a span lies in
for (const track of tracks) {
  const open = [];
  spans.forEach((s, i) => {
    if (s[0] !== track) return;
    while (open.length && open[open.length - 1] <= s[2]) open.pop();
    depth[i] = open.length;
    open.push(s[2] + s[3]);
  });
}
const colour = name => {
  let hash = 7;
  for (const letter of name) hash = (hash * 31 + letter.charCodeAt(0)) >>> 0;
  return `hsl(${hash % 360} 55% 55%)`;
};
const place = (s, i, width) => {
  const x = (s[2] - from) / (to - from) * width, end = (s[2] + s[3] - from) / (to - from) * width;
  return [x, 18 + tracks.indexOf(s[0]) * 42 + Math.min(depth[i], 2) * 9, Math.max(end - x, 0.6), 9];
};
function draw() {
  const scale = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d"), ink = getComputedStyle(document.body).color;
  pen.scale(scale, scale);
  pen.font = "11px system-ui, sans-serif";
  spans.forEach((s, i) => {
    if (s[2] + s[3] < from || s[2] > to) return;
    const [x, y, w, h] = place(s, i, width);
    pen.fillStyle = colour(s[1]);
    pen.fillRect(x, y, w, h);
    if (w < 50) return;
    pen.fillStyle = "#fff";
    pen.fillText(s[1], Math.max(x, 0) + 2, y + 8, w - 4);
  });
  pen.fillStyle = ink;
  tracks.forEach((track, i) => pen.fillText(track, 3, 14 + i * 42));
  pen.fillText(`${(from / 1e6).toFixed(3)} ms to ${(to / 1e6).toFixed(3)} ms`, width - 190, height - 5);
}
function zoom(by, at) {
  const middle = from + (to - from) * at, span = Math.min(last, Math.max(1000, (to - from) * by));
  from = Math.max(0, Math.min(last - span, middle - span * at));
  to = from + span;
  draw();
}
canvas.addEventListener("wheel", e => {
  e.preventDefault();
  zoom(e.deltaY < 0 ? 0.7 : 1 / 0.7, e.offsetX / canvas.clientWidth);
}, {passive: false});
let held = null;
canvas.addEventListener("pointerdown", e => {
  held = [e.clientX, from, to];
  canvas.setPointerCapture(e.pointerId);
});
canvas.addEventListener("pointermove", e => {
  if (!held) return;
  const span = held[2] - held[1], by = (held[0] - e.clientX) / canvas.clientWidth * span;
  from = Math.max(0, Math.min(last - span, held[1] + by));
  to = from + span;
  draw();
});
canvas.addEventListener("pointerup", () => { held = null; });
canvas.addEventListener("click", e => {
  let found = null;
  spans.forEach((s, i) => {
    const [x, y, w, h] = place(s, i, canvas.clientWidth);
    if (e.offsetX >= x - 1 && e.offsetX <= x + w + 1 && e.offsetY >= y && e.offsetY <= y + h) found = s;
  });
  const kernel = found && found[4] ? ` (${found[4]})` : "";
  told.textContent = found ? `${found[0]}: ${found[1]}${kernel}, ${(found[3] / 1e3).toFixed(1)} us` : "";
});
document.getElementById("closer").addEventListener("click", () => zoom(0.5, 0.5));
document.getElementById("further").addEventListener("click", () => zoom(2, 0.5));
document.getElementById("whole").addEventListener("click", () => { from = 0; to = last; draw(); });
const decode = spans.filter(s => s[0] === "steps");
document.getElementById("step").addEventListener("click", () => {
  const s = decode[decode.length - 1] || spans[0];
  from = s[2];
  to = s[2] + Math.max(s[3], 1000);
  draw();
});
window.addEventListener("resize", draw);
window.addEventListener("beforeprint", draw);
draw();
)js";

}  // namespace greta::cli
