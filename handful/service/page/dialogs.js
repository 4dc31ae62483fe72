// Dialogs: a form in the middle, closed by Escape.
import { complain, el, field } from "./dom.js";

/** Opens a dialog with a form; `save` gets the form's values and may throw a sentence. Resolves with its result, or null. */
export function ask({
  title,
  text = "",
  fields = [],
  action = "Save",
  danger = false,
  save = (values) => values,
  wide = false,
}) {
  return new Promise((resolve) => {
    const problem = el("p", { class: "problem", role: "alert" });
    const button = el("button", { class: danger ? "danger" : "primary", type: "submit", text: action });
    const cancel = el("button", { type: "button", text: "Cancel", onclick: () => dialog.close() });
    const heading = el("h2", { text: title, id: "dialog-title" });
    const form = el(
      "form",
      { method: "dialog" },
      heading,
      text && el("p", { text }),
      fields,
      problem,
      el("div", { class: "row end" }, cancel, button),
    );
    const dialog = el("dialog", { class: wide ? "wide" : "", "aria-labelledby": "dialog-title" }, form);
    let result = null;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      problem.textContent = "";
      try {
        result = await save(Object.fromEntries(new FormData(form)));
        dialog.close();
      } catch (error) {
        problem.textContent = error.message;
      } finally {
        button.disabled = false;
      }
    });
    dialog.addEventListener("close", () => (dialog.remove(), resolve(result)));
    document.body.append(dialog);
    dialog.showModal();
    (dialog.querySelector("[autofocus]") ?? dialog.querySelector("input, textarea, select") ?? button).focus();
  });
}

/** Asks whether to do something that cannot be undone. */
export const confirm = (title, text, action) => ask({ title, text, action, danger: true, save: () => true });

/** A dialog that only shows something. */
export function show(title, ...content) {
  const close = el("button", { class: "primary", text: "Close" });
  const form = el(
    "form",
    { method: "dialog" },
    el("h2", { text: title, id: "dialog-title" }),
    content,
    el("div", { class: "row end" }, close),
  );
  const dialog = el("dialog", { class: "wide", "aria-labelledby": "dialog-title" }, form);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
}

/** Asks for one line. */
export const askLine = (title, label, value = "", { hint = "", action = "Save", save, longest = 200 } = {}) =>
  ask({
    title,
    action,
    fields: [field(label, el("input", { name: "line", value, required: true, maxlength: longest, autocomplete: "off" }), hint)],
    save: ({ line }) => save(line.trim()),
  });

/** Does something, and shows a sentence if it fails. */
export async function trying(work) {
  try {
    return await work();
  } catch (error) {
    complain(error);
    return undefined;
  }
}
