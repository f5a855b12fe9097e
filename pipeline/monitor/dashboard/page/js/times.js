// The records' own times, where they have one; else charts count records.

import { count } from "./format.js";
import { data } from "./store.js";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Latest ranges that one can choose, in seconds. */
export const SPANS = { hour: HOUR, day: DAY, week: 7 * DAY };

const EXACT = { dateStyle: "medium", timeStyle: "medium" };

/** Longest time on an axis → what its labels show. */
const STYLES = [
  [10 * MINUTE, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }],
  [DAY, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }],
  [10 * DAY, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" }],
  [500 * DAY, { day: "numeric", month: "short" }],
  [Infinity, { month: "short", year: "numeric" }],
];

const points = () => data.numbers?.times ?? { seq: [], at: [] };

/** Follows one column to another, linearly between the points; null outside of them. */
function between(from, to, value) {
  if (from.length < 2 || value < from[0] || value > from.at(-1)) return null;
  let low = 0;
  let high = from.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (from[middle] <= value) low = middle;
    else high = middle;
  }
  const share = (value - from[low]) / (from[high] - from[low] || 1);
  return to[low] + share * (to[high] - to[low]);
}

/** Seconds since 1970 of a record, or of the nearest one with a time; null if none has any. */
export function timeOf(seq) {
  const known = points().seq;
  return between(known, points().at, Math.min(Math.max(seq, known[0]), known.at(-1)));
}

/** First record of the latest so many seconds. */
export function recordBefore(seconds) {
  const { seq, at } = points();
  const before = at.findLastIndex((time) => time < at.at(-1) - seconds);
  return seq[before + 1] ?? seq[0] ?? 0;
}

/** Time between the first and the last record, in seconds; 0 if it is not known. */
export const wholeSpan = () => (points().at.length < 2 ? 0 : points().at.at(-1) - points().at[0]);

/** Whether records have times, so that axes show these instead of numbers. */
export const hasTimes = () => points().at.length > 1;

/** Names a record by its number and its time. */
export const recordText = (seq) => `Record ${numberAndTime(seq)}`;

export function numberAndTime(seq) {
  const time = timeOf(seq);
  const text = count(Math.round(seq));
  return time === null ? text : `${text}, ${written(time, EXACT)}`;
}

/** Returns what the labels of an axis over some records say: times, else numbers of records. */
export function labelsOf([first, last]) {
  const [begin, end] = [timeOf(first), timeOf(last)];
  if (begin === null || end === null) return (n) => (Number.isInteger(n) ? count(n) : "");
  const [, style] = STYLES.find(([longest]) => Math.abs(end - begin) <= longest);
  return (n) => {
    const time = timeOf(n);
    return time === null ? "" : written(time, style);
  };
}

const formats = new Map();

function written(time, style) {
  if (!formats.has(style)) formats.set(style, new Intl.DateTimeFormat("en-GB", style));
  return formats.get(style).format(1000 * time);
}

/** Writes the time that an observation states: numbers since 1970 as date and time. */
export function timeText(ts) {
  const size = typeof ts === "number" ? Math.floor(Math.log10(Math.abs(ts) || 1)) : 0;
  if (size < 8 || size > 19) return String(ts);
  const perSecond = size < 11 ? 1 : size < 14 ? 1e3 : size < 17 ? 1e6 : 1e9;
  return written(ts / perSecond, EXACT);
}
