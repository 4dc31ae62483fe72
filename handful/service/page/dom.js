// Elements made from data. Texts are always set as text, never parsed as HTML.

/** An element: properties that begin with "on" are listeners, "text" is its text, "hue" colours it, others are attributes. */
export function el(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** The same for drawings. */
export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "text") element.textContent = value;
    else if (name === "hue") element.style.setProperty("--hue", value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(3).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

/** Says something to people who listen to the page. */
export function announce(text) {
  document.getElementById("live").textContent = text;
}

/** A message that goes away by itself; an action is a button on it. */
export function toast(text, { action = null, onAction = null, bad = false } = {}) {
  const box = el("div", { class: bad ? "toast bad" : "toast" }, el("span", { text }));
  const close = () => box.remove();
  if (action) box.append(el("button", { type: "button", text: action, onclick: () => (close(), onAction()) }));
  box.append(el("button", { type: "button", class: "icon", "aria-label": "Close this message", text: "×", onclick: close }));
  const all = document.getElementById("toasts");
  while (all.children.length > 2) all.firstChild.remove();
  all.append(box);
  setTimeout(close, bad ? 12_000 : 6_000);
}

/** Shows an error as a sentence. */
export function complain(error) {
  if (error?.name !== "AbortError") toast(error?.message ?? String(error), { bad: true });
}

/** A function that runs once things are quiet. */
export function debounce(work, milliseconds) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), milliseconds);
  };
}

const NUMBERS = new Intl.NumberFormat("en");

/** 1234 as "1,234". */
export const number = (value) => NUMBERS.format(value);

/** A number with its noun. */
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

/** 0.873 as "87 %". */
export const percent = (value) => `${Math.round(100 * value)} %`;

/** A text in one line, cut where it is long. */
export const short = (text, length = 80) => {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
};

/** How long ago something happened. */
export function ago(seconds) {
  const past = Math.max(0, Date.now() / 1000 - seconds);
  if (past < 90) return "just now";
  if (past < 5400) return `${Math.round(past / 60)} minutes ago`;
  if (past < 129_600) return `${Math.round(past / 3600)} hours ago`;
  return new Date(seconds * 1000).toLocaleDateString("en", { day: "numeric", month: "short", year: "numeric" });
}

/** A key as it is printed on a keyboard. */
export const keycap = (key) => el("kbd", { text: key, "aria-hidden": "true" });

let fields = 0;

/** A control with its name above it and a hint below it. */
export function field(label, control, hint = "") {
  const id = `field-${(fields += 1)}`;
  const input = control.matches("input, select, textarea") ? control : control.querySelector("input, select, textarea");
  input.id = id;
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  return el(
    "div",
    { class: "field" },
    el("label", { class: "name", for: id, text: label }),
    control,
    hint && el("span", { class: "hint", id: `${id}-hint`, text: hint }),
  );
}

/** A list of choices: [value, name] each. */
export function choice(options, value, properties = {}) {
  const made = options.map(([key, name]) => el("option", { value: key, text: name }));
  const select = el("select", properties, made);
  select.value = value;
  return select;
}

/** What to do where there is nothing yet. */
export const empty = (title, text, ...actions) =>
  el("section", { class: "empty" }, el("h2", { text: title }), el("p", { text }), el("div", { class: "row centre" }, actions));

/** A bar for a share between 0 and 1. */
export const bar = (share, properties = {}) => {
  const inside = el("span", { class: "bar-part" });
  inside.style.inlineSize = `${Math.round(1000 * Math.max(0, Math.min(1, share))) / 10}%`;
  return el("span", { class: "bar", "aria-hidden": "true", ...properties }, inside);
};
