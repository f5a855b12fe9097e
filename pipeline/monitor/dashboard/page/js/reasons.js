// Reasons for single outputs: a list of the newest, and for each a page with a bar per feature.

import { $, copyAddress, h, setText } from "./dom.js";
import { count, number, plural, sentText, signed, valueText } from "./format.js";
import { data, nameOf, unitOf, view } from "./store.js";
import { block } from "./contributions.js";
import { timeText } from "./times.js";
import * as api from "./api.js";

const EVERY_MS = 2_000;

let known = { stream: null, rows: [] }; // the list, and whose it is
let fetched = "";
let asked = -EVERY_MS;
let waiting = 0;
let drawn = null;
let opener = null;

let listed = () => {}; // is called after each list

export function makeReasons({ opened, closed, changed }) {
  listed = changed;
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-reasons]");
    const isOther = known.stream !== view.stream; // the address names it
    if (!link || isOther || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    opener = link;
    opened(Number(link.dataset.reasons));
  });
  $("reasons-page").addEventListener("click", (event) => {
    const action = event.target.closest("button")?.dataset.action;
    if (action === "close") closed();
    if (action === "copy") copyAddress(event.target);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || view.reasons === null) return;
    event.stopImmediatePropagation(); // an open change stays
    closed();
  });
}

/** Links to the reasons for an output; only names the record if none are listed. */
export function reasonsLink(stream, seq) {
  if (stream !== known.stream || !known.rows.some((row) => row.seq === seq)) return h("span", {}, count(seq));
  const link = h("a", { href: `#${new URLSearchParams({ stream, reasons: seq })}` }, count(seq));
  link.dataset.reasons = seq;
  return link;
}

/** Fetches what is shown if it may have changed, but not too often. */
export async function fetchReasons({ force = false, focus = false } = {}) {
  const { stream, reasons: seq } = view;
  const key = JSON.stringify([stream, seq, data.numbers?.reasons]);
  if (document.hidden || (key === fetched && !force)) return;
  const early = asked + EVERY_MS - performance.now();
  clearTimeout(waiting);
  if (early > 0 && !force) {
    waiting = setTimeout(fetchReasons, early);
    return;
  }
  [asked, fetched] = [performance.now(), key];
  const [answer, records] = await Promise.all([
    api.reasons(stream), seq === null ? null : api.reasonsOf(stream, seq),
  ]).catch(() => []); // the listener reports a lost server
  if (!answer || stream !== view.stream || seq !== view.reasons) return;
  known = { stream, rows: answer.rows };
  drawList(answer);
  listed();
  drawPage(seq, records, { focus });
}

function drawList({ enabled, rows }) {
  $("reasons-table").hidden = !rows.length;
  $("reasons-empty").hidden = rows.length > 0;
  setText($("reasons-empty"), enabled
    ? "No reasons yet. They begin after the warm-up, for the observations that [reasons] in the settings chooses."
    : "Reasons are not enabled for this stream: set enabled = true in [reasons] of the settings. Without them, fluxplain why explains single outputs.");
  setText($("reasons-unit"), rows.length ? `${plural(rows.length, "observation")}, newest first; click a record for all of its reasons` : "");
  const focused = $("reasons-rows").contains(document.activeElement) ? document.activeElement.dataset.reasons : null;
  $("reasons-rows").replaceChildren(...rows.map(line));
  if (focused) linkOf(focused)?.focus();
}

const linkOf = (seq) => $("reasons-rows").querySelector(`a[data-reasons="${seq}"]`);

function line(row) {
  const output = row.label === null ? number(row.output) : `P(${row.label}) = ${number(row.output)}`;
  const value = row.value === null ? "" : `${row.is_missing ? ": " : " = "}${sentText(row.value, row.is_missing)}${unitOf(row.feature)}`;
  const largest = row.feature === null ? "none" : `${nameOf(row.feature)}${value}`;
  return h("tr", {},
    h("th", { scope: "row" }, reasonsLink(known.stream, row.seq)),
    h("td", {}, row.id === null ? "–" : String(row.id)),
    h("td", {}, valueText(row.prediction)),
    h("td", { class: "n" }, output),
    h("td", {}, largest),
    h("td", { class: "n" }, row.contribution === null ? "" : signed(row.contribution)));
}

function drawPage(seq, records, { focus }) {
  $("reasons-page").hidden = seq === null;
  $("reasons-list-view").hidden = seq !== null;
  const key = JSON.stringify([seq, records]);
  const isNew = key !== drawn && seq !== null;
  const hadFocus = $("reasons-page").contains(document.activeElement);
  if (isNew) $("reasons-page").replaceChildren(...parts(seq, records));
  drawn = key;
  if ((focus && seq !== null) || (isNew && hadFocus)) $("reasons-page-title").focus();
}

/** Focuses what opened the page that was closed. */
export function focusOpener(seq) {
  (opener?.isConnected ? opener : linkOf(seq))?.focus();
}

function parts(seq, records) {
  return [
    h("nav", { class: "story-nav", "aria-label": "Reasons" },
      h("button", { type: "button", class: "plain", "data-action": "close" }, "← All reasons")),
    h("h2", { id: "reasons-page-title", tabIndex: -1 }, `Why record ${count(seq)} got its output`),
    ...(records ? [facts(records[0]), h("div", { class: "blocks" }, ...records.map(block))] : [notFound(seq)]),
    h("p", { class: "identity" }, h("button", { type: "button", class: "plain", "data-action": "copy" }, "Copy link")),
  ];
}

function notFound(seq) {
  return h("p", { class: "empty" }, "No reasons of this record are kept here: none were published, or the page has newer ones instead. ",
    h("code", {}, `fluxplain why --seq ${seq} --stream ${view.stream}`), " shows them.");
}

function facts(record) {
  const rows = [["Stream", record.stream], ["Id", record.id], ["Time", record.ts === null ? null : timeText(record.ts)], ["Predicted", record.prediction], ["Model version", record.model_version]];
  return h("dl", { class: "facts" }, ...rows.filter(([, value]) => value !== null).map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, valueText(value)))));
}
