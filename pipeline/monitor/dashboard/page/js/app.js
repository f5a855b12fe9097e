// Connects the parts: requests, updates, drawing and navigation.

import { $, options, segments, setText } from "./dom.js";
import { METHOD_NAMES, count, plural, titleOf } from "./format.js";
import * as api from "./api.js";
import { data, readFragment, replaceAll, shown, range, oldest, streamName, takeNews, view, writeFragment } from "./store.js";
import { SPANS, wholeSpan } from "./times.js";
import { assign } from "./palette.js";
import { themeSwitch } from "./theme.js";
import { canDrag, drawImportance, importanceTable, makeImportance } from "./importance.js";
import { drawPerformance, makePerformance, performanceTable } from "./performance.js";
import { drawEffect, effectTable, fetchEffect, makeEffect } from "./effect.js";
import { drawHeat, fetchHeat, makeHeat } from "./heat.js";
import { drawFeatures, makeFeatures } from "./features.js";
import { drawChanges, focusChange, makeChanges } from "./changes.js";
import { drawStory, makeStory } from "./story.js";
import { muteOf } from "./notes.js";
import { drawEvidence } from "./origin.js";
import { drawHeadline, drawLostHeadline, makeHeadline } from "./headline.js";
import { drawFigures, drawOperations } from "./operations.js";
import { fetchReasons, focusOpener, makeReasons } from "./reasons.js";
import { fetchStreams, makeStreams } from "./streams.js";

const RANGES = [500, 2_000, 10_000];
const TABLES = { importance: importanceTable, effect: effectTable, performance: performanceTable };

let stop = () => {};
let current = 0; // number of the connection; responses to earlier ones are dropped
let retryMs = 500;
let fresh = [];
let isDrawn = true;

/** Fetches everything, then listens; reconnects with growing delays. */
async function connect() {
  stop();
  current += 1;
  const mine = current;
  try {
    const answer = await api.overview(view);
    if (mine !== current) return;
    replaceAll(answer);
    await Promise.all([fetchLines(), fetchEffect({ force: true })]);
    if (mine !== current) return;
    retryMs = 500;
    connected(true);
    writeFragment();
    draw();
    performance.mark("fluxplain-drawn");
    drawStory({ again: true });
    fetchStreams({ force: true });
    fetchReasons({ force: true });
    fetchHeat({ force: true });
    stop = api.listen(view, data.version, (news) => mine === current && receive(news), again);
  } catch (error) {
    console.error(error);
    if (mine === current) again();
  }

  function again() {
    if (mine !== current) return;
    connected(false);
    setTimeout(() => mine === current && connect(), retryMs);
    retryMs = Math.min(retryMs * 2, 10_000);
  }
}

function receive(news) {
  // a stream, method or rate has appeared for a choice that the page left open
  if (news.stream !== view.stream || news.method !== view.method || news.alpha !== view.alpha) {
    connect();
    return;
  }
  const muted = JSON.stringify(data.muted);
  fresh.push(...takeNews(news).filter(({ feature }) => muteOf(feature) === null));
  const isOther = JSON.stringify(data.muted) !== muted;
  if (isOther || news.changes.some((change) => change.id === view.change)) drawStory({ again: true });
  if (!isDrawn) return;
  isDrawn = false;
  requestAnimationFrame(() => {
    isDrawn = true;
    draw();
  });
  fetchLines().then((some) => some && draw());
  if (Object.keys(news.features).length) fetchEffect();
  fetchStreams();
  fetchReasons();
  fetchHeat();
}

/** Fetches the lines of newly shown features; returns whether there were any. */
async function fetchLines() {
  const missing = shown().filter((name) => !data.lines.has(name));
  const closer = view.range === "all" ? [] : shown().filter((name) => !data.closer.has(name));
  for (const name of missing) data.lines.set(name, { seq: [], value: [], std_error: [] });
  for (const name of closer) data.closer.set(name, { seq: [], value: [], std_error: [] });
  const mine = current;
  const [from, to] = range().map(Math.round);
  const [whole, near] = await Promise.all([
    missing.length ? api.series(view, missing, {}) : null,
    closer.length ? api.series(view, closer, { from, to: view.range === "zoom" ? to : null }) : null,
  ]);
  if (mine !== current) return false;
  for (const [name, line] of Object.entries(whole?.lines ?? {})) data.lines.set(name, line);
  for (const [name, line] of Object.entries(near?.lines ?? {})) data.closer.set(name, line);
  return Boolean(whole || near);
}

function draw() {
  if (!data.numbers) return;
  assign(shown());
  drawChoices();
  drawHeadline();
  drawFigures();
  drawFeatures();
  drawChanges(fresh);
  drawImportance();
  drawPerformance();
  drawOperations();
  document.body.classList.toggle("is-empty", data.features.size === 0);
  drawTables();
  announce();
}

function drawChoices() {
  const { streams, methods, alphas } = data.numbers;
  $("stream-field").hidden = streams.length === 0;
  options($("stream"), streams, view.stream, streamName);
  $("alpha-field").hidden = (alphas ?? []).length === 0;
  options($("alpha"), alphas ?? [], view.alpha);
  segments($("methods"), "method", Object.keys(data.about.methods).map((value) => ({
    value, text: METHOD_NAMES[value], title: data.about.methods[value].meaning, disabled: !methods.includes(value),
  })), view.method, (method) => go({ method }));
  segments($("ranges"), "range", [
    { value: "all", text: "All" },
    ...latest(),
    ...(view.range === "zoom" ? [{ value: "zoom", text: "Zoomed" }] : []),
  ], view.range, setRange);
  const what = data.about.methods[view.method]?.unit === "output"
    ? "spread of the effect, in units of the output"
    : `increase of the loss (${data.about.loss}) without the feature`;
  setText($("importance-unit"), view.method ? `${METHOD_NAMES[view.method]}, ${what}; bands are ± 2 standard errors${canDrag ? "; drag to zoom, with Shift to move" : ""}` : "");
  setText($("performance-unit"), `means of the last ${count(data.numbers.performance.window)} records`);
}

/** Ranges of latest records: by their times, else by their number. */
function latest() {
  const spans = Object.entries(SPANS).filter(([, seconds]) => seconds < wholeSpan());
  if (spans.length) return spans.map(([value]) => ({ value, text: `Last ${value}` }));
  const newest = data.numbers.newest_seq - oldest();
  return RANGES.filter((n) => n < newest).map((n) => ({ value: String(n), text: `Last ${count(n)}` }));
}

function connected(isConnected) {
  document.body.classList.toggle("is-lost", !isConnected);
  $("banner").hidden = isConnected;
  if (isConnected) return;
  const until = data.numbers ? ` The page shows its state at record ${count(data.numbers.newest_seq)}.` : "";
  setText($("banner"), `The dashboard's server does not answer; trying again. Check that “fluxplain up” or “fluxplain dashboard” is running.${until}`);
  if (data.numbers) drawLostHeadline();
  setText($("status-text"), "Connection lost");
}

let tablesDrawnAt = 0;

function drawTables({ force = false } = {}) {
  const now = performance.now();
  if (!force && now - tablesDrawnAt < 5_000) return;
  tablesDrawnAt = now;
  for (const [name, make] of Object.entries(TABLES)) {
    const place = $(`${name}-table`);
    if (!place.hidden) place.replaceChildren(make());
  }
}

function announce() {
  if (!fresh.length) return;
  const [first] = fresh;
  const more = fresh.length > 1 ? ` and ${plural(fresh.length - 1, "other change")}` : "";
  setText($("announcer"), `${titleOf(first)}, record ${count(first.seq)}${more}`);
  fresh = [];
}

/** Switches to another stream, method or smoothing rate. */
function go(choice) {
  Object.assign(view, choice);
  view.range = "all";
  if ("stream" in choice) {
    view.change = null;
    view.reasons = null;
    view.feature = null;
    drawStory();
  }
  writeFragment();
  connect();
}

const chooseStream = (stream) => go({ stream, method: null, alpha: null });

function setRange(chosen, first = null, last = null) {
  Object.assign(view, { range: chosen, first, last });
  data.closer = new Map();
  writeFragment();
  draw();
  fetchLines().then(draw);
}

let zooming = 0;

function zoomed(first, last) {
  const newest = Math.max(data.numbers.newest_seq, 1);
  const isAll = first <= oldest() && last >= newest;
  clearTimeout(zooming);
  zooming = setTimeout(() => setRange(isAll ? "all" : "zoom", first, last), 200);
  Object.assign(view, { range: isAll ? "all" : "zoom", first, last });
}

function chooseFeature(name) {
  view.feature = name;
  writeFragment();
  draw();
  fetchEffect({ force: true });
  fetchLines().then((some) => some && draw());
}

function openStory(id) {
  view.change = id;
  const change = data.changes.get(id);
  if (change?.feature && data.features.has(change.feature)) view.feature = change.feature;
  writeFragment();
  drawStory({ focus: true });
  if (data.numbers.methods.includes(change?.method) && change.method !== view.method) go({ method: change.method });
  else chooseFeature(view.feature);
}

function closeStory() {
  const id = view.change;
  view.change = null;
  writeFragment();
  draw();
  drawStory();
  focusChange(id);
}

function openReasons(seq) {
  view.reasons = seq;
  writeFragment();
  fetchReasons({ force: true, focus: true });
}

async function closeReasons() {
  const seq = view.reasons;
  view.reasons = null;
  writeFragment();
  await fetchReasons({ force: true });
  focusOpener(seq);
}

function tableSwitches() {
  for (const button of document.querySelectorAll("[data-table]")) {
    const name = button.dataset.table;
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      const isTable = button.getAttribute("aria-pressed") === "false";
      button.setAttribute("aria-pressed", String(isTable));
      $(name).classList.toggle("as-table", isTable);
      $(`${name}-table`).hidden = !isTable;
      drawTables({ force: true });
    });
  }
}

function begin() {
  readFragment();
  makeImportance({ zoomed, chosen: openStory });
  makePerformance();
  makeEffect();
  makeFeatures({ chosen: chooseFeature, changed: () => { writeFragment(); draw(); fetchLines().then(draw); }, searched: drawHeat });
  makeChanges({ chosen: openStory });
  makeReasons({ opened: openReasons, closed: closeReasons, changed: drawEvidence });
  makeStory({ chosen: openStory, closed: closeStory });
  makeStreams({ chosen: chooseStream });
  makeHeadline({ chosen: openStory });
  makeHeat({ chosen: chooseFeature });
  tableSwitches();
  themeSwitch(() => {
    draw();
    drawHeat();
    drawEffect();
    drawStory({ again: true });
  });
  $("stream").addEventListener("change", (event) => chooseStream(event.target.value));
  $("alpha").addEventListener("change", (event) => go({ alpha: Number(event.target.value) }));
  addEventListener("hashchange", () => {
    readFragment();
    connect();
  });
  // a hidden page needs no updates
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : connect()));
  document.fonts.load("12px Inter").then(draw);
  connect();
}

begin();
