// Your latest labels: each can be changed.
import { get, me } from "../api.js";
import { el, short } from "../dom.js";
import { waiting } from "../outbox.js";
import { path, state } from "../state.js";
import { verdict } from "../texts.js";

const SHOWN = 8;
const KEPT = 30;

export class Past {
  constructor(edit, signal) {
    Object.assign(this, { edit, signal, entries: [], list: el("ol", { class: "past" }) });
  }

  /** Asks for what was labelled before this page was opened; labels that wait are newer. */
  async read() {
    const found = await get(path("texts"), { annotator: me.annotator, sort: "recent", limit: SHOWN }).catch(() => null);
    if (!found || this.signal.aborted) return;
    const known = new Set(this.entries.map((one) => one.id));
    const fresh = found.texts.map((one) => {
      const mine = one.labels.find((label) => label.annotator === me.annotator);
      return { id: one.id, text: one.text, mark: mine?.mark, class: mine?.class ?? null };
    });
    const waits = waiting(state.project.id).length > 0;
    this.entries = waits ? [...this.entries, ...fresh.filter((one) => !known.has(one.id))] : fresh;
    this.draw();
  }

  /** What you said of a text, or null. */
  find(id) {
    return this.entries.find((one) => one.id === id) ?? null;
  }

  /** The label before that of a text, or the last one. */
  before(id) {
    const place = this.entries.findIndex((one) => one.id === id);
    return this.entries[Math.min(place + 1, this.entries.length - 1)] ?? null;
  }

  add(entry) {
    this.entries = [entry, ...this.entries.filter((one) => one.id !== entry.id)].slice(0, KEPT);
    this.draw();
  }

  /** Forgets a label that was undone; the one that it had replaced is there again. */
  remove(id, replaced) {
    this.entries = this.entries.filter((one) => one.id !== id);
    if (replaced) this.entries.unshift(replaced);
    this.draw();
  }

  draw() {
    const rows = this.entries.slice(0, SHOWN).map((one) => el("li", {}, this.row(one)));
    const nothing = "Nothing yet. Press the key of a class: it labels, saves and shows the next text.";
    this.list.replaceChildren(...(rows.length ? rows : [el("li", { class: "muted", text: nothing })]));
  }

  row(one) {
    return el(
      "button",
      { type: "button", class: "ghost line", title: "Change this label", onclick: () => this.edit(one) },
      verdict(one.mark, one.class),
      el("span", { class: "cut", text: short(one.text, 110) }),
    );
  }
}
