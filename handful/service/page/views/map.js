// Map: all texts as points; those that lie together are alike. Draw around some, or walk with the arrow keys, and label them.
import { get } from "../api.js";
import { on } from "../bus.js";
import { classList, findClass } from "../classes.js";
import { announce, choice, complain, count, debounce, el, empty, number } from "../dom.js";
import { listen } from "../keys.js";
import { add } from "../outbox.js";
import { keep, link } from "../router.js";
import { classByKey, className, classes, hue, mayLabel, path, state } from "../state.js";
import { standing } from "../texts.js";
import { inside, nearest, towards } from "../plane.js";

const LIMIT = 20_000; // points; of more texts an even sample is shown
const LISTED = 60; // texts listed next to the map
const MARKS = { s: "skip", u: "unsure", n: "none" };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export async function show(root, { query, signal }) {
  if (!state.project.texts || state.project.classes.length < 2)
    return root.append(
      empty(
        "No map yet",
        "The map needs texts and at least two classes.",
        el("a", { class: "button primary", href: link(state.project.id, "data"), text: "Add them" }),
      ),
    );
  const map = new TextMap(root, query, signal);
  await map.load();
}

class TextMap {
  constructor(root, query, signal) {
    Object.assign(this, {
      root,
      signal,
      points: null,
      picked: new Set(),
      active: -1,
      lasso: null,
      known: new Map(),
      drag: null,
    });
    this.colour = query.get("colour") ?? "prediction";
    this.view = { x: 0, y: 0, zoom: 1 };
    this.build();
    this.hear();
    this.reload = debounce(() => signal.aborted || this.load(), 1200);
    on("project", (detail) => detail?.version && this.reload(), signal);
    listen((key) => this.press(key), signal);
  }

  build() {
    this.canvas = el("canvas", {
      class: "map",
      tabindex: 0,
      role: "application",
      "aria-label": "Map of texts. Arrow keys go to the next text, Space selects it, keys of classes label what is selected.",
      "aria-describedby": "map-text",
    });
    this.said = el("p", { class: "muted", role: "status", text: "Drawing the map…" });
    this.under = el("p", { class: "under", id: "map-text" });
    const colour = choice(
      [
        ["prediction", "Colour: prediction"],
        ["label", "Colour: label"],
      ],
      this.colour,
      {
        "aria-label": "Colour",
        onchange: (event) => ((this.colour = event.target.value), keep({ colour: this.colour }), this.draw()),
      },
    );
    const zoom = (factor) => () => this.zoom(factor, this.canvas.clientWidth / 2, this.canvas.clientHeight / 2);
    const tools = el(
      "div",
      { class: "row toolbar wrap" },
      colour,
      el("button", { type: "button", class: "icon", "aria-label": "Closer", text: "+", onclick: zoom(1.5) }),
      el("button", { type: "button", class: "icon", "aria-label": "Farther", text: "−", onclick: zoom(1 / 1.5) }),
      el("button", {
        type: "button",
        class: "ghost",
        text: "All",
        onclick: () => ((this.view = { x: 0, y: 0, zoom: 1 }), this.draw()),
      }),
      el("a", { href: link(state.project.id, "table"), text: "The same as a table" }),
      this.said,
    );
    this.list = el("ol", { class: "picked" });
    this.panel = el("div", { class: "panel" });
    this.title = el("h2", {});
    const side = el(
      "section",
      { class: "side", "aria-label": "Selected texts" },
      this.title,
      mayLabel() && this.panel,
      this.list,
    );
    this.root.append(
      el("h1", { class: "unseen", text: "Map" }),
      tools,
      el(
        "div",
        { class: "columns" },
        el("div", { class: "work" }, el("div", { class: "card flush" }, this.canvas), this.under),
        side,
      ),
    );
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.drawSide();
  }

  async load() {
    try {
      const found = await get(path("map"), { limit: LIMIT }, this.signal);
      if (!found.ready) return void setTimeout(() => this.signal.aborted || this.load(), 700);
      this.points = found;
      this.places = new Map(found.id.map((id, place) => [id, place]));
      const all = found.id.length;
      this.said.textContent =
        all < state.project.texts
          ? `An even sample of ${number(all)} of ${count(state.project.texts, "text")}.`
          : `${count(all, "text")}. Texts that lie together are alike. Draw around some to select them.`;
      this.draw();
    } catch (error) {
      if (error.name === "ApiError") this.said.textContent = error.message;
    }
  }

  // Where a point is on the canvas

  place(index) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const { x, y, zoom } = this.view;
    return [
      width / 2 + (this.points.x[index] - x) * (width / 2 - 20) * zoom,
      height / 2 + (this.points.y[index] - y) * (height / 2 - 20) * zoom,
    ];
  }

  zoom(factor, px, py) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const zoom = Math.max(0.8, Math.min(60, this.view.zoom * factor));
    const dx = (px - width / 2) / (width / 2 - 20);
    const dy = (py - height / 2) / (height / 2 - 20);
    this.view.x += dx / this.view.zoom - dx / zoom;
    this.view.y += dy / this.view.zoom - dy / zoom;
    this.view.zoom = zoom;
    this.draw();
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  paint() {
    const { canvas, points } = this;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    if (!points) return;
    const style = getComputedStyle(canvas);
    const ink = {
      plain: style.getPropertyValue("--line-strong"),
      text: style.color,
      light: style.getPropertyValue("--dot-light"),
    };
    const size = points.id.length > 5000 ? 2 : points.id.length > 800 ? 3.2 : 5;
    this.paintPoints(pen, ink, size);
    this.paintLasso(pen, ink);
  }

  paintPoints(pen, ink, size) {
    const { points } = this;
    const colours = new Map(classes().map((one) => [one.number, `oklch(${ink.light} 0.15 ${hue(one.number)})`]));
    points.id.forEach((id, index) => {
      const [x, y] = this.place(index);
      const given = points.class[index];
      const number = given >= 0 ? given : this.colour === "prediction" ? points.predicted[index] : -1;
      pen.beginPath();
      pen.arc(x, y, this.picked.has(id) ? size + 2 : given >= 0 ? size + 0.5 : size, 0, 7);
      pen.globalAlpha = given >= 0 || this.picked.has(id) ? 1 : 0.55;
      pen.fillStyle = colours.get(number) ?? ink.plain;
      pen.fill();
      if (given < 0 && !this.picked.has(id)) return;
      pen.lineWidth = this.picked.has(id) ? 2.5 : 1.2;
      pen.strokeStyle = ink.text;
      pen.stroke();
    });
    pen.globalAlpha = 1;
    if (this.active < 0) return;
    const [x, y] = this.place(this.active);
    pen.beginPath();
    pen.arc(x, y, size + 7, 0, 7);
    pen.lineWidth = 2;
    pen.strokeStyle = ink.text;
    pen.stroke();
  }

  paintLasso(pen, ink) {
    if (!this.lasso || this.lasso.length < 2) return;
    pen.beginPath();
    this.lasso.forEach(([x, y], place) => (place ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.closePath();
    pen.setLineDash([5, 4]);
    pen.strokeStyle = ink.text;
    pen.lineWidth = 1.5;
    pen.stroke();
    pen.setLineDash([]);
  }

  // Pointer

  hear() {
    const at = (event) => [event.offsetX, event.offsetY];
    const options = { signal: this.signal };
    this.canvas.addEventListener(
      "pointerdown",
      (event) => {
        if (!this.points) return;
        this.canvas.setPointerCapture(event.pointerId);
        this.lasso = [at(event)];
      },
      options,
    );
    this.canvas.addEventListener("pointermove", (event) => this.lasso && (this.lasso.push(at(event)), this.draw()), options);
    this.canvas.addEventListener("pointerup", (event) => this.close(event), options);
    this.canvas.addEventListener(
      "wheel",
      (event) => (event.preventDefault(), this.zoom(Math.exp(-event.deltaY / 300), ...at(event))),
      { passive: false, ...options },
    );
  }

  close(event) {
    const line = this.lasso;
    this.lasso = null;
    if (!line) return;
    const all = this.points.id.map((_, index) => this.place(index));
    const small = Math.max(...line.map(([x, y]) => Math.hypot(x - line[0][0], y - line[0][1]))) < 6;
    const found = small
      ? [nearest(all, line[0], 14)].filter((one) => one >= 0)
      : all.flatMap((point, index) => (inside(point, line) ? [index] : []));
    if (!event.shiftKey) this.picked.clear();
    for (const index of found) this.picked.add(this.points.id[index]);
    if (small && found.length) this.active = found[0];
    this.drawSide();
    this.draw();
  }

  // Keys

  press(key) {
    if (ARROWS[key] && this.points && document.activeElement === this.canvas) return (this.walk(ARROWS[key]), true);
    if (key === " " && this.active >= 0) return (this.toggle(this.points.id[this.active]), true);
    if (key === "Escape") return (this.clear(), true);
    if (key === "+" || key === "-")
      return (this.zoom(key === "+" ? 1.5 : 1 / 1.5, this.canvas.clientWidth / 2, this.canvas.clientHeight / 2), true);
    if (key === "/") return (findClass().then((one) => one !== null && this.give({ class: one })), true);
    if (MARKS[key]) return (this.give({ mark: MARKS[key] }), true);
    const one = classByKey(key);
    if (one) this.give({ class: one.number });
    return Boolean(one);
  }

  async walk(direction) {
    const all = this.points.id.map((_, index) => this.place(index));
    const from =
      this.active >= 0 ? this.active : nearest(all, [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2], Infinity);
    this.active = this.active >= 0 ? towards(all, from, direction) : from;
    this.draw();
    const id = this.points.id[this.active];
    const [text] = await this.texts([id]).catch(() => []);
    if (!text || this.points.id[this.active] !== id) return;
    this.under.textContent = text.text;
    announce(
      `${text.text} ${text.class === null ? `predicted ${className(this.points.predicted[this.active])}` : className(text.class)}`,
    );
  }

  toggle(id) {
    if (!this.picked.delete(id)) this.picked.add(id);
    this.drawSide();
    this.draw();
  }

  clear() {
    this.picked.clear();
    this.drawSide();
    this.draw();
  }

  async texts(ids) {
    const found = await get(path("texts"), { id: ids, limit: 1000 }, this.signal);
    return found.texts;
  }

  give(value) {
    const ids = this.picked.size ? [...this.picked] : this.active >= 0 ? [this.points.id[this.active]] : [];
    if (!ids.length || !mayLabel()) return;
    if (!add(state.project.id, "labels", { texts: ids.slice(0, 10_000), ...value })) return;
    for (const id of ids) this.points.class[this.places.get(id)] = value.class ?? -1;
    announce(`${count(ids.length, "text")}: ${value.mark ?? className(value.class)}`);
    this.clear();
  }

  async drawSide() {
    const ids = [...this.picked];
    this.title.textContent = ids.length ? `${count(ids.length, "text")} selected` : "Nothing selected";
    this.panel.replaceChildren(classList({ choose: (one) => this.give({ class: one }) }));
    if (!ids.length)
      return this.list.replaceChildren(
        el("li", { class: "muted", text: "Draw around points, or click one. With the keyboard: arrows, then Space." }),
      );
    try {
      const texts = await this.texts(ids.slice(0, LISTED));
      const rows = texts.map((one) =>
        el(
          "li",
          {},
          standing(one),
          el("span", { text: one.text }),
          el("button", {
            type: "button",
            class: "ghost icon",
            "aria-label": "Take this text out of the selection",
            text: "×",
            onclick: () => this.toggle(one.id),
          }),
        ),
      );
      if (ids.length > LISTED) rows.push(el("li", { class: "muted", text: `and ${number(ids.length - LISTED)} more` }));
      this.list.replaceChildren(...rows);
    } catch (error) {
      if (error.name !== "AbortError") complain(error);
    }
  }
}
