// Distributions of timings: one histogram per case and side, with median and confidence interval.

const LANE = 58;
// Room for the number of timings of the tallest bar, above the bars.
const LANE_HEAD = 16;
const CASE_AXIS = 34;
const AXIS_TITLE = 16;
const FEWEST_FOR_BARS = 12;
const AXIS_FONT = "11px system-ui, sans-serif";
const SIDE_FILLS = ["#56b4e9", "#e69f00", "#009e73", "#cc79a7"];

/** A quantile of sorted values, interpolated. @param {ArrayLike<number>} sorted @param {number} share */
function quantile(sorted, share) {
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  const next = sorted[Math.min(low + 1, sorted.length - 1)];
  return sorted[low] + (next - sorted[low]) * (at - low);
}

/** Axis range and medians of a case. A long tail is cut off; the card reports how many values are off scale. @param {DistributionData} data */
function measureCase(data) {
  const sides = data.sides.map(({ name, values, interval }) => {
    const sorted = new Float64Array(values.filter(Number.isFinite)).sort();
    const median = interval ? interval[1] : sorted.length > 0 ? quantile(sorted, 0.5) : NaN;
    return { name, sorted, median, interval };
  });
  const filled = sides.filter(({ sorted }) => sorted.length > 0);
  const low = Math.min(...filled.map(({ sorted, interval }) => Math.min(sorted[0], interval?.[0] ?? Infinity)));
  const most = Math.max(...filled.map(({ sorted }) => sorted[sorted.length - 1]));
  const usual = Math.max(...filled.map(({ sorted, interval }) => Math.max(quantile(sorted, 0.98), interval?.[2] ?? 0)));
  const cut = usual + 0.15 * (usual - low);
  const high = Math.min(cut, most);
  const margin = 0.04 * (high - low) || Math.abs(low) * 0.01 || 1;
  return { sides, from: low - margin, to: high + margin };
}

/** Number of values in each of `parts` bins.
 * @param {Float64Array} sorted @param {number} from @param {number} to @param {number} parts */
function histogram(sorted, from, to, parts) {
  const bars = new Array(parts).fill(0);
  for (const value of sorted) {
    const part = Math.floor(((value - from) / (to - from)) * parts);
    if (part >= 0 && part < parts) bars[part]++;
  }
  return bars;
}

class DistributionPanel {
  /** @param {HTMLElement} section @param {DistributionData[]} cases */
  constructor(section, cases) {
    /** @type {Set<() => void>} */ this.drawn = new Set();
    const grid = make("div.cases");
    // Cases are drawn when they come near the viewport, because there may be many.
    const watcher = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) waiting.get(target)?.();
    }, { rootMargin: "300px" });
    /** @type {Map<Element, () => void>} */
    const waiting = new Map();
    for (const data of cases) {
      const { card, draw } = caseCard(data);
      grid.append(card);
      waiting.set(card, () => {
        watcher.unobserve(card);
        waiting.delete(card);
        this.drawn.add(draw);
        new ResizeObserver(oncePerPaint(draw)).observe(card);
      });
      watcher.observe(card);
    }
    // Draw the remaining cases before printing.
    window.addEventListener("beforeprint", () => {
      [...waiting.values()].forEach((begin) => begin());
      this.recolour();
    });
    const about = "Bars: number of timings; line at the top: height of the tallest bar; line: median; band: 95 % CI of the median. The sides of a case share one time axis.";
    section.append(make("p.minor", {}, about), grid);
  }

  /** Redraws everything in the colours of the theme. */
  recolour() {
    this.drawn.forEach((draw) => draw());
  }
}

/** A card with the canvas and the figures of a case. @param {DistributionData} data */
function caseCard(data) {
  const measured = measureCase(data);
  const canvas = make("canvas", { role: "img", "aria-label": shownName(`distribution of ${data.title}`) });
  const lines = measured.sides.map((side, s) => {
    const { sorted, interval, median } = side;
    const beyond = sorted.length - lowerBound(sorted, measured.to);
    const spread = interval ? ` [${quantity(interval[0], data.unit)}, ${quantity(interval[2], data.unit)}]` : "";
    const tail = beyond > 0 ? `, ${count(beyond)} off scale` : "";
    return make("li", {}, make("i", { style: `background:${SIDE_FILLS[s % SIDE_FILLS.length]}` }),
      `${shownName(side.name)}: `, make("b", {}, quantity(median, data.unit)), `${spread}, n = ${count(sorted.length)}${tail}`);
  });
  const gap = measured.sides.length === 2 ? make("p.gap", {}, caseGap(measured.sides)) : null;
  const card = make("article.case", {}, make("h3", {}, shownName(data.title)), canvas, make("ul", {}, ...lines), gap);
  return { card, draw: () => drawCase(canvas, card, data, measured) };
}

/** Compares the second side with the first. @param {ReturnType<typeof measureCase>["sides"]} sides */
function caseGap([a, b]) {
  const overlap = a.interval && b.interval && a.interval[0] <= b.interval[2] && b.interval[0] <= a.interval[2];
  const times = ratio(a.median, b.median);
  const gap = `${shownName(b.name)} takes ${times} the time of ${shownName(a.name)} (${shortGap(a.median, b.median)})`;
  return overlap ? `${gap}; the confidence intervals overlap` : gap;
}

/** @param {HTMLCanvasElement} canvas @param {HTMLElement} card @param {DistributionData} data
 * @param {ReturnType<typeof measureCase>} measured */
function drawCase(canvas, card, data, { sides, from, to }) {
  const width = card.clientWidth - 20;
  if (width <= 0) return;
  const height = sides.length * LANE + CASE_AXIS;
  const context = sharpContext(canvas, width, height);
  const style = getComputedStyle(card);
  const [ink, line] = ["--ink", "--line"].map((name) => style.getPropertyValue(name));
  const x = (/** @type {number} */ value) => ((value - from) / (to - from)) * width;
  sides.forEach(({ sorted, interval, median }, s) => {
    const floor = (s + 1) * LANE - 3;
    if (interval) {
      context.globalAlpha = 0.18;
      context.fillStyle = ink;
      context.fillRect(x(interval[0]), floor - LANE + LANE_HEAD, Math.max(x(interval[2]) - x(interval[0]), 1), LANE - LANE_HEAD);
      context.globalAlpha = 1;
    }
    context.fillStyle = SIDE_FILLS[s % SIDE_FILLS.length];
    if (sorted.length < FEWEST_FOR_BARS) drawDots(context, sorted, x, floor);
    else drawBars(context, histogram(sorted, from, to, Math.min(Math.floor(width / 5), 60)), width, floor, ink);
    context.fillStyle = line;
    context.fillRect(0, floor, width, 1);
    context.fillStyle = ink;
    context.fillRect(Math.round(x(median)) - 1, floor - LANE + LANE_HEAD, 2, LANE - LANE_HEAD);
  });
  drawCaseAxis(context, data.unit, [from, to], width, height - AXIS_TITLE - (CASE_AXIS - AXIS_TITLE) / 2, ink);
  context.fillText(data.axis, (width - context.measureText(data.axis).width) / 2, height - AXIS_TITLE / 2);
}

/** @param {CanvasRenderingContext2D} context @param {Float64Array} values @param {(value: number) => number} x @param {number} floor */
function drawDots(context, values, x, floor) {
  for (const value of values) {
    context.beginPath();
    context.arc(x(value), floor - (LANE - LANE_HEAD) / 2, 4, 0, 2 * Math.PI);
    context.fill();
  }
}

/** Draws bars with the number of timings of the tallest.
 * @param {CanvasRenderingContext2D} context @param {number[]} bars @param {number} width @param {number} floor @param {string} ink */
function drawBars(context, bars, width, floor, ink) {
  const tallest = Math.max(...bars, 1);
  const wide = width / bars.length;
  bars.forEach((many, i) => {
    const high = (many / tallest) * (LANE - LANE_HEAD - 3);
    context.fillRect(i * wide, floor - high, Math.max(wide - 1, 1), high);
  });
  const top = floor - LANE + LANE_HEAD + 3;
  const text = `${count(tallest)} timing${tallest === 1 ? "" : "s"}`;
  context.font = AXIS_FONT;
  context.textBaseline = "middle";
  context.fillStyle = ink;
  context.globalAlpha = 0.35;
  context.fillRect(0, top, width, 1);
  context.globalAlpha = 1;
  context.fillText(text, width - context.measureText(text).width, top - 8);
}

/** @param {CanvasRenderingContext2D} context @param {string} unit @param {[number, number]} span @param {number} width @param {number} y
 * @param {string} ink */
function drawCaseAxis(context, unit, [from, to], width, y, ink) {
  context.fillStyle = ink;
  context.font = AXIS_FONT;
  context.textBaseline = "middle";
  const { ticks, step } = axisTicks(Math.max(from, 0), to, width);
  let free = 0;
  for (const tick of ticks) {
    const text = unit === "ns" ? axisTime(tick, step) : quantity(tick, unit);
    const wide = context.measureText(text).width;
    const x = ((tick - from) / (to - from)) * width;
    const left = Math.min(Math.max(x - wide / 2, 0), width - wide);
    if (left < free) continue;
    context.fillRect(Math.round(x), y - 9, 1, 4);
    context.fillText(text, left, y + 2);
    free = left + wide + 10;
  }
}
