// All projects: open one, begin one, or try the example.
import { get, job, mayChooseName, me, post, remove, request } from "../api.js";
import { ask, confirm, trying } from "../dialogs.js";
import { ago, count, el, field, toast } from "../dom.js";
import { go, link } from "../router.js";

export async function show(root, { signal }) {
  const projects = await get("projects", {}, signal);
  const may = me.role === "admin";
  const actions = may
    ? el(
        "div",
        { class: "row" },
        el("button", { class: "primary", type: "button", text: "New project", onclick: create }),
        el("button", { type: "button", text: "Open the example", onclick: () => trying(example) }),
      )
    : null;
  if (!projects.length) return root.append(welcome(may));
  root.append(
    el("div", { class: "row head" }, el("h1", { text: "Projects" }), el("span", { class: "gap" }), actions),
    el(
      "ul",
      { class: "projects" },
      projects.map((one) => card(one)),
    ),
    may && restoring(),
  );
}

function welcome(may) {
  const steps = [
    ["Begin", "Paste texts or drop a file, and name your classes."],
    ["Label a handful", "One key per text. The most useful texts come first."],
    ["Use it", "Try it, download it, or call it from a program."],
  ];
  return el(
    "section",
    { class: "welcome" },
    el("img", { src: "page/mark.svg", alt: "", width: 64, height: 64 }),
    el("h1", { text: "Label a handful. Watch it learn. Use it." }),
    el("p", {
      class: "lead",
      text: `A classifier for your texts, from a few examples per class.${mayChooseName() ? " Everything stays on this computer." : ""}`,
    }),
    may
      ? el(
          "div",
          { class: "row centre" },
          el("button", { class: "primary big", type: "button", text: "Open the example", onclick: () => trying(example) }),
          el("button", { class: "big", type: "button", text: "New project", onclick: create }),
        )
      : el("p", { text: "No project is shared with you yet: ask its owner." }),
    el(
      "ol",
      { class: "steps" },
      steps.map(([title, text]) => el("li", {}, el("h2", { text: title }), el("p", { text }))),
    ),
    may && restoring(),
  );
}

function card(one) {
  const facts = [count(one.texts, "text"), one.owner === me.account ? null : `of ${one.owner}`, ago(one.created)]
    .filter(Boolean)
    .join(" · ");
  return el(
    "li",
    {},
    el(
      "a",
      { class: "card project", href: link(one.id, one.texts ? "label" : "data") },
      el("h2", { text: one.name }),
      el("p", { class: "muted", text: facts }),
    ),
  );
}

export async function example() {
  const made = await post("projects/example");
  go(made.id, "label");
}

async function create() {
  const lines = el("textarea", {
    name: "classes",
    rows: 5,
    placeholder: "billing: invoices and payments\ndelivery: where a parcel is",
  });
  const made = await ask({
    title: "New project",
    action: "Create",
    fields: [
      field("Name", el("input", { name: "name", required: true, maxlength: 200, autocomplete: "off" })),
      field(
        "Classes",
        lines,
        "One per line; a note may follow after a colon. You can do this later, and change it at any time.",
      ),
    ],
    save: ({ name, classes }) => post("projects", { name: name.trim(), classes: parse(classes) }),
  });
  if (made) go(made.id, "data");
}

function parse(text) {
  const seen = new Map();
  for (const line of text
    .split("\n")
    .map((one) => one.trim())
    .filter(Boolean)) {
    const [, name, note = ""] = /^(.*?)(?::\s+(.*))?$/.exec(line);
    seen.set(name.trim(), { name: name.trim().slice(0, 200), note });
  }
  return [...seen.values()];
}

// Backups and models

function restoring() {
  const pick = (accept, work) => {
    const input = el("input", { type: "file", accept });
    input.addEventListener("change", () => input.files[0] && trying(() => work(input.files[0])));
    input.click();
  };
  return el(
    "p",
    { class: "muted row" },
    "Do you already have something?",
    el("button", { type: "button", class: "link", text: "Restore a backup", onclick: () => pick(".zip", restore) }),
    el("button", { type: "button", class: "link", text: "Begin from a saved model", onclick: () => pick(".zip", fromModel) }),
  );
}

async function restore(file) {
  toast("The backup is being restored…");
  const facts = await job("projects/restore", { file });
  go(facts.project ?? facts.result.project, "label");
}

async function fromModel(file) {
  const made = await request("POST", "projects/from-model", {
    file,
    query: { name: file.name.replace(/\.zip$/i, "").slice(0, 200) },
  });
  go(made.id, "label");
}

/** Deletes a project after a question. */
export async function deleteProject(project) {
  const sure = await confirm(
    `Delete ${project.name}?`,
    "All its texts, classes and labels are deleted for good. Download a backup first if you may need them.",
    "Delete for good",
  );
  if (!sure) return;
  await remove(`projects/${project.id}`);
  go(null);
}
