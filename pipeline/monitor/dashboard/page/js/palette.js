// A colour and a dash for each feature, which follow from its place among the names of the settings.
// Figures choose the same ones: monitor/figures/style.py.
// Okabe and Ito's colours differ for colour-blind people too; dashes distinguish further features.

import { data, nameOf } from "./store.js";

const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#3d4551"];
const DARK = ["#56b4e9", "#e69f00", "#2bbd92", "#cc79a7", "#f0e442", "#e8743b", "#c9d1dc"];
const DASHES = ["solid", [6, 3], [2, 2.5], [9, 3, 2, 3]];

const styles = new Map(); // shown feature → places of its colour and its dash

/** Gives each shown feature its colour; of several with the same, each another dash if there is one. */
export function assign(names) {
  styles.clear();
  const taken = new Set();
  for (const name of names) {
    const place = placeOf(name);
    const color = place % LIGHT.length;
    let dash = Math.floor(place / LIGHT.length) % DASHES.length;
    for (let i = 0; i < DASHES.length && taken.has(`${color} ${dash}`); i += 1) dash = (dash + 1) % DASHES.length;
    taken.add(`${color} ${dash}`);
    styles.set(name, { color, dash });
  }
}

/** Place of a feature among the names of the settings; of another one, a number from its name. */
function placeOf(name) {
  const place = data.about.places.indexOf(nameOf(name));
  return place >= 0 ? place : [...name].reduce((sum, letter) => (31 * sum + letter.codePointAt(0)) % 9973, 0);
}

export function styleOf(name) {
  const style = styles.get(name);
  return style ? { color: colorAt(style.color), dash: DASHES[style.dash] } : null;
}

/** The colour of a feature, also of one that is not shown. */
export const colorOf = (name) => colorAt(placeOf(name) % LIGHT.length);

const colorAt = (i) => (isDark() ? DARK : LIGHT)[i];

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
