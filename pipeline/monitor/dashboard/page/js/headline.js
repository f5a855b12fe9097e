// The state of the chosen stream in words, and how fresh it is.

import { $, setText } from "./dom.js";
import { count } from "./format.js";
import { data } from "./store.js";

const TONES = { calm: "Calm", changed: "Changed", quiet: "Quiet", late: "Behind", lost: "Attention", waiting: "Waiting" };
const FRESHNESS = { calm: "Live", changed: "Live", quiet: "Quiet", late: "Behind", lost: "Not live" };

export function makeHeadline({ chosen }) {
  $("headline-change").addEventListener("click", () => chosen(data.numbers.headline.change_id));
}

export function drawHeadline() {
  const { headline, newest_seq: newest } = data.numbers;
  document.body.dataset.tone = headline.tone;
  setText($("headline-tone"), TONES[headline.tone]);
  setText($("headline-change"), `${headline.change}.`);
  $("headline-change").disabled = !data.changes.has(headline.change_id);
  setText($("headline-model"), `${headline.relies_on}.`);
  setText($("headline-pipeline"), `${headline.pipeline}.`);
  const freshness = FRESHNESS[headline.tone];
  setText($("status-text"), freshness ? `${freshness}, record ${count(Math.max(newest, 0))}` : headline.pipeline);
}

/** Says that the state may be another one by now. */
export function drawLostHeadline() {
  setText($("headline-tone"), "Not live");
  setText($("headline-pipeline"), "Whether the pipeline keeps up is not known here.");
}
