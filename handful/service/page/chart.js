// The learning curve: accuracy with its interval over the number of labels.
import { percent, svg } from "./dom.js";

const WIDTH = 520;
const HEIGHT = 260;
const PAD = { left: 46, right: 14, top: 14, bottom: 34 };

/** A curve from points with labels, value, low and high. */
export function curve(points) {
  const most = points[points.length - 1].labels;
  const x = (labels) => PAD.left + ((WIDTH - PAD.left - PAD.right) * labels) / most;
  const y = (share) => PAD.top + (HEIGHT - PAD.top - PAD.bottom) * (1 - share);
  const line = (name) => points.map((one) => `${x(one.labels).toFixed(1)},${y(one[name]).toFixed(1)}`);
  const band = [...line("high"), ...line("low").reverse()].join(" ");
  const last = points[points.length - 1];
  const [from, to] = [points[0], last].map((one) => `${percent(one.value)} with ${one.labels} labels`);
  const label = `Accuracy: ${from}, ${to}.`;
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "curve", role: "img", "aria-label": label },
    grid(x, y, most),
    svg("polygon", { points: band, class: "band" }),
    svg("polyline", { points: line("value").join(" "), class: "line" }),
    points.map((one) =>
      svg(
        "circle",
        { cx: x(one.labels), cy: y(one.value), r: 3.5, class: "point" },
        svg("title", { text: `${one.labels} labels: ${percent(one.value)}` }),
      ),
    ),
  );
}

function grid(x, y, most) {
  const shares = [0, 0.25, 0.5, 0.75, 1].map((share) => [
    svg("line", { x1: x(0), x2: x(most), y1: y(share), y2: y(share), class: "rule" }),
    svg("text", { x: x(0) - 8, y: y(share) + 4, "text-anchor": "end", text: percent(share) }),
  ]);
  const step = ticks(most);
  const labels = [];
  for (let at = step; at <= most; at += step)
    labels.push(svg("text", { x: x(at), y: HEIGHT - 14, "text-anchor": "middle", text: at }));
  return [shares, labels, svg("text", { x: x(most), y: HEIGHT - 1, "text-anchor": "end", text: "labels" })];
}

function ticks(most) {
  const rough = most / 5;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? 1;
}
