// The dialog of keys and settings.
import { me } from "./api.js";
import { show } from "./dialogs.js";
import { choice, el, field } from "./dom.js";
import { keysAreOn, setKeys } from "./keys.js";

const THEME = "handful.theme";
const KEYS = [
  ["1 … 9, 0, q, w …", "give this class, save and show the next text"],
  ["Enter", "agree with the prediction"],
  ["/", "find a class by its name"],
  ["c", "new class"],
  ["s  u  n", "skip, unsure, none of these"],
  ["z", "undo your last action (or Backspace, Ctrl+Z)"],
  ["y", "redo (or Ctrl+Shift+Z)"],
  ["←", "change the label before"],
  ["↑ ↓  j k", "move in a table or list"],
  ["Space", "select a row; Shift with ↑ ↓ selects several"],
  ["x", "dismiss a probable mistake"],
  ["?", "show this"],
];

/** Follows the wish for light or dark; by default that of the system. */
export function applyTheme() {
  document.documentElement.dataset.theme = localStorage.getItem(THEME) ?? "auto";
}

export function settingsDialog() {
  const theme = choice(
    [
      ["auto", "As the system"],
      ["light", "Light"],
      ["dark", "Dark"],
    ],
    localStorage.getItem(THEME) ?? "auto",
    {
      onchange: (event) => (localStorage.setItem(THEME, event.target.value), applyTheme()),
    },
  );
  const keys = el("input", { type: "checkbox", onchange: (event) => setKeys(event.target.checked) });
  keys.checked = keysAreOn();
  const list = el(
    "dl",
    { class: "keys" },
    KEYS.map(([key, what]) =>
      el(
        "div",
        {},
        el(
          "dt",
          {},
          key.split("  ").map((one) => el("kbd", { text: one })),
        ),
        el("dd", { text: what }),
      ),
    ),
  );
  show(
    "Keys and settings",
    list,
    el(
      "label",
      { class: "check" },
      keys,
      el("span", { text: "Single keys do things (turn this off if your screen reader or voice control uses them)" }),
    ),
    field("Colours", theme),
    el(
      "p",
      { class: "muted" },
      `Handful ${me.version}. `,
      el("a", { href: "docs", target: "_blank", rel: "noopener", text: "The API" }),
    ),
  );
}
