// A colour and a dash for each shown feature, kept as long as it is shown.
// Okabe and Ito's colours differ for colour-blind people too; dashes distinguish further features.

const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#3d4551"];
const DARK = ["#56b4e9", "#e69f00", "#2bbd92", "#cc79a7", "#f0e442", "#e8743b", "#c9d1dc"];
const DASHES = ["solid", [6, 3], [2, 2.5], [9, 3, 2, 3]];

const slots = new Map();

export function assign(names) {
  for (const name of slots.keys()) if (!names.includes(name)) slots.delete(name);
  const taken = new Set(slots.values());
  let next = 0;
  for (const name of names) {
    if (slots.has(name)) continue;
    while (taken.has(next)) next += 1;
    taken.add(next);
    slots.set(name, next);
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
