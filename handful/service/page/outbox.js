// Labels on their way. Each is kept in this browser until the server has answered, and sent in order. It has an id, so that
// a label that was sent again is not made twice.
import { LostError, connection, me, newId, request } from "./api.js";
import { on, tell } from "./bus.js";

const PREFIX = "handful.out.";
const RETRY = [500, 1000, 2000, 4000]; // milliseconds
let failures = 0;
let timer = null;
let running = false;
let last = 0;

function keys() {
  return Object.keys(localStorage)
    .filter((key) => key.startsWith(PREFIX))
    .sort();
}

function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null;
  }
}

/** What waits, the oldest first. */
export const waiting = (project = null) =>
  keys()
    .map(read)
    .filter((one) => one && (project === null || one.project === project));

/** Keeps an action and sends it as soon as it can be sent. Gives its id. */
export function add(project, what, body = {}) {
  last = Math.max(last + 1, Date.now()); // so that the order is that of the key presses
  const id = newId();
  const entry = { id, project, what, body: { id, ...body }, as: me.annotator, key: `${PREFIX}${last}.${id}` };
  try {
    localStorage.setItem(entry.key, JSON.stringify(entry));
  } catch {
    tell("refused", { entry, message: "This browser has no room left for labels that wait: wait until they are sent." });
    return null;
  }
  tell("outbox");
  send();
  return id;
}

/** Sends what waits, one after another; of several tabs only one does. */
export async function send() {
  if (running) return;
  running = true;
  clearTimeout(timer);
  try {
    if (navigator.locks) await navigator.locks.request("handful.outbox", drain);
    else await drain();
  } finally {
    running = false;
  }
  if (keys().length && failures) timer = setTimeout(send, RETRY[Math.min(failures, RETRY.length) - 1]);
  else if (keys().length) queueMicrotask(send);
}

async function drain() {
  for (let key = keys()[0]; key; key = keys()[0]) {
    const entry = read(key);
    if (!entry) {
      localStorage.removeItem(key);
      continue;
    }
    try {
      const answer = await request("POST", `projects/${entry.project}/${entry.what}`, { body: entry.body, as: entry.as });
      failures = 0;
      localStorage.removeItem(key);
      tell("outbox");
      tell("sent", { entry, answer });
    } catch (error) {
      if (error instanceof LostError || error.status === 401 || error.status === 429 || error.status >= 500) {
        failures += 1;
        return;
      }
      localStorage.removeItem(key);
      tell("outbox");
      tell("refused", { entry, message: error.message });
    }
  }
}

/** Waits until nothing waits any more, so that what is done next comes after it. */
export async function sent() {
  while (keys().length) {
    if (connection.lost) throw new LostError();
    await send();
    await new Promise((done) => setTimeout(done, 20));
  }
}

on("connection", (lost) => !lost && ((failures = 0), send()));
on("signed-in", () => send());
addEventListener("online", () => send());
addEventListener("storage", (event) => event.key?.startsWith(PREFIX) && tell("outbox"));
