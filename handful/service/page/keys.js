// Keys: one for each thing, but never while somebody types.
const OFF = "handful.keys";
const TYPING = "input:not([type=checkbox]):not([type=radio]):not([type=button]), textarea, select, [contenteditable]";
const PRESSABLE = "button, a[href], summary, input, [role=tab], [role=option]";

export const keysAreOn = () => localStorage.getItem(OFF) !== "off";
export const setKeys = (enabled) => localStorage.setItem(OFF, enabled ? "on" : "off");

/** The name of a key press: "a", "Enter", "undo" or "redo"; null where it is not for the page. */
export function pressed(event) {
  if (event.defaultPrevented || event.isComposing || event.altKey) return null;
  if (event.target.closest?.("dialog") || document.querySelector("dialog[open]")) return null;
  if (event.target.closest?.(TYPING)) return null;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (event.ctrlKey || event.metaKey) {
    if (key === "z") return event.shiftKey ? "redo" : "undo";
    return key === "y" ? "redo" : key === "a" ? "all" : null;
  }
  if ((key === "Enter" || key === " ") && event.target.closest?.(PRESSABLE)) return null;
  if (!keysAreOn() && event.key.length === 1) return null;
  if (key === "z" || key === "Backspace") return "undo";
  return key === "y" ? "redo" : key;
}

/** Gives key presses to a view, which says whether each was for it. */
export function listen(work, signal) {
  const handle = (event) => {
    const key = pressed(event);
    if (key !== null && work(key, event)) event.preventDefault();
  };
  document.addEventListener("keydown", handle, { signal });
}
