// Descriptions of frames, for the tooltip and for the selected frame with its stack.

const LONGEST_STACK = 300;

/** The location of a function: library, kind, file and line. @param {Profile} profile @param {number} f */
function placeOf(profile, f) {
  const { functions, strings } = profile.flame;
  const file = strings[functions.file[f]];
  const line = functions.line[f] > 0 ? `:${functions.line[f]}` : "";
  return [profile.library(f), KIND_NAMES[functions.kind[f]], file === "" ? "" : file + line]
    .filter((part) => part !== "" && part !== undefined)
    .map(shownName)
    .join(" · ");
}

/** Rows of the figures of a frame: a label and one weight per side. @param {Frame} frame @param {Tally} sums @returns {[string, number[]][]} */
function figuresOf({ tree, node }, sums) {
  const sides = tree.profile.flame.sides.map((_, side) => side);
  const f = tree.fn[node];
  const here = sides.map((side) => tree.total[side][node]);
  /** @type {[string, number[]][]} */
  const rows = [];
  if (tree.shape.upwards) rows.push([node === 0 ? "all" : "this path", here]);
  else rows.push(["total, this frame", here], ["self, this frame", sides.map((side) => tree.self(node, side))]);
  if (node > 0 || tree.shape.root >= 0) {
    rows.push(["total, function", sides.map((side) => sums.total[side][f])]);
    rows.push(["self, function", sides.map((side) => sums.self[side][f])]);
  }
  return rows;
}

/** The figures as a table, with signed differences if there are two sides. @param {Frame} frame @param {Tally} sums */
function figureTable(frame, sums) {
  const { flame } = frame.tree.profile;
  const wholes = flame.sides.map((_, side) => frame.tree.weights.total[side][0]);
  const heads = flame.sides.length === 2 ? ["A", "B", "diff.", "ratio"] : [flame.event, "share"];
  const cell = (/** @type {string} */ text) => make("td.n", {}, text);
  const rows = figuresOf(frame, sums).map(([what, weights]) => {
    const [a, b] = weights;
    const cells = weights.map((weight, side) => {
      const share = flame.sides.length === 2 && flame.unit !== "share" ? ` (${percent(shareOf(weight, wholes[side]))})` : "";
      return quantity(weight, flame.unit) + share;
    });
    if (flame.sides.length === 2) cells.push(signed(gapOf(a, b), flame.unit), ratio(a, b));
    else cells.push(percent(shareOf(a, wholes[0])));
    return make("tr", {}, make("th", { scope: "row" }, what), ...cells.map(cell));
  });
  const per = flame.per === "" ? "" : `per ${shownName(flame.per)}`;
  const head = make("tr", {}, make("th", {}, per), ...heads.map((title) => make("th.n", {}, shownName(title))));
  return make("table.figures", {}, make("thead", {}, head), make("tbody", {}, ...rows));
}

/** Name, location and figures of a frame. @param {Frame} frame @param {Tally} sums */
function describe(frame, sums) {
  const { profile, fn } = frame.tree;
  const f = fn[frame.node];
  const { intervals, unit } = profile.flame;
  const interval = intervals?.[f] ? `95 % CI of the function's difference: ${intervalText(intervals[f], unit)}` : "";
  return [
    make("strong.name", {}, shownName(profile.name(f))),
    make("div.place", {}, placeOf(profile, f)),
    figureTable(frame, sums),
    make("div.place", {}, interval),
  ];
}

/** Links to the frames from the root to this one. @param {Frame} frame @param {(node: number) => void} go */
function stackList({ tree, node }, go) {
  const line = tree.lineage(node);
  const shown = line.slice(-LONGEST_STACK);
  const last = shown[shown.length - 1];
  const items = shown.map((at) => {
    const button = make("button.frame", { onclick: () => go(at) }, shownName(tree.profile.name(tree.fn[at])));
    if (at === last) button.setAttribute("aria-current", "true");
    return make("li", {}, button);
  });
  const title = tree.shape.upwards ? "Callers, innermost first" : "Stack, outermost first";
  const left = line.length - shown.length;
  return make("details", { open: true },
    make("summary", {}, left > 0 ? `${title} (${count(left)} more above)` : title),
    make("ol.stack", { start: left + 1 }, ...items));
}

/** A tooltip that follows the pointer and stays inside the window. */
class Note {
  constructor() {
    this.element = make("div.note", { role: "tooltip", hidden: true });
    document.body.append(this.element);
  }

  /** @param {Node[]} content @param {MouseEvent} event */
  show(content, event) {
    this.element.replaceChildren(...content);
    this.element.hidden = false;
    const { offsetWidth: wide, offsetHeight: high } = this.element;
    const x = Math.min(event.clientX + 14, window.innerWidth - wide - 8);
    const below = event.clientY + 18;
    const y = below + high < window.innerHeight ? below : Math.max(event.clientY - high - 12, 4);
    this.element.style.transform = `translate(${Math.max(x, 4)}px, ${y}px)`;
  }

  hide() {
    this.element.hidden = true;
  }
}
