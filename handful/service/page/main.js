// The page: who you are, where you are, and the view that belongs there.
import { LostError, connection, get, keptName, mayChooseName, me, post, request, setName } from "./api.js";
import { on } from "./bus.js";
import { announce, complain, count, el, empty, field, toast } from "./dom.js";
import { askLine } from "./dialogs.js";
import { listen } from "./keys.js";
import { send, waiting } from "./outbox.js";
import { here, link } from "./router.js";
import { open, state } from "./state.js";
import { redo, undo } from "./undo.js";
import { settingsDialog, applyTheme } from "./settings.js";

const VIEWS = {
  projects: () => import("./views/projects.js"),
  data: () => import("./views/data.js"),
  label: () => import("./views/label.js"),
  table: () => import("./views/table.js"),
  map: () => import("./views/map.js"),
  watch: () => import("./views/watch.js"),
  clean: () => import("./views/clean.js"),
  together: () => import("./views/together.js"),
  use: () => import("./views/use.js"),
};
const TABS = {
  data: "Texts & classes",
  label: "Label",
  table: "Table",
  map: "Map",
  watch: "Watch",
  clean: "Clean up",
  together: "Together",
  use: "Use it",
};
const find = (id) => document.getElementById(id);
const main = find("main");
let leaving = new AbortController();
let shown = "";

async function show() {
  const place = here();
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  try {
    await open(place.project);
    if (signal.aborted) return;
    const view = await (VIEWS[place.view] ?? VIEWS.label)();
    if (signal.aborted) return;
    const root = el("div", { class: `view view-${place.view}` });
    main.replaceChildren(root);
    showTabs(place);
    moveFocus(place);
    await view.show(root, { query: place.query, signal });
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    if (error.status === 401) return;
    if (error instanceof LostError) return void setTimeout(() => !signal.aborted && show(), 1000);
    showTabs({ ...place, project: state.project?.id ?? null });
    main.replaceChildren(
      empty("This cannot be shown", error.message, el("a", { class: "button", href: "#/", text: "All projects" })),
    );
  }
}

function moveFocus(place) {
  const name = `${place.project}/${place.view}`;
  const title = place.project ? `${TABS[place.view] ?? "Label"} · ${state.project?.name ?? ""}` : "Projects";
  document.title = `${title} · Handful Studio`;
  if (shown && shown !== name) {
    main.focus({ preventScroll: true });
    announce(title);
    scrollTo(0, 0);
  }
  shown = name;
}

function showTabs(place) {
  const tabs = find("tabs");
  tabs.hidden = !place.project;
  find("where").textContent = place.project ? (state.project?.name ?? "") : "";
  if (!place.project) return;
  tabs.replaceChildren(
    ...Object.entries(TABS).map(([view, text]) =>
      el("a", { href: link(place.project, view), text, "aria-current": view === place.view ? "page" : null }),
    ),
  );
  tabs.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

// Who you are

async function signIn() {
  const given = new URLSearchParams(location.hash.slice(1));
  const key = given.get("token");
  const wants = given.get("open");
  if (key !== null) {
    history.replaceState(null, "", location.pathname);
    await request("POST", "session", { body: { key }, as: "" });
  }
  await knowMe();
  return wants === "example";
}

async function knowMe() {
  Object.assign(me, await get("me"));
  if (mayChooseName() && keptName()) me.annotator = keptName();
  showName();
}

function showName() {
  const button = find("you");
  button.hidden = !me.account;
  button.replaceChildren(
    el("span", { class: "avatar", "aria-hidden": "true", text: Array.from(me.annotator)[0]?.toUpperCase() ?? "?" }),
    el("span", { class: "who", text: me.annotator === "local" ? "Your name" : me.annotator }),
  );
  button.setAttribute("aria-label", `You label as ${me.annotator}${mayChooseName() ? ": change your name" : ""}`);
}

function askName() {
  if (!mayChooseName()) return toast(`You label as ${me.annotator}, the account of your key.`);
  const value = me.annotator === "local" ? "" : me.annotator;
  return askLine("Your name", "Name", value, {
    hint: "Your labels are kept under this name. Others on this project choose their own.",
    save: (name) => setName(name),
  });
}

function askKey() {
  const input = el("input", { name: "key", type: "password", required: true, autocomplete: "current-password" });
  const form = el(
    "form",
    { class: "card narrow" },
    el("h1", { text: "Sign in" }),
    el("p", { text: "Open the address that the server printed when it started, or paste its token or your API key." }),
    field("Token or key", input),
    el("button", { class: "primary", text: "Sign in" }),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await request("POST", "session", { body: { key: input.value.trim() }, as: "" });
      await knowMe();
      send();
      show();
    } catch (error) {
      complain(error);
    }
  });
  find("tabs").hidden = true;
  main.replaceChildren(form);
}

// What is going on

function showSync() {
  const left = waiting().length;
  find("sync").textContent = left ? `${count(left, "label")} waiting` : me.account ? "All saved" : "";
  find("sync").classList.toggle("busy", left > 0);
}

function showConnection() {
  const lost = find("lost");
  lost.hidden = !connection.lost;
  const left = waiting().length;
  const kept = left
    ? ` ${count(left, "label")} ${left === 1 ? "is" : "are"} kept in this browser and sent as soon as it is back.`
    : " You can go on: labels are kept in this browser and sent as soon as it is back.";
  lost.textContent = connection.lost ? `The server cannot be reached.${kept}` : "";
}

const noticeOutbox = () => (showSync(), showConnection());
on("outbox", noticeOutbox);
on("connection", (lost) => (noticeOutbox(), lost || toast("The server is back.")));
on("refused", ({ message }) => {
  const nothing = /nothing to (undo|redo)/.test(message);
  toast(nothing ? message : `An action was refused: ${message}`, { bad: !nothing });
});
on("sent", ({ entry }) => entry.what === "undo" && announce("Undone."));
on("name", showName);
on("unauthorized", askKey);
on("project", () => (find("where").textContent = state.project?.name ?? ""));
addEventListener("hashchange", (event) => {
  if (new URL(event.newURL).hash === "#main") return;
  show();
});
find("you").addEventListener("click", askName);
find("help").addEventListener("click", settingsDialog);
document.querySelector(".skip").addEventListener("click", (event) => (event.preventDefault(), main.focus()));
listen((key) => {
  if (key === "?") return (settingsDialog(), true);
  if (key === "undo") return (undo(), true);
  return key === "redo" ? (redo(), true) : false;
}, undefined);

async function openExample() {
  const known = (await get("projects")).find((one) => one.name.startsWith("Example: "));
  const { id } = known ?? (await post("projects/example"));
  history.replaceState(null, "", link(id, "label"));
}

applyTheme();
try {
  if (await signIn()) await openExample();
  showSync();
  send();
  await show();
} catch (error) {
  if (error instanceof LostError) setTimeout(() => location.reload(), 2000);
  else if (error.status !== 401) complain(error);
}
