// A colour and a dash for each feature, which follow from the names of a stream's features.
// Okabe and Ito's colours differ for colour-blind people too; dashes distinguish further features.

import { byName } from "./format.js";

const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#3d4551"];
const DARK = ["#56b4e9", "#e69f00", "#2bbd92", "#cc79a7", "#f0e442", "#e8743b", "#c9d1dc"];
const DASHES = ["solid", [6, 3], [2, 2.5], [9, 3, 2, 3]];

const STYLES = LIGHT.length * DASHES.length;

const slots = new Map();

/** Gives each shown feature the style of its place among all; of two with the same, the first. */
export function assign(names, all) {
  const places = new Map([...all].sort(byName.compare).map((name, place) => [name, place % STYLES]));
  slots.clear();
  const taken = new Set();
  for (const name of names) {
    let slot = places.get(name);
    while (taken.has(slot) && taken.size < STYLES) slot = (slot + 1) % STYLES;
    taken.add(slot);
    slots.set(name, slot);
  }
}

export function styleOf(name) {
  const slot = slots.get(name);
  if (slot === undefined) return null;
  const colors = isDark() ? DARK : LIGHT;
  // 7 and 4 have no common divisor: 28 different pairs
  const dash = DASHES[slot % DASHES.length];
  return { color: colors[slot % colors.length], dash };
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
