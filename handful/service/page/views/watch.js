// Watch: how good the model is, honestly, how it learned, and what it confuses.
import { get, post, remove } from "../api.js";
import { on } from "../bus.js";
import { ask, trying } from "../dialogs.js";
import { bar, count, el, field, number, percent, toast } from "../dom.js";
import { curve } from "../chart.js";
import { link } from "../router.js";
import { className, hue, mayManage, path, refresh, state } from "../state.js";
import { chip } from "../texts.js";

export function show(root, { signal }) {
  const parts = {
    estimate: el("section", { class: "card" }),
    curve: el("section", { class: "card" }),
    classes: el("section", { class: "card" }),
    confusion: el("section", { class: "card" }),
    tests: el("section", { class: "card" }),
  };
  root.append(
    el("h1", { text: "How good is it?" }),
    el("div", { class: "columns even" }, el("div", { class: "work" }, parts.estimate, parts.tests), parts.curve),
    parts.classes,
    parts.confusion,
  );
  const update = () =>
    signal.aborted || Promise.all([readEstimate(parts, signal), readCurve(parts.curve, signal)]).catch(() => {});
  on("project", (detail) => state.project && (drawTests(parts.tests), detail?.version && update()), signal);
  drawTests(parts.tests);
  return update();
}

const later = (work, signal) => setTimeout(() => signal.aborted || work(), 1500);

async function readEstimate(parts, signal) {
  const found = await get(path("accuracy"), {}, signal);
  drawEstimate(parts.estimate, found);
  drawClasses(parts.classes, found.estimate);
  drawConfusion(parts.confusion, found.estimate);
  if (!found.current) later(() => readEstimate(parts, signal).catch(() => {}), signal);
}

function drawEstimate(root, { estimate, current }) {
  if (!estimate) {
    const text = current
      ? "Label at least two texts. Then each label is compared with the answer of a model that has not seen it."
      : "Computing…";
    return root.replaceChildren(el("h2", { text: "Accuracy" }), el("p", { class: "muted", text }));
  }
  const { value, low, high } = estimate.accuracy;
  const range = el(
    "div",
    { class: "range", role: "img", "aria-label": `95 % interval from ${percent(low)} to ${percent(high)}` },
    el("span", { class: "range-part" }),
    el("span", { class: "range-point" }),
  );
  range.firstChild.style.insetInlineStart = `${100 * low}%`;
  range.firstChild.style.inlineSize = `${100 * (high - low)}%`;
  range.lastChild.style.insetInlineStart = `${100 * value}%`;
  const how =
    estimate.method === "test set"
      ? `On ${count(estimate.texts, "text")} of the random test set, which the model never learns from.`
      : `By ${estimate.method} over ${count(estimate.texts, "label")}: each text is answered by a model that has not seen its label. Suggested texts are harder than most, so this estimate is on the low side.`;
  root.replaceChildren(
    el("h2", { text: "Accuracy" }),
    el(
      "p",
      { class: "figure" },
      el("strong", { text: percent(value) }),
      el("span", { class: "muted", text: ` between ${percent(low)} and ${percent(high)}, with a confidence of 95 %` }),
    ),
    range,
    el("p", { class: "muted", text: how }),
    el("p", {
      class: "muted small",
      role: "status",
      text: current ? "Up to date with your last label." : "Learning from your last label…",
    }),
  );
}

function drawTests(root) {
  const { test_set: tests } = state.project;
  root.replaceChildren(el("h2", { text: "Random test set" }));
  if (!tests.texts) {
    root.append(
      el("p", {
        class: "muted",
        text: "A random test set gives the fairest estimate: label some texts drawn by chance that the model never learns from. 50 to 100 are enough to begin with.",
      }),
    );
    if (mayManage()) root.append(el("button", { type: "button", text: "Draw a test set", onclick: draw }));
    return;
  }
  const said = `${number(tests.labelled)} of ${count(tests.texts, "text")} labelled.${tests.labelled < 10 ? " It counts from 10 on." : ""}`;
  root.append(
    el("p", { text: said }),
    bar(tests.labelled / tests.texts),
    el(
      "div",
      { class: "row" },
      el("a", { class: "button", href: link(state.project.id, "label", { strategy: "test" }), text: "Label the test set" }),
      mayManage() &&
        el("button", {
          type: "button",
          class: "ghost",
          text: "Give it up",
          onclick: () =>
            trying(
              async () => (
                await remove(path("test-set")),
                await refresh(),
                toast("The model learns from these labels from now on.")
              ),
            ),
        }),
    ),
  );
}

const draw = () =>
  ask({
    title: "Draw a test set",
    text: "Texts that nobody has labelled are drawn by chance. You label them without seeing the prediction.",
    action: "Draw",
    fields: [
      field("How many texts", el("input", { name: "size", type: "number", min: 1, max: 10_000, value: 50, required: true })),
    ],
    save: async ({ size }) => (await post(path("test-set"), { size: Number(size) }), refresh()),
  });

// The learning curve

async function readCurve(root, signal) {
  const { points, current } = await get(path("curve"), {}, signal);
  const title = el("h2", { text: "Learning curve" });
  if (points.length < 2)
    root.replaceChildren(
      title,
      el("p", {
        class: "muted",
        text: current ? "From about ten labels on, this shows how accuracy grows with each label." : "Computing…",
      }),
    );
  else {
    const rows = points.map((one) =>
      el(
        "tr",
        {},
        el("td", { text: number(one.labels) }),
        el("td", { text: percent(one.value) }),
        el("td", { text: `${percent(one.low)} to ${percent(one.high)}` }),
      ),
    );
    const head = el(
      "tr",
      {},
      ["Labels", "Accuracy", "95 % interval"].map((text) => el("th", { scope: "col", text })),
    );
    root.replaceChildren(
      title,
      curve(points),
      el("details", {}, el("summary", { text: "As a table" }), el("table", {}, el("thead", {}, head), el("tbody", {}, rows))),
    );
  }
  if (!current) later(() => readCurve(root, signal).catch(() => {}), signal);
}

// Classes

function drawClasses(root, estimate) {
  const known = new Map((estimate?.classes ?? []).map((one) => [one.class, one]));
  const confused = new Map();
  for (const one of estimate?.confusion ?? []) if (!confused.has(one.class)) confused.set(one.class, one.predicted);
  const share = (one) =>
    one
      ? [bar(one.value), el("span", { class: "number", text: percent(one.value) })]
      : el("span", { class: "muted", text: "–" });
  const rows = state.project.classes.map((one) => {
    const facts = known.get(one.number);
    const other = confused.get(one.number);
    return el(
      "tr",
      { hue: hue(one.number) },
      el("th", { scope: "row" }, chip(one.number)),
      el("td", { class: "number", text: number(one.texts) }),
      el("td", { class: "measure" }, share(facts?.recall)),
      el("td", { class: "measure" }, share(facts?.precision)),
      el("td", { class: "measure" }, share(facts?.mean_probability == null ? null : { value: facts.mean_probability })),
      el("td", {}, other === undefined ? el("span", { class: "muted", text: "–" }) : chip(other)),
    );
  });
  const head = [
    ["Class"],
    ["Labels"],
    ["Found", "How many of its texts get this class"],
    ["Right", "How many of the answers with this class are right"],
    ["How sure", "Mean probability of the right class"],
    ["Most confused with"],
  ];
  root.replaceChildren(
    el("h2", { text: "Classes" }),
    rows.length
      ? el(
          "div",
          { class: "scroll", tabindex: 0, role: "region", "aria-label": "Classes" },
          el(
            "table",
            { class: "measures" },
            el(
              "thead",
              {},
              el(
                "tr",
                {},
                head.map(([text, title]) => el("th", { scope: "col", title, text })),
              ),
            ),
            el("tbody", {}, rows),
          ),
        )
      : el("p", { class: "muted", text: "No classes yet." }),
  );
}

function drawConfusion(root, estimate) {
  const pairs = (estimate?.confusion ?? []).slice(0, 12);
  root.hidden = !pairs.length;
  const items = pairs.map((one) =>
    el(
      "li",
      {},
      chip(one.class),
      " taken for ",
      chip(one.predicted),
      el("span", { class: "muted", text: ` ${count(one.count, "time")} ` }),
      el("a", {
        href: link(state.project.id, "table", { class: one.class, predicted: one.predicted }),
        "aria-label": `Texts labelled ${className(one.class)} and predicted ${className(one.predicted)}`,
        text: "show the texts",
      }),
    ),
  );
  root.replaceChildren(
    el("h2", { text: "Confused with each other" }),
    el("p", { class: "muted", text: "A note on each class that says where the border is often helps more than more labels." }),
    el("ul", { class: "pairs" }, items),
  );
}
