// The table of all streams, if there are several: one row each, and the choice of one.

import { $, h, setText, svg } from "./dom.js";
import { METHOD_NAMES, compact, count, fromTo, number, percent, subjectOf, titleOf } from "./format.js";
import { briefOf, data, nameOf, streamName, view } from "./store.js";
import * as api from "./api.js";

const EVERY_MS = 2_000;
const WIDTH = 90;
const HEIGHT = 24;

const rows = new Map(); // stream → its row, and the cells that change
let asked = 0;
let order = [];

export function makeStreams({ chosen }) {
  $("streams-rows").addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row && row.dataset.stream !== view.stream) chosen(row.dataset.stream);
  });
}

/** Fetches all streams, but not too often, and only if there are several. */
export async function fetchStreams({ force = false } = {}) {
  const now = performance.now();
  const isShown = data.numbers?.streams.length > 1 && !document.hidden;
  if (!isShown || (!force && now - asked < EVERY_MS)) return;
  asked = now;
  const answer = await api.streams(view.method).catch(() => null); // the listener reports a lost server
  if (answer) draw(answer);
}

function draw({ rows: streams, has_more: hasMore }) {
  $("streams").hidden = streams.length < 2;
  const by = view.method ? `importance by ${METHOD_NAMES[view.method]}; ` : "";
  const more = hasMore ? `; only the first ${count(streams.length)} are shown` : "";
  setText($("streams-unit"), `${by}latest change first; click a stream to see it below${more}`);
  $("streams").classList.toggle("has-labels", streams.some((each) => each.labels));
  for (const each of streams) {
    if (!rows.has(each.stream)) add(each.stream);
    update(rows.get(each.stream), each);
  }
  reorder(streams.map((each) => each.stream));
}

function add(stream) {
  const button = h("button", { type: "button", class: "plain" }, streamName(stream));
  const cell = (name) => h("td", { class: name });
  const row = {
    button, records: cell("n"), rate: cell("n"), loss: cell("n"), accuracy: cell("n"), labels: cell("n labels"),
    letters: cell("n"), top: cell("top"), trend: cell("trend"), change: cell("latest"), drawn: {},
  };
  const { button: _, drawn: __, ...cells } = row;
  row.item = h("tr", {}, h("th", { scope: "row" }, button), ...Object.values(cells));
  row.item.dataset.stream = stream;
  rows.set(stream, row);
}

function update(row, each) {
  const isChosen = each.stream === view.stream;
  row.item.classList.toggle("is-chosen", isChosen);
  row.button.setAttribute("aria-pressed", String(isChosen));
  setText(row.records, compact(each.records));
  setText(row.rate, `${count(each.rate)}/s`);
  setText(row.loss, number(each.loss));
  setText(row.accuracy, each.accuracy === null ? "–" : percent(each.accuracy));
  setText(row.labels, each.labels ? compact(each.labels.waiting) : "–");
  setText(row.letters, compact(each.letters));
  row.letters.classList.toggle("bad", each.letters > 0);
  once(row, "top", [each.method, view.method, each.top.map(({ feature, value }) => [feature, value])], () => {
    const scale = Math.max(...each.top.map(({ value }) => Math.abs(value)), 0);
    const by = each.method && each.method !== view.method ? [h("span", {}, `${METHOD_NAMES[each.method]}:`)] : [];
    return by.concat(each.top.map(({ feature, value }, i) => h("span", { class: `rank-${i}`, title: nameOf(feature) }, briefOf(feature), " ", h("b", {}, number(value, scale)))));
  });
  once(row, "trend", each.top.map(({ seq, trend }) => [seq.at(-1), trend.length]), () => [trends(each.top)]);
  row.change.classList.toggle("is-known", each.is_known);
  once(row, "change", each.change?.id ?? null, () => [each.change ? latest(each.change) : h("span", { class: "muted" }, "none yet")]);
}

/** Draws a cell if its content has changed. */
function once(row, name, shown, make) {
  const key = JSON.stringify(shown);
  if (row.drawn[name] === key) return;
  row.drawn[name] = key;
  row[name].replaceChildren(...make());
}

function trends(top) {
  const values = top.flatMap(({ trend }) => trend);
  const [low, high] = [Math.min(0, ...values), Math.max(...values, 1e-12)];
  const [first, last] = [Math.min(...top.map(({ seq }) => seq[0])), Math.max(...top.map(({ seq }) => seq.at(-1)))];
  const x = (seq) => ((WIDTH * (seq - first)) / Math.max(last - first, 1)).toFixed(1);
  const y = (value) => (HEIGHT - 1 - ((HEIGHT - 2) * (value - low)) / (high - low)).toFixed(1);
  const lines = top.map(({ seq, trend }, i) => svg("polyline", {
    points: seq.map((each, j) => `${x(each)},${y(trend[j])}`).join(" "), class: `rank-${i}`,
  }));
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, "aria-hidden": "true" }, ...lines.reverse());
}

function latest(change) {
  const direction = { rose: "▲", fell: "▼" }[change.direction] ?? "●";
  const what = change.kind === "drift" ? `${subjectOf(change)}${change.feature ? ` ${METHOD_NAMES[change.method]}` : ""}` : change.signal === null ? change.kind : titleOf(change);
  const moved = change.after === null ? "" : ` ${fromTo(change)}`;
  return h("span", { title: titleOf(change) },
    h("span", { class: `direction ${change.direction ?? ""}`, "aria-hidden": "true" }, direction),
    h("span", { class: "sr-only" }, change.direction ?? ""),
    ` ${what}`, h("span", { class: "muted" }, `${moved}, record ${count(change.seq)}`));
}

/** Sorts the rows, but not while one is hovered or focused: it would move away. */
function reorder(streams) {
  const list = $("streams-rows");
  const isNew = streams.length !== order.length;
  if (!isNew && list.matches(":hover, :focus-within")) return;
  order = streams;
  streams.forEach((stream, i) => {
    const { item } = rows.get(stream);
    if (list.children[i] !== item) list.insertBefore(item, list.children[i] ?? null);
  });
}
