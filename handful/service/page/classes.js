// Classes: the list beside a text with keys and notes, and dialogs to add, change, merge and delete them.
import { newId, patch, post, remove } from "./api.js";
import { tell } from "./bus.js";
import { ask } from "./dialogs.js";
import { bar, choice, el, field, keycap, percent, toast } from "./dom.js";
import { sent } from "./outbox.js";
import { classKey, className, classes, hue, path, refresh } from "./state.js";
import { undo } from "./undo.js";

/** Changes classes after all labels that wait, then asks for the classes again. */
async function change(work) {
  await sent();
  const answer = await work();
  tell("class-changed");
  await refresh();
  return answer;
}

const fields = (one = {}) => [
  field("Name", el("input", { name: "name", value: one.name ?? "", required: true, maxlength: 200, autocomplete: "off" })),
  field(
    "Note",
    el("textarea", { name: "note", rows: 3, value: one.note ?? "", maxlength: 10_000 }),
    "What belongs here and what does not. It is shown next to each text.",
  ),
  field(
    "Words for the model",
    el("input", { name: "words", value: one.words ?? "", maxlength: 10_000, autocomplete: "off" }),
    "Optional: words that describe the class better than its name.",
  ),
];

const trimmed = ({ name, note, words }) => ({ name: name.trim(), note: note.trim(), words: words.trim() });

/** Asks for a new class; gives its number, or null. */
export const newClass = (name = "") =>
  ask({
    title: "New class",
    action: "Add",
    fields: fields({ name }),
    save: async (values) => (await change(() => post(path("classes"), { id: newId(), ...trimmed(values) }))).number,
  });

/** Adds several classes: one per line, with a note behind a colon. */
export const addLines = async (lines) => {
  const wanted = lines
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const known = new Set(classes().map((one) => one.name));
  for (const line of wanted) {
    const [, name, note = ""] = /^(.*?)(?::\s+(.*))?$/.exec(line);
    if (!known.has(name.trim())) await post(path("classes"), { id: newId(), name: name.trim().slice(0, 200), note });
  }
  await refresh();
};

/** Changes, merges or deletes a class. */
export function editClass(one) {
  const others = classes().filter((other) => other.number !== one.number);
  const into = choice([["", "Choose a class…"], ...others.map((other) => [other.number, other.name])], "", {
    "aria-label": "Class to merge into",
  });
  const done = (text) => toast(text, { action: "Undo", onAction: undo });
  const close = () => document.querySelector("dialog[open]").close();
  const attempt = async (event, work, text) => {
    try {
      await change(work);
      close();
      done(text);
    } catch (error) {
      event.target.closest("form").querySelector(".problem").textContent = error.message;
    }
  };
  const merge = el("button", {
    type: "button",
    text: "Merge",
    onclick: (event) =>
      into.value &&
      attempt(
        event,
        () => post(path(`classes/${one.number}/merge`), { id: newId(), into: Number(into.value) }),
        `${one.name} was merged into ${className(Number(into.value))}.`,
      ),
  });
  const drop = el("button", {
    type: "button",
    class: "danger",
    text: "Delete this class",
    onclick: (event) =>
      attempt(
        event,
        () => remove(path(`classes/${one.number}`), { id: newId() }),
        `${one.name} was deleted; its texts have no label now.`,
      ),
  });
  const more = el("details", {}, el("summary", { text: "Merge or delete" }), el("div", { class: "row" }, into, merge, drop));
  return ask({
    title: "Class",
    fields: [...fields(one), more],
    save: (values) => change(() => patch(path(`classes/${one.number}`), { id: newId(), ...trimmed(values) })),
  });
}

/** Moves a class up or down. */
export const moveClass = (place, by) =>
  change(async () => {
    const order = [...classes()];
    const [one] = order.splice(place, 1);
    order.splice(place + by, 0, one);
    for (const [position, each] of order.entries())
      if (each.position !== position) await patch(path(`classes/${each.number}`), { id: newId(), position });
  });

/** Asks for a class by its name: type, then Enter. */
export function findClass() {
  const list = el(
    "datalist",
    { id: "class-names" },
    classes().map((one) => el("option", { value: one.name })),
  );
  const input = el("input", { name: "line", required: true, list: "class-names", autocomplete: "off" });
  const find = (text) => {
    const wanted = text.trim().toLowerCase();
    const all = classes();
    const found =
      all.find((one) => one.name.toLowerCase() === wanted) ?? all.find((one) => one.name.toLowerCase().includes(wanted));
    if (!found) throw new Error(`No class has “${text.trim()}” in its name.`);
    return found.number;
  };
  return ask({
    title: "Which class?",
    fields: [field("Name, or part of it", input), list],
    action: "Give this class",
    save: ({ line }) => find(line),
  });
}

/** The list of classes: key, name, note and probability of each. `choose` gets the number, `look` the class to shade by. */
export function classList({ choose, look = () => {}, ranked = null, chosen = null, editable = false }) {
  const shares = new Map((ranked ?? []).map((one) => [one.class, one.probability]));
  const best = ranked?.[0]?.class;
  const rows = classes().map((one, place) => {
    const key = classKey(place);
    const share = shares.get(one.number);
    const state = `${one.number === best ? " best" : ""}${one.number === chosen ? " chosen" : ""}`;
    const button = el(
      "button",
      {
        type: "button",
        class: `class${state}`,
        hue: hue(one.number),
        "aria-keyshortcuts": key || null,
        "data-class": one.number,
        "aria-pressed": chosen === null ? null : String(one.number === chosen),
      },
      key ? keycap(key) : el("kbd", { class: "none", "aria-hidden": "true", text: "/" }),
      el(
        "span",
        { class: "about" },
        el("span", { class: "name", text: one.name }),
        one.note && el("span", { class: "note", text: one.note }),
      ),
      share !== undefined && el("span", { class: "share" }, bar(share), el("span", { class: "number", text: percent(share) })),
    );
    button.addEventListener("click", (event) => {
      if (event.detail) button.blur();
      choose(one.number);
    });
    for (const kind of ["pointerenter", "focus"]) button.addEventListener(kind, () => look(one.number));
    for (const kind of ["pointerleave", "blur"]) button.addEventListener(kind, () => look(null));
    return el(
      "li",
      {},
      button,
      editable &&
        el("button", {
          type: "button",
          class: "ghost icon edit",
          "aria-label": `Change class ${one.name}`,
          text: "✎",
          onclick: () => editClass(one),
        }),
    );
  });
  return el("ul", { class: "classes" }, rows);
}
