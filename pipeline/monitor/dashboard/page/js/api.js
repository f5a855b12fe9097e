// Requests to the server, and its stream of updates.

/** Silence after which the connection counts as lost; the server sends something every 10 s. */
const SILENCE_MS = 25_000;

async function get(path, parameters, signal) {
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

export const overview = (view, signal) => get("/api/overview", selection(view), signal);

export const streams = (method) => get("/api/streams", { method });

export const series = (view, features, range, signal) =>
  get("/api/series", { ...selection(view), feature: features, ...range }, signal);

export const heat = (view) => get("/api/heat", selection(view));

export const curves = (view, feature) =>
  get("/api/curves", { stream: view.stream, alpha: view.alpha, feature });

export const story = (id) => get(`/api/changes/${encodeURIComponent(id)}`, {});

export const reasons = (stream) => get("/api/reasons", { stream });

export const reasonsOf = (stream, seq) => get(`/api/reasons/${encodeURIComponent(stream)}/${seq}`, {});

/** Asks the server to note something; returns null, or why it refused. */
export async function note(wanted) {
  const response = await fetch("/api/notes", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(wanted),
  });
  return response.ok ? null : (await response.text()).trim();
}

/** Calls `update` with each update, and `lost` once when the connection is lost. */
export function listen(view, since, update, lost) {
  const query = new URLSearchParams({ since });
  for (const [name, value] of Object.entries(selection(view))) if (value !== null) query.set(name, value);
  const source = new EventSource(`/api/events?${query}`);
  let timeout = 0;
  const stop = () => {
    clearTimeout(timeout);
    source.close();
  };
  const end = () => {
    stop();
    lost();
  };
  const wait = () => {
    clearTimeout(timeout);
    timeout = setTimeout(end, SILENCE_MS);
  };
  source.onmessage = (event) => {
    wait();
    update(JSON.parse(event.data));
  };
  // the caller reconnects and fetches what it has missed
  source.onerror = end;
  wait();
  return stop;
}
