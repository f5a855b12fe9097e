// The page's state: what it shows (view), and the data it has received (data).

import { METHOD_NAMES, byName } from "./format.js";
import { SPANS, recordBefore } from "./times.js";

export const view = {
  stream: null,
  method: null,
  alpha: null,
  feature: null,
  change: null,
  reasons: null, // seq of the output whose reasons are shown
  top: 5,
  order: "peak", // of the features in the chart; the list is by what they are now
  query: "",
  range: "all", // or a number of latest records, or "zoom"
  first: null,
  last: null,
};

export const data = {
  about: { prefix: "", topic: "", streams: {}, names: {}, units: {}, places: [], loss: "", regression: false, categorical: [], methods: {} },
  version: 0,
  features: new Map(), // name → newest seq, value and std_error, and peak
  lines: new Map(), // name → { seq, value, std_error } of the shown features, over all records
  closer: new Map(), // the same, over the visible range
  changes: new Map(), // id → change without curves, and who acknowledged it
  incidents: [], // what changed together, with a sentence; what matters most comes first
  stories: new Map(), // id → whole change
  muted: {}, // feature → who muted it in this stream, and why
  numbers: null,
  rates: [],
};

const MOST_POINTS = 1_500;
const MOST_CHANGES = 500; // as many as the server keeps

export function replaceAll(answer) {
  data.about = answer.about;
  for (const [method, { title }] of Object.entries(data.about.methods)) METHOD_NAMES[method] = title;
  data.version = answer.version;
  data.features = new Map();
  data.lines = new Map();
  data.closer = new Map();
  data.changes = new Map(answer.changes.map((change) => [change.id, change]));
  data.incidents = answer.incidents ?? [];
  data.muted = answer.muted;
  data.numbers = answer;
  for (const [name, news] of Object.entries(answer.features)) takeFeature(name, news);
  view.stream = answer.stream;
  view.method = answer.method;
  view.alpha = answer.alpha;
}

/** Applies an update; returns the new changes. */
export function takeNews(news) {
  data.version = news.version;
  data.incidents = news.incidents ?? data.incidents;
  data.muted = news.muted;
  data.numbers = { ...data.numbers, ...news };
  data.rates = [...data.rates.slice(-119), news.rate];
  for (const [name, each] of Object.entries(news.features)) {
    takeFeature(name, each);
    append(data.lines.get(name), each);
    if (view.range !== "zoom") append(data.closer.get(name), each);
  }
  const fresh = news.changes.filter((change) => !data.changes.has(change.id));
  for (const change of news.changes) {
    data.changes.set(change.id, change);
    data.stories.delete(change.id); // the second record of a change
  }
  if (data.changes.size > MOST_CHANGES) {
    const newest = [...data.changes.values()].sort((a, b) => b.seq - a.seq).slice(0, MOST_CHANGES);
    data.changes = new Map(newest.map((change) => [change.id, change]));
  }
  return fresh;
}

function takeFeature(name, { peak, seq, value, std_error: errors }) {
  if (!seq.length) return;
  const i = seq.length - 1;
  data.features.set(name, { peak, seq: seq[i], value: value[i], std_error: errors[i] });
}

function append(line, news) {
  if (!line) return;
  for (let i = 0; i < news.seq.length; i += 1) {
    if (news.seq[i] <= (line.seq.at(-1) ?? -1)) continue;
    for (const column of ["seq", "value", "std_error"]) line[column].push(news[column][i]);
  }
  if (line.seq.length <= MOST_POINTS) return;
  const newest = line.seq.length - 1;
  for (const column of ["seq", "value", "std_error"]) {
    line[column] = line[column].filter((_, i) => i % 2 === newest % 2);
  }
}

/** All features, the most important first: now, or at any time. */
export function ranked(order = "now") {
  const by = order === "now" ? (f) => Math.abs(f.value) : (f) => f.peak;
  const all = [...data.features].map(([name, feature]) => ({ name, ...feature }));
  return all.sort((a, b) => by(b) - by(a) || byName.compare(nameOf(a.name), nameOf(b.name)));
}

/** Names of the features that the charts show. */
export function shown() {
  const names = ranked(view.order).slice(0, view.top).map((feature) => feature.name);
  if (data.features.has(view.feature) && !names.includes(view.feature)) names.push(view.feature);
  return names;
}

export const lineOf = (name) =>
  (view.range === "all" ? null : data.closer.get(name)) ?? data.lines.get(name);

/** First and last record of the visible range. */
export function range() {
  const newest = Math.max(data.numbers?.newest_seq ?? 0, 1);
  if (view.range === "zoom") return [view.first, view.last];
  if (view.range in SPANS) return [Math.max(recordBefore(SPANS[view.range]), oldest()), newest];
  if (view.range === "all") return [oldest(), newest];
  return [Math.max(newest - Number(view.range), oldest()), newest];
}

export function oldest() {
  const firsts = [...data.lines.values()].map((line) => line.seq[0] ?? Infinity);
  const first = Math.min(data.numbers?.performance.seq[0] ?? Infinity, ...firsts);
  return Number.isFinite(first) ? first : 0;
}

/** What changed together, as { text, last, members }; notices and changes of muted features stand alone. */
export function incidents() {
  const left = new Map(data.changes);
  const take = (id) => {
    const change = left.get(id);
    return left.delete(id) ? [change] : [];
  };
  const groups = data.incidents.map((each) => ({ ...each, members: each.changes.flatMap(take) }));
  const alone = [...left.values()].map((change) => ({ text: null, last: change.seq, members: [change] }));
  return [...groups.filter(({ members }) => members.length), ...alone];
}

/** The name to show for a stream. */
export const streamName = (stream) => data.about.streams[stream] ?? stream.replace(data.about.prefix, "");

/** The name to show for a feature, a group or a pair. */
export const nameOf = (feature) => data.about.names[feature] ?? feature;

/** Length of the beginning that all names share, up to the end of a word; 0 if it is short. */
function sharedLength() {
  const [first = "", ...others] = data.about.places;
  let n = others.length ? first.length : 0;
  for (const each of others) while (!each.startsWith(first.slice(0, n))) n -= 1;
  const words = first.slice(0, n).match(/^.*[\s_.:/-]/u)?.[0].length ?? 0;
  return words < 8 ? 0 : words;
}

/** A long name without the beginning that all names share, so that the rest can be told apart. */
export function briefOf(feature) {
  const name = nameOf(feature);
  const shared = name.length > 24 ? sharedLength() : 0;
  return shared && shared < name.length ? `…${name.slice(shared)}` : name;
}

/** The name to show with its unit, for values. */
export const withUnit = (feature) => (data.about.units[feature] ? `${nameOf(feature)} [${data.about.units[feature]}]` : nameOf(feature));

/** The unit after a value of a feature, if it has one. */
export const unitOf = (feature) => (data.about.units[feature] ? ` ${data.about.units[feature]}` : "");

/** All changes, the latest first. */
export const ordered = () => [...data.changes.values()].sort((a, b) => b.seq - a.seq);

export function readFragment() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  for (const name of ["stream", "method", "feature", "change"]) {
    if (wanted.get(name)) view[name] = wanted.get(name); // Grafana may link without a feature
    else if (name === "change") view[name] = null;
  }
  const seq = wanted.get("reasons");
  view.reasons = /^\d{1,16}$/.test(seq) ? Number(seq) : null;
  const [range, first, last] = (wanted.get("range") ?? "").split("-");
  if (range in SPANS || range === "zoom" || Number(range) > 0) Object.assign(view, { range, first: Number(first), last: Number(last) });
  if (/^(3|5|8|12|20)$/.test(wanted.get("top"))) view.top = Number(wanted.get("top"));
  if (wanted.get("order") === "now") view.order = "now";
  if (wanted.has("alpha")) view.alpha = Number(wanted.get("alpha"));
}

export function writeFragment() {
  const parts = new URLSearchParams();
  for (const name of ["stream", "method", "alpha", "feature", "change", "reasons"]) {
    if (view[name] !== null && view[name] !== undefined) parts.set(name, view[name]);
  }
  if (view.top !== 5) parts.set("top", view.top);
  if (view.order !== "peak") parts.set("order", view.order);
  if (view.range === "zoom") parts.set("range", `zoom-${view.first}-${view.last}`);
  else if (view.range !== "all") parts.set("range", view.range);
  const fragment = `#${parts}`;
  if (location.hash !== fragment) history.replaceState(null, "", fragment);
}
