// Together: who labelled what, how well people agree, and the texts on which they differ.
import { get, mayChooseName, me, put, remove } from "../api.js";
import { on } from "../bus.js";
import { classList, findClass } from "../classes.js";
import { ask, trying } from "../dialogs.js";
import { ago, announce, choice, count, debounce, el, field, keycap, number } from "../dom.js";
import { listen } from "../keys.js";
import { add } from "../outbox.js";
import { link } from "../router.js";
import { classByKey, className, mayLabel, mayManage, path, state } from "../state.js";
import { verdict } from "../texts.js";

const SCALE = [
  [0.81, "almost perfect"],
  [0.61, "substantial"],
  [0.41, "moderate"],
  [0.21, "fair"],
  [-2, "slight"],
];
const inWords = (value) => SCALE.find(([least]) => value >= least)[1];

export async function show(root, { signal }) {
  const view = new Together(root, signal);
  await view.load();
}

class Together {
  constructor(root, signal) {
    Object.assign(this, { root, signal, texts: [], place: 0, settled: new Set() });
    this.people = el("section", { class: "card" });
    this.agreement = el("section", { class: "card" });
    this.queue = el("section", { class: "card" });
    this.panel = el("div", { class: "panel" });
    const side = mayLabel() ? el("section", { class: "side", "aria-label": "Settle with" }, this.panel) : null;
    root.append(
      el("h1", { text: "Together" }),
      el("div", { class: "columns even" }, this.people, this.agreement),
      el("div", { class: "columns" }, el("div", { class: "work" }, this.queue), side),
    );
    listen((key) => this.press(key), signal);
    this.again = debounce(() => signal.aborted || this.load(), 500);
    on("project", (detail) => detail?.version && this.again(), signal);
    on("name", () => this.drawPeople(), signal);
  }

  async load() {
    try {
      const [agreement, differing, members] = await Promise.all([
        get(path("agreement"), {}, this.signal),
        get(path("disagreements"), { limit: 50 }, this.signal),
        get(path("members"), {}, this.signal),
      ]);
      this.members = members;
      this.texts = differing.texts.filter((one) => !this.settled.has(one.id));
      this.total = differing.total;
      this.drawPeople();
      this.drawAgreement(agreement);
      this.drawQueue();
    } catch (error) {
      if (error.name === "ApiError") throw error;
    }
  }

  // People

  drawPeople() {
    const rows = state.project.annotators.map((one) =>
      el(
        "tr",
        {},
        el("th", { scope: "row", text: one.annotator === "import" ? "import (came with a file)" : one.annotator }),
        el("td", { class: "number", text: number(one.labels) }),
        el("td", { class: "muted number", text: ago(one.last) }),
      ),
    );
    const head = el(
      "tr",
      {},
      ["Name", "Labels", "Last"].map((text) => el("th", { scope: "col", text })),
    );
    const name = me.annotator === "local" ? "You have not said your name yet." : `You label as ${me.annotator}.`;
    const change = mayChooseName()
      ? el("button", {
          type: "button",
          class: "link",
          text: me.annotator === "local" ? "Say your name" : "Change it",
          onclick: () => document.getElementById("you").click(),
        })
      : null;
    this.people.replaceChildren(
      el("h2", { text: "People" }),
      el("p", {}, name, " ", change),
      rows.length
        ? el("table", {}, el("thead", {}, head), el("tbody", {}, rows))
        : el("p", { class: "muted", text: "Nobody has labelled a text yet." }),
      this.sharing(),
    );
  }

  sharing() {
    if (!mayManage()) return null;
    const rows = (this.members ?? []).map((one) =>
      el(
        "li",
        {},
        `${one.account} (${one.role}) `,
        el("button", {
          type: "button",
          class: "link",
          text: "no longer share",
          onclick: () => trying(async () => (await remove(path(`members/${encodeURIComponent(one.account)}`)), this.load())),
        }),
      ),
    );
    const share = () =>
      ask({
        title: "Share this project",
        text: "People with their own API key (handful keys add NAME) see projects that are shared with their account.",
        action: "Share",
        fields: [
          field("Account", el("input", { name: "account", required: true, maxlength: 200, autocomplete: "off" })),
          field(
            "May",
            choice(
              [
                ["label", "label"],
                ["read", "only read"],
                ["admin", "do everything"],
              ],
              "label",
              { name: "role" },
            ),
          ),
        ],
        save: async ({ account, role }) => (
          await put(path(`members/${encodeURIComponent(account.trim())}`), { role }),
          this.load()
        ),
      });
    return el(
      "div",
      {},
      rows.length ? el("ul", {}, rows) : null,
      el("button", { type: "button", text: "Share with an account", onclick: share }),
    );
  }

  // Agreement

  drawAgreement(found) {
    const second = el("a", {
      class: "button",
      href: link(state.project.id, "label", { strategy: "second" }),
      text: "Label what others labelled",
    });
    const title = el("h2", { text: "Agreement" });
    if (!found.texts_labelled_twice) {
      this.agreement.replaceChildren(
        title,
        el("p", {
          class: "muted",
          text: "No text has labels of two people yet. Label some that somebody else has labelled, without seeing their answer, to know how clear your classes are.",
        }),
        second,
      );
      return;
    }
    const alpha = found.krippendorff_alpha;
    const figure = el(
      "p",
      { class: "figure" },
      el("strong", { text: alpha.toFixed(2) }),
      el("span", {
        class: "muted",
        text: ` Krippendorff's alpha: ${inWords(alpha)} agreement on ${count(found.texts_labelled_twice, "text")} with two labels or more`,
      }),
    );
    const head = el(
      "tr",
      {},
      ["People", "Texts", "Same", "Cohen's kappa"].map((text) => el("th", { scope: "col", text })),
    );
    const rows = found.pairs
      .filter((one) => one.texts)
      .map((one) =>
        el(
          "tr",
          {},
          el("th", { scope: "row", text: one.annotators.join(" and ") }),
          el("td", { class: "number", text: number(one.texts) }),
          el("td", { class: "number", text: number(one.same) }),
          el("td", { class: "number", text: one.cohen_kappa.toFixed(2) }),
        ),
      );
    this.agreement.replaceChildren(
      title,
      figure,
      el("p", { class: "muted small", text: "1 is full agreement, 0 is what chance would give." }),
      el("table", {}, el("thead", {}, head), el("tbody", {}, rows)),
      second,
    );
  }

  // Disagreements

  drawQueue() {
    this.place = Math.max(0, Math.min(this.place, this.texts.length - 1));
    const title = el("h2", { text: "Disagreements" });
    this.panel.replaceChildren(this.texts.length ? classList({ choose: (one) => this.settle({ class: one }) }) : "");
    if (!this.texts.length)
      return this.queue.replaceChildren(title, el("p", { class: "muted", text: "Nobody differs on any text." }));
    const items = this.texts.map((one, place) => {
      const said = one.labels.map((label) =>
        el("li", {}, el("strong", { text: label.annotator }), ": ", verdict(label.mark, label.class)),
      );
      const choices = [
        ...new Map(one.labels.filter((label) => label.mark === "class").map((label) => [label.class, label])).keys(),
      ];
      const buttons = choices.map((number) =>
        el("button", {
          type: "button",
          text: `Settle on ${className(number)}`,
          onclick: () => ((this.place = place), this.settle({ class: number })),
        }),
      );
      return el(
        "li",
        { class: `suspect${place === this.place ? " active" : ""}`, "aria-current": place === this.place ? "true" : null },
        el("p", { class: "text", text: one.text }),
        el("ul", { class: "said" }, said),
        mayLabel() && el("div", { class: "row" }, buttons),
      );
    });
    const hint = el(
      "p",
      { class: "muted" },
      `${count(this.total, "text")}. `,
      keycap("↑"),
      keycap("↓"),
      " moves; the key of a class settles it for everybody.",
    );
    this.queue.replaceChildren(title, hint, el("ol", { class: "suspects" }, items));
  }

  press(key) {
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[key];
    if (by) return (this.move(by), true);
    if (!mayLabel() || !this.texts.length) return false;
    if (key === "n") return (this.settle({ mark: "none" }), true);
    if (key === "/") return (findClass().then((one) => one !== null && this.settle({ class: one })), true);
    const one = classByKey(key);
    if (one) this.settle({ class: one.number });
    return Boolean(one);
  }

  move(by) {
    this.place += by;
    this.drawQueue();
    this.queue.querySelector(".active")?.scrollIntoView({ block: "nearest" });
    announce(this.texts[this.place]?.text ?? "");
  }

  settle(value) {
    const text = this.texts[this.place];
    if (!text || !add(state.project.id, "labels", { texts: [text.id], final: true, ...value })) return;
    this.settled.add(text.id);
    this.texts = this.texts.filter((one) => one !== text);
    this.total -= 1;
    announce(`Settled: ${value.mark ? "none of these" : className(value.class)}.`);
    this.drawQueue();
  }
}
