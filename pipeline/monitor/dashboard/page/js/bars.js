// Numbers ± their standard errors as bars on one scale, with thin lines of ± 2 standard errors.

import { h, svg } from "./dom.js";
import { number } from "./format.js";
import { colors } from "./charts.js";

/** Shows rows of `{ name, mean, error, isFaint }`; an unknown error is null. */
export function errorBars(rows, color) {
  const ends = rows.flatMap(({ mean, error }) => [mean - 2 * (error ?? 0), mean + 2 * (error ?? 0)]);
  const low = Math.min(0, ...ends);
  const high = Math.max(0, ...ends);
  const x = (value) => 4 + (292 * (value - low)) / (high - low || 1);
  const scale = Math.max(...rows.map((row) => Math.abs(row.mean)));
  const { muted, text } = colors();
  const line = (x1, x2, stroke, width, extra = {}) => svg("line", { x1, x2, y1: 8, y2: 8, stroke, "stroke-width": width, "vector-effect": "non-scaling-stroke", ...extra });
  return h(
    "dl", { class: "means" },
    ...rows.flatMap(({ name, mean, error, isFaint }) => [
      h("dt", {}, name),
      h("dd", {},
        h("span", { class: "mean" }, h("b", {}, number(mean, scale)), error === null ? "" : ` ± ${number(error, scale)}`),
        svg("svg", { viewBox: "0 0 300 16", preserveAspectRatio: "none", "aria-hidden": "true" },
          line(x(0), x(0), muted, 1, { y1: 0, y2: 16 }),
          line(x(0), x(mean), color, isFaint ? 4 : 8, { "stroke-opacity": isFaint ? 0.55 : 1 }),
          ...(error === null ? [] : [line(x(mean - 2 * error), x(mean + 2 * error), text, 1.5)]))),
    ]),
  );
}
