// What people note: acknowledged changes and muted features, and the forms to note something.

import { h } from "./dom.js";
import { plural } from "./format.js";
import { data, nameOf, streamName, view } from "./store.js";
import { timeText } from "./times.js";
import * as api from "./api.js";

const NAME = "fluxplain-name"; // key of the visitor's name in the browser's storage

const HOURS = [["", "until I unmute it"], [8, "for 8 hours"], [168, "for 7 days"], [672, "for 4 weeks"]];

let form = null; // stays as it is while the story around it is drawn again
let sent = null; // what was known of a change when a note about it was sent

/** Returns who muted a feature, and why; null if it is not muted. */
export function muteOf(feature) {
  const mute = feature === null ? undefined : data.muted[feature];
  return mute && (mute.until === null || mute.until > Date.now()) ? mute : null;
}

export const mutedFeatures = () => Object.keys(data.muted).filter(muteOf);

/** Returns who noted something, when, and what. */
export function said({ by, at, text, until }) {
  const who = [by, timeText(at), until && `until ${timeText(until)}`].filter(Boolean).join(", ");
  return text ? `${text} (${who})` : `(${who})`;
}

/** Returns who acknowledged a change, and the note, for a list. */
export const saidBriefly = ({ by, text }) => `✓ ${[by, text].filter(Boolean).join(": ") || "acknowledged"}`;

/** Returns the notes about a change and its feature, with what can be done. */
export function notesOf(story) {
  const note = data.changes.get(story.id)?.note ?? null;
  const mute = muteOf(story.feature);
  const parts = [];
  if (note) parts.push(h("p", {}, h("b", {}, "✓ Acknowledged: "), said(note)));
  if (mute) parts.push(h("p", {}, h("b", {}, `${nameOf(story.feature)} is muted: `), said(mute)));
  if (data.about.noting === "here") parts.push(...actions(story, note, mute));
  if (data.about.noting === "commands") parts.push(...commands(story, note, mute));
  return parts.length ? h("section", { class: "notes" }, ...parts) : null;
}

function actions(story, note, mute) {
  if (form?.dataset.of === story.id) return [form];
  form = null;
  const known = JSON.stringify([story.id, note, mute]);
  if (sent === known) return [h("p", { class: "muted" }, "Saved. All see it in a moment.")];
  sent = null;
  const button = (text, action) => h("button", { type: "button", class: "action", onclick: action }, text);
  const saved = () => {
    sent = known;
  };
  const open = (made) => (event) => {
    form = made(story, saved);
    event.target.closest("section").replaceChildren(...[...event.target.closest("section").querySelectorAll("p:not([role])")], form);
    form.querySelector("input").focus();
  };
  const problem = h("p", { class: "problem", role: "alert" });
  const send = (wanted) => (event) => sendNote(wanted, event.target, problem, saved);
  return [
    h(
      "div", { class: "actions" },
      note ? button("Open again", send({ state: "open", change: story.id })) : button("Acknowledge", open(acknowledgement)),
      story.feature === null ? null : mute
        ? button(`Unmute ${nameOf(story.feature)}`, send(unmute(story.feature)))
        : button(`Mute ${nameOf(story.feature)}`, open(muting)),
    ),
    problem,
  ];
}

export const unmute = (feature) => ({ state: "unmuted", feature, stream: data.muted[feature].stream });

function acknowledgement(story, saved) {
  const others = [...data.changes.values()].filter((change) => story.incident !== null && change.incident === story.incident && change.id !== story.id);
  const all = others.length ? checkbox(`and the ${others.length > 1 ? plural(others.length, "other change") : "other change"} of this incident`) : null;
  return makeForm(story.id, "Acknowledge", field("Note", { maxLength: 1000 }), [all], (text, by) => ({
    state: "acknowledged", change: all?.firstChild.checked ? story.incident : story.id, text, by,
  }), saved);
}

function muting(story, saved) {
  const ends = h("select", { "aria-label": "How long" }, ...HOURS.map(([value, text]) => h("option", { value }, text)));
  const all = data.numbers.streams.length > 1 ? checkbox("in all streams") : null;
  return makeForm(story.id, `Mute ${nameOf(story.feature)}`, field("Reason", { maxLength: 1000, required: true }), [ends, all], (text, by) => ({
    state: "muted", feature: story.feature, text, by,
    stream: all && !all.firstChild.checked ? view.stream : null,
    until: ends.value ? new Date(Date.now() + Number(ends.value) * 3_600_000).toISOString() : null,
  }), saved);
}

function makeForm(id, title, text, more, wanted, saved) {
  const by = field("Your name", { maxLength: 100, value: visitor(), autocomplete: "name" });
  const problem = h("p", { class: "problem", role: "alert" });
  const submit = h("button", { type: "submit", class: "action" }, title);
  const made = h(
    "form", { class: "note-form", "aria-label": title }, text, by, ...more,
    h("div", { class: "actions" }, submit, h("button", { type: "button", class: "plain", "data-action": "cancel-note" }, "Cancel")),
    problem,
  );
  made.dataset.of = id;
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    const name = by.querySelector("input").value.trim();
    remember(name);
    sendNote(wanted(text.querySelector("input").value.trim(), name || null), submit, problem, saved);
  });
  made.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation(); // it would close the story, too
    made.querySelector("[data-action]").click();
  });
  return made;
}

function visitor() {
  try {
    return localStorage.getItem(NAME) ?? "";
  } catch {
    return ""; // storage is forbidden: the name is typed each time
  }
}

function remember(name) {
  try {
    localStorage.setItem(NAME, name);
  } catch {
    // as above
  }
}

const field = (name, properties) => h("label", {}, h("span", {}, name), h("input", { type: "text", ...properties }));

const checkbox = (text) => h("label", { class: "check" }, h("input", { type: "checkbox" }), ` ${text}`);

export function closeForm() {
  form = null;
}

/** Sends a note; the page shows it when it comes back from the topic. */
async function sendNote(wanted, button, problem, saved = () => {}) {
  button.disabled = true;
  problem.textContent = "";
  const error = await api.note(wanted).catch(() => "The dashboard's server does not answer.");
  button.disabled = false;
  problem.textContent = error ?? "";
  if (error !== null) {
    button.focus();
    return;
  }
  saved();
  closeForm();
  document.dispatchEvent(new Event("noted"));
}

/** Unmutes a feature from the list of changes. */
export const unmuteButton = (feature) => {
  const problem = h("span", { class: "problem", role: "alert" });
  const button = h("button", { type: "button", class: "plain", "aria-label": `Unmute ${nameOf(feature)}`, onclick: () => sendNote(unmute(feature), button, problem) }, "Unmute");
  return [button, problem];
};

function commands(story, note, mute) {
  const lines = [note ? `fluxplain acknowledge ${story.id} --undo` : `fluxplain acknowledge ${story.id} --note "…"`];
  if (story.feature !== null) {
    const scope = mute?.stream ? ` --stream ${quoted(mute.stream)}` : "";
    lines.push(mute ? `fluxplain mute ${quoted(story.feature)}${scope} --undo` : `fluxplain mute ${quoted(story.feature)} --reason "…"`);
  }
  return [h("p", { class: "muted" }, "To note something for all to see:"), ...lines.map((line) => h("p", {}, h("code", {}, line)))];
}

/** A name as a shell reads it. */
const quoted = (name) => (/^[\w.@%+=:,/-]+$/.test(name) ? name : `'${name.replaceAll("'", `'"'"'`)}'`);

export const where = (mute) => (mute.stream === null ? "" : ` in ${streamName(mute.stream)}`);
