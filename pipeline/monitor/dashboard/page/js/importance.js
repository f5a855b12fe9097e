// Chart of importance over time, with bands of two standard errors and the changes below.

import { $, h, table } from "./dom.js";
import { METHOD_NAMES, fromTo, number, titleOf } from "./format.js";
import { TEXT, at, base, chart, colors, draw, emptyBecause, fitted, margins, nice, pairs, recordAxis, valueAxis } from "./charts.js";
import { briefOf, data, lineOf, nameOf, oldest, range, shown, view } from "./store.js";
import { colorOf, styleOf } from "./palette.js";
import { muteOf } from "./notes.js";
import { numberAndTime, recordText } from "./times.js";

/** Shown wherever explanations will be: what they wait for. */
export function noExplanation() {
  const { newest_seq: newest, loading } = data.numbers;
  if (newest >= 0) return "No explanation yet: explanations begin after the warm-up.";
  if (loading) return "Reading what was published so far …";
  return `No record yet. Send observations to the topic ${data.about.topic}; fluxplain replay FILE sends those of a file.`;
}

const TOP = 16;
const BOTTOM = 24;
const LABEL_HEIGHT = TEXT + 3;

/** Whether there is a mouse: on touch screens a drag does not select. */
export const canDrag = matchMedia("(pointer: fine)").matches;

let main;
let lane;
let isSelecting = null;

export function makeImportance({ zoomed, chosen }) {
  main = chart($("importance-chart"));
  lane = chart($("lane-chart"));
  main.on("datazoom", () => {
    const { startValue, endValue } = main.getOption().dataZoom.find((zoom) => zoom?.type === "inside");
    zoomed(Math.round(startValue), Math.round(endValue));
  });
  lane.on("click", ({ data: point }) => point?.id && chosen(point.id));
  // before the chart's own: while a drag selects, it neither moves nor pinches
  const before = { capture: true };
  $("importance-chart").addEventListener("pointerdown", ({ pointerType, shiftKey }) => {
    if (isSelecting !== null) select(pointerType !== "touch" && !shiftKey);
  }, before);
}

/** Sets whether the next drag selects records. */
function select(does) {
  if (!canDrag || does === isSelecting) return;
  isSelecting = does;
  main.dispatchAction({ type: "takeGlobalCursor", key: "dataZoomSelect", dataZoomSelectActive: does });
}

/** Lets a drag select the records to show; the button for this stays out of sight. */
const dragging = () => ({
  itemSize: 0,
  left: -100,
  feature: { dataZoom: { show: canDrag, yAxisIndex: false, brushStyle: { color: colors().accent, opacity: 0.15 } } },
});

/** What changes are of, from the lowest lane on. */
const lanes = () => ["loss", ...Object.keys(data.about.methods).reverse()];

export function drawImportance() {
  const names = shown();
  drawMain(names);
  drawLane(names);
  const top = names.slice(0, 3).map((name) => {
    const { value, std_error: error } = data.features.get(name);
    return `${nameOf(name)} ${number(value)} ± ${number(error)}`;
  });
  $("importance-chart").setAttribute(
    "aria-label",
    names.length ? `${METHOD_NAMES[view.method] ?? ""} importance of ${names.length} features over time. Now: ${top.join(", ")}` : noExplanation(),
  );
  $("lane-chart").setAttribute("aria-label", `${data.changes.size} changes over time; they are listed under Changes`);
}

function drawMain(names) {
  const element = $("importance-chart");
  const { left, right } = margins(element, names.map(briefOf));
  const [first, last] = range();
  const values = extent(names, first, last);
  const height = element.clientHeight - TOP - BOTTOM;
  const offsets = spread(names, last, (value) => (height * (values.max - value)) / (values.max - values.min));
  const whole = [oldest(), Math.max(data.numbers.newest_seq, 1)];
  draw(main, {
    ...base(),
    title: emptyBecause(names.length ? "" : noExplanation(), element),
    grid: { left, right, top: TOP, bottom: BOTTOM },
    xAxis: recordAxis(whole, element.clientWidth, { show: names.length > 0 }, [first, last]),
    yAxis: valueAxis({ ...values, show: names.length > 0 }),
    dataZoom: [{
      type: "inside",
      filterMode: "none",
      startValue: first,
      endValue: last,
      rangeMode: ["value", "value"],
      zoomOnMouseWheel: "ctrl",
      moveOnMouseWheel: false,
      moveOnMouseMove: canDrag ? "shift" : true,
      minValueSpan: 20,
    }],
    toolbox: dragging(),
    tooltip: {
      ...base().tooltip,
      trigger: "axis",
      axisPointer: { type: "line", lineStyle: { color: colors().muted, type: "solid", width: 1 } },
      formatter: (points) => readout(points[0]?.axisValue, names),
    },
    series: [...(names.length ? zeroAndStory() : []), ...names.flatMap((name) => lineAndBand(name, right, offsets.get(name)))],
  });
  if (isSelecting === null) select(true);
}

/** Value range of all lines and most of the bands; the first records' bands are very wide. */
function extent(names, first, last) {
  const lows = [0];
  const highs = [0];
  for (const name of names) {
    const { seq, value, std_error: error } = lineOf(name) ?? { seq: [] };
    const inside = seq.map((_, i) => i).filter((i) => seq[i] >= first && seq[i] <= last);
    if (!inside.length) continue;
    const ends = (sign) => inside.map((i) => value[i] + 2 * sign * error[i]).sort((a, b) => a - b);
    const skipped = Math.floor(inside.length / 10);
    lows.push(ends(-1)[skipped], Math.min(...inside.map((i) => value[i])));
    highs.push(ends(1).at(-1 - skipped), Math.max(...inside.map((i) => value[i])));
  }
  return nice(Math.min(...lows), Math.max(...highs), 5);
}

/** Vertical offset of each name from the end of its line, so that no name covers another. */
function spread(names, last, place) {
  const labels = [];
  for (const name of names) {
    const line = lineOf(name);
    const i = line ? at(line, last) : null;
    if (i !== null) labels.push({ name, wanted: place(line.value[i]), y: 0 });
  }
  labels.sort((a, b) => a.wanted - b.wanted);
  labels.forEach((label, i) => {
    label.y = Math.max(label.wanted, i ? labels[i - 1].y + LABEL_HEIGHT : -Infinity);
  });
  // move back up by half of the largest push downwards
  const pushed = Math.max(0, ...labels.map((label) => label.y - label.wanted)) / 2;
  labels.reverse().forEach((label, i) => {
    const below = i ? labels[i - 1].y - LABEL_HEIGHT : Infinity;
    label.y = Math.min(label.y > label.wanted ? Math.max(label.y - pushed, label.wanted - pushed) : label.y, below);
  });
  return new Map(labels.map((label) => [label.name, label.y - label.wanted]));
}

function lineAndBand(name, right, offset) {
  const line = lineOf(name);
  if (!line || !line.seq.length) return [];
  const { color, dash } = styleOf(name);
  const isChosen = name === view.feature;
  return [
    band(name, line, color, isChosen),
    {
      id: `line ${name}`,
      name,
      type: "line",
      data: pairs(line),
      showSymbol: false,
      silent: true,
      z: isChosen ? 5 : 3,
      lineStyle: { color, type: dash, width: isChosen ? 2.4 : 1.6 },
      itemStyle: { color },
      endLabel: {
        show: true,
        distance: 6,
        offset: [0, offset ?? 0],
        formatter: () => `{dot|●} {name|${plain(fitted(briefOf(name), right - 28))}}`,
        rich: {
          dot: { color, fontSize: 9 },
          name: { color: colors().text, fontWeight: isChosen ? 600 : 500, fontSize: TEXT, lineHeight: LABEL_HEIGHT },
        },
      },
    },
  ];
}

/** Replaces braces and bars, which the chart would read as styles. */
const plain = (name) => name.replace(/[{}|]/g, (c) => ({ "{": "(", "}": ")", "|": "×" })[c]);

function band(name, line, color, isChosen) {
  const low = line.value.map((value, i) => value - 2 * line.std_error[i]);
  const high = line.value.map((value, i) => value + 2 * line.std_error[i]);
  return {
    id: `band ${name}`,
    type: "custom",
    silent: true,
    clip: true,
    z: 2,
    tooltip: { show: false },
    data: [[line.seq[0], Math.min(...low), Math.max(...high)]],
    encode: { x: 0, y: [1, 2] },
    renderItem: (_, api) => ({
      type: "polygon",
      shape: {
        points: [
          ...line.seq.map((seq, i) => api.coord([seq, high[i]])),
          ...line.seq.map((seq, i) => api.coord([seq, low[i]])).reverse(),
        ],
      },
      style: { fill: color, opacity: isChosen ? 0.2 : 0.11 },
    }),
  };
}

/** The zero line, and the open change. */
function zeroAndStory() {
  const { muted, text } = colors();
  const story = data.changes.get(view.change);
  const marks = [{ yAxis: 0, lineStyle: { color: muted, opacity: 0.6 }, label: { show: false } }];
  const areas = [];
  if (story) {
    marks.push({ xAxis: story.seq, lineStyle: { color: text, width: 1 }, label: { formatter: "detected", color: text, fontSize: TEXT, position: "insideEndTop", rotate: 0, align: "left", padding: [0, 0, 0, 4] } });
    if (story.after_seq !== null) areas.push([{ xAxis: story.after_seq }, { xAxis: story.seq }]);
  }
  return [{
    id: "marks",
    type: "line",
    data: [],
    silent: true,
    markLine: { silent: true, symbol: "none", animation: false, lineStyle: { type: "solid", width: 1 }, data: marks },
    markArea: { silent: true, itemStyle: { color: text, opacity: 0.07 }, data: areas },
  }];
}

function readout(seq, names) {
  if (seq === undefined) return "";
  const rows = names.map((name) => {
    const line = lineOf(name);
    const i = line ? at(line, seq) : null;
    return i === null ? null : { name, value: line.value[i], error: line.std_error[i] };
  }).filter(Boolean).sort((a, b) => b.value - a.value);
  const scale = Math.max(...rows.map((row) => Math.abs(row.value)), 0);
  return h(
    "div", { class: "readout" },
    h("p", {}, recordText(seq)),
    h("table", {}, ...rows.map(({ name, value, error }) => h(
      "tr", {}, h("td", {}, swatch(name)), h("th", {}, nameOf(name)),
      h("td", { class: "n" }, number(value, scale)), h("td", { class: "n" }, `± ${number(error, scale)}`),
    ))),
  );
}

export function swatch(name) {
  const style = styleOf(name);
  const mark = h("span", { class: "swatch", "aria-hidden": "true" });
  if (style) {
    mark.style.borderTopColor = style.color;
    mark.style.borderTopStyle = style.dash === "solid" ? "solid" : style.dash[0] < 3 ? "dotted" : "dashed";
  }
  return mark;
}

function drawLane(names) {
  const { left, right } = margins($("lane-chart"), names.map(briefOf));
  const { muted, grid, text } = colors();
  const groups = new Map();
  const heard = [...data.changes.values()].filter(({ feature }) => muteOf(feature) === null);
  for (const change of heard) {
    if (!change.incident) continue;
    const span = groups.get(change.incident) ?? [Infinity, -Infinity, 0];
    groups.set(change.incident, [Math.min(span[0], change.seq), Math.max(span[1], change.seq), span[2] + 1]);
  }
  const spans = [...groups.values()].filter((span) => span[2] > 1);
  draw(lane, {
    ...base(),
    grid: { left, right, top: 2, bottom: 4 },
    xAxis: recordAxis(range(), $("lane-chart").clientWidth, { axisLabel: { show: false }, axisTick: { show: false } }),
    yAxis: {
      type: "category",
      data: lanes().map((method) => METHOD_NAMES[method]),
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: { color: muted, fontSize: 10, interval: 0 },
      splitLine: { show: true, lineStyle: { color: grid } },
    },
    tooltip: { ...base().tooltip, trigger: "item", formatter: ({ data: point }) => point.id && tip(point.id) },
    series: [{
      id: "changes",
      type: "scatter",
      data: heard.filter((c) => c.kind === "drift").map((change) => mark(change, muted, text)),
      markArea: { silent: true, itemStyle: { color: text, opacity: 0.06 }, data: spans.map(([a, b]) => [{ xAxis: a }, { xAxis: b }]) },
    }],
  });
}

function mark(change, muted, text) {
  const isOpen = change.id === view.change;
  return {
    id: change.id,
    value: [change.seq, lanes().indexOf(change.method)],
    symbol: change.direction ? "triangle" : "circle",
    symbolRotate: change.direction === "fell" ? 180 : 0,
    symbolSize: isOpen ? 13 : 9,
    cursor: "pointer",
    z: isOpen ? 5 : 3,
    itemStyle: { color: change.feature === null ? muted : colorOf(change.feature), borderColor: isOpen ? text : "transparent", borderWidth: 1.5, opacity: change.note ? 0.35 : 1 },
  };
}

function tip(id) {
  const change = data.changes.get(id);
  return h("div", { class: "readout" }, h("p", {}, titleOf(change)), h("p", { class: "wrap" }, fromTo(change) || change.detail), h("p", { class: "muted" }, recordText(change.seq)));
}

export function importanceTable() {
  const names = shown();
  const lines = names.map(lineOf);
  const [first, last] = range();
  const seqs = Array.from({ length: 20 }, (_, i) => Math.round(first + ((last - first) * (i + 1)) / 20));
  const rows = seqs.map((seq) => [numberAndTime(seq), ...lines.map((line) => {
    const i = line ? at(line, seq) : null;
    return i === null ? "–" : `${number(line.value[i])} ± ${number(line.std_error[i])}`;
  })]);
  return table(`${METHOD_NAMES[view.method] ?? ""} importance ± standard error, at 20 records`, ["Record", ...names.map(nameOf)], rows);
}
