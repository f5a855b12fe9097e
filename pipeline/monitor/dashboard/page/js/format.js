// Formats numbers and names.

import { nameOf } from "./store.js";

/** Method → its name; the server knows the methods. */
export const METHOD_NAMES = { loss: "loss" };

/** Sorts names, with 2 before 10. */
export const byName = new Intl.Collator("en", { numeric: true });

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

export const count = (n) => grouped.format(n);
export const compact = (n) => (Math.abs(n) < 10_000 ? grouped.format(n) : short.format(n));
export const plural = (n, thing) => `${count(n)} ${thing}${n === 1 ? "" : "s"}`;
export const percent = (share) => `${(100 * share).toFixed(1)} %`;

/** Formats a number with three digits of the scale, so that the numbers of a list line up. */
export function number(value, scale = Math.abs(value)) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (scale === 0) return "0";
  if (scale < 1e-4 || scale >= 1e6) return minus(value.toExponential(2));
  const digits = Math.min(Math.max(0, 2 - Math.floor(Math.log10(scale))), 6);
  const text = value.toFixed(digits);
  return minus(Number(text) === 0 ? text.replace("-", "") : text);
}

export const signed = (value, scale) => (value > 0 ? "+" : "") + number(value, scale);

/** The means before and after a change; nothing for a notice. */
export function fromTo({ before, after }) {
  const scale = Math.max(Math.abs(before ?? 0), Math.abs(after ?? 0));
  return after === null ? "" : `${number(before, scale)} → ${number(after, scale)}`;
}

/** Formats the value of a feature, a class or a number. */
export const valueText = (value) => (typeof value === "number" && !Number.isInteger(value) ? minus(String(Number(value.toPrecision(6)))) : String(value));

/** Formats the value of a condition, with all digits: with fewer it could be another condition. */
export const exactText = (value) => (typeof value === "number" ? minus(String(value).replace(/^-?\d+(?=\.|$)/, (whole) => count(Number(whole)))) : String(value));

/** Formats the value of a feature, or what replaced a missing one. */
export const sentText = (value, isMissing) => (isMissing ? `missing, replaced by ${valueText(value)}` : valueText(value));

/** Formats an axis label, with a true minus sign and no superfluous digits. */
export function tick(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return minus(value.toExponential(1).replace(".0e", "e"));
  if (size >= 10_000) return minus(short.format(value));
  return minus(String(Number(value.toPrecision(4))));
}

const minus = (text) => text.replace(/^-/, "−").replace("e-", "e−").replace("e+", "e");

/** Names what a change of an input or of the predictions is about. */
function distributionOf({ kind, feature, signal, category }) {
  if (signal === "share") return kind === "input" ? `The share of ${nameOf(feature)} = ${category}` : `The predicted probability of ${category}`;
  if (kind === "output") return signal === "spread" ? "The spread of the predictions" : "The mean prediction";
  return signal === "spread" ? `The spread of input ${nameOf(feature)}` : `Input ${nameOf(feature)}`;
}

/** Kind of a notice → its title. */
const NOTICES = {
  "cold-start": "Cold start",
  "upgrade": "Upgrade: results may differ slightly",
  "gap": "Gap: messages were lost",
  "schema": "Schema: fields appeared or went missing",
  "model": "Model: one took over or was withdrawn",
  "autocorrelation": "Autocorrelation: importances may be too small",
};

/** Status of a change → words. */
export const STATUS = {
  noticed: "not confirmed yet",
  confirmed: "confirmed",
  unclear: "not certain",
  transient: "did not last",
  reverted: "undone by a further change",
};

/** Names the feature that changed, else the signal. */
export const subjectOf = (change) => (change.feature === null ? null : nameOf(change.feature)) ?? (change.signal === "error" ? "wrong predictions" : "loss");

export function titleOf(change) {
  const verb = change.direction ?? "changed";
  if (change.kind === "input" || change.kind === "output") return `${distributionOf(change)} ${verb}`;
  if (change.kind !== "drift") return NOTICES[change.kind];
  if (change.signal === "trend") return `The effect of ${nameOf(change.feature)} reversed`;
  if (change.signal === "error") return `The share of wrong predictions ${verb}`;
  if (change.method === "loss") return `The loss ${verb}`;
  return `${METHOD_NAMES[change.method]} of ${nameOf(change.feature)} ${verb}`;
}
