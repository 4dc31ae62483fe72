// Clean up: probable mistakes one by one; one key corrects, another dismisses.
import { get, post, remove } from "../api.js";
import { on } from "../bus.js";
import { classList, findClass } from "../classes.js";
import { confirm, trying } from "../dialogs.js";
import { announce, count, debounce, el, keycap, number, percent, toast } from "../dom.js";
import { listen } from "../keys.js";
import { add } from "../outbox.js";
import { keep } from "../router.js";
import { classByKey, className, mayLabel, mayManage, path, refresh, state } from "../state.js";
import { chip, standing } from "../texts.js";

const KINDS = {
  mistakes: ["Likely mistakes", "Labels that a model trained on all the others would not give."],
  contradictions: ["Contradictions", "Texts with the same words and different classes."],
  duplicates: ["Near-duplicates", "Texts that say nearly the same. Give all of them one class, or remove copies."],
};
const NONE = {
  mistakes: "No label looks wrong. This needs at least three labels per class.",
  contradictions: "No two texts with the same words have different classes.",
  duplicates: "No two texts are nearly the same.",
};

export async function show(root, { query, signal }) {
  const view = new Cleaning(root, query.get("kind") ?? "mistakes", signal);
  await view.load();
}

class Cleaning {
  constructor(root, kind, signal) {
    Object.assign(this, {
      root,
      signal,
      kind: KINDS[kind] ? kind : "mistakes",
      items: [],
      texts: {},
      place: 0,
      gone: new Set(),
    });
    this.build();
    listen((key) => this.press(key), signal);
    this.again = debounce(() => signal.aborted || this.load(), 600);
    on("project", (detail) => detail?.version && this.again(), signal);
  }

  build() {
    this.tabs = el("div", { class: "segments", role: "tablist", "aria-label": "Kind" });
    this.about = el("p", { class: "muted" });
    this.list = el("ol", { class: "suspects" });
    this.panel = el("div", { class: "panel" });
    const hint = el(
      "p",
      { class: "muted" },
      keycap("Enter"),
      " takes the model's answer, a key of a class corrects, ",
      keycap("x"),
      " dismisses, ",
      keycap("↑"),
      keycap("↓"),
      " moves, ",
      keycap("z"),
      " undoes.",
    );
    const side = mayLabel() ? el("section", { class: "side", "aria-label": "Correct with" }, this.panel, hint) : null;
    this.root.append(
      el("h1", { text: "Clean up" }),
      this.tabs,
      el(
        "div",
        { class: "columns", role: "tabpanel", "aria-labelledby": "kind-now" },
        el("div", { class: "work" }, this.about, this.list),
        side,
      ),
    );
    this.drawTabs();
  }

  drawTabs() {
    const names = Object.keys(KINDS);
    const turn = (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (by) this.choose(names[(names.indexOf(this.kind) + by + names.length) % names.length]);
    };
    this.tabs.replaceChildren(
      ...names.map((kind) =>
        el("button", {
          type: "button",
          role: "tab",
          id: kind === this.kind ? "kind-now" : null,
          "aria-selected": String(kind === this.kind),
          tabindex: kind === this.kind ? 0 : -1,
          text: KINDS[kind][0],
          onclick: () => this.choose(kind),
          onkeydown: turn,
        }),
      ),
    );
  }

  choose(kind) {
    Object.assign(this, { kind, items: [], place: 0, gone: new Set() });
    keep({ kind });
    this.drawTabs();
    this.tabs.querySelector("[aria-selected=true]").focus();
    this.list.replaceChildren(el("li", { class: "muted", text: "Looking…" }));
    this.load();
  }

  async load() {
    const { kind } = this;
    try {
      const found = await get(path(`cleaning/${kind}`), { limit: 100 }, this.signal);
      if (kind !== this.kind) return;
      this.items = found.items.filter((one) => !this.gone.has(one.item));
      this.texts = found.texts;
      this.total = found.total;
      this.current = found.current;
      this.dismissed = found.dismissed;
      this.draw();
      if (!found.current) setTimeout(() => this.signal.aborted || this.load(), 1500);
    } catch (error) {
      if (error.name === "ApiError") this.list.replaceChildren(el("li", { class: "empty small", text: error.message }));
    }
  }

  draw() {
    const more = this.dismissed ? ` ${count(this.dismissed, "one was", "were")} dismissed.` : "";
    this.about.textContent = `${KINDS[this.kind][1]} ${this.items.length ? `${number(this.total)} found.` : ""}${more}${this.current ? "" : " Looking…"}`;
    this.place = Math.max(0, Math.min(this.place, this.items.length - 1));
    if (this.items.length) this.list.replaceChildren(...this.items.map((item, place) => this.card(item, place)));
    else this.list.replaceChildren(el("li", { class: "empty small", text: this.current ? NONE[this.kind] : "Looking…" }));
    this.panel.replaceChildren(classList({ choose: (one) => this.correct(one) }));
  }

  card(item, place) {
    const texts = item.texts.map((id) => this.texts[id]).filter(Boolean);
    const lines = texts
      .slice(0, 6)
      .map((one) => el("p", { class: "text" }, this.kind === "mistakes" ? "" : [standing(one), " "], one.text));
    if (texts.length < item.texts.length || texts.length > 6)
      lines.push(el("p", { class: "muted", text: `${count(item.texts.length, "text")} in all` }));
    const body = el("div", { class: "about" }, lines, this.reason(item));
    const actions = mayLabel() ? el("div", { class: "row" }, this.actions(item, place)) : null;
    return el(
      "li",
      {
        class: `card suspect${place === this.place ? " active" : ""}`,
        "aria-current": place === this.place ? "true" : null,
        tabindex: place === this.place ? 0 : -1,
        onclick: () => this.move(place),
      },
      body,
      actions,
    );
  }

  reason(item) {
    if (this.kind === "mistakes")
      return el(
        "p",
        {},
        "Labelled ",
        chip(item.class),
        `. The model says `,
        chip(item.predicted),
        ` with ${percent(item.probability)}, and ${percent(item.probability_of_label)} for the label.`,
      );
    if (this.kind === "contradictions") return el("p", { class: "muted", text: "The same words, different classes." });
    return el("p", {
      class: "muted",
      text: item.similarity >= 0.9999 ? "The same words." : `Similarity ${item.similarity.toFixed(2)}.`,
    });
  }

  actions(item, place) {
    const now = (work) => (event) => (event.stopPropagation(), (this.place = place), work());
    const made = [];
    if (this.kind === "mistakes")
      made.push(
        el(
          "button",
          { type: "button", onclick: now(() => this.correct(item.predicted)) },
          keycap("Enter"),
          `Change to ${className(item.predicted)}`,
        ),
      );
    if (this.kind === "duplicates" && mayManage())
      made.push(
        el("button", {
          type: "button",
          class: "ghost",
          text: "Remove copies",
          onclick: now(() => trying(() => this.removeCopies(item))),
        }),
      );
    made.push(el("button", { type: "button", class: "ghost", onclick: now(() => this.dismiss()) }, keycap("x"), "It is fine"));
    return made;
  }

  move(place) {
    this.place = Math.max(0, Math.min(this.items.length - 1, place));
    this.draw();
    const now = this.list.children[this.place];
    now?.scrollIntoView({ block: "nearest" });
    const item = this.items[this.place];
    if (item) announce(item.texts.map((id) => this.texts[id]?.text ?? "").join(". "));
  }

  press(key) {
    if (key === "ArrowDown" || key === "j") return (this.move(this.place + 1), true);
    if (key === "ArrowUp" || key === "k") return (this.move(this.place - 1), true);
    if (!mayLabel() || !this.items.length) return false;
    if (key === "x") return (this.dismiss(), true);
    if (key === "/") return (findClass().then((one) => one !== null && this.correct(one)), true);
    if (key === "Enter" && this.kind === "mistakes") return (this.correct(this.items[this.place].predicted), true);
    const one = classByKey(key);
    if (one) this.correct(one.number);
    return Boolean(one);
  }

  /** Several people may have labelled a text: a correction settles it. */
  correct(number) {
    const item = this.items[this.place];
    if (!item || !add(state.project.id, "labels", { texts: item.texts, class: number, final: true })) return;
    announce(`Changed to ${className(number)}.`);
    this.drop(item);
  }

  async dismiss() {
    const item = this.items[this.place];
    if (!item) return;
    this.drop(item);
    const kind = this.kind;
    await trying(async () => {
      await post(path("dismissals"), { kind, item: item.item });
      const back = async () => (
        await remove(path("dismissals"), { kind, item: item.item }),
        this.gone.delete(item.item),
        this.load()
      );
      toast("Dismissed: it is not shown again.", { action: "Undo", onAction: () => trying(back) });
    });
  }

  async removeCopies(item) {
    const rest = item.texts.slice(1);
    const sure = await confirm(
      "Remove copies?",
      `The first text stays; ${count(rest.length, "text")} and the labels on them are removed for good.`,
      "Remove",
    );
    if (!sure) return;
    for (const id of rest) await remove(path(`texts/${id}`));
    this.drop(item);
    await refresh();
  }

  drop(item) {
    this.gone.add(item.item);
    this.items = this.items.filter((one) => one !== item);
    this.total -= 1;
    this.draw();
  }
}
