// Shared by all charts.

import { css, isDark } from "./palette.js";
import { tick } from "./format.js";
import { hasTimes, labelsOf } from "./times.js";

const charts = [];

export function chart(element) {
  const made = window.echarts.init(element, null, { renderer: "canvas" });
  new ResizeObserver(() => made.resize()).observe(element);
  charts.push(made);
  return made;
}

const drawn = new WeakMap();

/** Draws an option; if the series are the same as before, only the data is replaced. */
export function draw(plot, option) {
  const ids = JSON.stringify(option.series.map((series) => series.id));
  const isSame = drawn.get(plot) === ids;
  // else an open tooltip would ask for series that are gone
  if (!isSame && drawn.has(plot)) plot.dispatchAction({ type: "hideTip" });
  drawn.set(plot, ids);
  const parts = ["series", "grid", "xAxis", "yAxis", "title"].filter((part) => part in option);
  plot.setOption(option, { replaceMerge: isSame ? [] : parts, lazyUpdate: true });
}

/** Size of texts in charts, in pixels: larger on very wide screens, as on the page. */
export const TEXT = matchMedia("(min-width: 2300px)").matches ? 13 : 11;

export const FONT = "Inter, system-ui, sans-serif";

const ruler = document.createElement("canvas").getContext("2d");

/** Cuts a name to a width in pixels, in its middle: many begin alike. */
export function fitted(text, width) {
  ruler.font = `600 ${TEXT}px ${FONT}`;
  if (ruler.measureText(text).width <= width) return text;
  const letters = [...text];
  let most = letters.length;
  const cut = () => `${letters.slice(0, Math.floor(most / 2)).join("")}…${letters.slice(letters.length - Math.ceil(most / 2)).join("")}`;
  while (most > 1 && ruler.measureText(cut()).width > width) most -= 1;
  return cut();
}

/** Margins in pixels: on the left for the values, on the right for the names. */
export function margins(element, names) {
  const narrow = element.clientWidth < 520;
  ruler.font = `600 ${TEXT}px ${FONT}`;
  const longest = Math.max(0, ...names.map((name) => ruler.measureText(name).width));
  return { left: narrow ? 44 : 56, right: Math.ceil(Math.min(longest, narrow ? 62 : element.clientWidth > 1400 ? 240 : 140)) + 30 };
}

/** Ends and step of an axis from low to high with about so many parts. */
export function nice(low, high, parts) {
  const size = (high - low || Math.abs(high) || 1) / parts;
  const unit = 10 ** Math.floor(Math.log10(size));
  const interval = unit * [1, 2, 2.5, 5, 10].find((factor) => factor * unit >= size * 0.999);
  return { min: Math.floor(low / interval + 1e-9) * interval, max: Math.ceil(high / interval - 1e-9) * interval, interval };
}

export function colors() {
  return {
    text: css("--text"),
    muted: css("--muted"),
    line: css("--line"),
    grid: css("--grid"),
    card: css("--card"),
    accent: css("--accent"),
    isDark: isDark(),
  };
}

export function base() {
  const { text } = colors();
  return {
    animation: false,
    textStyle: { fontFamily: FONT, color: text, fontSize: TEXT },
    tooltip: {
      confine: true,
      transitionDuration: 0,
      className: "tooltip",
      backgroundColor: css("--card"),
      borderColor: css("--line"),
      padding: [8, 10],
      textStyle: { color: text, fontSize: 12, fontFamily: FONT },
      extraCssText: "",
    },
  };
}

/** Title that says in the middle of an empty chart why it is empty. */
export const emptyBecause = (text, element) => ({
  text,
  left: "50%",
  top: "middle",
  textAlign: "center",
  textStyle: { color: colors().muted, fontSize: TEXT + 2, lineHeight: TEXT + 8, fontWeight: 400, fontFamily: FONT, width: Math.min(element.clientWidth - 32, 560), overflow: "break" },
});

export function valueAxis(extra = {}) {
  const { muted, grid, line } = colors();
  return {
    type: "value",
    axisLine: { show: false, lineStyle: { color: line } },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: grid, width: 1 } },
    axisLabel: { color: muted, fontSize: TEXT, formatter: tick, hideOverlap: true },
    nameTextStyle: { color: muted, fontSize: TEXT },
    ...extra,
  };
}

export function recordAxis(range, width, extra = {}, shown = range) {
  const parts = Math.max(3, Math.floor(width / (hasTimes() ? 170 : 110)));
  const { line, muted } = colors();
  return valueAxis({
    min: range[0],
    max: Math.max(range[1], range[0] + 1),
    splitNumber: parts,
    splitLine: { show: false },
    axisLine: { show: true, onZero: false, lineStyle: { color: line } },
    axisTick: { show: true, length: 4, lineStyle: { color: line } },
    axisLabel: {
      color: muted,
      fontSize: TEXT,
      hideOverlap: true,
      showMinLabel: false,
      showMaxLabel: false,
      formatter: labelsOf(shown),
    },
    ...extra,
  });
}

export const pairs = (line, columns = ["value"]) =>
  line.seq.map((seq, i) => [seq, ...columns.map((name) => line[name][i])]);

/** The point of a line at or just before a record. */
export function at(line, seq) {
  let low = 0;
  let high = line.seq.length - 1;
  if (high < 0 || seq < line.seq[0]) return null;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (line.seq[middle] <= seq) low = middle;
    else high = middle - 1;
  }
  return low;
}
