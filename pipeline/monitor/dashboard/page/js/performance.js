// Loss and accuracy over the same records as the importances.

import { $, h, table } from "./dom.js";
import { count, number, percent } from "./format.js";
import { at, base, chart, colors, draw, nice, pairs, recordAxis, valueAxis } from "./charts.js";
import { data, range } from "./store.js";

let plot;

export function makePerformance() {
  plot = chart($("performance-chart"));
}

const hasAccuracy = () => data.numbers.performance.accuracy.some((share) => share !== null);

export function drawPerformance() {
  const course = data.numbers.performance;
  const { muted, isDark } = colors();
  const both = hasAccuracy();
  const grid = { left: 56, right: 14 };
  const title = (text, top) => ({ text, left: 0, top, textStyle: { fontSize: 11, fontWeight: 500, color: muted } });
  const x = recordAxis(range(), $("performance-chart").clientWidth);
  const line = (name, index, color) => ({
    id: name,
    name,
    type: "line",
    xAxisIndex: index,
    yAxisIndex: index,
    showSymbol: false,
    data: pairs(course, [name]),
    lineStyle: { color, width: 1.6 },
    itemStyle: { color },
    connectNulls: true,
  });
  draw(plot, {
    ...base(),
    title: [title(`Loss (${data.about.loss})`, 0), ...(both ? [title("Accuracy", "50%")] : [])],
    grid: both
      ? [{ ...grid, top: 22, height: "30%" }, { ...grid, top: "60%", bottom: 24 }]
      : [{ ...grid, top: 22, bottom: 24 }],
    xAxis: both ? [{ ...x, gridIndex: 0, axisLabel: { show: false } }, { ...x, gridIndex: 1 }] : [x],
    yAxis: [
      valueAxis(extent(course, "loss", both ? 2 : 5)),
      ...(both ? [{ ...valueAxis(extent(course, "accuracy", 2)), gridIndex: 1, axisLabel: { color: muted, fontSize: 11, formatter: (share) => `${Math.round(100 * share)} %` } }] : []),
    ],
    axisPointer: { link: [{ xAxisIndex: "all" }] },
    tooltip: {
      ...base().tooltip,
      trigger: "axis",
      axisPointer: { type: "line", lineStyle: { color: muted, type: "solid" } },
      formatter: (points) => readout(points[0]?.axisValue),
    },
    series: [
      line("loss", 0, isDark ? "#e8743b" : "#d55e00"),
      ...(both ? [line("accuracy", 1, isDark ? "#56b4e9" : "#0072b2")] : []),
    ],
  });
  const last = course.seq.length - 1;
  $("performance-chart").setAttribute("aria-label", last < 0 ? "No loss yet" : `Mean loss now ${number(course.loss[last])}${both ? `, accuracy ${percent(course.accuracy[last])}` : ""}`);
}

function extent(course, name, parts) {
  const [first, last] = range();
  const values = course[name].filter((value, i) => value !== null && course.seq[i] >= first && course.seq[i] <= last);
  return values.length ? nice(Math.min(...values), Math.max(...values), parts) : {};
}

function readout(seq) {
  const course = data.numbers.performance;
  const i = seq === undefined ? null : at(course, seq);
  if (i === null) return "";
  const accuracy = course.accuracy[i];
  return h(
    "div", { class: "readout" },
    h("p", {}, `Record ${count(course.seq[i])}`),
    h("p", {}, `Loss ${number(course.loss[i])}${accuracy === null ? "" : ` · accuracy ${percent(accuracy)}`}`),
  );
}

export function performanceTable() {
  const course = data.numbers.performance;
  const step = Math.max(1, Math.ceil(course.seq.length / 20));
  const rows = course.seq.map((seq, i) => [count(seq), number(course.loss[i]), course.accuracy[i] === null ? "–" : percent(course.accuracy[i])])
    .filter((_, i) => (course.seq.length - 1 - i) % step === 0);
  return table(`Means of the last ${course.window} labelled records`, ["Record", "Loss", "Accuracy"], rows);
}
