// Charts of loss and accuracy, over the same records as the importances.

import { $, h, table } from "./dom.js";
import { number, percent } from "./format.js";
import { TEXT, at, base, chart, colors, draw, emptyBecause, nice, pairs, recordAxis, valueAxis } from "./charts.js";
import { data, range } from "./store.js";
import { numberAndTime, recordText } from "./times.js";

let plot;

export function makePerformance() {
  plot = chart($("performance-chart"));
}

const hasAccuracy = () => data.numbers.performance.accuracy.some((share) => share !== null);

export function drawPerformance() {
  const trend = data.numbers.performance;
  const { muted, isDark } = colors();
  const both = hasAccuracy();
  const grid = { left: 56, right: 14 };
  const title = (text, top) => ({ text, left: 0, top, textStyle: { fontSize: TEXT, fontWeight: 500, color: muted } });
  const x = recordAxis(range(), $("performance-chart").clientWidth, { show: trend.seq.length > 0 });
  const line = (name, index, color) => ({
    id: name,
    name,
    type: "line",
    xAxisIndex: index,
    yAxisIndex: index,
    showSymbol: false,
    data: pairs(trend, [name]),
    lineStyle: { color, width: 1.6 },
    itemStyle: { color },
    connectNulls: true,
  });
  draw(plot, {
    ...base(),
    title: trend.seq.length
      ? [title(`Loss (${data.about.loss})`, 0), ...(both ? [title("Accuracy", "50%")] : [])]
      : [emptyBecause("No record with a label yet: the loss needs labels.", $("performance-chart"))],
    grid: both
      ? [{ ...grid, top: 22, height: "30%" }, { ...grid, top: "60%", bottom: 24 }]
      : [{ ...grid, top: 22, bottom: 24 }],
    xAxis: both ? [{ ...x, gridIndex: 0, axisLabel: { show: false } }, { ...x, gridIndex: 1 }] : [x],
    yAxis: [
      valueAxis(extent(trend, "loss", both ? 2 : 5)),
      ...(both ? [{ ...valueAxis(extent(trend, "accuracy", 2)), gridIndex: 1, axisLabel: { color: muted, fontSize: TEXT, formatter: (share) => `${Math.round(100 * share)} %` } }] : []),
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
  const last = trend.seq.length - 1;
  $("performance-chart").setAttribute("aria-label", last < 0 ? "No loss yet" : `Mean loss now ${number(trend.loss[last])}${both ? `, accuracy ${percent(trend.accuracy[last])}` : ""}`);
}

function extent(trend, name, parts) {
  const [first, last] = range();
  const values = trend[name].filter((value, i) => value !== null && trend.seq[i] >= first && trend.seq[i] <= last);
  return values.length ? nice(Math.min(...values), Math.max(...values), parts) : {};
}

function readout(seq) {
  const trend = data.numbers.performance;
  const i = seq === undefined ? null : at(trend, seq);
  if (i === null) return "";
  const accuracy = trend.accuracy[i];
  return h(
    "div", { class: "readout" },
    h("p", {}, recordText(trend.seq[i])),
    h("p", {}, `Loss ${number(trend.loss[i])}${accuracy === null ? "" : ` · accuracy ${percent(accuracy)}`}`),
  );
}

export function performanceTable() {
  const trend = data.numbers.performance;
  const step = Math.max(1, Math.ceil(trend.seq.length / 20));
  const rows = trend.seq.map((seq, i) => [numberAndTime(seq), number(trend.loss[i]), trend.accuracy[i] === null ? "–" : percent(trend.accuracy[i])])
    .filter((_, i) => (trend.seq.length - 1 - i) % step === 0);
  return table(`Means of the last ${trend.window} labelled records`, ["Record", "Loss", "Accuracy"], rows);
}
