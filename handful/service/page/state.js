// The project that is open: its facts are asked for again and again, so that what others do is seen.
import { connection, get } from "./api.js";
import { on, tell } from "./bus.js";

const EVERY = 2500; // milliseconds
const CLASS_KEYS = [..."1234567890qwertopadfghlvbmi"]; // the other letters are commands
const GOLDEN = 137.508; // degrees between the colours of two classes, which keeps all of them apart
const FIRST_HUES = [165, 35, 265, 95, 320, 215, 60, 130, 290, 10, 190, 240];

export const state = { project: null };
let timer = null;
let asking = null;

/** Opens a project; null closes it. */
export async function open(id) {
  clearTimeout(timer);
  if (state.project?.id === id) return refresh();
  state.project = null;
  tell("project");
  return id === null ? null : refresh(id);
}

/** Asks for the project's facts now. */
export function refresh(id = state.project?.id) {
  clearTimeout(timer);
  asking = ask(id).finally(() => (timer = setTimeout(poll, connection.lost ? 1000 : EVERY)));
  return asking;
}

async function ask(id) {
  if (!id) return null;
  const facts = await get(`projects/${id}`);
  const before = state.project;
  const same = before?.id === id && JSON.stringify(before) === JSON.stringify(facts);
  state.project = facts;
  if (!same) tell("project", { version: before?.version !== facts.version || before?.id !== facts.id });
  return facts;
}

function poll() {
  if (!state.project) return;
  if (document.hidden && !connection.lost) timer = setTimeout(poll, EVERY);
  else refresh().catch(() => {});
}

on("sent", ({ entry }) => entry.project === state.project?.id && refresh().catch(() => {}));

/** The path of something of the open project. */
export const path = (rest = "") => `projects/${state.project.id}${rest && `/${rest}`}`;

export const classes = () => state.project?.classes ?? [];
export const classOf = (number) => classes().find((one) => one.number === number);
export const className = (number) => classOf(number)?.name ?? `class ${number}`;
export const mayLabel = () => ["label", "admin"].includes(state.project?.role);
export const mayManage = () => state.project?.role === "admin";

/** The hue of a class: always the same for its number. */
export const hue = (number) => FIRST_HUES[number - 1] ?? Math.round((number * GOLDEN) % 360);

/** The key of a class by its place in the list, or "" beyond the keys. */
export const classKey = (place) => CLASS_KEYS[place] ?? "";

/** The class that a key stands for. */
export const classByKey = (key) => classes()[CLASS_KEYS.indexOf(key)] ?? null;
