// Of one change: why it happened, where it lies, and which observations moved it most.

import { $, h } from "./dom.js";
import { nameOf, unitOf } from "./store.js";
import { count, exactText, signed, valueText } from "./format.js";
import { colors } from "./charts.js";
import { errorBars } from "./bars.js";
import { reasonsLink } from "./reasons.js";

const SIGNS = { "<=": "≤", ">": ">", "==": "=", "!=": "≠" };

let shown = null; // the change whose observations are listed

/** Returns the sections that are known of a change. */
export function origin(story) {
  shown = story;
  return [
    story.cause && h("section", {}, h("h3", {}, "Why"), h("p", {}, why(story.cause)), errorBars(partsOf(story.cause), colors().accent)),
    story.region && h("section", {}, h("h3", {}, "Where"), h("p", {}, where(story.region))),
    story.returns_to && h("section", {}, h("h3", {}, "Like before"), h("p", {}, like(story.returns_to))),
    story.evidence?.length ? h("section", {}, h("h3", {}, "Which records"), h("ul", { id: "story-evidence" }, ...evidence())) : null,
  ];
}

/** Draws the observations again, since reasons for some may be known now. */
export function drawEvidence() {
  const list = $("story-evidence");
  if (!list) return;
  const fresh = h("ul", {}, ...evidence());
  if (fresh.innerHTML !== list.innerHTML) list.replaceChildren(...fresh.children);
}

const percent = (share) => `${Math.round(100 * share)} %`;

function why({ kind, data, model, interaction }) {
  const parts = [data, model].map((part) => part + interaction / 2);
  const shares = parts.map((part) => part / (parts[0] + parts[1]));
  const [ofData, ofModel] = shares.map((share) => (share >= 0 && share <= 1 ? ` (${percent(share)})` : ""));
  return {
    data: `Mostly because the data changed${ofData}.`,
    model: `Mostly because the model changed${ofModel}.`,
    both: `Because both the data${ofData} and the model${ofModel} changed.`,
    labels: "Because the labels fit the outputs differently: the model is the same, and the feature does not move its output enough to explain the change.",
    unclear: "It is not clear whether the data or the model changed: neither explains the change beyond its error.",
  }[kind];
}

function partsOf(cause) {
  const rows = [["Data", "data"], ["Model", "model"], ["Together", "interaction"]];
  return rows.map(([name, part]) => ({ name, mean: cause[part], error: cause[`${part}_std_error`], isFaint: part === "interaction" }))
    .filter(({ mean, error, isFaint }) => !isFaint || mean !== 0 || error !== 0);
}

const grouped = (value) => (Number.isInteger(value) ? count(value).replace("-", "−") : valueText(value));

function where({ conditions, coverage, share }) {
  const region = conditions.map(({ feature, op, value }) => `${nameOf(feature)} ${SIGNS[op]} ${exactText(value)}${unitOf(feature)}`).join(" and ");
  return `${region || "everywhere"}: ${percent(coverage)} of the observations, ${percent(share)} of the change`;
}

const like = ({ begin, end }) => `The features have the same shares of all importance as between records ${count(begin)} and ${count(end)}.`;

const evidence = () => shown.evidence.map((each) => h("li", {}, "record ", reasonsLink(shown.stream, each.seq), named(each), moved(each), unseen(each)));

const named = ({ id }) => (id === null ? "" : ` (id ${id})`);

const moved = ({ increment }) => (increment === null ? "" : `: increment ${signed(increment)}`);

function unseen({ feature, value, low, high }) {
  if (feature === null || value === null) return "";
  const before = low === null || high === null ? "not seen before" : `outside of ${grouped(low)} to ${grouped(high)} before`;
  return `; ${nameOf(feature)} = ${grouped(value)}${unitOf(feature)}, ${before}`;
}
