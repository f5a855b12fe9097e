// One change: before and after, cause, region, records, confidence, timing, and related changes.

import { $, copyAddress, h } from "./dom.js";
import { METHOD_NAMES, STATUS, count, number, plural, signed, titleOf } from "./format.js";
import { errorBars } from "./bars.js";
import { chart, colors } from "./charts.js";
import { data, ordered, view, withUnit } from "./store.js";
import { curveOption, isCategorical } from "./curves.js";
import { entry } from "./changes.js";
import { closeForm, notesOf } from "./notes.js";
import { origin } from "./origin.js";
import { colorOf } from "./palette.js";
import { timeText } from "./times.js";
import * as api from "./api.js";

let plot = null;
let drawn = null;

export function makeStory({ chosen, closed }) {
  $("story").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.id) chosen(button.dataset.id);
    if (button.dataset.action === "close") closed();
    if (button.dataset.action === "copy") copyAddress(button);
    if (button.dataset.action === "cancel-note") {
      closeForm();
      drawStory({ again: true });
    }
  });
  document.addEventListener("noted", () => drawStory({ again: true }));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && view.change !== null) closed();
  });
}

/** Shows the open change; with `again`, redraws it even if it is shown already. */
export async function drawStory({ focus = false, again = false } = {}) {
  const id = view.change;
  $("story").hidden = id === null;
  $("change-list-view").hidden = id !== null;
  document.body.classList.toggle("has-story", id !== null);
  if (id === null) {
    drawn = null;
    return;
  }
  if (!data.numbers) return; // names and methods are not known yet
  const story = data.stories.get(id) ?? await api.story(id);
  if (view.change !== id) return;
  if (story) data.stories.set(id, story);
  let focused = focus ? $("story-title") : null;
  if (drawn !== id || again) {
    const before = $("story").contains(document.activeElement) ? document.activeElement : null;
    const isSame = drawn === id && !focus;
    drawn = id;
    plot?.dispose();
    $("story").replaceChildren(...(story ? parts(story) : notFound(id)));
    const isKept = before?.isConnected;
    if (focus || before) focused = (isSame && (isKept ? before : twin(before))) || $("story-title");
  }
  if (story) drawCurves(story);
  focused?.focus();
}

/** Returns the button that does what a button did before the story was drawn again. */
function twin({ dataset: { id, action } }) {
  return [...$("story").querySelectorAll("button")].find(
    ({ dataset }) => (id ?? action) && dataset.id === id && dataset.action === action,
  );
}

function notFound(id) {
  return [navigation(id), h("h2", { id: "story-title", tabIndex: -1 }, "Change not found"), h("p", { class: "empty" }, "It is no longer kept, or belongs to another pipeline.")];
}

function parts(story) {
  return [
    navigation(story.id),
    h("h2", { id: "story-title", tabIndex: -1 }, titleOf(story)),
    h("p", { class: "summary" }, sentence(story.detail)),
    notesOf(story),
    story.after === null ? null : beforeAfter(story),
    story.curve_before && story.curve_after
      ? h("figure", {}, h("figcaption", {}, `Effect of ${withUnit(story.feature)}, before and after`), legend(story), h("div", { class: "chart small", id: "story-chart", role: "img", "aria-label": `Two curves: at record ${count(story.curve_before.seq)} and at record ${count(story.curve_after.seq)}` }))
      : null,
    ...origin(story),
    facts(story),
    siblings(story),
    h("p", { class: "identity" }, "Change ", h("code", {}, story.id), " ", h("button", { type: "button", class: "plain", "data-action": "copy" }, "Copy link")),
  ].filter(Boolean);
}

const sentence = (text) => (/[.!?]$/.test(text) ? text : `${text}.`);

function navigation(id) {
  const all = ordered();
  const i = all.findIndex((change) => change.id === id);
  const step = (change, text, label) => {
    const button = h("button", { type: "button", class: "plain", disabled: !change, "aria-label": label }, text);
    if (change) button.dataset.id = change.id;
    return button;
  };
  return h(
    "nav", { class: "story-nav", "aria-label": "Changes" },
    h("button", { type: "button", class: "plain", "data-action": "close" }, "← All changes"),
    h("span", { class: "steps" }, step(all[i + 1], "‹ Earlier", "Earlier change"), step(i > 0 ? all[i - 1] : null, "Later ›", "Later change")),
  );
}

/** Both means ± their standard errors. */
function beforeAfter(story) {
  const rows = [
    { name: "Before", mean: story.before, error: story.before_std_error, isFaint: true },
    { name: "After", mean: story.after, error: story.after_std_error, isFaint: false },
  ].filter((row) => row.mean !== null);
  return h("section", {}, h("h3", {}, "What"), errorBars(rows, story.feature === null ? colors().accent : colorOf(story.feature)));
}

function legend({ curve_before: before, curve_after: after, after_seq: began, feature }) {
  const key = h("span", { class: "key", "aria-hidden": "true" });
  key.style.borderColor = colorOf(feature);
  return h(
    "ul", { class: isCategorical(feature, after) ? "legend points" : "legend" },
    h("li", {}, h("span", { class: "key before", "aria-hidden": "true" }), `at record ${count(before.seq)}`),
    h("li", {}, key, `of records ${count(began)} to ${count(after.seq)} alone`),
  );
}

function facts(story) {
  const rows = [];
  const add = (name, ...value) => rows.push(h("div", {}, h("dt", {}, name), h("dd", {}, ...value)));
  if (story.before !== null && story.after !== null) {
    const difference = story.after - story.before;
    const error = story.before_std_error === null || story.after_std_error === null ? null : Math.hypot(story.before_std_error, story.after_std_error);
    add("Difference", `${signed(difference)}${error === null ? "" : ` ± ${number(error, Math.abs(difference))}`}`);
  }
  if (story.rank_before !== null && story.rank_after !== null) {
    add("Rank", `${story.rank_before} → ${story.rank_after} of ${story.ranked}`);
  }
  if (story.after_seq !== null) add("Began", `near record ${count(story.after_seq)}`, earlier(story));
  const severity = data.changes.get(story.id)?.severity;
  if (severity) add("Severity", severity, h("small", {}, ", from its effect and the loss"));
  if (story.status in STATUS) add("Status", STATUS[story.status], known(story));
  add(story.signal !== null ? "Detected" : "Seen", `at record ${count(story.seq)}`);
  if (story.loss_before !== null && story.loss_after !== null) {
    const scale = Math.max(story.loss_before, story.loss_after);
    add("Mean loss", `${number(story.loss_before, scale)} → ${number(story.loss_after, scale)}`, h("small", {}, ` ${signed(story.loss_after - story.loss_before, scale)}`));
  }
  if (story.value !== null) {
    add(`${METHOD_NAMES[story.method]} then`, `${number(story.value)} ± ${number(story.std_error, Math.abs(story.value))}`);
  }
  if (story.replay_seq !== null) add("To replay", `records ${count(story.replay_seq)} to ${count(story.seq)}`);
  if (story.ts !== null) add("Time", timeText(story.ts));
  return h("dl", { class: "facts" }, ...rows);
}

const known = ({ status_seq: seq, lasted, learning }) => h("small", {},
  `, as of record ${count(seq)}`,
  lasted === null ? "" : `; it lasted about ${plural(lasted, "record")}`,
  learning ? "; the model was still learning" : "");

const earlier = ({ seq, after_seq: began, delay_bound: bound }) =>
  h("small", {}, `, ${plural(seq - began, "record")} earlier${bound === null ? "" : ` (at most ${count(bound)})`}`);

function siblings(story) {
  const others = ordered().filter((change) => story.incident !== null && change.incident === story.incident && change.id !== story.id);
  if (!others.length) return null;
  return h("section", { class: "incident" }, h("h3", {}, "Same incident ", h("span", {}, plural(others.length, "other change"))), h("ul", {}, ...others.map((change) => entry(change))));
}

function drawCurves(story) {
  const element = $("story-chart");
  if (!element) return;
  if (!plot || plot.isDisposed() || plot.getDom() !== element) plot = chart(element);
  const color = colorOf(story.feature);
  plot.setOption(curveOption(story.feature, [
    { curve: story.curve_before, color: colors().muted, width: 1.8, dash: [5, 3], points: true, hollow: true, name: "before" },
    { curve: story.curve_after, color, width: 2.4, points: true, name: "after" },
  ], { size: "small" }), { notMerge: true });
}
