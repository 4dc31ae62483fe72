// Geometry of points on a plane.

/** Whether a point is inside a closed line: a ray from it crosses the line an odd number of times. */
export function inside([x, y], line) {
  let odd = false;
  for (let i = 0, j = line.length - 1; i < line.length; j = i++) {
    const [ax, ay] = line[i];
    const [bx, by] = line[j];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
  }
  return odd;
}

/** The place of the nearest point within a distance, or -1. */
export function nearest(points, [x, y], most) {
  let best = -1;
  let least = most;
  points.forEach(([px, py], place) => {
    const far = Math.hypot(px - x, py - y);
    if (far < least) [best, least] = [place, far];
  });
  return best;
}

/** The next point in a direction: near, and not far to the side. */
export function towards(points, from, [dx, dy]) {
  const [x, y] = points[from];
  let best = from;
  let least = Infinity;
  points.forEach(([px, py], place) => {
    const along = (px - x) * dx + (py - y) * dy;
    const aside = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
    if (place === from || along <= 0.5) return;
    const cost = along + 2 * aside;
    if (cost < least) [best, least] = [place, cost];
  });
  return best;
}
