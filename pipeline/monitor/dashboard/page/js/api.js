// The server's answers, and its news as they come.

/** The server says something every 10 s; a network that is gone says nothing at all. */
const SILENCE_MS = 25_000;

async function ask(path, parameters, signal) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined) query.append(name, each);
    }
  }
  const response = await fetch(`${path}?${query}`, { signal });
  if (response.status === 404) return null;
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
}

const selection = ({ stream, method, alpha }) => ({ stream, method, alpha });

export const overview = (view, signal) => ask("/api/overview", selection(view), signal);

export const streams = (method) => ask("/api/streams", { method });

export const series = (view, features, range, signal) =>
  ask("/api/series", { ...selection(view), feature: features, ...range }, signal);

export const curves = (view, feature) =>
  ask("/api/curves", { stream: view.stream, alpha: view.alpha, feature });

export const story = (id) => ask(`/api/changes/${encodeURIComponent(id)}`, {});

/** Calls `update` with each update; `lost` once, when the server is gone. */
export function listen(view, since, update, lost) {
  const query = new URLSearchParams({ since });
  for (const [name, value] of Object.entries(selection(view))) if (value !== null) query.set(name, value);
  const source = new EventSource(`/api/events?${query}`);
  let patience = 0;
  const stop = () => {
    clearTimeout(patience);
    source.close();
  };
  const end = () => {
    stop();
    lost();
  };
  const wait = () => {
    clearTimeout(patience);
    patience = setTimeout(end, SILENCE_MS);
  };
  source.onmessage = (event) => {
    wait();
    update(JSON.parse(event.data));
  };
  // what was missed meanwhile is asked for anew, by whoever connects again
  source.onerror = end;
  wait();
  return stop;
}
