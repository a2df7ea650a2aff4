/** A line chart that grows while one watches: steps to the right, in SVG. */

const HEIGHT = 240;
const [LEFT, RIGHT, TOP, BOTTOM] = [48, 12, 12, 26];
// More points than pixels would draw the same picture.
const MOST_POINTS = 400;

/** @typedef {[step: number, value: number]} Point */
/** @typedef {(value: number) => string} Words */

/**
 * Draw. The vertical scale holds `ticks` and all points.
 * @param {Element} svg
 * @param {object} what
 * @param {string} what.label read out instead of the picture
 * @param {Point[]} [what.each] a thin line
 * @param {Point[]} what.line
 * @param {number[]} [what.changes] steps at which a vertical line stands
 * @param {number[]} what.ticks
 * @param {(value: number) => number} [what.scale] such as a logarithm
 * @param {Words} what.words of a tick
 */
export function draw(
  svg,
  { label, each = [], line, changes = [], ticks, scale = (v) => v, words },
) {
  // In the page's own pixels: so its text is as large as any other.
  const width = svg.clientWidth;
  svg.setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`);
  const last = Math.max(20, ...[...each, ...line].map(([step]) => step));
  const values = [...ticks, ...[...each, ...line].map(([, value]) => value)].map(scale);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (/** @type {number} */ step) => LEFT + (step / last) * (width - LEFT - RIGHT);
  const y = (/** @type {number} */ value) =>
    TOP + ((high - scale(value)) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const path = (/** @type {Point[]} */ points) =>
    thin(points)
      .map(([step, value]) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`)
      .join(' ');
  svg.setAttribute('aria-label', label);
  svg.innerHTML = [
    ...ticks.map((tick) => rule(y(tick), width - RIGHT, words(tick))),
    ...[0, Math.round(last / 2), last].map((step, index) => {
      const anchor = ['start', 'middle', 'end'][index];
      return `<text x="${x(step)}" y="${HEIGHT - 8}" text-anchor="${anchor}">${step}</text>`;
    }),
    ...changes.map(
      (step) =>
        `<line class="change" x1="${x(step)}" x2="${x(step)}" y1="${TOP}" y2="${HEIGHT - BOTTOM}"/>`,
    ),
    `<polyline class="each" points="${path(each)}"/>`,
    `<polyline class="line" points="${path(line)}"/>`,
  ].join('');
}

/**
 * @param {number} y
 * @param {number} end
 * @param {string} text
 */
function rule(y, end, text) {
  return (
    `<line class="grid" x1="${LEFT}" x2="${end}" y1="${y}" y2="${y}"/>` +
    `<text x="${LEFT - 6}" y="${y + 4}" text-anchor="end">${text}</text>`
  );
}

/**
 * Return so many means of neighbours that each has a pixel.
 * @param {Point[]} points
 */
function thin(points) {
  const size = Math.ceil(points.length / MOST_POINTS);
  if (size < 2) return points;
  /** @type {Point[]} */
  const found = [];
  for (let start = 0; start < points.length; start += size) {
    const some = points.slice(start, start + size);
    const mean = some.reduce((sum, [, value]) => sum + value, 0) / some.length;
    found.push([some[some.length - 1][0], mean]);
  }
  return found;
}

/**
 * Return an image of `size` x `size` brightnesses from 0 to 1 in SVG.
 * @param {ArrayLike<number>} pixels
 * @param {number} size
 */
export function image(pixels, size) {
  const squares = Array.from(pixels, (ink, place) => {
    const [row, column] = [Math.floor(place / size), place % size];
    return `<rect x="${column}" y="${row}" width="1" height="1" opacity="${ink.toFixed(3)}"/>`;
  });
  const box = `viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"`;
  return `<svg ${box} aria-hidden="true">${squares.join('')}</svg>`;
}
