// Table: find texts, select them, give them a class with one key. Only the rows that are seen are here.
import { get } from "../api.js";
import { on } from "../bus.js";
import { classList, findClass } from "../classes.js";
import { announce, choice, complain, count, debounce, el, empty, number, percent } from "../dom.js";
import { listen } from "../keys.js";
import { add } from "../outbox.js";
import { keep, link } from "../router.js";
import { classByKey, className, classes, mayLabel, path, state } from "../state.js";
import { chip, standing } from "../texts.js";

const PAGE = 100; // rows asked for at once
const MOST_ROWS = 300_000; // that a browser can scroll through
const STATES = [
  ["", "any state"],
  ["open", "without a label"],
  ["labelled", "labelled"],
  ["skipped", "skipped"],
  ["unsure", "unsure"],
  ["none", "none of these"],
  ["disputed", "disputed"],
];
const SORTS = [
  ["id", "in order"],
  ["-id", "last ones first"],
  ["confidence", "least sure first"],
  ["-confidence", "surest first"],
  ["recent", "labelled last first"],
];
const MARKS = { s: "skip", u: "unsure", n: "none" };
const CONFIDENCE = [
  ["", "any"],
  ["0-0.5", "below 50 %"],
  ["0.5-0.8", "50 to 80 %"],
  ["0.8-0.95", "80 to 95 %"],
  ["0.95-1", "above 95 %"],
];

export async function show(root, { query, signal }) {
  if (!state.project.texts)
    return root.append(
      empty(
        "No texts yet",
        "Add texts first; then search, filter and label many of them here.",
        el("a", { class: "button primary", href: link(state.project.id, "data"), text: "Add texts" }),
      ),
    );
  const table = new Table(root, query, signal);
  await table.load(true);
}

class Table {
  constructor(root, query, signal) {
    Object.assign(this, {
      root,
      signal,
      pages: new Map(),
      total: 0,
      active: 0,
      anchor: 0,
      selected: new Map(),
      asking: new Set(),
      turn: 0,
    });
    this.filters = Object.fromEntries(
      ["search", "state", "class", "predicted", "confidence", "sort"].map((name) => [name, query.get(name) ?? ""]),
    );
    this.build();
    listen((key, event) => this.press(key, event), signal);
    on("project", (detail) => detail?.version && this.refreshSoon(), signal);
    this.refreshSoon = debounce(() => signal.aborted || this.load(false), 400);
    this.later = debounce(() => signal.aborted || document.hidden || this.load(false), 3000); // newer predictions
  }

  build() {
    const names = classes().map((one) => [one.number, one.name]);
    const select = (name, label, options) =>
      choice(options, this.filters[name], { "aria-label": label, onchange: (event) => this.filter(name, event.target.value) });
    const search = el("input", {
      type: "search",
      "aria-label": "Search texts",
      placeholder: "Search texts",
      value: this.filters.search,
      oninput: debounce((event) => this.filter("search", event.target.value), 150),
    });
    const bar = el(
      "div",
      { class: "row toolbar wrap", role: "search" },
      search,
      select("state", "State", STATES),
      select("class", "Label", [["", "any label"], ...names]),
      select("predicted", "Prediction", [["", "any prediction"], ...names.map(([key, name]) => [key, `predicted ${name}`])]),
      select(
        "confidence",
        "Confidence",
        CONFIDENCE.map(([key, name]) => [key, `confidence: ${name}`]),
      ),
      select(
        "sort",
        "Order",
        SORTS.map(([key, name]) => [key === "id" ? "" : key, name]),
      ),
    );
    this.found = el("p", { class: "muted", role: "status" });
    this.body = el("div", { class: "rows", role: "presentation" });
    this.grid = el(
      "div",
      { class: "grid", role: "grid", "aria-label": "Texts", "aria-multiselectable": "true", tabindex: 0 },
      this.header(),
      this.body,
    );
    this.grid.addEventListener("scroll", () => this.draw(), { signal: this.signal });
    new ResizeObserver(() => this.draw()).observe(this.grid);
    this.picked = el("p", { role: "status" });
    const all = el("button", { type: "button", text: "Select all found", onclick: () => this.selectAll() });
    const clear = el("button", { type: "button", class: "ghost", text: "Select none", onclick: () => this.clear() });
    this.panel = el("div", { class: "panel" });
    const hint = el("p", {
      class: "muted",
      text: "↑ ↓ moves, Space selects, Shift extends. A key of a class labels the selected rows, or the row you are on.",
    });
    const side = mayLabel()
      ? el(
          "section",
          { class: "side", "aria-label": "Give a class" },
          this.picked,
          el("div", { class: "row" }, all, clear),
          this.panel,
          hint,
        )
      : null;
    this.root.append(
      el("h1", { class: "unseen", text: "Table" }),
      bar,
      el("div", { class: "columns" }, el("div", { class: "work" }, this.found, this.grid), side),
    );
    this.grid.addEventListener("click", (event) => this.click(event));
    this.grid.addEventListener("dblclick", (event) => this.openRow(event));
    this.drawPanel();
  }

  header() {
    const cells = ["", "Text", "Label", "Prediction"].map((text, place) =>
      el("span", { role: "columnheader", class: `cell cell-${place}`, text: text || "Selected" }),
    );
    cells[0].classList.add("faint");
    return el("div", { class: "grid-head", role: "row", "aria-rowindex": 1 }, cells);
  }

  query(offset, limit) {
    const { search, state: wanted, class: label, predicted, confidence, sort } = this.filters;
    const [least, most] = confidence ? confidence.split("-") : [null, null];
    return {
      search: search || null,
      state: wanted || null,
      class: label || null,
      predicted: predicted || null,
      min_confidence: least,
      max_confidence: most,
      sort: sort || "id",
      offset,
      limit,
    };
  }

  /** Whether the rows depend on predictions. */
  byPrediction() {
    const { predicted, confidence, sort } = this.filters;
    return Boolean(predicted || confidence || sort.endsWith("confidence"));
  }

  /** Waits until there are predictions at all; those of a moment ago are good enough to begin with. */
  async predicted(turn) {
    while (this.byPrediction() && classes().length > 1 && turn === this.turn) {
      const found = await get(path("texts"), { limit: 1 }, this.signal);
      if (found.prediction_version !== null) return;
      this.found.textContent = "The model is answering all texts…";
      await new Promise((done) => setTimeout(done, 1000));
    }
  }

  filter(name, value) {
    this.filters[name] = value;
    keep(this.filters);
    this.active = this.anchor = 0;
    this.grid.scrollTop = 0;
    this.load(true);
  }

  /** Asks for the rows that are seen; a new search forgets the old rows at once. */
  async load(fresh) {
    const turn = ++this.turn;
    this.asking.clear();
    this.waits = fresh; // rows of another search are not asked for
    try {
      await this.predicted(turn);
      if (turn !== this.turn || this.signal.aborted) return;
      const first = Math.floor(this.first() / PAGE);
      const found = await get(path("texts"), this.query(first * PAGE, PAGE), this.signal);
      if (turn !== this.turn) return;
      this.waits = false;
      this.pages = new Map([[first, found.texts]]);
      this.total = Math.min(found.total, MOST_ROWS);
      const beyond = found.total > MOST_ROWS ? `; the first ${number(MOST_ROWS)} are shown, so search for fewer` : "";
      this.found.textContent = `${count(found.total, "text")}${beyond}`;
      if (fresh && !found.total) this.found.textContent = "No text is like that: change the search or the filters.";
      this.draw();
      if (found.prediction_version !== state.project.version && classes().length > 1) this.later();
    } catch (error) {
      if (error.name === "ApiError" && error.status === 409) this.found.textContent = error.message;
      else if (error.name !== "LostError") complain(error);
    }
  }

  rowHeight() {
    return parseFloat(getComputedStyle(this.grid).getPropertyValue("--row")) || 44;
  }

  first() {
    return Math.max(0, Math.min(Math.floor(this.grid.scrollTop / this.rowHeight()), Math.max(0, this.total - 1)));
  }

  row(place) {
    return this.pages.get(Math.floor(place / PAGE))?.[place % PAGE] ?? null;
  }

  draw() {
    const height = this.rowHeight();
    const start = Math.max(0, this.first() - 8);
    const end = Math.min(this.total, this.first() + Math.ceil(this.grid.clientHeight / height) + 8);
    this.body.style.blockSize = `${this.total * height}px`;
    this.grid.setAttribute("aria-rowcount", this.total + 1);
    this.ask(Math.floor(start / PAGE), Math.floor(Math.max(start, end - 1) / PAGE));
    const rows = [];
    for (let place = start; place < end; place += 1) rows.push(this.drawRow(place, height));
    this.body.replaceChildren(...rows);
    this.grid.setAttribute("aria-activedescendant", this.total ? `row-${this.active}` : "");
  }

  ask(from, to) {
    if (this.waits) return;
    for (let page = from; page <= to; page += 1) {
      if (this.pages.has(page) || this.asking.has(page) || page * PAGE >= this.total) continue;
      this.asking.add(page);
      const turn = this.turn;
      get(path("texts"), this.query(page * PAGE, PAGE), this.signal)
        .then((found) => turn === this.turn && (this.pages.set(page, found.texts), this.draw()))
        .catch((error) => error.name === "ApiError" && complain(error))
        .finally(() => this.asking.delete(page));
    }
    for (const page of this.pages.keys()) if (page < from - 5 || page > to + 5) this.pages.delete(page);
  }

  drawRow(place, height) {
    const text = this.row(place);
    const picked = text && this.selected.has(text.id);
    const cells = text
      ? [
          el("span", { role: "gridcell", class: "cell cell-0" }, el("i", { class: "tick", text: picked ? "✓" : "" })),
          el("span", { role: "gridcell", class: "cell cell-1", title: text.text.slice(0, 2000), text: text.text }),
          el("span", { role: "gridcell", class: "cell cell-2" }, standing(text)),
          el("span", { role: "gridcell", class: "cell cell-3" }, this.prediction(text)),
        ]
      : [el("span", { role: "gridcell", class: "cell cell-1 muted", text: "…" })];
    const row = el(
      "div",
      {
        class: `grid-row${place === this.active ? " active" : ""}${picked ? " picked" : ""}`,
        role: "row",
        id: `row-${place}`,
        "aria-rowindex": place + 2,
        "aria-selected": String(Boolean(picked)),
        "data-place": place,
      },
      cells,
    );
    row.style.transform = `translateY(${place * height}px)`;
    return row;
  }

  prediction(text) {
    return text.prediction
      ? [chip(text.prediction.class), el("span", { class: "number muted", text: percent(text.prediction.probability) })]
      : "";
  }

  // Selecting

  click(event) {
    const row = event.target.closest(".grid-row");
    if (!row) return;
    this.active = Number(row.dataset.place);
    if (event.shiftKey) this.extend(this.anchor, this.active);
    else {
      this.anchor = this.active;
      this.toggle(this.active);
    }
    this.draw();
  }

  openRow(event) {
    const row = event.target.closest(".grid-row");
    const text = row && this.row(Number(row.dataset.place));
    if (text) location.hash = link(state.project.id, "label", { text: text.id });
  }

  toggle(place) {
    const text = this.row(place);
    if (!text) return;
    if (this.selected.has(text.id)) this.selected.delete(text.id);
    else this.selected.set(text.id, text);
    this.drawPanel();
  }

  extend(from, to) {
    for (let place = Math.min(from, to); place <= Math.max(from, to); place += 1) {
      const text = this.row(place);
      if (text) this.selected.set(text.id, text);
    }
    this.drawPanel();
  }

  async selectAll() {
    const most = 10_000;
    try {
      for (let offset = 0; offset < Math.min(this.total, most); offset += 1000) {
        const found = await get(path("texts"), this.query(offset, 1000), this.signal);
        for (const text of found.texts) this.selected.set(text.id, text);
      }
      if (this.total > most) this.found.textContent = `The first ${number(most)} are selected; label them, then select again.`;
    } catch (error) {
      complain(error);
    }
    this.drawPanel();
    this.draw();
  }

  clear() {
    this.selected.clear();
    this.drawPanel();
    this.draw();
  }

  press(key, event) {
    const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    if (moves[key] !== undefined) return (this.move(moves[key], event.shiftKey), true);
    if (key === " ") return (this.toggle(this.active), this.draw(), true);
    if (key === "Escape") return (this.clear(), true);
    if (key === "all") return (this.selectAll(), true);
    if (key === "/") return (this.byName(), true);
    if (key === "Enter" && this.row(this.active))
      return ((location.hash = link(state.project.id, "label", { text: this.row(this.active).id })), true);
    if (!mayLabel()) return false;
    if (MARKS[key]) return (this.give({ mark: MARKS[key] }), true);
    const one = classByKey(key);
    if (one) this.give({ class: one.number });
    return Boolean(one);
  }

  move(by, extend) {
    this.active = Math.max(0, Math.min(this.total - 1, this.active + by));
    if (extend) this.extend(this.anchor, this.active);
    else this.anchor = this.active;
    const height = this.rowHeight();
    const top = this.active * height;
    const seen = this.grid.clientHeight - 2 * height;
    if (top < this.grid.scrollTop) this.grid.scrollTop = top;
    else if (top > this.grid.scrollTop + seen) this.grid.scrollTop = top - seen;
    this.draw();
    const text = this.row(this.active);
    if (text) announce(`${text.text} ${text.class === null ? "" : className(text.class)}`);
  }

  async byName() {
    const found = await findClass();
    if (found !== null) this.give({ class: found });
  }

  give(value) {
    const texts = this.selected.size ? [...this.selected.values()] : [this.row(this.active)].filter(Boolean);
    if (!texts.length) return;
    if (!add(state.project.id, "labels", { texts: texts.map((one) => one.id), ...value })) return;
    const said = value.mark ? "marked" : className(value.class);
    announce(`${count(texts.length, "text")}: ${said}`);
    for (const page of this.pages.values())
      for (const text of page)
        if (texts.some((one) => one.id === text.id))
          Object.assign(
            text,
            value.mark
              ? { state: value.mark === "skip" ? "skipped" : value.mark, class: null }
              : { state: "labelled", class: value.class },
          );
    if (!this.selected.size) this.move(1, false);
    this.clear();
  }

  drawPanel() {
    this.picked.textContent = this.selected.size ? `${count(this.selected.size, "text")} selected` : "Nothing selected";
    this.panel.replaceChildren(classList({ choose: (one) => this.give({ class: one }) }));
  }
}
