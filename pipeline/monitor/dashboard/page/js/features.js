// The list of features: legend of the chart, search, and choice of one feature.

import { $, h, options, setText } from "./dom.js";
import { number, plural } from "./format.js";
import { briefOf, data, nameOf, ranked, shown, view } from "./store.js";
import { noExplanation, swatch } from "./importance.js";

/** Characters at the end of a name that are always shown: many begin alike. */
const TAIL = 8;

const rows = new Map();
let reordered = 0;

export function makeFeatures({ chosen, changed, searched }) {
  const list = $("feature-list");
  list.addEventListener("click", (event) => {
    const row = event.target.closest("button");
    if (row) chosen(row.dataset.name === view.feature ? null : row.dataset.name);
  });
  $("search").addEventListener("input", (event) => {
    view.query = event.target.value.trim().toLowerCase();
    drawFeatures({ force: true });
    searched();
  });
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") list.querySelector("li:not([hidden]) button")?.click();
  });
  $("order").value = view.order;
  $("top").addEventListener("change", (event) => {
    view.top = Number(event.target.value);
    changed();
  });
  $("order").addEventListener("change", (event) => {
    view.order = event.target.value;
    changed();
  });
}

export function drawFeatures({ force = false } = {}) {
  const features = ranked();
  const list = $("feature-list");
  const most = features.length;
  options($("top"), [3, 5, 8, 12, 20].filter((n, i) => i === 0 || n < most || n === 5), view.top, (n) => `top ${n}`);
  for (const [name, row] of rows) {
    if (data.features.has(name)) continue;
    row.item.remove();
    rows.delete(name);
  }
  const scale = Math.max(...features.map((f) => Math.max(Math.abs(f.value) + 2 * f.std_error, f.peak)), 1e-12);
  const visible = new Set(shown());
  let found = 0;
  for (const feature of features) {
    const row = rows.get(feature.name) ?? add(feature.name, list);
    update(row, feature, scale, visible.has(feature.name));
    row.item.hidden = !isWanted(feature.name);
    found += row.item.hidden ? 0 : 1;
  }
  reorder(list, features, force);
  $("feature-empty").hidden = found > 0;
  setText($("feature-empty"), most === 0 ? noExplanation() : `No match among ${plural(most, "feature")}.`);
}

/** Whether a feature fits the search, by the shown name or by that of the records. */
export const isWanted = (name) => [name, nameOf(name)].some((each) => each.toLowerCase().includes(view.query));

function add(name, list) {
  const brief = briefOf(name);
  const letters = [...brief];
  const whole = brief === nameOf(name) ? null : h("span", { class: "whole" }, nameOf(name));
  const value = h("span", { class: "value" });
  const bar = h("span", { class: "bar-fill" });
  const whisker = h("span", { class: "whisker" });
  const peak = h("span", { class: "peak" });
  const mark = h("span", { class: "mark" });
  const button = h(
    "button", { type: "button", title: nameOf(name) === name ? name : `${nameOf(name)} (${name})` },
    mark, h("span", { class: "name" }, h("span", { class: "head" }, letters.slice(0, -TAIL).join("")), h("span", {}, letters.slice(-TAIL).join("")), whole),
    h("span", { class: "track", "aria-hidden": "true" }, bar, peak, whisker),
    value,
  );
  button.dataset.name = name;
  const item = h("li", {}, button);
  list.append(item);
  const row = { item, button, value, bar, whisker, peak, mark, look: "" };
  rows.set(name, row);
  return row;
}

function update(row, { name, value, std_error: error, peak }, scale, isShown) {
  const share = (x) => `${(100 * Math.min(Math.max(x / scale, 0), 1)).toFixed(1)}%`;
  setText(row.value, `${number(value, scale)} ± ${number(error, scale)}`);
  row.bar.style.width = share(Math.abs(value));
  row.bar.classList.toggle("negative", value < 0);
  row.peak.style.left = share(peak);
  row.whisker.style.left = share(Math.abs(value) - 2 * error);
  row.whisker.style.width = share(Math.min(4 * error, Math.abs(value) + 2 * error));
  row.button.setAttribute("aria-pressed", String(name === view.feature));
  const mark = isShown ? swatch(name) : h("span");
  const look = mark.getAttribute("style") ?? "";
  if (look === row.look) return;
  row.look = look;
  row.mark.replaceChildren(mark);
  row.bar.style.backgroundColor = mark.style.borderTopColor;
}

/** Sorts the rows, but not while one is hovered or focused: it would move away. */
function reorder(list, features, force) {
  const now = performance.now();
  if (!force && (now - reordered < 2_000 || list.matches(":hover, :focus-within"))) return;
  reordered = now;
  features.forEach(({ name }, i) => {
    const { item } = rows.get(name);
    if (list.children[i] !== item) list.insertBefore(item, list.children[i]);
  });
}
