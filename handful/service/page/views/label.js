// Label: one text, one key. What comes next is already here, and labels are sent in the background.
import { LostError, get, me, post } from "../api.js";
import { on } from "../bus.js";
import { classList, findClass, newClass } from "../classes.js";
import { announce, choice, complain, count, debounce, el, empty, keycap, number, percent } from "../dom.js";
import { trying } from "../dialogs.js";
import { listen } from "../keys.js";
import { add, waiting } from "../outbox.js";
import { keep, link } from "../router.js";
import { classByKey, className, classOf, mayLabel, path, state } from "../state.js";
import { because, chip, shaded, verdict } from "../texts.js";
import { redo, undo } from "../undo.js";
import { Past } from "./past.js";

const AHEAD = 12; // texts that are fetched ahead, so that nothing stalls
const PATIENCE = 1500; // milliseconds
const STRATEGIES = [
  ["suggest", "Suggested: most useful to learn from"],
  ["uncertain", "Most uncertain"],
  ["random", "Random"],
  ["order", "In order"],
  ["search", "By search"],
  ["test", "The test set"],
  ["second", "Labelled by somebody else"],
];
const MARKS = { s: ["skip", "Skip"], u: ["unsure", "Unsure"], n: ["none", "None of these"] };

export async function show(root, { query, signal }) {
  const view = new LabelView(root, query, signal);
  await view.start();
}

class LabelView {
  constructor(root, query, signal) {
    Object.assign(this, {
      root,
      signal,
      queue: [],
      current: null,
      done: [],
      undone: [],
      filling: false,
      looked: null,
    });
    this.strategy = query.get("strategy") ?? "suggest";
    this.search = query.get("search") ?? "";
    this.wanted = query.get("text");
    this.finished = false;
  }

  async start() {
    if (!this.ready()) return;
    this.build();
    this.listen();
    if (this.wanted !== null) await trying(() => this.open(Number(this.wanted)));
    await Promise.all([this.refill(), this.past.read()]);
    this.readAccuracy();
  }

  ready() {
    const { project } = state;
    const data = link(project.id, "data");
    const way = (text) => el("a", { class: "button primary", href: data, text });
    if (!mayLabel())
      this.root.append(
        empty(
          "You may read this project",
          "Ask its owner for the right to label.",
          el("a", { class: "button", href: link(project.id, "table"), text: "Read the texts" }),
        ),
      );
    else if (!project.texts)
      this.root.append(
        empty("No texts yet", "Paste some texts or drop a file; then label the first ones here.", way("Add texts")),
      );
    else if (!project.classes.length)
      this.root.append(
        empty(
          "No classes yet",
          "Name what you want to tell apart, such as billing and delivery. With two names there are predictions at once.",
          way("Name the classes"),
        ),
      );
    else return true;
    on(
      "project",
      () => this.signal.aborted || (state.project?.texts && state.project.classes.length && location.reload()),
      this.signal,
    );
    return false;
  }

  build() {
    this.text = el("p", { class: "text", id: "text", tabindex: "-1" });
    this.reason = el("p", { class: "muted reason" });
    this.note = el("p", { class: "muted notice" });
    this.panel = el("div", { class: "panel" });
    this.past = new Past((one) => this.edit(one), this.signal);
    this.meter = el("div", { class: "meter" });
    this.searchBox = el("input", {
      type: "search",
      "aria-label": "Label texts with these words",
      placeholder: "Words to search",
      value: this.search,
      oninput: debounce((event) => this.choose(this.strategy, event.target.value), 300),
    });
    const strategies = choice(STRATEGIES, this.strategy, {
      "aria-label": "Which text comes next",
      onchange: (event) => this.choose(event.target.value, this.search),
    });
    const marks = Object.entries(MARKS).map(([key, [mark, name]]) =>
      el("button", { type: "button", "aria-keyshortcuts": key, onclick: () => this.give(mark) }, keycap(key), name),
    );
    this.agreeing = el("button", { type: "button", "aria-keyshortcuts": "Enter", onclick: () => this.agree() });
    const back = [
      el("button", { type: "button", class: "ghost", "aria-keyshortcuts": "z", onclick: undo }, keycap("z"), "Undo"),
      el("button", { type: "button", class: "ghost", "aria-keyshortcuts": "y", onclick: redo }, keycap("y"), "Redo"),
    ];
    this.card = el(
      "article",
      { class: "card labelling", "aria-labelledby": "text" },
      this.note,
      this.text,
      this.reason,
      el("div", { class: "row marks" }, this.agreeing, marks),
    );
    const side = el(
      "section",
      { class: "side", "aria-label": "Classes" },
      this.panel,
      el(
        "div",
        { class: "row" },
        el("button", { type: "button", class: "ghost", onclick: () => this.addClass() }, keycap("c"), "New class"),
        el("button", { type: "button", class: "ghost", onclick: () => this.searchClass() }, keycap("/"), "Find a class"),
      ),
    );
    const past = el(
      "section",
      { class: "before" },
      el("div", { class: "row" }, el("h2", { text: "Your latest labels" }), el("span", { class: "gap" }), back),
      this.past.list,
    );
    const bar = el(
      "div",
      { class: "row toolbar" },
      el("label", { class: "inline" }, el("span", { class: "muted", text: "Next" }), strategies),
      this.searchBox,
      this.meter,
    );
    this.root.append(
      el("h1", { class: "unseen", text: "Label" }),
      bar,
      el("div", { class: "columns" }, el("div", { class: "work" }, this.card, past), side),
    );
    this.searchBox.hidden = this.strategy !== "search";
    this.card.classList.add("nothing");
    this.drawNothing();
    this.showMeter();
  }

  listen() {
    listen((key, event) => this.press(key, event), this.signal);
    on("step", (what) => this.step(what), this.signal);
    on("class-changed", () => (this.done.push(null), (this.undone = [])), this.signal);
    on("project", (detail) => this.learned(detail), this.signal);
    on("sent", ({ entry, answer }) => this.sent(entry, answer), this.signal);
    on("connection", (lost) => lost || this.refill(), this.signal);
    on("name", () => location.reload(), this.signal);
  }

  press(key, event) {
    if (MARKS[key]) return (this.give(MARKS[key][0]), true);
    if (key === "c") return (this.addClass(), true);
    if (key === "/") return (this.searchClass(), true);
    if (key === "Enter") return (this.agree(), true);
    if (key === "ArrowLeft" && !event.shiftKey) return this.back();
    const one = classByKey(key);
    if (one) this.give("class", one.number);
    return Boolean(one);
  }

  back() {
    const before = this.past.before(this.current?.id);
    if (before) this.edit(before);
    return Boolean(before);
  }

  agree() {
    const best = this.current?.classes?.[0];
    if (best && this.strategy !== "test") this.give("class", best.class);
  }

  // Giving labels

  give(mark, number = null) {
    const item = this.current;
    if (!item) return;
    const body = mark === "class" ? { texts: [item.id], class: number } : { texts: [item.id], mark };
    if (!add(state.project.id, "labels", body)) return;
    const before = this.past.find(item.id);
    const entry = { item, before, after: { id: item.id, text: item.text, mark, class: number } };
    this.done.push(entry);
    this.undone = [];
    this.past.add(entry.after);
    this.next(mark === "class" ? className(number) : MARKS[mark[0]][1]);
  }

  next(said = "") {
    this.current = this.queue.shift() ?? null;
    this.draw();
    announce(`${said && `${said}. `}${this.current ? `Next text: ${this.current.text}` : "No more texts."}`);
    if (!this.queue.length) this.refill();
  }

  step(what) {
    const [from, to] = what === "undo" ? [this.done, this.undone] : [this.undone, this.done];
    if (!from.length) return void (this.asked = true); // made before this page was opened: the server knows what it was
    const entry = from.pop();
    to.push(entry);
    if (!entry) return;
    if (what === "undo") {
      this.past.remove(entry.item.id, entry.before);
      this.bring(entry.item, entry.before);
    } else {
      this.past.add(entry.after);
      if (this.current?.id === entry.item.id) this.next();
    }
  }

  async sent(entry) {
    if (entry.what === "labels") return this.refill();
    if (!this.asked) return;
    this.asked = false;
    await trying(async () => {
      const [last] = await get(path("actions"), { limit: 1 });
      if (last?.texts?.length === 1) await this.open(last.texts[0]);
      await this.past.read();
    });
  }

  // What is shown

  bring(item, chosen = null) {
    if (this.current && this.current.id !== item.id) this.queue.unshift(this.current);
    this.queue = this.queue.filter((one) => one.id !== item.id);
    this.current = { ...item, chosen: chosen?.mark === "class" ? chosen.class : null, mark: chosen?.mark };
    this.draw();
    announce(`Back to: ${item.text}`);
  }

  edit(one) {
    this.bring({ id: one.id, text: one.text }, one);
  }

  async open(id) {
    const found = await get(path(`texts/${id}`));
    const mine = found.labels.find((one) => one.annotator === me.annotator) ?? null;
    this.bring(found, mine);
  }

  async refill() {
    if (this.filling) return void (this.more = true);
    this.filling = true;
    try {
      const gone = new Set([
        ...waiting(state.project.id).flatMap((one) => one.body.texts ?? []),
        this.current?.id,
        ...this.done.slice(-50).map((one) => one?.item.id),
      ]);
      gone.delete(undefined);
      const query = { strategy: this.strategy, search: this.search, count: AHEAD, exclude: [...gone].slice(-400) };
      if (this.strategy === "search" && !this.search.trim()) return void this.receive([]);
      const answer = await this.soon(get(path("next"), query, this.signal), query);
      this.receive(answer.texts);
    } catch (error) {
      if (error instanceof LostError) this.draw();
      else complain(error);
    } finally {
      this.filling = false;
      if (this.more && !this.signal.aborted) queueMicrotask(() => this.refill());
      this.more = false;
    }
  }

  /** What was asked for; while a first choice takes long, some texts at random, so that nobody waits. */
  async soon(asked, query) {
    if (this.current || !["suggest", "uncertain"].includes(this.strategy)) return asked;
    const patience = new Promise((done) => setTimeout(done, PATIENCE, null));
    if (await Promise.race([asked, patience])) return asked;
    const chance = await get(path("next"), { ...query, strategy: "random", count: 2 }, this.signal);
    if (!this.current) this.receive(chance.texts);
    return asked;
  }

  receive(texts) {
    if (this.signal.aborted) return;
    const labelled = new Set(this.done.map((one) => one?.item.id));
    this.queue = texts.filter((one) => one.id !== this.current?.id && !labelled.has(one.id));
    this.finished = !texts.length;
    if (!this.current && this.queue.length) this.current = this.queue.shift();
    else if (this.current) return void this.prepare(this.queue[0]);
    this.draw();
  }

  draw() {
    const item = this.current;
    keep({ strategy: this.strategy === "suggest" ? "" : this.strategy, search: this.search, text: item?.id ?? "" });
    this.card.classList.toggle("nothing", !item);
    if (!item) return this.drawNothing();
    this.looked = null;
    this.drawNote(item);
    this.drawClasses(item);
    this.shade();
    if (item.explanation || this.strategy === "test") this.prepare(this.queue[0]);
    else this.prepare(item).then(() => this.prepare(this.queue[0]));
  }

  drawNote(item) {
    const said = item.mark ? ["You said: ", verdict(item.mark, item.chosen)] : [];
    const hidden =
      this.strategy === "test" ? ["Part of the test set: the prediction is hidden, so that it cannot sway you."] : [];
    this.note.replaceChildren(...said, ...hidden);
  }

  drawClasses(item) {
    const ranked = this.strategy === "test" ? null : (item.classes ?? null);
    this.panel.replaceChildren(
      classList({
        choose: (one) => this.give("class", one),
        look: (one) => this.look(one),
        ranked,
        chosen: item.chosen ?? null,
        editable: true,
      }),
    );
    this.agreeing.hidden = !ranked;
    if (ranked) this.agreeing.replaceChildren(keycap("Enter"), "Agree: ", chip(ranked[0].class));
  }

  drawNothing() {
    const words =
      this.strategy === "search" && !this.search.trim()
        ? "Type words to search for."
        : this.finished
          ? "Nothing is left to label this way. Choose another order above, watch how good the model is, or clean up."
          : "Choosing texts…";
    this.note.textContent = "";
    this.text.replaceChildren(words);
    this.reason.textContent = "";
    this.panel.replaceChildren(classList({ choose: () => {}, editable: true }));
  }

  look(number) {
    this.looked = number;
    this.shade();
  }

  shade() {
    const item = this.current;
    if (!item) return;
    const about = this.looked ?? item.classes?.[0]?.class ?? null;
    const known = this.strategy === "test" ? null : item.explanation;
    this.text.replaceChildren(...shaded(item.text, known, about));
    this.reason.textContent = known && about !== null ? because(known, about) : "";
  }

  async prepare(item) {
    if (!item || item.explanation || this.strategy === "test") return;
    try {
      const found = await post(path("explain"), { id: item.id }, this.signal);
      item.explanation = found;
      if (!item.classes) item.classes = [...found.classes].sort((a, b) => b.probability - a.probability);
      if (this.current === item) (this.drawClasses(item), this.shade());
    } catch (error) {
      if (error.name === "ApiError" && error.status !== 409) complain(error);
    }
  }

  // Learning

  learned(detail) {
    if (!state.project || this.signal.aborted) return;
    this.showMeter();
    if (!detail?.version) return;
    if (this.current) this.drawClasses(this.current);
    this.past.draw();
    this.readAccuracy();
  }

  showMeter() {
    const { states } = state.project;
    const total = Object.values(states).reduce((sum, one) => sum + one, 0);
    const said = total - states.open;
    const line = el("span", {}, el("strong", { text: number(said) }), ` of ${count(total, "text")}`);
    this.meter.replaceChildren(line, this.guess ?? "");
  }

  async readAccuracy() {
    clearTimeout(this.timer);
    const found = await get(path("accuracy")).catch(() => null);
    if (!found || this.signal.aborted) return;
    const estimate = found.estimate?.accuracy;
    this.guess = estimate
      ? el(
          "a",
          {
            class: "guess",
            href: link(state.project.id, "watch"),
            title: `95 % interval: ${percent(estimate.low)} to ${percent(estimate.high)}`,
          },
          "accuracy ",
          el("strong", { text: percent(estimate.value) }),
          ` (${Math.round(100 * estimate.low)}–${Math.round(100 * estimate.high)})`,
        )
      : null;
    this.showMeter();
    if (!found.current) this.timer = setTimeout(() => this.signal.aborted || this.readAccuracy(), 1500);
  }

  // Choosing

  choose(strategy, search) {
    Object.assign(this, { strategy, search, queue: [], current: null, finished: false });
    this.searchBox.hidden = strategy !== "search";
    if (strategy === "search" && !search) this.searchBox.focus();
    this.draw();
    this.refill();
  }

  async addClass() {
    const made = await newClass();
    if (made === null) return;
    if (this.current) this.give("class", made);
  }

  async searchClass() {
    const found = await findClass();
    if (found !== null && classOf(found)) this.give("class", found);
  }
}
