// Begin: texts from a file or from the clipboard, and the classes with their notes.
import { get, job, patch, request } from "../api.js";
import { on } from "../bus.js";
import { addLines, editClass, moveClass, newClass } from "../classes.js";
import { askLine, trying } from "../dialogs.js";
import { choice, complain, count, el, field, keycap, number, short, toast } from "../dom.js";
import { link } from "../router.js";
import { classKey, classes, hue, mayLabel, mayManage, path, refresh, state } from "../state.js";
import { deleteProject } from "./projects.js";

const FORMATS = [
  ["csv", "CSV"],
  ["tsv", "TSV"],
  ["jsonl", "JSON lines"],
  ["json", "JSON"],
  ["parquet", "Parquet"],
  ["xlsx", "Excel"],
  ["txt", "Plain lines: one text per line"],
  ["doccano", "doccano's JSON lines"],
  ["label-studio", "Label Studio's JSON"],
];
const ENDINGS = {
  csv: "csv",
  tsv: "tsv",
  tab: "tsv",
  jsonl: "jsonl",
  ndjson: "jsonl",
  json: "json",
  parquet: "parquet",
  xlsx: "xlsx",
  txt: "txt",
};

export function show(root, { signal }) {
  const texts = el("section", { class: "card" });
  const codebook = el("section", { class: "card" });
  const settings = el("section", { class: "card" });
  root.append(
    el("h1", { text: "Texts and classes" }),
    el("div", { class: "columns even" }, el("div", { class: "work" }, texts, settings), codebook),
  );
  drawTexts(texts);
  drawCodebook(codebook);
  drawSettings(settings);
  const count = texts.querySelector(".total");
  on("project", () => state.project && (drawCodebook(codebook), (count.textContent = total())), signal);
}

const total = () =>
  state.project.texts ? `${count(state.project.texts, "text")} so far.` : "No texts yet: paste some, or drop a file.";

// Texts

function drawTexts(root) {
  const work = el("div", { class: "import" });
  const file = el("input", {
    type: "file",
    class: "unseen",
    id: "file",
    accept: ".csv,.tsv,.tab,.jsonl,.ndjson,.json,.parquet,.xlsx,.txt",
  });
  const zone = el(
    "label",
    { class: "drop", for: "file" },
    el("strong", { text: "Drop a file here, or choose one" }),
    el("span", {
      class: "muted",
      text: "CSV, TSV, JSON lines, Parquet, Excel, plain lines, or an export of doccano or Label Studio. With labels, without, or both.",
    }),
  );
  const paste = el("textarea", {
    rows: 4,
    "aria-label": "Texts, one per line",
    placeholder: "Or paste texts here, one per line. With a label behind a tab, they come labelled.",
  });
  const take = (one) => trying(() => preview(work, one));
  file.addEventListener("change", () => file.files[0] && (take(file.files[0]), (file.value = "")));
  for (const kind of ["dragenter", "dragover"])
    zone.addEventListener(kind, (event) => (event.preventDefault(), zone.classList.add("over")));
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
  const add = el("button", {
    type: "button",
    text: "Add these texts",
    onclick: () => paste.value.trim() && trying(() => pasted(work, paste)),
  });
  root.replaceChildren(el("h2", { text: "Texts" }), el("p", { class: "muted total", text: total() }));
  if (mayManage()) root.append(file, zone, paste, el("div", { class: "row" }, add), work);
}

/** Pasted lines are a file like any other: text, and a label behind the last tab. */
async function pasted(root, area) {
  const lines = area.value
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const records = lines.map((line) => {
    const cut = line.lastIndexOf("\t");
    return cut > 0 ? { text: line.slice(0, cut), label: line.slice(cut + 1).trim() } : { text: line };
  });
  const some = records.some((one) => one.label);
  const body = records.map((one) => JSON.stringify(some ? { text: one.text, label: one.label ?? "" } : one)).join("\n");
  await start(root, new Blob([body]), { format: "jsonl", text: "text", label: some ? "label" : "" });
  area.value = "";
}

async function guess(file) {
  const ending = ENDINGS[file.name.split(".").pop().toLowerCase()] ?? "csv";
  if (ending !== "json") return ending;
  const head = await file.slice(0, 2000).text();
  return /"(annotations|data)"\s*:/.test(head) ? "label-studio" : "json";
}

let turn = 0; // of previews: an answer to an older question is not shown

async function preview(root, file, given = {}) {
  const now = (turn += 1);
  const query = { format: given.format ?? (await guess(file)), text: given.text, preview: true };
  const formats = choice(FORMATS, query.format, {
    onchange: (event) => trying(() => preview(root, file, { format: event.target.value })),
  });
  let found;
  try {
    found = await request("POST", path("import"), { query: { ...query, label: given.label }, file });
  } catch (error) {
    root.replaceChildren(el("p", { class: "problem", role: "alert", text: error.message }), field("Format", formats));
    return;
  }
  if (now !== turn) return;
  const settings = { format: query.format, text: found.text, label: found.label ?? "" };
  const again = (more) => trying(() => preview(root, file, Object.assign(settings, more)));
  const columns = found.columns.map((one) => [one, one]);
  const named = query.format !== "label-studio" && columns.length > 0;
  const controls = [field("Format", formats)];
  if (named) {
    controls.push(field("Texts", choice(columns, found.text, { onchange: (event) => again({ text: event.target.value }) })));
    controls.push(
      field(
        "Labels",
        choice([["", "no labels"], ...columns], settings.label, { onchange: (event) => again({ label: event.target.value }) }),
      ),
    );
  }
  const skip = el("input", { type: "checkbox" });
  const button = el("button", {
    type: "button",
    class: "primary",
    text: "Import",
    onclick: () => trying(() => start(root, file, named ? settings : { format: query.format }, skip.checked)),
  });
  root.replaceChildren(
    el("h3", { text: `The first rows of ${file.name}` }),
    el("div", { class: "row wrap" }, controls),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "First rows" }, rows(found.rows)),
    el("label", { class: "check" }, skip, el("span", { text: "Skip rows that cannot be read" })),
    el(
      "div",
      { class: "row" },
      button,
      el("button", { type: "button", class: "ghost", text: "Cancel", onclick: () => root.replaceChildren() }),
    ),
  );
  button.focus();
}

const rows = (found) =>
  el(
    "table",
    {},
    el("thead", {}, el("tr", {}, el("th", { text: "Text" }), el("th", { text: "Label" }))),
    el(
      "tbody",
      {},
      found
        .slice(0, 5)
        .map((one) => el("tr", {}, el("td", { text: short(one.text, 90) }), el("td", { text: one.label ?? "" }))),
    ),
  );

async function start(root, file, settings, skip = false) {
  const line = el("p", { role: "status", text: "Importing…" });
  const progress = el("progress", { max: 1, "aria-label": "Import" });
  root.replaceChildren(line, progress);
  const show = (facts) => {
    if (facts.total) progress.value = facts.done / facts.total;
  };
  try {
    const facts = await job(path("import"), { file, query: { ...settings, skip_broken: skip || null }, progress: show });
    await refresh();
    root.replaceChildren(...outcome(facts.result));
  } catch (error) {
    root.replaceChildren(el("p", { class: "problem", role: "alert", text: error.message }));
  }
}

function outcome(result) {
  const labelled = result.labelled ? `, ${number(result.labelled)} of them labelled` : "";
  const left = [
    result.skipped && `${count(result.skipped, "row")} skipped (${result.problem})`,
    result.empty && `${count(result.empty, "row")} without a text`,
  ].filter(Boolean);
  const said = `${count(result.texts, "text")} imported${labelled}.${left.length ? ` Left out: ${left.join(", ")}.` : ""}`;
  return [
    el("p", { class: "good", role: "status", text: said }),
    el("a", { class: "button primary", href: link(state.project.id, "label"), text: "Label the first ones" }),
  ];
}

// Classes

function drawCodebook(root) {
  if (root.contains(document.activeElement) && document.activeElement.matches("textarea")) return;
  const known = classes();
  const items = known.map((one, place) => {
    const edges = mayLabel()
      ? [
          el("button", {
            type: "button",
            class: "ghost icon",
            "aria-label": `Move ${one.name} up`,
            text: "↑",
            disabled: place === 0,
            onclick: () => trying(() => moveClass(place, -1)),
          }),
          el("button", {
            type: "button",
            class: "ghost icon",
            "aria-label": `Move ${one.name} down`,
            text: "↓",
            disabled: place === known.length - 1,
            onclick: () => trying(() => moveClass(place, 1)),
          }),
          el("button", {
            type: "button",
            class: "ghost",
            "aria-label": `Change class ${one.name}`,
            text: "Change",
            onclick: () => editClass(one),
          }),
        ]
      : [];
    return el(
      "li",
      { hue: hue(one.number) },
      el("i", { class: "dot", "aria-hidden": "true" }),
      el(
        "span",
        { class: "about" },
        el("span", { class: "name", text: one.name }),
        one.note && el("span", { class: "note", text: one.note }),
      ),
      el("span", { class: "muted number", text: number(one.texts) }),
      classKey(place) ? keycap(classKey(place)) : null,
      edges,
    );
  });
  const lines = el("textarea", {
    rows: 3,
    "aria-label": "New classes, one per line",
    placeholder: "One class per line; a note may follow after a colon",
  });
  const add = el("button", {
    type: "button",
    text: "Add these classes",
    onclick: () => trying(async () => (await addLines(lines.value), (lines.value = ""))),
  });
  const one = el("button", { type: "button", class: "ghost", text: "Add one with a note", onclick: () => newClass() });
  const said =
    known.length < 2
      ? "Name at least two classes. From their names alone there are predictions at once."
      : "The codebook: notes are shown next to each text. Classes can be renamed, merged and deleted at any time.";
  root.replaceChildren(
    el("h2", { text: "Classes" }),
    el("p", { class: "muted", text: said }),
    el("ol", { class: "codebook" }, items),
  );
  if (mayLabel()) root.append(lines, el("div", { class: "row" }, add, one));
}

// Settings

async function drawSettings(root) {
  if (!mayManage()) return root.remove();
  const { project } = state;
  const encoders = await get("encoders").catch(() => []);
  const change = (values) =>
    trying(async () => (await patch(path(), values), await refresh(), toast("Changed: the model learns again.")));
  const options = encoders.map((one) => [one.name, `${one.title}${one.here ? "" : " (not installed)"}`]);
  const encoder = choice(options, project.encoder, { onchange: (event) => change({ encoder: event.target.value }) });
  for (const option of encoder.options) option.disabled = !encoders.find((one) => one.name === option.value)?.here;
  const names = el("input", { type: "checkbox", onchange: (event) => change({ use_class_names: event.target.checked }) });
  names.checked = project.use_class_names;
  const rename = el("button", {
    type: "button",
    text: "Rename the project",
    onclick: () =>
      askLine("Rename the project", "Name", state.project.name, {
        save: async (name) => (await patch(path(), { name }), refresh()),
      }),
  });
  const drop = el("button", {
    type: "button",
    class: "danger",
    text: "Delete the project",
    onclick: () => deleteProject(state.project).catch(complain),
  });
  root.replaceChildren(
    el("h2", { text: "Settings" }),
    field("Model", encoder, "A sentence encoder is more accurate and slower."),
    el("label", { class: "check" }, names, el("span", { text: "Class names count as examples" })),
    el("div", { class: "row" }, rename, drop),
  );
}
