// Draws iPDP: numeric features as lines, categorical ones as points, pairs as a heat map.

import { TEXT, base, colors, fitted, valueAxis } from "./charts.js";
import { number, tick } from "./format.js";
import { data, withUnit } from "./store.js";

export const isCategorical = (feature, curve) =>
  data.about.categorical.includes(feature) || curve.grid.some((value) => typeof value !== "number");

/** The effect to draw; with several classes, that of one class. */
export function effectOf(curve, classIndex) {
  if (!curve.classes) return curve.effect;
  return curve.effect[Math.min(classIndex, curve.effect.length - 1)];
}

/** The standard errors of an effect's points; null where they are not known. */
export function errorsOf(curve, classIndex) {
  const errors = curve.effect_std_error;
  if (!errors || !curve.classes) return errors ?? null;
  return errors[Math.min(classIndex, errors.length - 1)];
}

/**
 * Chart option for curves of a feature; those with points have bands of two standard errors.
 * Each of `strokes` is { curve, color, width, opacity, dash, name, points, hollow }.
 */
export function curveOption(feature, strokes, { classIndex = 0, size = "normal" } = {}) {
  const [last] = strokes.slice(-1);
  if (last.curve.second_grid) return surfaceOption(feature, last.curve, classIndex);
  const { muted, text } = colors();
  const categorical = isCategorical(feature, last.curve);
  const categories = categorical ? categoriesOf(strokes) : null;
  const right = strokes.some((stroke) => stroke.name) ? 64 : 16;
  const axis = valueAxis({
    type: categorical ? "category" : "value",
    scale: true,
    name: fitted(withUnit(feature), 240),
    nameLocation: "middle",
    nameGap: 24,
    splitLine: { show: false },
    axisLine: { show: true, onZero: false, lineStyle: { color: colors().line } },
  });
  if (categorical) {
    axis.data = categories;
    axis.boundaryGap = true;
    axis.axisLabel = { color: muted, fontSize: TEXT, hideOverlap: true, width: 70, overflow: "truncate" };
  }
  return {
    ...base(),
    grid: { left: 52, right, top: 12, bottom: size === "small" ? 38 : 42 },
    xAxis: axis,
    yAxis: valueAxis({ scale: true, splitNumber: size === "small" ? 3 : 4 }),
    tooltip: { ...base().tooltip, trigger: "axis", axisPointer: { type: "none" }, formatter: (points) => readout(points, strokes) },
    series: [...strokes.map((stroke, i) => {
      const effect = effectOf(stroke.curve, classIndex);
      const points = stroke.curve.grid.map((value, k) => [categorical ? String(value) : value, effect[k]]);
      return {
        id: `curve ${i}`,
        type: "line",
        data: points,
        silent: true,
        z: 2 + i,
        showSymbol: categorical || Boolean(stroke.points),
        symbol: "circle",
        symbolSize: stroke.points ? 6 : categorical ? 5 : 0,
        lineStyle: { color: stroke.color, width: categorical ? 0 : stroke.width, type: stroke.dash ?? "solid", opacity: stroke.opacity ?? 1 },
        itemStyle: { color: stroke.hollow ? colors().card : stroke.color, borderColor: stroke.color, borderWidth: stroke.hollow ? 1.6 : 0, opacity: stroke.opacity ?? 1 },
        endLabel: { show: Boolean(stroke.name) && !categorical, formatter: stroke.name, color: text, fontSize: TEXT, distance: 6 },
        labelLayout: { moveOverlap: "shiftY" },
      };
    }), ...strokes.map((stroke, i) => band(stroke, i, { classIndex, categorical })).filter(Boolean)],
  };
}

/** Two standard errors on each side of a curve: an area, or a line for each category. */
function band({ curve, color, points }, i, { classIndex, categorical }) {
  const errors = points ? errorsOf(curve, classIndex) : null;
  const effect = effectOf(curve, classIndex);
  const fits = Array.isArray(errors) && errors.length === effect.length;
  if (!fits || (errors.includes(null) && !categorical)) return null;
  const rows = curve.grid.map((value, k) => [categorical ? String(value) : value, effect[k] - 2 * errors[k], effect[k] + 2 * errors[k]]);
  const low = Math.min(...rows.map((row) => row[1]));
  const high = Math.max(...rows.map((row) => row[2]));
  const area = (api) => ({
    type: "polygon",
    shape: { points: [...rows.map((row) => api.coord([row[0], row[2]])), ...rows.map((row) => api.coord([row[0], row[1]])).reverse()] },
    style: { fill: color, opacity: 0.15 },
  });
  const bar = (api) => {
    const [x, from] = api.coord([api.value(0), api.value(1)]);
    const [, to] = api.coord([api.value(0), api.value(2)]);
    return { type: "line", shape: { x1: x, y1: from, x2: x, y2: to }, style: { stroke: color, lineWidth: 1.5 } };
  };
  return {
    id: `band ${i}`,
    type: "custom",
    silent: true,
    z: 1,
    tooltip: { show: false },
    data: categorical ? rows.filter((_, k) => errors[k] !== null) : [[rows[0][0], low, high]],
    encode: { x: 0, y: [1, 2] },
    renderItem: (_, api) => (categorical ? bar(api) : area(api)),
  };
}

function categoriesOf(strokes) {
  const values = [...new Set(strokes.flatMap((stroke) => stroke.curve.grid))];
  values.sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : 1));
  return values.map(String);
}

function readout(points, strokes) {
  const list = document.createElement("div");
  list.className = "readout";
  for (const { seriesIndex, value } of points) {
    const { name, points: isMain } = strokes[seriesIndex] ?? {};
    if (!name && !isMain) continue;
    const line = document.createElement("p");
    line.textContent = `${name ?? "Now"}: ${number(value[1])} at ${typeof value[0] === "number" ? tick(value[0]) : value[0]}`;
    list.append(line);
  }
  return list.childElementCount ? list : "";
}

function surfaceOption(pair, curve, classIndex) {
  const [first, second] = pair.split("|").map(withUnit);
  const { muted, text, isDark } = colors();
  const surface = effectOf(curve, classIndex);
  const cells = surface.flatMap((row, i) => row.map((value, j) => [i, j, value]));
  const values = cells.map((cell) => cell[2]);
  const name = { nameLocation: "middle", nameTextStyle: { color: muted, fontSize: TEXT }, axisTick: { show: false }, axisLine: { show: false } };
  const label = { color: muted, fontSize: 10, hideOverlap: true };
  const format = (value) => (typeof value === "number" ? tick(Number(value.toPrecision(3))) : String(value));
  return {
    ...base(),
    grid: { left: 66, right: 70, top: 12, bottom: 42 },
    xAxis: { type: "category", data: curve.grid.map(format), name: first, nameGap: 24, axisLabel: label, ...name },
    yAxis: { type: "category", data: curve.second_grid.map(format), name: second ?? "", nameGap: 46, axisLabel: label, ...name },
    visualMap: {
      min: Math.min(...values),
      max: Math.max(...values),
      calculable: false,
      orient: "vertical",
      right: 0,
      top: "middle",
      itemHeight: 120,
      itemWidth: 10,
      formatter: (value) => number(value),
      textStyle: { color: text, fontSize: 10 },
      // from blue over a neutral tone to orange: readable without red and green
      inRange: { color: isDark ? ["#56b4e9", "#2a3139", "#e69f00"] : ["#0072b2", "#f1f3f5", "#d55e00"] },
    },
    tooltip: { ...base().tooltip, trigger: "item", formatter: ({ value }) => document.createTextNode(number(value[2])) },
    series: [{ id: "surface", type: "heatmap", data: cells }],
  };
}
