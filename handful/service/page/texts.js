// A text as it is shown: with the words shaded that spoke for a class.
import { bar, el, percent } from "./dom.js";
import { className, hue } from "./state.js";

const FAINTEST = 0.12; // of the strongest word: below it a word is not shaded

/** A class as a small coloured name. */
export const chip = (number, properties = {}) =>
  number === null || number === undefined
    ? el("span", { class: "chip plain", text: "–", ...properties })
    : el(
        "span",
        { class: "chip", hue: hue(number), ...properties },
        el("i", { class: "dot", "aria-hidden": "true" }),
        el("span", { text: className(number) }),
      );

const MARKS = { skip: "skipped", unsure: "unsure", none: "none of these" };

/** What somebody said of a text. */
export const verdict = (mark, number) =>
  mark === "class" || (!mark && number !== null)
    ? chip(number)
    : el("span", { class: "chip plain", text: MARKS[mark] ?? "no label" });

/** The label of a text as it stands. */
export function standing(text) {
  if (text.state === "labelled") return chip(text.class);
  const names = { open: "", skipped: "skipped", unsure: "unsure", none: "none of these", disputed: "disputed" };
  return el("span", { class: `chip plain ${text.state}`, text: names[text.state] ?? text.state });
}

/** The contributions of the words to one class, each from 0 to 1, for those that spoke for it. */
function strengths(explanation, number) {
  const place = explanation.classes.findIndex((one) => one.class === number);
  if (place < 0) return explanation.words.map(() => 0);
  const values = explanation.words.map((word) => Math.max(0, word.contributions[place]));
  const most = Math.max(...values, 1e-9);
  return values.map((value) => (value / most < FAINTEST ? 0 : value / most));
}

/** A text with the words shaded that spoke for a class. Places are counted in characters, not in UTF-16. */
export function shaded(text, explanation, number) {
  if (!explanation?.words?.length || number === null || number === undefined) return [document.createTextNode(text)];
  const letters = Array.from(text);
  const strength = strengths(explanation, number);
  const parts = [];
  let end = 0;
  explanation.words.forEach((word, place) => {
    if (!strength[place] || word.start < end) return;
    parts.push(letters.slice(end, word.start).join(""));
    const mark = el("mark", { class: "spoke", hue: hue(number), text: letters.slice(word.start, word.end).join("") });
    mark.style.setProperty("--strength", strength[place].toFixed(2));
    parts.push(mark);
    end = word.end;
  });
  parts.push(letters.slice(end).join(""));
  return parts;
}

/** The words that spoke most for a class, in a sentence. */
export function because(explanation, number) {
  if (!explanation) return "";
  if (!explanation.words.length) return explanation.note ?? "";
  const strength = strengths(explanation, number);
  const order = strength.map((value, place) => [value, place]).filter(([value]) => value > 0);
  order.sort((a, b) => b[0] - a[0]);
  const words = [...new Set(order.map(([, place]) => explanation.words[place].word.toLowerCase()))].slice(0, 4);
  return words.length
    ? `Shaded: what speaks for ${className(number)}, most of all “${words.join("”, “")}”.`
    : `No word speaks for ${className(number)}.`;
}

/** The most probable classes as bars. */
export const probabilities = (ranked, most = 8) =>
  el(
    "ol",
    { class: "ranked" },
    ranked
      .slice(0, most)
      .map((one) =>
        el(
          "li",
          { hue: hue(one.class) },
          el("span", { class: "name", text: one.label }),
          bar(one.probability),
          el("span", { class: "number", text: percent(one.probability) }),
        ),
      ),
  );
