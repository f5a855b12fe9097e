// All features over time as colours, where there are too many for lines.

import { $, setText } from "./dom.js";
import { METHOD_NAMES, number } from "./format.js";
import { TEXT, base, chart, colors, draw, fitted } from "./charts.js";
import { isWanted } from "./features.js";
import { briefOf, data, nameOf, view } from "./store.js";
import { labelsOf, recordText } from "./times.js";
import * as api from "./api.js";

const MANY = 12; // as many as lines can be told apart
const EVERY_MS = 5_000;
const ROW_HEIGHT = TEXT + 4;
const NAMES_WIDTH = 190;
const NARROW_WIDTH = 130;

let plot = null;
let asked = 0;
let known = null;
let rows = [];

export function makeHeat({ chosen }) {
  $("heat-chart").addEventListener("chosen", (event) => chosen(event.detail));
}

/** Fetches all features, but not too often, and only if there are many. */
export async function fetchHeat({ force = false } = {}) {
  const isMany = data.features.size > MANY;
  $("heat").hidden = !isMany;
  const now = performance.now();
  if (!isMany || document.hidden || (!force && now - asked < EVERY_MS)) return;
  asked = now;
  const answer = await api.heat(view).catch(() => null); // the listener reports a lost server
  const isOther = ["stream", "method", "alpha"].some((name) => answer?.[name] !== view[name]);
  if (!answer || isOther) return;
  known = answer;
  drawHeat();
}

export function drawHeat() {
  if (!known || $("heat").hidden) return;
  const { features, seq, values, count: all } = known;
  const element = $("heat-chart");
  rows = features.map((name, i) => ({ name, values: values[i] })).filter(({ name }) => isWanted(name));
  element.style.height = `${rows.length * ROW_HEIGHT + 30}px`;
  if (!plot) plot = makePlot(element);
  plot.resize();
  const { card, accent, muted } = colors();
  const label = labelsOf([seq[0], seq.at(-1)]);
  const left = element.clientWidth < 520 ? NARROW_WIDTH : NAMES_WIDTH;
  draw(plot, {
    ...base(),
    grid: { left, right: 12, top: 4, bottom: 24 },
    xAxis: {
      type: "category", data: seq, axisTick: { show: false }, axisLine: { show: false },
      axisLabel: { color: muted, fontSize: TEXT, hideOverlap: true, formatter: (each) => label(Number(each)) },
    },
    yAxis: {
      type: "category", data: rows.map(({ name }) => briefOf(name)), inverse: true, axisTick: { show: false }, axisLine: { show: false },
      axisLabel: { color: muted, fontSize: TEXT, interval: 0, formatter: (name) => fitted(name, left - 14) },
    },
    visualMap: { show: false, min: 0, max: Math.max(...rows.flatMap((row) => row.values), 1e-12), inRange: { color: [card, accent] } },
    tooltip: {
      ...base().tooltip,
      formatter: ({ data: [column, row, value] }) => `${window.echarts.format.encodeHTML(nameOf(rows[row].name))} ${number(value)}<br>${recordText(seq[column])}`,
    },
    series: [{
      id: "heat", type: "heatmap", progressive: 0,
      data: rows.flatMap((row, y) => row.values.map((value, x) => [x, y, value])),
    }],
  });
  const by = METHOD_NAMES[view.method] ?? "";
  const most = all > features.length ? `the first ${features.length} of ${all}; ` : "";
  setText($("heat-unit"), `${by}, ${most}the currently most important first; the darker, the more important; click one to see it above`);
  element.setAttribute("aria-label", `${by} importance of ${rows.length} features over time as colours; the list of features has their numbers`);
}

function makePlot(element) {
  const made = chart(element);
  made.on("click", ({ data: cell }) => element.dispatchEvent(new CustomEvent("chosen", { detail: rows[cell[1]].name })));
  return made;
}
