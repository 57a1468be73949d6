// Draws the report from the JSON in #data. All text from the data goes through textContent, never through markup.
"use strict";

const DAY = 86400e9; // in ns, as all times of the report
const ROWS = 500; // of a table, before "show all"
const STALE_DAYS = 30;
const LINES = 4; // of a plot

// --- elements ---

function element(name, attributes = {}, ...children) {
  const svg = ["svg", "rect", "polyline", "path", "title", "text"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const page = document.getElementById("page");
const add = (...children) => page.append(...children);
const paragraph = (...children) => add(element("p", {}, ...children));
const faint = (...children) => add(element("p", { class: "faint" }, ...children));
const code = text => element("code", {}, text);

function section(heading, ...text) {
  add(element("h2", {}, heading));
  if (text.length) paragraph(...text);
}

// --- units ---

const count = number => number.toLocaleString("en");
const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;

function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (number >= 1024 && unit + 1 < units.length) {
    number /= 1024;
    unit++;
  }
  return `${unit && number < 100 ? number.toFixed(1) : Math.round(number)} ${units[unit]}`;
}

function duration(ms) {
  if (ms < 10) return `${Number(ms.toPrecision(2))} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60e3) return `${(ms / 1e3).toFixed(1)} s`;
  if (ms < 3600e3) return `${(ms / 60e3).toFixed(1)} min`;
  return `${(ms / 3600e3).toFixed(1)} h`;
}

const timeText = ns => ns > 0 ? new Date(ns / 1e6).toISOString().slice(0, 16).replace("T", " ") + " UTC" : "";
const dayText = ns => timeText(ns).slice(0, 10);
const share = (part, whole) => whole === 0 ? "nothing yet" : `${(100 * part / whole).toFixed(1)} %`;
const valueText = (value, unit) => unit === "ns" ? duration(value / 1e6) : unit === "bytes" ? bytes(value) : count(value);

// --- tables ---

// A cell is text, or {value, text} of a number: what it sorts by, what it shows.
function cell(value, [title, number]) {
  return element("td", { class: number ? "n" : "text", "data-title": title }, number ? value.text : value);
}

function sortRows(rows, column, down) {
  const value = row => row[column]?.value ?? row[column] ?? "";
  const compare = (a, b) => typeof value(a) === "number" ? value(a) - value(b) : String(value(a)).localeCompare(String(value(b)));
  rows.sort((a, b) => down ? compare(b, a) : compare(a, b));
}

// columns: [title, is a number]; rows: arrays of cells. Sorts by a click on a heading, filters, shows ROWS at first.
function table(columns, rows) {
  const body = element("tbody");
  const more = element("button", { type: "button", class: "more" });
  const filter = element("input", { type: "search", placeholder: "Filter", "aria-label": "Filter the rows" });
  let all = false;

  function draw() {
    const words = filter.value.toLowerCase().split(/\s+/);
    const matches = row => words.every(word => row.some(c => String(c?.text ?? c).toLowerCase().includes(word)));
    const kept = filter.value ? rows.filter(matches) : rows;
    const shown = all ? kept : kept.slice(0, ROWS);
    body.replaceChildren(...shown.map(row => element("tr", {}, ...row.map((c, i) => cell(c, columns[i])))));
    more.textContent = `Show all ${count(kept.length)} rows`;
    more.hidden = shown.length === kept.length;
  }

  const heads = columns.map(([title, number], i) => {
    const button = element("button", { type: "button" }, title);
    const head = element("th", { scope: "col", ...number && { class: "n" } }, button);
    button.addEventListener("click", () => {
      const was = head.getAttribute("aria-sort");
      const down = was ? was === "ascending" : number; // the largest number first, the first word first
      sortRows(rows, i, down);
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      draw();
    });
    return head;
  });
  more.addEventListener("click", () => {
    all = true;
    draw();
  });
  filter.addEventListener("input", draw);
  draw();
  if (rows.length > 10) add(filter);
  add(element("div", { class: "wide" }, element("table", columns.length > 4 ? { class: "many" } : {}, element("thead", {}, element("tr", {}, ...heads)), body)), more);
}

const number = (value, text = count(value)) => ({ value, text });
const sized = value => number(value, bytes(value));
const timed = (ms, unknown = "\u2013") => number(ms, ms > 0 ? duration(ms) : unknown);
const dated = ns => number(ns, dayText(ns));

// --- plots ---

// Bars of one scale: {name, value, text, color}.
function bars(rows) {
  const most = Math.max(...rows.map(row => row.value), 0);
  add(element("div", { class: "bars" }, ...rows.flatMap(row => [
    element("div", { class: "name" }, row.name), element("div", { class: "value" }, row.text),
    element("svg", { "aria-hidden": "true" },
      element("rect", { class: row.color, height: "100%", width: `${most ? 100 * row.value / most : 0}%` }))])));
}

function figure(about, box, shapes, top, left, right) {
  add(element("figure", {}, element("figcaption", {}, about), element("div", { class: "plot" },
    element("div", { class: "scale" }, element("span", {}, top), element("span", {}, "0")),
    element("svg", { role: "img", "aria-label": about, viewBox: box, preserveAspectRatio: "none" }, ...shapes)),
  element("div", { class: "axis" }, element("span", {}, left), element("span", {}, right))));
}

// Columns from left to right: {value, label}; the label is shown when the pointer is on the column.
function columnPlot(about, columns, unit, left, right) {
  const most = Math.max(...columns.map(column => column.value), 0);
  const step = 1000 / columns.length;
  const shapes = columns.map(({ value, label }, i) => {
    const height = most ? 98 * value / most : 0;
    return element("rect", { class: "plain", x: i * step + step * 0.08, y: 100 - height, width: step * 0.84, height },
      element("title", {}, label));
  });
  figure(about, "0 0 1000 100", shapes, plural(most, unit), left, right);
}

// Lines of points [x, y], both from 0 to 1.
function linePlot(about, lines, top, left, right) {
  const points = line => line.points.map(([x, y]) => `${(1000 * x).toFixed(2)},${(98 - 96 * y).toFixed(2)}`).join(" ");
  figure(about, "0 0 1000 100", lines.map((line, i) => element("polyline", { class: `l${i}`, points: points(line) })), top, left, right);
  add(element("ul", { class: "legend" }, ...lines.map((line, i) => element("li", {},
    element("svg", { viewBox: "0 0 22 10", "aria-hidden": "true" }, element("path", { class: `l${i}`, d: "M0 5H22" })), " ", line.name))));
}

// --- counters ---

const TIERS = ["hits_memory", "hits_disk", "hits_pack", "hits_remote", "hits_shared"];
const hits = counters => TIERS.reduce((sum, name) => sum + (counters[name] ?? 0), 0);
const asked = counters => hits(counters) + (counters.misses ?? 0);

function cards(rows) {
  add(element("ul", { class: "cards" }, ...rows.map(([value, name]) => element("li", {}, element("b", {}, value), element("span", {}, name)))));
}

function counterCards(counters, entries, size) {
  cards([[share(hits(counters), asked(counters)), "hit rate"],
    [duration((counters.saved_ns ?? 0) / 1e6), "compile time saved"],
    [duration((counters.compile_ns ?? 0) / 1e6), "spent compiling"],
    [count(counters.compiles ?? 0), "compiles"], [count(entries), "entries stored"], [bytes(size), "on disk"]]);
}

// Bars of those counters that are not zero; false if all are.
function counterBars(counters, texts, names, color) {
  const rows = names.filter(name => counters[name] > 0).map(name => ({
    name: texts[name].text.replace(/^misses /, ""), value: counters[name],
    text: valueText(counters[name], texts[name].unit), color: typeof color === "string" ? color : color(name) }));
  if (rows.length) bars(rows);
  return rows.length > 0;
}

// Counters of different units have no scale in common: a list of numbers.
function counterTable(counters, texts, names) {
  const rows = names.filter(name => counters[name] > 0)
    .map(name => [texts[name].text, number(counters[name], valueText(counters[name], texts[name].unit))]);
  if (rows.length) table([["what", false], ["number", true]], rows);
  return rows.length > 0;
}

function counterSections(counters, texts) {
  section("Time", "A hit saves the time that its compile took. A compile that bypasses the cache is paid again by every process.");
  if (!counterBars(counters, texts, ["saved_ns", "compile_ns", "bypass_ns"],
    name => ({ saved_ns: "good", compile_ns: "bad", bypass_ns: "other" })[name])) faint("Nothing has been compiled yet.");
  section("Hits and misses", "Lookups by where the entry was found. A miss is compiled.");
  if (!counterBars(counters, texts, [...TIERS, "misses"], name => name === "misses" ? "bad" : "good"))
    faint("Nothing has been looked up yet.");
  section("Why programs were compiled", "Misses by reason. A first start has misses of entries never seen before. Many misses of ",
    "evicted entries mean that the cache is too small. ", code("kiln explain FILE"), " names the difference for one kernel.");
  if (!counterBars(counters, texts, Object.keys(texts).filter(name => name.startsWith("misses_")), "bad"))
    faint("No miss has a known reason.");
  section("Remotes and errors", code("kiln doctor"), " examines remotes, keys and the cache directory.");
  const troubles = ["compile_failures", "put_failures", "corrupt", "rejected", "unended", "io_errors", "wait_timeouts", "evicted"];
  if (!counterTable(counters, texts, [...Object.keys(texts).filter(name => name.startsWith("remote_")), ...troubles]))
    faint("No remote was used, and there were no errors.");
}

// --- a cache ---

function keyCell(key) {
  return key.slice(0, 12); // enough for `kiln show`
}

function showPrograms(programs) {
  section("Programs", "One row for each compiled program, the longest compile first. Click a heading to sort. ",
    "Uses are starts through kiln's runtime; hits of other programs are only in the totals above. ",
    "Saved is the compile time times the later uses, an estimate. ", code("kiln show KEY"), " prints an entry.");
  if (programs.length === 0) return faint("There are none.");
  const saved = entry => entry.uses > 1 ? entry.compile_ms * (entry.uses - 1) : 0;
  table([["program", false], ["stage", false], ["target", false], ["compile time", true], ["uses", true], ["saved", true],
    ["size", true], ["compiled", true], ["last used", true], ["key", false]],
  programs.map(entry => [entry.name, entry.stage, entry.target, timed(entry.compile_ms, "unknown"),
    number(entry.uses, entry.uses ? count(entry.uses) : "\u2013"), timed(saved(entry)), sized(entry.stored_bytes),
    dated(entry.created_ns), dated(entry.used_ns), keyCell(entry.key)]));
}

function showDays(report, programs, about, field) {
  const days = Array.from({ length: 30 }, (_, i) => ({ value: 0, day: dayText(report.made_ns - (29 - i) * DAY) }));
  let older = 0;
  for (const entry of programs) {
    const age = Math.max(0, Math.floor((report.made_ns - entry[field]) / DAY));
    if (age < days.length) days[days.length - 1 - age].value++;
    else older++;
  }
  columnPlot(about, days.map(({ value, day }) => ({ value, label: `${plural(value, "program")}, 24 hours up to ${day}` })),
    "program", `30 days ago (${count(older)} older)`, "now");
}

function showTargets(entries) {
  const sums = new Map();
  for (const entry of entries) {
    const sum = sums.get(entry.target) ?? { count: 0, bytes: 0, ms: 0 };
    sums.set(entry.target, { count: sum.count + 1, bytes: sum.bytes + entry.stored_bytes, ms: sum.ms + entry.compile_ms });
  }
  section("Targets", "The device and driver that an entry is for. ", code("portable"), " entries run anywhere: SPIR-V, and kiln's own notes.");
  if (sums.size === 0) return faint("There are none.");
  table([["target", false], ["entries", true], ["size", true], ["compile time", true]],
    [...sums].map(([target, sum]) => [target, number(sum.count), sized(sum.bytes), timed(sum.ms)]));
}

function showSizes(entries) {
  const classes = Array.from({ length: 12 }, (_, i) => ({ value: 0, most: 256 * 4 ** i }));
  for (const entry of entries) (classes.find(c => entry.stored_bytes <= c.most) ?? classes.at(-1)).value++;
  section("Sizes", "Sizes of the entries' files, kiln's own notes included.");
  columnPlot("Entries by size", classes.map(({ value, most }, i) => ({ value,
    label: `${plural(value, "entry").replace("entrys", "entries")} of ${i + 1 < classes.length ? "at most " + bytes(most) : "more"}` })),
  "file", "up to 256 B", "over 256 MiB");
}

function showStale(report) {
  const old = report.entries.filter(entry => report.made_ns - entry.used_ns > STALE_DAYS * DAY);
  section("Stale entries", "Stale entries only take space. They can't be used by mistake: a changed source, header, option, ",
    "compiler or driver has another key.");
  paragraph(`Not used for ${STALE_DAYS} days: ${count(old.length)} of ${count(report.entries.length)}, `,
    `${bytes(old.reduce((sum, entry) => sum + entry.stored_bytes, 0))}. `, code("kiln prune --max-age 30d"), " removes them.");
  if (report.unreadable > 0) paragraph(`Entries that could not be read: ${count(report.unreadable)}. `, code("kiln verify"), " says why.");
}

function showCache(report) {
  const programs = report.entries.filter(entry => !entry.note);
  faint(report.root);
  paragraph("Totals of all programs that have used this cache directory since it was created.");
  counterCards(report.counters, report.entries.length + report.unreadable, report.bytes);
  counterSections(report.counters, report.counter_texts);
  section("Bypasses", "Compiles whose result depends on more than a key can hold, such as the date. Each process compiles them again.");
  if (report.bypasses.length === 0) faint("There were none.");
  else table([["reason", false], ["compiles", true], ["time", true], ["last program", false]],
    report.bypasses.map(row => [row.reason, number(row.compiles), timed(row.compile_ms, "unknown"), row.last]));
  showPrograms(programs);
  section("History", "Many compiles after a quiet time often mean a new driver, compiler or version of the program. The cache keeps no ",
    "history of hits. For hit rates over time, append ", code("kiln stats --openmetrics --timestamps"), " to a file by a timer and run ",
    code("kiln report --metrics FILE"), ".");
  showDays(report, programs, "Programs by the day of their compile", "created_ns");
  showDays(report, programs, "Programs by the day of their last use", "used_ns");
  showTargets(report.entries);
  showSizes(report.entries);
  showStale(report);
}

// --- a recording ---

// A use is stale if the same program was compiled for the same target later, by another compiler: under another key.
function markStale(uses) {
  const latest = new Map();
  const name = use => `${use.program} ${use.target}`;
  for (const use of uses) if (!(latest.get(name(use))?.last_ns >= use.last_ns)) latest.set(name(use), use);
  for (const use of uses) use.stale = latest.get(name(use)) !== use;
}

function showLanguages(uses) {
  const groups = new Map();
  for (const use of uses) {
    const name = JSON.stringify([use.language, use.target]);
    const sum = groups.get(name) ?? { programs: 0, stale: 0, ms: 0 };
    if (use.stale) sum.stale++;
    else sum.programs++;
    sum.ms += use.stale ? 0 : use.compile_ms;
    groups.set(name, sum);
  }
  section("Languages and targets", "What ", code("kiln warm RECORDING"), " compiles, and how long it took when it was recorded.");
  table([["language", false], ["target", false], ["programs", true], ["stale", true], ["compile time", true]],
    [...groups].map(([name, sum]) => [...JSON.parse(name), number(sum.programs), number(sum.stale), timed(sum.ms)]));
}

function showRecording(report) {
  const { uses } = report;
  markStale(uses);
  uses.sort((a, b) => b.days - a.days || b.last_ns - a.last_ns);
  const programs = new Map(uses.map(use => [use.program, use.source_bytes]));
  faint(report.root);
  paragraph("Programs that kiln was asked to compile, with their sources: they can be compiled again for any target.");
  cards([[count(programs.size), "programs"], [count(uses.filter(use => !use.stale).length), "programs \u00d7 targets"],
    [count(uses.filter(use => use.cached).length), "in this cache"], [count(uses.filter(use => use.stale).length), "stale"],
    [bytes([...programs.values()].reduce((sum, size) => sum + size, 0)), "of sources and headers"]]);
  if (report.damaged > 0) add(element("div", { class: "note" }, element("p", {}, `Damaged files: ${count(report.damaged)} (${report.damage}).`)));
  showLanguages(uses);
  section("Programs", "One row for each program and target. Source is the text with all headers. In this cache: the next start hits. ",
    "Not in this cache: ", code("kiln warm RECORDING"), " compiles it. Stale: another compiler or driver has compiled it since.");
  table([["program", false], ["language", false], ["target", false], ["state", false], ["source", true], ["compile time", true],
    ["days used", true], ["last used", true], ["frontend", false]],
  uses.map(use => [use.name || "(no name)", use.language, use.target,
    use.stale ? "stale" : use.cached ? "in this cache" : "not in this cache", sized(use.source_bytes),
    timed(use.compile_ms, "unknown"), number(use.days), dated(use.last_ns), use.frontend]));
}

// --- a fleet ---

const last = cache => cache.points.at(-1);

// Steps between samples with times; none where nothing was looked up, or where the counters started again.
function ratePoints(cache, begin, end) {
  const points = [];
  for (let i = 1; i < cache.points.length; i++) {
    const [from, to] = [cache.points[i - 1], cache.points[i]];
    const found = hits(to.counters) - hits(from.counters);
    const missed = to.counters.misses - from.counters.misses;
    if (from.time_ns !== null && found >= 0 && missed >= 0 && found + missed > 0) {
      for (const point of [from, to]) points.push([(point.time_ns - begin) / (end - begin || 1), found / (found + missed)]);
    }
  }
  return points;
}

function showRates(caches, name) {
  const times = caches.flatMap(cache => cache.points.map(point => point.time_ns)).filter(time => time !== null);
  const begin = times.reduce((a, b) => Math.min(a, b), Infinity);
  const end = times.reduce((a, b) => Math.max(a, b), -Infinity);
  const lines = caches.map(cache => ({ name: name(cache), points: ratePoints(cache, begin, end) })).filter(line => line.points.length);
  section("Hit rates over time", "The hit rate between one sample and the next.");
  if (lines.length === 0) {
    return faint("A rate over time needs two samples with times. Append ", code("kiln stats --openmetrics --timestamps"), " to a file by a timer.");
  }
  linePlot("Hit rate of each cache", lines.slice(0, LINES), "100 %", timeText(begin), timeText(end));
  if (lines.length > LINES) faint(`Shown: the first ${LINES} of ${count(lines.length)}.`);
}

function showFleet(report) {
  const { caches } = report;
  const name = cache => caches.filter(other => other.file === cache.file).length > 1 && cache.labels ? `${cache.file} {${cache.labels}}` : cache.file;
  const sum = {};
  for (const cache of caches) for (const [key, value] of Object.entries(last(cache).counters)) sum[key] = (sum[key] ?? 0) + value;
  paragraph(`Totals of ${plural(caches.length, "cache")} since creation, from metrics.`);
  counterCards(sum, caches.reduce((n, cache) => n + last(cache).entries, 0), caches.reduce((n, cache) => n + last(cache).bytes, 0));
  showRates(caches, name);
  section("Machines", "One row for each cache. A low hit rate next to high ones often means another driver, or a cache that starts empty.");
  table([["cache", false], ["hit rate", true], ["misses", true], ["compiles", true], ["saved", true], ["compiling", true],
    ["bypassing", true], ["entries", true], ["size", true], ["errors", true]],
  caches.map(cache => {
    const { counters, entries, bytes: size } = last(cache);
    const all = asked(counters);
    const errors = counters.io_errors + counters.corrupt + counters.put_failures + counters.remote_errors;
    return [name(cache), number(all ? hits(counters) / all : -1, share(hits(counters), all)), number(counters.misses),
      number(counters.compiles), timed(counters.saved_ns / 1e6), timed(counters.compile_ns / 1e6), timed(counters.bypass_ns / 1e6),
      number(entries), sized(size), number(errors)];
  }));
  counterSections(sum, report.counter_texts);
}

// --- the page ---

const report = JSON.parse(document.getElementById("data").textContent);
const [title, show] = {
  cache: ["kiln: this cache", showCache], recording: ["kiln: this recording", showRecording], fleet: ["kiln: all caches", showFleet],
}[report.kind];
document.title = title;
add(element("h1", {}, title));
show(report);
faint(`Made by kiln ${report.kiln_version} on ${timeText(report.made_ns)}. This page loads nothing from elsewhere.`);
