"use strict";
const story = JSON.parse(document.getElementById("story").textContent);
const get = (id) => document.getElementById(id);
const canvas = get("time"), tip = get("tip"), pen = canvas.getContext("2d");
const KINDS = ["published", "lock", "taken", "refused", "unknown", "other"];
const NAMES = { published: "published", lock: "took, released", taken: "taken over",
  refused: "refused", unknown: "no answer", other: "other" };
const ROW = 34, TOP = 26, LEFT = 120, SHOWN = 300;
const byTime = (a, b) => a.at - b.at;
const marks = story.marks.slice().sort(byTime);
const holds = story.holds.slice().sort((a, b) => a.from - b.from);
const names = [...new Set([...holds, ...marks].map((it) => it.worktree || ""))].sort();
const times = [...marks.map((it) => it.at), ...holds.flatMap((it) => [it.from, it.until])];
let first = times.reduce((a, b) => Math.min(a, b), story.now);
let last = times.reduce((a, b) => Math.max(a, b), first + 1000);
const pad = (last - first) * 0.02;
first -= pad; last += pad;
let from = first, until = last, hidden = new Set(), words = [], frame = 0, lanes = [];

const text = (it) => [it.worktree, it.who, it.session, it.what, it.ended].join(" ").toLowerCase();
for (const it of [...marks, ...holds]) it.text = text(it);
const wanted = (it) => words.every((word) => it.text.includes(word));
const clock = (ms) => new Date(ms).toLocaleString([], { dateStyle: "medium", timeStyle: "medium" });
const long = (ms) => ms < 60e3 ? (ms / 1e3).toFixed(1) + " s" : ms < 3.6e6 ? Math.round(ms / 60e3) +
  " min" : ms < 86.4e6 ? (ms / 3.6e6).toFixed(1) + " h" : (ms / 86.4e6).toFixed(1) + " d";
const hue = (name) => {
  let sum = 7;
  for (const c of name) sum = (sum * 31 + c.codePointAt(0)) % 360;
  return sum;
};

function sieve() {
  lanes = names.map(() => ({ holds: [], marks: [] }));
  const at = new Map(names.map((name, i) => [name, i]));
  for (const it of holds) if (wanted(it)) lanes[at.get(it.worktree || "")].holds.push(it);
  for (const it of marks)
    if (wanted(it) && !hidden.has(it.kind)) lanes[at.get(it.worktree || "")].marks.push(it);
  rows(); ask();
}

// The first of a sorted list that is not before a time.
function place(list, time, key) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle][key] < time) low = middle + 1; else high = middle;
  }
  return low;
}

const x = (time) => LEFT + (time - from) / (until - from) * (canvas.clientWidth - LEFT - 10);
const when = (px) => from + (px - LEFT) / (canvas.clientWidth - LEFT - 10) * (until - from);

function ask() { if (!frame) frame = requestAnimationFrame(draw); }

function draw() {
  frame = 0;
  const begun = performance.now();
  const scale = window.devicePixelRatio || 1, width = canvas.clientWidth;
  const height = TOP + Math.max(1, names.length) * ROW + 8;
  canvas.style.height = height + "px";
  canvas.width = width * scale; canvas.height = height * scale;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue("--" + name).trim();
  const ink = colour("ink"), faint = colour("faint"), line = colour("line");
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  pen.font = "12px system-ui, sans-serif"; pen.textBaseline = "middle";
  axis(width, height, faint, line);
  lanes.forEach((lane, i) => {
    const y = TOP + i * ROW;
    pen.fillStyle = line; pen.fillRect(0, y + ROW - 1, width, 1);
    pen.fillStyle = ink; pen.fillText(names[i] || "(repository)", 10, y + ROW / 2, LEFT - 18);
    bars(lane.holds, y, ink, colour("frozen"), dark);
    dots(lane.marks, y, colour);
  });
  document.body.dataset.drawn = String(lanes.reduce((n, it) => n + it.marks.length, 0));
  document.body.dataset.ms = (performance.now() - begun).toFixed(1);
}

function axis(width, height, faint, line) {
  const steps = [1e3, 5e3, 15e3, 60e3, 3e5, 9e5, 36e5, 108e5, 216e5, 864e5, 6048e5, 2592e6, 31536e6];
  const room = (until - from) / Math.max(1, (width - LEFT) / 130);
  const step = steps.find((it) => it >= room) || steps[steps.length - 1];
  const shift = new Date(from).getTimezoneOffset() * 60e3;
  for (let at = Math.ceil((from - shift) / step) * step + shift; at < until; at += step) {
    const px = x(at), day = step >= 864e5;
    pen.fillStyle = line; pen.fillRect(px, TOP - 4, 1, height - TOP);
    pen.fillStyle = faint;
    const it = new Date(at);
    const label = day ? it.toLocaleDateString() : it.toLocaleTimeString([], step < 60e3 ? {} :
      { hour: "2-digit", minute: "2-digit" });
    const first = day || it.getHours() + it.getMinutes() > 0 ? label : it.toLocaleDateString();
    pen.fillText(first, px + 3, TOP / 2);
  }
}

function bars(list, y, ink, frozen, dark) {
  // Spans of one worktree follow each other, so their ends are in order, too.
  for (let i = place(list, from, "until"); i < list.length && list[i].from < until; i++) {
    const it = list[i], left = Math.max(LEFT, x(it.from)), right = x(Math.min(it.until, until));
    pen.fillStyle = it.frozen ? frozen : `hsl(${hue(it.who)} 55% ${dark ? 34 : 80}%)`;
    pen.fillRect(left, y + 5, Math.max(1, right - left), ROW - 12);
    if (it.ended.startsWith("lost")) {
      pen.fillStyle = "#cf222e"; pen.fillRect(Math.max(left, right - 2), y + 3, 2, ROW - 8);
    }
    if (right - left > 40) {
      pen.save(); pen.beginPath(); pen.rect(left, y, right - left - 4, ROW); pen.clip();
      pen.fillStyle = ink; pen.fillText(it.who, left + 5, y + ROW / 2 - 1); pen.restore();
    }
  }
}

function dots(list, y, colour) {
  const paint = Object.fromEntries(KINDS.map((it) => [it, colour(it)]));
  const drawn = new Map();
  for (let i = place(list, from, "at"); i < list.length && list[i].at <= until; i++) {
    const px = Math.round(x(list[i].at)), kind = list[i].kind;
    // More than one to a pixel would not be seen.
    if (drawn.get(kind) === px) continue;
    drawn.set(kind, px);
    pen.fillStyle = paint[kind];
    pen.fillRect(px - 1, y + ROW - 12, 3, 8);
  }
}

function nearest(px, py) {
  const lane = lanes[Math.floor((py - TOP) / ROW)];
  if (!lane || px < LEFT) return null;
  const time = when(px), near = (until - from) / canvas.clientWidth * 6;
  const at = place(lane.marks, time, "at");
  const found = [lane.marks[at - 1], lane.marks[at]].filter((it) => it && Math.abs(it.at - time) < near)
    .sort((a, b) => Math.abs(a.at - time) - Math.abs(b.at - time))[0];
  const held = lane.holds[place(lane.holds, time, "until")];
  return { mark: found, hold: held && held.from <= time ? held : null };
}

function hover(event) {
  const found = nearest(event.offsetX, event.offsetY), lines = [];
  if (found && found.mark) lines.push(`${clock(found.mark.at)}\n${found.mark.who} ${found.mark.what}`);
  if (found && found.hold) {
    const it = found.hold, what = it.frozen ? "frozen by" : "held by";
    lines.push(`${what} ${it.who} for ${long(it.until - it.from)} (token ${it.token})\n` +
      `${clock(it.from)} to ${clock(it.until)}: ${it.ended}`);
  }
  tip.hidden = lines.length === 0;
  tip.textContent = lines.join("\n\n");
  tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
}

function rows() {
  const all = lanes.flatMap((it) => it.marks).filter((it) => it.at >= from && it.at <= until);
  all.sort((a, b) => b.at - a.at);
  const cell = (value) => {
    const it = document.createElement("td");
    it.textContent = value;
    return it;
  };
  get("rows").replaceChildren(...all.slice(0, SHOWN).map((it) => {
    const row = document.createElement("tr");
    row.append(cell(clock(it.at)), cell(it.who), cell(it.worktree || ""), cell(it.what));
    return row;
  }));
  get("more").textContent = all.length > SHOWN ? `${all.length - SHOWN} more: zoom in or filter` : "";
}

let later = 0;
function show(a, b) {
  const least = 1000, most = (last - first) * 1.2;
  const wide = Math.min(most, Math.max(least, b - a)), middle = (a + b) / 2;
  from = middle - wide / 2; until = middle + wide / 2;
  ask(); clearTimeout(later); later = setTimeout(rows, 120);
}
const zoom = (by, px) => {
  const at = when(px);
  show(at - (at - from) * by, at + (until - at) * by);
};
const centre = () => (canvas.clientWidth + LEFT) / 2;

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const along = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
  const by = (event.deltaX || event.deltaY) / canvas.clientWidth * (until - from);
  if (along) show(from + by, until + by); else zoom(Math.exp(event.deltaY / 400), event.offsetX);
}, { passive: false });
let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  drag = { px: event.offsetX, from, until };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!drag) return hover(event);
  const by = (drag.px - event.offsetX) / (canvas.clientWidth - LEFT - 10) * (drag.until - drag.from);
  show(drag.from + by, drag.until + by);
});
canvas.addEventListener("pointerup", () => { drag = null; });
canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
canvas.addEventListener("keydown", (event) => {
  const by = (until - from) / 5;
  const keys = { "+": () => zoom(0.7, centre()), "-": () => zoom(1.4, centre()),
    "0": () => show(first, last), ArrowLeft: () => show(from - by, until - by),
    ArrowRight: () => show(from + by, until + by) };
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});
get("in").addEventListener("click", () => zoom(0.5, centre()));
get("out").addEventListener("click", () => zoom(2, centre()));
get("all").addEventListener("click", () => show(first, last));
get("filter").addEventListener("input", (event) => {
  words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  sieve();
});
for (const kind of KINDS) {
  const button = document.createElement("button"), dot = document.createElement("span");
  dot.className = "dot " + kind;
  const count = marks.filter((it) => it.kind === kind).length;
  button.append(dot, `${NAMES[kind]} ${count}`);
  button.setAttribute("aria-pressed", "true");
  button.addEventListener("click", () => {
    if (!hidden.delete(kind)) hidden.add(kind);
    button.setAttribute("aria-pressed", String(!hidden.has(kind)));
    sieve();
  });
  get("kinds").append(button, " ");
}
get("about").textContent = `${story.repository}: ${holds.length} holds, ${marks.length} operations, ` +
  `${clock(first + pad)} to ${clock(last - pad)}. Times are of the clocks of those who wrote them. ` +
  "Who waited in line is not in the log.";
const asked = new URLSearchParams(location.hash.slice(1)).get("filter");
if (asked) { get("filter").value = asked; words = asked.toLowerCase().split(/\s+/).filter(Boolean); }
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ask);
addEventListener("resize", ask);
sieve(); draw();
document.body.dataset.ready = "yes";
