// What happens, told to the parts of the page that want to know.
const bus = new EventTarget();

/** Calls a function whenever something happens, until the signal says that its part of the page is gone. */
export const on = (name, work, signal) => bus.addEventListener(name, (event) => work(event.detail), { signal });

/** Tells that something happened. */
export const tell = (name, detail) => bus.dispatchEvent(new CustomEvent(name, { detail }));
