// Requests to the API: JSON or a problem, never longer than a few seconds; and the server's clock.

const ROOT = new URL("../", import.meta.url);
const TIMEOUT_MS = 8_000;

let aheadMs = 0; // of this machine's clock; the header `Date` has whole seconds

/** What the API refused, or `unreachable` where it could not be asked. */
export class Problem extends Error {
  constructor(name, body = {}) {
    super(body.detail ?? body.title ?? name);
    this.name = name;
    this.body = body;
  }
}

/** The address of a call of the API, with these parameters. */
export function address(path, parameters = {}) {
  const url = new URL(path, ROOT);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url;
}

/** The path of a board's call, such as `top`; the board itself without one. */
export function boardPath(board, call) {
  return `v1/boards/${encodeURIComponent(board)}${call ? `/${call}` : ""}`;
}

/** The reply's value. With a body it is a POST. Throws Problem. */
export async function ask(path, parameters = {}, body = undefined) {
  const options = { signal: AbortSignal.timeout(TIMEOUT_MS), credentials: "omit" };
  if (body !== undefined) {
    Object.assign(options, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } });
  }
  let reply, value;
  try {
    reply = await fetch(address(path, parameters), options);
    value = await reply.json();
  } catch {
    throw new Problem("unreachable");
  }
  if (!reply.ok) throw new Problem(String(value?.type ?? "").split("/").pop() || "unreachable", value ?? {});
  const sentAt = Date.parse(reply.headers.get("date") ?? "");
  if (!Number.isNaN(sentAt)) keepTime(sentAt);
  const asOf = reply.headers.get("standings-as-of");
  if (asOf !== null && "as_of" in value) value.as_of = asOf; // newer than a body that the cache kept
  return value;
}

/** The server's time, in epoch ms, to about a second. */
export function now() {
  return Date.now() + aheadMs;
}

function keepTime(sentAt) {
  const off = sentAt + 500 - Date.now();
  if (Math.abs(off - aheadMs) > 1_500) aheadMs = Math.abs(off) > 1_500 ? off : 0;
}
