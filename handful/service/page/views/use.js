// Use it: try a text, classify a file, download everything, and call it from a program.
import { address, download, job, post } from "../api.js";
import { on } from "../bus.js";
import { trying } from "../dialogs.js";
import { announce, choice, debounce, el, empty, field, percent, toast } from "../dom.js";
import { link } from "../router.js";
import { path, state } from "../state.js";
import { because, chip, probabilities, shaded } from "../texts.js";

const SAMPLE = "Could you tell me when it will arrive?";

export function show(root, { signal }) {
  if (state.project.classes.length < 2)
    return root.append(
      empty(
        "Nothing to use yet",
        "Name at least two classes: from their names alone the model can answer.",
        el("a", { class: "button primary", href: link(state.project.id, "data"), text: "Name the classes" }),
      ),
    );
  const tried = el("section", { class: "card" });
  root.append(
    el("h1", { text: "Use it" }),
    el(
      "div",
      { class: "columns even" },
      el("div", { class: "work" }, tried, wholeFile()),
      el("div", { class: "work" }, downloads(), programs()),
    ),
  );
  return trial(tried, signal);
}

// Try a text

function trial(root, signal) {
  const input = el("textarea", { rows: 3, "aria-label": "A text to try", placeholder: "Type or paste a text" });
  const least = el("input", { type: "range", min: 0, max: 100, step: 5, value: localStorage.getItem("handful.least") ?? 40 });
  const shown = el("output", {});
  const answer = el("div", { class: "answer", "aria-live": "polite" });
  const look = async () => {
    shown.textContent = `${least.value} %`;
    localStorage.setItem("handful.least", least.value);
    const text = input.value.trim();
    if (!text) return answer.replaceChildren(el("p", { class: "muted", text: "The answer appears as you type." }));
    const [found, why] = await Promise.all([
      post(path("predict"), { texts: [text], reject_below: least.value / 100 }, signal),
      post(path("explain"), { text }, signal),
    ]);
    if (text === input.value.trim()) answer.replaceChildren(...answered(text, found.answers[0], why));
  };
  const soon = debounce(() => trying(look), 200);
  input.addEventListener("input", soon);
  least.addEventListener("input", soon);
  on("project", (detail) => detail?.version && soon(), signal);
  root.append(
    el("h2", { text: "Try a text" }),
    input,
    field("Below this probability the answer is “none of these”", el("span", { class: "row" }, least, shown)),
    answer,
  );
  return trying(look);
}

function answered(text, found, why) {
  const best = found.classes[0];
  const about = el("p", { class: "muted", text: because(why, best.class) });
  const body = el("p", { class: "text" });
  const shade = (number) => (body.replaceChildren(...shaded(text, why, number)), (about.textContent = because(why, number)));
  shade(best.class);
  const bars = probabilities(found.classes);
  [...bars.children].forEach((one, place) => {
    one.tabIndex = 0;
    for (const kind of ["pointerenter", "focus"]) one.addEventListener(kind, () => shade(found.classes[place].class));
    for (const kind of ["pointerleave", "blur"]) one.addEventListener(kind, () => shade(best.class));
  });
  const verdict =
    found.label === null
      ? el(
          "p",
          { class: "verdict" },
          el("strong", { text: "None of these" }),
          el("span", { class: "muted" }, ` – at best `, chip(best.class), ` with ${percent(best.probability)}`),
        )
      : el("p", { class: "verdict" }, chip(best.class), el("span", { class: "muted", text: ` ${percent(best.probability)}` }));
  return [verdict, body, about, bars];
}

// A whole file

function wholeFile() {
  const file = el("input", {
    type: "file",
    accept: ".csv,.tsv,.jsonl,.json,.parquet,.xlsx,.txt",
    "aria-label": "File to classify",
  });
  const out = choice(
    [
      ["csv", "CSV"],
      ["jsonl", "JSON lines"],
      ["parquet", "Parquet"],
    ],
    "csv",
    { "aria-label": "Format of the answers" },
  );
  const state_ = el("p", { role: "status", class: "muted" });
  const run = async () => {
    const chosen = file.files[0];
    if (!chosen) return void (state_.textContent = "Choose a file first.");
    const ending = chosen.name.split(".").pop().toLowerCase();
    state_.textContent = "Classifying…";
    try {
      const facts = await job(path("predict-file"), {
        file: chosen,
        query: { format: ending === "ndjson" ? "jsonl" : ending, out: out.value },
        progress: (one) => one.total && (state_.textContent = `Classifying… ${percent(one.done / one.total)}`),
      });
      await download(`jobs/${facts.id}/result`);
      state_.textContent = `${facts.result.texts} texts classified and downloaded.`;
    } catch (error) {
      state_.textContent = error.message;
    }
  };
  return el(
    "section",
    { class: "card" },
    el("h2", { text: "Classify a file" }),
    el("p", {
      class: "muted",
      text: "Of any size: the answers come back as a file with a label and its probability for each text.",
    }),
    el("div", { class: "row wrap" }, file, out, el("button", { type: "button", text: "Classify", onclick: run })),
    state_,
  );
}

// Downloads

function downloads() {
  const button = (text, what, query = {}) =>
    el("a", {
      class: "button",
      href: address(path(what), query),
      download: "",
      text,
      onclick: (event) => {
        event.preventDefault();
        trying(async () => toast(`Downloaded ${await download(path(what), query)}.`));
      },
    });
  const group = (title, note, ...buttons) =>
    el(
      "div",
      { class: "group" },
      el("h3", { text: title }),
      el("p", { class: "muted", text: note }),
      el("div", { class: "row wrap" }, buttons),
    );
  const labels = [
    ["CSV", "csv"],
    ["JSON lines", "jsonl"],
    ["Parquet", "parquet"],
    ["Label Studio", "label-studio"],
    ["doccano", "doccano"],
  ];
  const answers = [
    ["CSV", "csv"],
    ["JSON lines", "jsonl"],
    ["Parquet", "parquet"],
  ];
  return el(
    "section",
    { class: "card" },
    el("h2", { text: "Download" }),
    group("Model", "A folder with the model and its examples, for Python and the command line.", button("Model", "model")),
    group(
      "Labelled texts",
      "What people said.",
      labels.map(([text, format]) => button(text, "export", { format })),
    ),
    group(
      "Predictions",
      "All texts with the model's answers.",
      answers.map(([text, format]) => button(text, "predictions", { format })),
    ),
    group("Backup", "Everything, to be restored here or elsewhere.", button("Backup", "backup")),
  );
}

// Programs

function programs() {
  const url = address(path("predict"));
  const curl = `curl ${url} \\\n  -H "Authorization: Bearer $HANDFUL_KEY" \\\n  -H "Content-Type: application/json" \\\n  -d '{"texts": ["${SAMPLE}"], "reject_below": 0.4}'`;
  const python = `from handful import FewShotClassifier\nmodel = FewShotClassifier.load("model")  # the folder in the download\nprint(model.predict(["${SAMPLE}"], reject_below=0.4))`;
  return el(
    "section",
    { class: "card" },
    el("h2", { text: "From a program" }),
    snippet(
      "curl",
      curl,
      "HANDFUL_KEY is the token in the address that the server printed, or a key made with handful keys add.",
    ),
    snippet("Python", python, "The same without a server: download the model and unpack it."),
  );
}

function snippet(title, code, note) {
  const copy = el("button", { type: "button", class: "ghost", "aria-label": `Copy the ${title} lines`, text: "Copy" });
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code);
      copy.textContent = "Copied";
      announce("Copied.");
      setTimeout(() => (copy.textContent = "Copy"), 2000);
    } catch {
      toast("This browser does not allow copying: select the lines and copy them.", { bad: true });
    }
  });
  return el(
    "div",
    { class: "snippet" },
    el("div", { class: "row" }, el("h3", { text: title }), el("span", { class: "gap" }), copy),
    el("pre", { tabindex: 0, role: "region", "aria-label": `${title} lines` }, el("code", { text: code })),
    el("p", { class: "muted small", text: note }),
  );
}
