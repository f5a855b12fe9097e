// The list of changes: incidents with a sentence, and their other changes folded.

import { $, h, setText } from "./dom.js";
import { fitted } from "./charts.js";
import { METHOD_NAMES, STATUS, count, fromTo, plural, subjectOf, titleOf } from "./format.js";
import { muteOf, mutedFeatures, said, saidBriefly, unmuteButton, where } from "./notes.js";
import { briefOf, data, incidents, nameOf, view } from "./store.js";

const SHOWN = 100;

const LEARNING = "learning";

const MUTED = "muted";

let drawn = "";
const unfolded = new Set(); // incidents whose changes are shown

export function makeChanges({ chosen }) {
  $("change-list").addEventListener("click", (event) => {
    const button = event.target.closest("button[data-id]");
    if (button) chosen(button.dataset.id);
  });
  $("changes-order").addEventListener("change", () => drawChanges());
}

export function drawChanges(fresh = []) {
  const groups = sorted(incidents());
  const key = JSON.stringify([$("changes-order").value, data.incidents, [...data.changes.values()].map(({ id, status, note }) => [id, status, note]), mutedFeatures().map((name) => data.muted[name]), view.stream, document.documentElement.dataset.theme, [...data.features.keys()].length]);
  if (key === drawn) return;
  drawn = key;
  const focused = document.activeElement?.closest("#change-list button")?.dataset.id;
  const news = new Set(fresh.map((change) => change.id));
  let left = SHOWN;
  const parts = [];
  const isMuted = ({ feature }) => muteOf(feature) !== null;
  const all = groups.flatMap(({ members }) => members);
  const muted = all.filter(isMuted).slice(0, SHOWN);
  const learned = all.filter((change) => change.learning && !isMuted(change)).slice(0, SHOWN);
  const shown = groups
    .map((group) => ({ ...group, members: group.members.filter((change) => !change.learning && !isMuted(change)) }))
    .filter(({ members }) => members.length);
  setText($("changes-count"), shown.length ? plural(shown.length, "incident") : "");
  for (const group of shown) {
    if (left <= 0) break;
    left -= group.members.length;
    parts.push(incident(group, news));
  }
  if (learned.length) parts.push(h("section", { class: "incident" }, folded(LEARNING, `While the model was learning: ${plural(learned.length, "change")}`, learned, news)));
  if (!parts.length) parts.push(h("p", { class: "empty" }, "No changes yet. A change appears when the detector is confident that an explanation or the loss has changed."));
  if (mutedFeatures().length) parts.push(h("section", { class: "incident" }, mutes(muted)));
  $("change-list").replaceChildren(...parts);
  if (focused) focusChange(focused);
}

/** The muted features, with the reasons, and their changes. */
function mutes(changes) {
  const names = mutedFeatures();
  const parts = folded(MUTED, `Muted: ${plural(changes.length, "change")} of ${plural(names.length, "feature")}`, changes, new Set());
  const lines = names.map((name) => h(
    "li", {}, h("b", {}, nameOf(name)), `${where(data.muted[name])}: ${said(data.muted[name])} `,
    ...(data.about.noting === "here" ? unmuteButton(name) : []),
  ));
  parts.querySelector("summary").after(h("ul", { class: "mutes" }, ...lines));
  return parts;
}

/** An incident in one sentence, which opens its main change, and the others folded; or a change alone. */
function incident({ text, severity, members: [main, ...others] }, news) {
  if (!others.length) return h("ul", {}, entry(main, news, { isMain: true }));
  const seqs = [main, ...others].map((change) => change.seq);
  const [first, last] = [Math.min(...seqs), Math.max(...seqs)];
  const where = first === last ? `record ${count(first)}` : `records ${count(first)} to ${count(last)}`;
  return h(
    "section", { class: "incident" },
    h("ul", {}, entry({ ...main, severity }, news, { isMain: true, text })),
    folded(main.id, `${plural(others.length, "other change")}, ${where}`, others, news),
  );
}

/** Incidents in the chosen order: as the server ranks them, or the latest first. */
const sorted = (groups) => ($("changes-order").value === "latest" ? [...groups].sort((a, b) => b.last - a.last) : groups);

function folded(key, title, changes, news) {
  const parts = h("details", { open: unfolded.has(key) }, h("summary", {}, title), h("ul", {}, ...changes.map((change) => entry(change, news))));
  parts.addEventListener("toggle", () => (parts.open ? unfolded.add(key) : unfolded.delete(key)));
  return parts;
}

/** Focuses a change in the list, which may be folded. */
export function focusChange(id) {
  const button = $("change-list").querySelector(`[data-id="${CSS.escape(id)}"]`);
  const around = button?.closest("details");
  if (around) around.open = true;
  button?.focus();
}

/** A name cut in its middle to the room in the list, whose text is a fifth larger than that of charts. */
const fittedName = (feature) => fitted(briefOf(feature), Math.max($("change-list").clientWidth - 250, 110) / 1.2);

/** One change; that of an incident, or one alone, shows how severe it is, and the incident's has its sentence. */
export function entry(change, news = new Set(), { isMain = false, text = null } = {}) {
  const button = h(
    "button", { type: "button", class: `${news.has(change.id) ? "is-new" : ""}${change.note ? " is-known" : ""}` },
    h("span", { class: "seq" }, count(change.seq)),
    h("span", { class: `direction ${change.direction ?? ""}`, "aria-hidden": "true" }, { rose: "▲", fell: "▼" }[change.direction] ?? "●"),
    text ? h("span", { class: "sentence" }, `${text}.`) : h("span", { class: "what" }, change.kind === "drift" ? h("b", { title: subjectOf(change) }, change.feature === null ? subjectOf(change) : fittedName(change.feature)) : h("b", {}, titleOf(change)),
      change.feature && change.kind === "drift" ? h("span", { class: "muted" }, ` ${METHOD_NAMES[change.method]}${change.signal === "trend" ? ", reversed" : ""}`) : null,
      change.status in STATUS && change.status !== "confirmed" ? h("span", { class: "muted" }, ` (${STATUS[change.status]})`) : null,
      h("span", { class: "sr-only" }, ` ${change.direction ?? ""} `)),
    h("span", { class: "fromto" }, isMain && !change.note ? h("span", { class: `severity ${change.severity}` }, change.severity) : null, text ? null : fromTo(change)),
    change.note ? h("span", { class: "known" }, saidBriefly(change.note)) : null,
  );
  button.dataset.id = change.id;
  return h("li", {}, button);
}
