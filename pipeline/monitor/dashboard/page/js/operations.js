// Key figures and the status of the pipeline.

import { $, h, setText, svg } from "./dom.js";
import { compact, count, number, percent, plural } from "./format.js";
import { data } from "./store.js";

const figures = new Map();

export function drawFigures() {
  const { records, labels, rate, performance, roles, letter_count: letters, change_count: changes } = data.numbers;
  const last = performance.seq.length - 1;
  const accuracy = last < 0 ? null : performance.accuracy[last];
  const labelled = `last ${count(performance.window)} records`;
  figure("Records", compact(records), "of this stream");
  if (labels) figure("Late labels", compact(labels.joined), `${compact(labels.waiting)} pending, ${compact(labels.missing)} missing`);
  figure("Throughput", `${count(rate)}/s`, null, sparkline(data.rates));
  figure("Loss", last < 0 ? "–" : number(performance.loss[last]), labelled);
  if (!data.about.regression) figure("Accuracy", accuracy === null ? "–" : percent(accuracy), labelled);
  const lag = roles.reduce((sum, role) => Math.max(sum, role.lag), 0);
  figure("Largest lag", roles.length ? compact(lag) : "–", "messages waiting");
  figure("Changes", compact(changes), "since the beginning");
  figure("Dead letters", compact(letters), letters ? "reasons below" : "none", null, letters > 0);
}

function figure(name, value, note, drawing = null, isBad = false) {
  let parts = figures.get(name);
  if (!parts) {
    parts = { value: h("dd", { class: "n" }), note: h("dd", { class: "note" }) };
    figures.set(name, parts);
    $("figures").append(h("div", {}, h("dt", {}, name), parts.value, parts.note));
  }
  setText(parts.value, value);
  parts.value.classList.toggle("bad", isBad);
  if (drawing) parts.note.replaceChildren(drawing);
  else setText(parts.note, note);
}

function sparkline(rates) {
  const top = Math.max(...rates, 1);
  const points = rates.map((rate, i) => `${100 - (rates.length - 1 - i) / 1.19},${19 - (18 * rate) / top}`).join(" ");
  return svg("svg", { viewBox: "0 0 100 20", preserveAspectRatio: "none", class: "sparkline", "aria-hidden": "true" },
    svg("polyline", { points, fill: "none", stroke: "currentColor", "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" }));
}

let drawn = "";

export function drawOperations() {
  const { roles, letters, letter_count: total, notices, trouble } = data.numbers;
  const leftOut = Object.entries(data.numbers.left_out);
  const key = JSON.stringify([roles, letters, notices, trouble, leftOut]);
  if (key === drawn) return;
  drawn = key;
  $("operations").replaceChildren(
    h("section", {}, h("h3", {}, "Lag of each role"), lags(roles, trouble)),
    h("section", {}, h("h3", {}, `Dead letters (${count(total)})`), letters.length
      ? h("ul", { class: "reasons", tabIndex: 0 }, ...[...letters].reverse().map(reason))
      : h("p", { class: "empty" }, "None: all records were valid.")),
    ...(notices.length || leftOut.length ? [h("section", {}, h("h3", {}, "Notices"), h("ul", { class: "reasons", tabIndex: 0 },
      ...leftOut.map(([why, n]) => h("li", {}, `${plural(n, "record")} ${why}.`)),
      ...[...notices].reverse().map((notice) => h("li", {}, notice.detail, h("span", { class: "muted" }, ` – ${notice.stream}, ${count(notice.seq)}`)))))] : []),
  );
}

function lags(roles, trouble) {
  if (trouble) return h("p", { class: "empty" }, trouble);
  if (!roles.length) return h("p", { class: "empty" }, "Reading the lag from the broker …");
  return h(
    "table", { class: "lags" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Role"), h("th", { scope: "col" }, "Reads"), h("th", { scope: "col", class: "n" }, "Lag, messages"))),
    h("tbody", {}, ...roles.map((role) => h("tr", {}, h("th", { scope: "row" }, role.part), h("td", {}, role.topic), h("td", { class: "n" }, count(role.lag))))),
  );
}

function reason(letter) {
  return h("li", {}, letter.reason, h("span", { class: "muted" }, ` – ${letter.topic}-${letter.partition}, offset ${count(letter.offset)}`));
}
