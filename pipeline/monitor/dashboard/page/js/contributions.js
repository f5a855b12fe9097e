// The contributions to one output, as a table with bars: each begins where the one before it ends.

import { h, svg } from "./dom.js";
import { number, sentText, signed } from "./format.js";
import { nameOf, unitOf } from "./store.js";

/** Way of a record → how its contributions were found. */
const HOW = {
  structure: "exact, from the structure of the model",
  subsets: "exact, from all sets of features",
  permutations: "estimated from permutations of the features; thin lines are ± 2 standard errors",
};

/** Shows one record of reasons; with several labels each has a block. */
export function block(record) {
  const what = record.label === null ? "Output" : `Probability of ${record.label}`;
  const scale = Math.max(Math.abs(record.output), Math.abs(record.base));
  const [output, base] = [number(record.output, scale), number(record.base, scale)];
  return h("section", {},
    h("h3", {}, `${what}: ${output}; on average of recent observations ${base}`),
    h("div", { class: "contributions", role: "region", "aria-label": `Contributions to ${what}`, tabIndex: 0 },
      h("table", {},
        h("thead", {}, h("tr", {}, ...["Feature", "Value", "Adds", "From the average to the output"].map((name, i) => h("th", { scope: "col", class: i === 2 ? "n" : "" }, name)))),
        h("tbody", {}, ...lines(record, output, base)))),
    h("p", { class: "note" }, `Contributions are ${HOW[record.way]}. The average and they sum to the output.${imputed(record)}`));
}

/** Names the members of groups whose value was missing. */
function imputed({ names, missing }) {
  const inside = (missing ?? []).filter((name) => !names.includes(name));
  return inside.length ? ` Missing in groups, and replaced: ${inside.map(nameOf).join(", ")}.` : "";
}

function lines(record, output, base) {
  const steps = stepsOf(record);
  const x = scaleOf(record, steps);
  const size = Math.max(...steps.map(({ adds }) => Math.abs(adds)), 0);
  return [
    line({ name: "average (base)", text: base, drawing: [mark(x(record.base))] }),
    ...steps.map((step) => line({ ...step, text: addition(step, size), drawing: bar(step, x, x(record.base)) })),
    line({ name: "output", text: output, drawing: [mark(x(record.output))] }),
  ];
}

/** What each feature adds, and from where to where. */
function stepsOf({ base, names, contributions, std_errors: errors, values, missing, rest, way }) {
  const steps = names.map((name, i) => ({ name: nameOf(name), unit: unitOf(name), value: values[i], isMissing: missing?.includes(name), adds: contributions[i], error: way === "permutations" ? errors[i] : null }));
  if (rest) steps.push({ name: "all others", value: null, adds: rest, error: null });
  let from = base;
  for (const step of steps) {
    step.from = from;
    from += step.adds;
    step.to = from;
  }
  return steps;
}

function scaleOf({ base, output }, steps) {
  const ends = [base, output, ...steps.flatMap(({ to, error }) => [to - 2 * (error ?? 0), to + 2 * (error ?? 0)])];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  return (value) => 4 + (292 * (value - low)) / (high - low || 1);
}

const addition = ({ adds, error }, size) => `${signed(adds, size)}${error === null ? "" : ` ± ${number(error, size)}`}`;

function line({ name, unit = "", value = null, isMissing = false, adds = 0, text, drawing }) {
  const direction = { "1": "▲", "-1": "▼" }[Math.sign(adds)] ?? "";
  return h("tr", {},
    h("th", { scope: "row" }, name),
    h("td", { class: "value" }, value === null ? "" : `${sentText(value, isMissing)}${unit}`),
    h("td", { class: "n" }, text, " ", h("span", { class: "direction", "aria-hidden": "true" }, direction)),
    h("td", { class: "drawing" }, svg("svg", { viewBox: "0 0 300 16", preserveAspectRatio: "none", "aria-hidden": "true" }, ...drawing)));
}

function bar({ from, to, adds, error }, x, base) {
  const whisker = error ? [stroke("whisker-line", x(to - 2 * error), x(to + 2 * error))] : [];
  return [stroke("base", base, base, 0, 16), stroke(adds < 0 ? "lowered" : "raised", x(from), x(to)), ...whisker];
}

const mark = (at) => stroke("mark", at, at, 1, 15);

const stroke = (name, x1, x2, y1 = 8, y2 = 8) => svg("line", { class: name, x1, x2, y1, y2, "vector-effect": "non-scaling-stroke" });
