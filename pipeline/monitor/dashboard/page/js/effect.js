// The chosen feature's iPDP: current curve, earlier ones, and ICE curves.

import { $, h, options, setText, table } from "./dom.js";
import { count, number } from "./format.js";
import { chart, colors, emptyBecause } from "./charts.js";
import { data, nameOf, ranked, view, withUnit } from "./store.js";
import { curveOption, effectOf, errorsOf, isCategorical } from "./curves.js";
import { colorOf } from "./palette.js";
import * as api from "./api.js";

let plot;
let known = null; // curves, with the key of chosen() in `of`
let classIndex = 0;
let asked = 0;
let later = null;

const EVERY_MS = 2_000;

export function makeEffect() {
  plot = chart($("effect-chart"));
  $("class").addEventListener("change", (event) => {
    classIndex = Number(event.target.value);
    drawEffect();
  });
}

/** The feature to show: the chosen one, or the most important with a curve. */
export function effectFeature() {
  const curves = new Set(data.numbers?.curves);
  return view.feature ?? ranked().find((feature) => curves.has(feature.name))?.name ?? null;
}

/** Key of the curves to show. */
const chosen = () => JSON.stringify([view.stream, view.alpha, effectFeature()]);

/** The chosen feature's curves; null before they have been fetched. */
const shown = () => (known?.of === chosen() ? known : null);

/** Fetches the curves; later, if the same ones have just been fetched. */
export async function fetchEffect({ force = false } = {}) {
  const feature = effectFeature();
  if (feature === null || view.stream === null) return;
  const of = chosen();
  const wait = asked + EVERY_MS - performance.now();
  if (!force && shown() && wait > 0) {
    later ??= setTimeout(() => {
      later = null;
      fetchEffect();
    }, wait);
    return;
  }
  asked = performance.now();
  const answer = await api.curves(view, feature);
  // meanwhile another stream, smoothing rate or feature may have been chosen
  if (of !== chosen()) return;
  known = { current: null, ...answer, of };
  drawEffect();
}

export function drawEffect() {
  const feature = effectFeature();
  setText($("effect-title"), feature === null ? "Effect of a feature" : `Effect of ${withUnit(feature)}`);
  const unit = data.about.regression ? "mean prediction" : "mean predicted probability";
  const current = shown()?.current;
  $("class-field").hidden = !current?.classes;
  if (!current) {
    plot.clear();
    plot.setOption({ title: emptyBecause(missing(feature), $("effect-chart")) });
    setText($("effect-unit"), "");
    $("effect-chart").setAttribute("aria-label", missing(feature));
    $("effect-legend").replaceChildren();
    return;
  }
  if (current.classes) {
    options($("class"), current.classes.map((_, i) => i), Math.min(classIndex, current.classes.length - 1), (i) => String(current.classes[i]));
  }
  $("effect-legend").classList.toggle("points", isCategorical(feature, current));
  setText($("effect-unit"), `iPDP, ${unit}, record ${count(current.seq)}`);
  const color = colorOf(feature);
  plot.setOption(curveOption(feature, strokes(color), { classIndex }), { notMerge: true });
  const isSurface = Boolean(current.second_grid);
  $("effect-legend").replaceChildren(...(isSurface ? [] : [
    item("now", current.effect_std_error ? "now, with grid points, ± 2 standard errors" : "now, with grid points", color),
    known.earlier.length ? item("earlier", plural(known.earlier.length, "earlier curve"), color) : null,
    known.ice.length ? item("ice", plural(known.ice.length, "ICE curve")) : null,
  ].filter(Boolean)));
  $("effect-chart").setAttribute("aria-label", summary(feature));
}

/** Says why there is no curve. */
function missing(feature) {
  if (feature === null) return "No curve yet: curves begin after the warm-up.";
  return shown() ? `iPDP has no curve of ${nameOf(feature)}.` : "Loading …";
}

const plural = (n, thing) => `${n} ${thing}${n === 1 ? "" : "s"}`;

function item(kind, text, color) {
  const key = h("span", { class: `key ${kind}`, "aria-hidden": "true" });
  if (color) key.style.borderColor = color;
  return h("li", {}, key, text);
}

function strokes(color) {
  const { muted } = colors();
  const { earlier, ice, current } = known;
  return [
    ...ice.map((curve) => ({ curve: { ...curve, classes: current.classes }, color: muted, width: 0.8, opacity: 0.35 })),
    ...earlier.map((curve, i) => ({ curve, color, width: 1.2, opacity: 0.12 + (0.4 * (i + 1)) / earlier.length })),
    { curve: current, color, width: 2.4, points: true },
  ];
}

function summary(feature) {
  const effect = effectOf(known.current, classIndex).flat();
  return `Effect of ${nameOf(feature)} on the output: from ${number(Math.min(...effect))} to ${number(Math.max(...effect))} over ${known.current.grid.length} values`;
}

export function effectTable() {
  const feature = effectFeature();
  const current = shown()?.current;
  if (!current) return h("p", { class: "empty" }, "There is no curve yet.");
  const effect = effectOf(current, classIndex);
  if (current.second_grid) {
    const rows = current.grid.map((value, i) => [String(value), ...effect[i].map((each) => number(each))]);
    return table(`Effect of ${nameOf(feature)}`, ["", ...current.second_grid.map(String)], rows);
  }
  const errors = errorsOf(current, classIndex);
  const measured = (i) => (typeof errors?.[i] === "number" ? `${number(effect[i])} ± ${number(errors[i])}` : number(effect[i]));
  return table(`Effect of ${nameOf(feature)}`, [withUnit(feature), "Effect ± standard error"], current.grid.map((value, i) => [String(value), measured(i)]));
}
