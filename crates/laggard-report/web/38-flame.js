// The flame graph panel: toolbar, legend, canvas with panes, function table and selected frame.

const PANE_GAP = 8;
const LEGEND_LENGTH = 14;
/** @type {Record<string, number[]>} */
const COLUMNS_OF_SIDE = { 0: [0], 1: [1], d: [2], ab: [0, 1], abd: [0, 1, 2] };
/** @type {Record<string, string>} */
const CHOICE_WORDS = { 0: "A", 1: "B", d: "difference", ab: "A | B", abd: "A | B | difference", heavy: "left-heavy", name: "by name" };

/** A group of buttons that shows and sets one field of the page's state.
 * @param {Page} page @param {string} label @param {keyof PageState} key @param {string[]} options
 * @param {(value: string) => void} [pick] */
function choice(page, label, key, options, pick = (value) => page.change({ [key]: value })) {
  const buttons = options.map((value) => make("button", { "data-value": value, onclick: () => pick(value) }, CHOICE_WORDS[value] ?? value));
  const element = make("div.choice", { role: "group", "aria-label": label }, make("span", {}, label), ...buttons);
  const update = () => buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.value === page.state[key])));
  return { element, update };
}

/** A legend entry. @param {string} fill @param {string} name @param {number} share */
function chip(fill, name, share) {
  const figure = Number.isNaN(share) ? "" : ` ${percent(share)}`;
  return make("span.chip", {}, make("i", { style: `background:${fill}` }), fit(shownName(name) || "unknown", 40) + figure);
}

class FlamePanel {
  /** @param {HTMLElement} section @param {FlameData} flame @param {Track[]} tracks @param {Page} page */
  constructor(section, flame, tracks, page) {
    this.page = page;
    this.flame = flame;
    this.two = flame.sides.length === 2;
    this.tracks = tracks;
    this.profile = profileOf(flame);
    /** @type {Weights} */ this.weights = weigh(this.profile, flame.nodes.self);
    /** @type {Tally} */ this.sums = tally(this.profile, this.weights);
    // Colours do not change when a time range changes the weights.
    this.libraries = librariesByWeight(this.profile, this.sums);
    // The timeline uses the same colours.
    this.slots = hueSlots(this.libraries.map(([name]) => name));
    /** @type {CallTree[]} */ this.trees = [];
    /** @type {Record<string, string>} */ this.made = { range: "null" };
    /** @type {Lens} */ this.lens = { scale: 1, shift: 0 };
    /** @type {number[]} */ this.zoomed = [];
    this.firstLine = 0;
    /** @type {Uint8Array | null} */ this.found = null;
    // The frames that match the search, and the index of the current one.
    /** @type {number[] | null} */ this.steps = null;
    this.step = -1;
    this.stage = new FlameStage(this.profile, this);
    this.table = new FunctionTable(this.profile, this);
    this.#build(section);
    new ResizeObserver(() => this.#layOut()).observe(this.stage.element);
  }

  /** @param {HTMLElement} section */
  #build(section) {
    const { page, two } = this;
    this.choices = [
      choice(page, "view", "view", VIEWS, (view) => this.setView(view)),
      ...(two ? [choice(page, "side", "side", SIDES)] : []),
      choice(page, "order", "order", ["heavy", "name"]),
      choice(page, "colour", "colour", COLOURS.slice(0, two ? 3 : 2)),
    ];
    this.collapse = make("button", { onclick: () => this.key("r") }, "collapse recursion");
    const reset = make("button", { onclick: () => this.showAll() }, "reset zoom");
    const find = () => page.change({ search: this.search.value });
    const hint = "search: substring or /regex/";
    this.search = make("input", { type: "search", placeholder: hint, "aria-label": "Search functions", oninput: find });
    this.result = make("output.result", { "aria-live": "polite" });
    this.notice = make("p.notice", { hidden: true });
    this.legend = make("div.legend", { "aria-label": "Colours" });
    this.heads = make("div.pane-heads");
    this.selection = make("div.selection");
    section.append(
      make("p.minor", {}, summaryOf(this.flame)),
      make("div.toolbar", {}, ...this.choices.map(({ element }) => element),
        make("div.choice", {}, this.collapse, reset), this.search, this.result),
      this.notice, this.legend, this.heads, this.stage.element, this.table.element, this.selection);
  }

  /** Updates the panel from the page's state. */
  update() {
    const { state } = this.page;
    this.#weigh(state);
    if (this.search.value !== state.search) this.search.value = state.search;
    // The search selects the function of the sandwich view, so it precedes the trees.
    if (this.#changed("search", state.search + this.made.range)) this.#find(state);
    const grown = this.#grow(state);
    if (this.#changed("colour", state.colour + theme())) this.recolour();
    this.choices?.forEach((choice) => choice.update());
    this.collapse.setAttribute("aria-pressed", String(state.collapse));
    const [graph, sandwich] = [state.view !== "table", state.view === "sandwich"];
    this.stage.element.hidden = this.heads.hidden = !graph;
    this.table.element.hidden = graph && !sandwich;
    this.table.element.classList.toggle("short", sandwich);
    if (!this.table.element.hidden) this.#fillTable(state);
    this.#zoomToState(state, grown);
  }

  /** Whether the input of a part of the panel changed. @param {string} part @param {string} now */
  #changed(part, now) {
    const changed = this.made[part] !== now;
    this.made[part] = now;
    return changed;
  }

  /** @param {PageState} state */
  #weigh({ range }) {
    if (!this.#changed("range", String(range))) return;
    this.weights = weigh(this.profile, range ? [selfWithin(this.profile, this.tracks, range)] : this.flame.nodes.self);
    this.sums = tally(this.profile, this.weights);
    this.notice.hidden = !range;
    if (!range) return;
    const [from, to] = range.map((time) => quantity(time, "ns"));
    const clear = make("button", { onclick: () => this.page.change({ range: null }) }, "clear");
    const weight = quantity(this.weights.total[0][0], this.flame.unit);
    this.notice.replaceChildren(`Showing samples from ${from} to ${to}: ${weight}. `, clear);
  }

  /** Builds the trees of the view. Returns whether the view changed. @param {PageState} state */
  #grow({ view, order, collapse, range }) {
    const kind = treeOfView(view);
    const root = view === "sandwich" ? this.sandwiched() : -1;
    const turned = this.#changed("view", view);
    if (!this.#changed("tree", [kind, order, collapse, root, range].join())) return turned;
    const grow = (/** @type {boolean} */ upwards) => new CallTree(this.profile, this.weights, { upwards, root, order, collapse });
    this.trees = view === "sandwich" ? [grow(false), grow(true)] : [grow(kind === "inverted")];
    this.stage.hovered = this.steps = null;
    return true;
  }

  /** The function of the sandwich view: the selected one, the match with the most total weight, or the function with
   * the most self weight. */
  sandwiched() {
    const { fn } = this.page.state;
    if (fn >= 0 && fn < this.profile.functionCount) return fn;
    const { found } = this;
    const total = this.sums.total[this.weights.widest];
    const match = found ? found.reduce((best, one, f) => (one && (best < 0 || total[f] > total[best]) ? f : best), -1) : -1;
    if (match >= 0) return match;
    const own = this.sums.self[this.weights.widest];
    const kinds = this.flame.functions.kind;
    return own.reduce((best, weight, f) => (weight > own[best] && kinds[f] !== KIND_MARK ? f : best), this.profile.fn[0] ?? 0);
  }

  /** @param {PageState} state */
  #find({ search }) {
    this.found = this.stage.found = matchFunctions(this.profile, search);
    this.steps = null;
    this.#tellResult();
    this.stage.redraw();
  }

  #tellResult() {
    const { found, weights, steps } = this;
    if (!found) return this.result.replaceChildren();
    const shares = this.flame.sides.map((_, side) => {
      const share = percent(shareOf(matchedWeight(this.profile, weights, found, side), weights.total[side][0]));
      return this.two ? `${"AB"[side]} ${share}` : share;
    });
    const functions = found.reduce((sum, one) => sum + one, 0);
    const step = steps && steps.length > 0 ? `, frame ${this.step + 1} of ${count(steps.length)}` : "";
    const what = `${count(functions)} function${functions === 1 ? "" : "s"}`;
    this.result.replaceChildren(`${what}: ${shares.join(" | ")} of total, each stack counted once${step}`);
  }

  /** Redraws everything in the colours of the theme. */
  recolour() {
    const { colour } = this.page.state;
    this.made.colour = colour + theme();
    this.stage.paint = frameColours(this.profile, this.slots, colour);
    this.legend.replaceChildren(...flameLegend(this.profile, this.libraries, this.slots, colour));
    this.stage.redraw();
    this.table.redraw();
  }

  /** @param {PageState} state */
  #fillTable({ sort, search, range, view }) {
    if (this.#changed("table", [sort, search, range].join("\n"))) {
      this.table.update(this.sums, this.weights.total.map((column) => column[0]), this.found, sort);
    }
    if (view === "sandwich" && this.#changed("selected", String(this.sandwiched()))) this.table.select(this.sandwiched());
    this.table.redraw();
  }

  /** @param {PageState} state @param {boolean} grown */
  #zoomToState({ zoom, view }, grown) {
    const moved = this.#changed("zoom", String(zoom)) || grown;
    if (moved) {
      this.lens = { scale: 1, shift: 0 };
      this.zoomed = this.trees.map(() => 0);
      const [which, start, at] = zoom ?? [0, 0, 0];
      const tree = this.trees[which];
      const there = zoom && tree && Math.max(start, at) < this.profile.fn.length;
      if (there) this.zoomed[which] = tree.find(start, at);
      this.#select(there ? { tree, which, node: this.zoomed[which] } : null);
    }
    if (view === "table") return;
    this.#layOut(grown);
    const { element } = this.stage;
    if (grown) element.scrollTop = this.firstLine * ROW_HEIGHT - (view === "sandwich" ? element.clientHeight / 2 : 0);
    if (zoom && moved) this.#reveal();
  }

  /** Lays out all panes for the current width. @param {boolean} [fresh] */
  #layOut(fresh = false) {
    const { view, side } = this.page.state;
    const { width, element } = this.stage;
    if (width === 0 || this.trees.length === 0) return;
    const columns = this.two ? COLUMNS_OF_SIDE[side] : [0];
    const wide = (width - PANE_GAP * (columns.length - 1)) / columns.length;
    const panes = columns.map((column, p) => ({
      x: p * (wide + PANE_GAP), width: wide, column,
      parts: this.trees.map((tree, which) => ({
        tree, which, origin: 0, direction: 1,
        rows: layOut(tree, column, windowOn(tree, this.zoomed[which], column, this.#span(which, columns), this.lens), wide),
      })),
    }));
    const before = this.firstLine;
    const rows = this.#place(panes, view, fresh);
    if (fresh) this.stage.resize(rows, view === "sandwich" ? 0.42 : 0.62);
    // If rows grow upwards, a change of depth must not move the visible frames.
    const scroll = element.scrollTop + (this.firstLine - before) * ROW_HEIGHT;
    this.stage.show(panes, rows);
    if (this.firstLine !== before) element.scrollTop = scroll;
    this.#headPanes(columns);
  }

  /** The weight of a pane's full width. All panes use the same, so that they can be compared visually.
   * @param {number} which @param {number[]} columns */
  #span(which, columns) {
    const { total, parent } = this.trees[which];
    const widest = (/** @type {number} */ node) => Math.max(...columns.map((column) => total[column][node]));
    // The zoomed node may have no weight on the visible sides.
    let node = this.zoomed[which];
    while (node > 0 && widest(node) === 0) node = parent[node];
    return widest(node);
  }

  /** Positions the rows of each part. Returns the number of lines. @param {Pane[]} panes @param {string} view @param {boolean} fresh */
  #place(panes, view, fresh) {
    const depth = this.trees.map((_, which) => Math.max(...panes.map((pane) => pane.parts[which].rows.length), 1));
    this.firstLine = view === "flame" || view === "sandwich" ? (depth[1] ?? depth[0]) - 1 : 0;
    // The root of a flame graph stays at the bottom, even with few rows.
    if (view === "flame" && !fresh) this.firstLine = Math.max(this.firstLine, Math.floor(this.stage.element.clientHeight / ROW_HEIGHT) - 1);
    for (const { parts } of panes) {
      for (const part of parts) {
        part.origin = this.firstLine;
        part.direction = view === "flame" || part.which === 1 ? -1 : 1;
      }
      // The function itself is drawn as part of its callees.
      if (parts[1]?.rows.length > 0) parts[1].rows[0] = { x: [], w: [], node: [] };
    }
    return view === "sandwich" ? depth[0] + depth[1] - 1 : Math.max(depth[0], this.firstLine + 1);
  }

  /** @param {number[]} columns */
  #headPanes(columns) {
    const { sides, unit } = this.flame;
    const total = this.weights.total.map((column) => column[0]);
    const head = (/** @type {number} */ side) => `${"AB"[side]}, ${quantity(total[side], unit)}: ${shownName(sides[side])}`;
    const gap = () => `difference: ${longGap(total[0], total[1], unit)} in B`;
    const heads = this.two ? columns.map((column) => (column === 2 ? gap() : head(column))) : [];
    const name = shownName(this.profile.name(this.sandwiched()));
    const sandwich = this.trees.length === 2 ? make("div.whole", {}, `callers above, callees below: ${name}`) : "";
    this.heads.replaceChildren(sandwich, ...heads.map((text) => make("div", {}, text)));
  }

  #reveal() {
    const { selected } = this.stage;
    if (!selected) return;
    const depth = selected.tree.lineage(selected.node).length - 1;
    this.stage.reveal(this.firstLine + (this.page.state.view === "flame" || selected.which === 1 ? -depth : depth));
  }

  /** @param {Frame | null} frame */
  #select(frame) {
    this.stage.selected = frame;
    this.stage.redraw();
    if (!frame) return this.selection.replaceChildren();
    const open = make("button", { onclick: () => this.open(frame.tree.fn[frame.node]) }, "open in sandwich view");
    this.selection.replaceChildren(
      make("div", {}, ...describe(frame, this.sums), open),
      stackList(frame, (node) => this.zoomTo({ ...frame, node })));
  }

  /** @param {Frame} frame */
  zoomTo(frame) {
    this.page.note.hide();
    this.page.change({ zoom: frame.node === 0 ? null : [frame.which, ...frame.tree.path[frame.node]] });
    this.lens = { scale: 1, shift: 0 };
    this.#select(frame);
    this.#layOut();
  }

  /** @param {Frame | null} frame @param {MouseEvent | null} event */
  hover(frame, event) {
    if (frame && event) this.page.note.show(describe(frame, this.sums), event);
    else this.page.note.hide();
  }

  /** @param {string} sort */
  sortBy(sort) {
    this.page.change({ sort });
  }

  /** Selects a function of the table: shows its heaviest frame in the graph. @param {number} f */
  pick(f) {
    this.table.select(f);
    if (this.page.state.view === "sandwich") return this.page.change({ fn: f, zoom: null });
    const [tree, total] = [this.trees[0], this.weights.total[this.weights.widest]];
    const heaviest = seedsOf(this.profile, f).reduce((best, i) => (total[i] > total[best] || best === 0 ? i : best), 0);
    this.page.change({ zoom: [0, ...tree.path[tree.find(0, heaviest)]] });
  }

  /** @param {number} f */
  open(f) {
    this.page.note.hide();
    this.page.change({ view: "sandwich", fn: f, zoom: null });
  }

  /** @param {string} view */
  setView(view) {
    const same = treeOfView(view) === treeOfView(this.page.state.view);
    this.page.change(same ? { view } : { view, zoom: null });
  }

  showAll() {
    this.lens = { scale: 1, shift: 0 };
    this.page.change({ zoom: null });
  }

  /** @param {number} factor @param {number} [at] */
  zoom(factor, at = 0.5) {
    const { scale, shift } = this.lens;
    const next = Math.min(scale * factor, 1e6);
    this.#look({ scale: next, shift: shift + at / scale - at / next });
  }

  /** @param {number} share */
  pan(share) {
    this.#look({ ...this.lens, shift: this.lens.shift + share / this.lens.scale });
  }

  /** @param {number} rows */
  scroll(rows) {
    return scrolled(this.stage.element, rows * ROW_HEIGHT);
  }

  /** Applies a lens, limited to the edges of the tree. @param {Lens} lens */
  #look(lens) {
    const column = COLUMNS_OF_SIDE[this.page.state.side][0];
    const whole = this.trees[0].total[column][0];
    const span = this.#span(0, [column]);
    const offset = offsetOf(this.trees[0], this.zoomed[0], column);
    const scale = Math.max(lens.scale, shareOf(span, whole));
    this.lens = { scale, shift: Math.min(Math.max(lens.shift, -offset / span), (whole - offset) / span - 1 / scale) };
    this.#layOut();
  }

  /** Goes to the next or previous match of the search. @param {number} by */
  stepFound(by) {
    const tree = this.trees[0];
    if (!this.found || !tree) return;
    if (!this.steps) {
      this.steps = foundNodes(tree, this.found, this.weights.widest);
      this.step = by > 0 ? -1 : 0;
    }
    if (this.steps.length === 0) return;
    this.step = (this.step + by + this.steps.length) % this.steps.length;
    this.zoomTo({ tree, which: 0, node: this.steps[this.step] });
    this.#tellResult();
    this.#reveal();
  }

  /** Handles a key. Returns whether it has a function. @param {string} key */
  key(key) {
    const { view, search, collapse, colour } = this.page.state;
    const { selected } = this.stage;
    const colours = COLOURS.slice(0, this.two ? 3 : 2);
    /** @type {Record<string, () => void>} */
    const actions = {
      "/": () => this.search.focus(),
      n: () => this.stepFound(1),
      N: () => this.stepFound(-1),
      Enter: () => (selected ? this.open(selected.tree.fn[selected.node]) : this.stepFound(1)),
      Escape: () => (search ? this.page.change({ search: "" }) : this.showAll()),
      i: () => this.setView(view === "inverted" ? "icicle" : "inverted"),
      t: () => this.setView(view === "table" ? "icicle" : "table"),
      r: () => this.page.change({ collapse: !collapse }),
      c: () => this.page.change({ colour: colours[(colours.indexOf(colour) + 1) % colours.length] }),
    };
    const number = VIEWS[Number(key) - 1];
    const act = number ? () => this.setView(number) : Object.hasOwn(actions, key) ? actions[key] : null;
    act?.();
    return act !== null;
  }
}

/** The tree that a view shows. Views of the same tree keep their zoom. @param {string} view */
const treeOfView = (view) => (view === "flame" || view === "table" ? "icicle" : view);

/** A summary of the recorded data. @param {FlameData} flame */
function summaryOf({ event, unit, per, sides, wholes, samples, hidden }) {
  const each = per === "" ? "" : ` per ${per}`;
  const weight = (/** @type {number} */ side) => (unit === "share" ? "" : `${quantity(wholes[side], unit)}${each} in `);
  const parts = sides.map((name, side) =>
    `${sides.length === 2 ? `${"AB"[side]} is ${name}: ` : ""}${weight(side)}${count(samples[side])} samples`);
  const least = Number((hidden.least * 100).toPrecision(3));
  const folded = `${count(hidden.nodes)} frames below ${least} % are merged into “smaller” frames.`;
  return `${shownName(`Event ${event}. ${parts.join("; ")}.`)} ${unit === "share" ? "Weights are shares of each side's samples. " : ""}${hidden.nodes > 0 ? folded : ""}`;
}

/** The legend of a colour mode.
 * @param {Profile} profile @param {[string, number][]} libraries @param {Map<string, number>} slots @param {string} mode */
function flameLegend(profile, libraries, slots, mode) {
  if (mode === "change") {
    const stops = [-1, -0.75, -0.5, -0.25, -0.1, 0, 0.1, 0.25, 0.5, 0.75, 1].map(
      (change) => `rgb(${changeFill(change, theme()).join(" ")}) ${50 + 50 * change}%`);
    const words = ["only in A", "half", "same", "double", "only in B"].map((word) => make("span", {}, word));
    const ramp = make("div.ramp", { style: `background:linear-gradient(90deg,${stops.join()})` });
    return ["less in B", make("div.scale", {}, ramp, make("div.words", {}, ...words)), "more in B"];
  }
  if (mode === "kind") {
    const used = new Set(profile.flame.functions.kind);
    return KIND_NAMES.flatMap((name, kind) => (used.has(kind) && kind !== KIND_MARK ? [chip(KIND_FILLS[kind], name, NaN)] : []));
  }
  const weighty = libraries.filter(([, weight]) => weight > 0);
  const whole = weighty.reduce((sum, [, weight]) => sum + weight, 0);
  const chips = weighty.slice(0, LEGEND_LENGTH).map(([name, weight]) =>
    chip(huePaint(slots.get(name) ?? 0, theme()).fill, name, weight / whole));
  return weighty.length > LEGEND_LENGTH ? [...chips, `and ${count(weighty.length - LEGEND_LENGTH)} more`] : chips;
}
