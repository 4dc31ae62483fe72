// Requests to the server. A lost connection is an error of its own, and is told to the page.
import { tell } from "./bus.js";

const BASE = new URL("api/v1/", document.baseURI);
const UNREACHABLE = new Set([502, 503, 504]);
const KEPT_NAME = "handful.name";

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    Object.assign(this, { name: "ApiError", status, code });
  }
}

export class LostError extends Error {
  constructor() {
    super("The server cannot be reached. This page tries again by itself.");
    this.name = "LostError";
  }
}

export const connection = { lost: false };
export const me = { account: "", annotator: "", role: "read", limits: {}, version: "" };

/** Whether this browser may choose the name that labels are made under. */
export const mayChooseName = () => me.account === "local";

export function setName(name) {
  me.annotator = name;
  localStorage.setItem(KEPT_NAME, name);
  tell("name", name);
}

export const keptName = () => localStorage.getItem(KEPT_NAME);

/** The address of something of the API. */
export function address(path, query = {}) {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(query))
    for (const one of [value].flat()) if (one !== undefined && one !== null) url.searchParams.append(name, one);
  return url;
}

/** Sends a request and gives the answer's JSON; `file` is sent as it is, `as` is the name that labels are made under. */
export async function request(method, path, { query, body, file, signal, as = me.annotator, raw = false } = {}) {
  const headers = { accept: "application/json" };
  if (as && (me.account === "local" || !me.account)) headers["x-handful-annotator"] = encodeURIComponent(as);
  if (body !== undefined) headers["content-type"] = "application/json";
  if (file !== undefined) headers["content-type"] = "application/octet-stream";
  const options = { method, headers, signal, body: file ?? (body === undefined ? undefined : JSON.stringify(body)) };
  const response = await reach(address(path, query), options);
  if (!response.ok) throw await errorOf(response);
  if (raw) return response;
  return response.status === 204 ? null : response.json();
}

async function reach(url, options) {
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    lose(true);
    throw new LostError();
  }
  lose(UNREACHABLE.has(response.status));
  if (connection.lost) throw new LostError();
  return response;
}

function lose(lost) {
  if (connection.lost === lost) return;
  connection.lost = lost;
  tell("connection", lost);
}

async function errorOf(response) {
  const facts = await response.json().catch(() => null);
  const known = facts?.error ?? { code: "failure", message: `The server answered with status ${response.status}.` };
  if (response.status === 401) tell("unauthorized");
  return new ApiError(response.status, known.code, known.message);
}

export const get = (path, query, signal) => request("GET", path, { query, signal });
export const post = (path, body, signal) => request("POST", path, { body, signal });
export const patch = (path, body) => request("PATCH", path, { body });
export const put = (path, body) => request("PUT", path, { body });
export const remove = (path, query) => request("DELETE", path, { query });

/** An id for an action: sent again with it, nothing is done twice. */
export const newId = () =>
  crypto.randomUUID?.() ??
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Sends a file and waits for its job; `progress` is called with the job as it stands. */
export async function job(path, { query, file, progress, signal }) {
  let facts = await request("POST", path, { query, file, signal });
  while (facts.state === "waiting" || facts.state === "running") {
    progress?.(facts);
    await new Promise((done) => setTimeout(done, 300));
    facts = await again(() => get(`jobs/${facts.id}`, {}, signal));
  }
  if (facts.state !== "done") throw new ApiError(422, facts.state, facts.message);
  return facts;
}

/** Asks until the server can be reached. */
export async function again(ask) {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof LostError)) throw error;
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}

/** Downloads a file, so that an error becomes a sentence and not a file. */
export async function download(path, query) {
  const response = await request("GET", path, { query, raw: true });
  const name = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? "download";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  return name;
}
