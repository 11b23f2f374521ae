// Entry point: reads the data, creates the panels, and connects them to the state, the keyboard and the theme.

const KEYS = [
  ["/", "search"],
  ["Enter, n, N", "next and previous match"],
  ["Enter", "sandwich view of the selected frame"],
  ["Esc", "clear the search, then the zoom"],
  ["0", "reset the zoom"],
  ["+ -", "zoom in and out"],
  ["arrows, w a s D", "move"],
  ["1 2 3 4 5", "icicle, flame, inverted, sandwich, table"],
  ["i, t", "toggle inverted or table view"],
  ["r", "collapse recursion"],
  ["c", "next colour scheme"],
  ["d", "toggle dark mode"],
  ["?", "this help"],
];

// Keys that work the same way in the flame graph and the timeline.
/** @type {Record<string, (panel: FlamePanel | TimelinePanel) => boolean | void>} */
const MOVES = {
  "+": (panel) => panel.zoom(1.5), "=": (panel) => panel.zoom(1.5), "-": (panel) => panel.zoom(1 / 1.5), 0: (panel) => panel.showAll(),
  ArrowLeft: (panel) => panel.pan(-0.1), a: (panel) => panel.pan(-0.1),
  ArrowRight: (panel) => panel.pan(0.1), D: (panel) => panel.pan(0.1),
  ArrowUp: (panel) => panel.scroll(-3), w: (panel) => panel.scroll(-3),
  ArrowDown: (panel) => panel.scroll(3), s: (panel) => panel.scroll(3),
};

class Page {
  /** @param {PageData} data */
  constructor(data) {
    this.fresh = freshState(data.flame?.sides.length ?? 1);
    // With two sides, a time range cannot filter, because the timeline does not separate their samples.
    this.filters = data.flame?.sides.length === 1 && (data.timeline?.tracks ?? []).some(({ node }) => node.length > 0);
    this.state = this.#stateOfAddress();
    this.note = new Note();
    /** @type {{ update?: () => void, recolour: () => void }[]} */
    this.panels = [];
    /** @type {FlamePanel | TimelinePanel | null} */ this.active = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */ this.writing = undefined;
    this.#addPanels(data);
    this.update();
    window.addEventListener("hashchange", () => {
      this.state = this.#stateOfAddress();
      this.update();
    });
    document.addEventListener("keydown", (event) => this.#key(event));
  }

  #stateOfAddress() {
    const state = stateOfHash(location.hash, this.fresh);
    return this.filters ? state : { ...state, range: null };
  }

  /** @param {PageData} data */
  #addPanels({ flame, timeline, distributions }) {
    const tracks = (timeline?.tracks ?? []).map(trackOf);
    const place = (/** @type {string} */ name) => /** @type {HTMLElement | null} */ (document.querySelector(`[data-panel="${name}"]`));
    const [flameAt, timelineAt, distributionAt] = ["flame", "timeline", "distribution"].map(place);
    if (timeline && timelineAt) this.#add(timelineAt, new TimelinePanel(timelineAt, timeline, tracks, this));
    if (flame && flameAt) this.#add(flameAt, (this.flame = new FlamePanel(flameAt, flame, tracks, this)));
    if (distributions && distributionAt) this.panels.push(new DistributionPanel(distributionAt, distributions));
  }

  /** Adds a panel. It receives keys after the pointer enters it. @param {HTMLElement} section @param {FlamePanel | TimelinePanel} panel */
  #add(section, panel) {
    this.panels.push(panel);
    this.active = panel;
    for (const event of ["pointerenter", "focusin"]) section.addEventListener(event, () => (this.active = panel));
  }

  /** Changes the state. @param {Partial<PageState>} patch */
  change(patch) {
    this.state = { ...this.state, ...patch };
    this.update();
    // Debounced, because browsers limit the rate of URL changes.
    clearTimeout(this.writing);
    this.writing = setTimeout(() => writeHash(stateToHash(this.state, this.fresh)), 150);
  }

  update() {
    for (const panel of this.panels) panel.update?.();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (target === this.flame?.search) return this.#searchKey(event);
    // Buttons, summaries and links handle these keys themselves.
    if (["Enter", " "].includes(event.key) && target.closest("button, summary, a")) return;
    if (!target.closest("input, textarea, select, dialog") && this.#act(event.key)) event.preventDefault();
  }

  /** @param {KeyboardEvent} event */
  #searchKey(event) {
    if (event.key === "Enter") this.flame?.stepFound(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") {
      this.change({ search: "" });
      this.flame?.stage.element.focus();
    } else return;
    event.preventDefault();
  }

  /** Moves a graph. Returns whether it moved. @param {string} key @param {FlamePanel | TimelinePanel} panel */
  #move(key, panel) {
    // Arrow keys scroll the page unless the pointer or the focus is on a graph that can move.
    const pointedAt = document.querySelector("[data-panel]:hover, [data-panel]:focus-within");
    return (pointedAt || !key.startsWith("Arrow")) && MOVES[key](panel) !== false;
  }

  /** @param {string} key @returns {boolean} */
  #act(key) {
    if (key === "?") showHelp();
    else if (key === "d") toggleTheme(this);
    else if (this.active && Object.hasOwn(MOVES, key)) return this.#move(key, this.active);
    else if (this.active?.key(key)) return true;
    // Keys that only the flame graph handles work everywhere.
    else return this.active !== this.flame && key !== "Escape" && Boolean(this.flame?.key(key));
    return true;
  }
}

/** @param {Page | null} page */
function toggleTheme(page) {
  const next = theme() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("laggard-theme", next);
  } catch {
    // Without storage, the choice is lost when the page is closed.
  }
  page?.panels.forEach((panel) => panel.recolour());
}

function showHelp() {
  /** @type {HTMLDialogElement | null} */
  let dialog = document.querySelector("dialog.help");
  if (!dialog) {
    const rows = KEYS.map(([key, what]) => make("tr", {}, make("th", { scope: "row" }, make("kbd", {}, key)), make("td", {}, what)));
    dialog = make("dialog.help", { "aria-label": "Keyboard shortcuts" }, make("h2", {}, "Keyboard shortcuts"), make("table", {}, ...rows),
      make("form", { method: "dialog" }, make("button", {}, "close")));
    document.body.append(/** @type {HTMLDialogElement} */ (dialog));
  }
  dialog?.showModal();
}

/** Adds links to the sections and the global buttons. @param {() => any} page */
function fillNavigation(page) {
  const nav = document.getElementById("panels");
  if (!nav) return;
  for (const section of document.querySelectorAll("main > section[data-title]")) {
    const go = (/** @type {Event} */ event) => {
      // The hash holds the view state, so links must not replace it.
      event.preventDefault();
      section.scrollIntoView({ behavior: "smooth" });
    };
    const title = /** @type {HTMLElement} */ (section).dataset.title ?? "";
    if (section.matches("[data-panel]")) section.append(make("h2", {}, shownName(title)));
    nav.append(make("a", { href: "#", onclick: go }, shownName(title)));
  }
  nav.append(make("span.grow"),
    make("button", { title: "toggle dark mode (d)", onclick: () => toggleTheme(page()) }, "dark / light"),
    make("button", { title: "keyboard shortcuts (?)", onclick: showHelp }, "shortcuts ", make("kbd", {}, "?")));
}

async function start() {
  /** @type {Page | null} */
  let page = null;
  fillNavigation(() => page);
  // Links that mark a function also scroll to the flame graph.
  document.querySelectorAll("a.jump").forEach((link) => link.addEventListener("click", () => document.querySelector("[data-panel=flame]")?.scrollIntoView()));
  document.querySelectorAll("table.rows").forEach((table) => makeSortable(/** @type {HTMLTableElement} */ (table)));
  const element = document.getElementById("data");
  try {
    if (element) page = new Page(await readPage(element));
  } catch (error) {
    const why = visible(`Cannot show the graphs, because the page data is unreadable: ${error}`);
    document.querySelector("main")?.prepend(make("p.notice", { role: "alert" }, why));
  }
  requestAnimationFrame(() => {
    document.documentElement.dataset.ready = "1";
    performance.mark("laggard-ready");
  });
}

if (typeof document !== "undefined") start();

if (typeof exports !== "undefined") {
  Object.assign(exports, {
    visible, fit, shownName, significant, quantity, signed, percent, signedPercent, ratio, gapOf, shortGap, longGap,
    profileOf, weigh, tally, matcher, matchFunctions, matchedWeight, lowerBound, selfWithin, CallTree, foundNodes,
    changeOf, changeFill, inkOn, hueSlots, offsetOf, windowOn, layOut, nodeAt, frameLabel, sortRows,
    trackOf, eachVisible, itemAt, axisTicks, axisTime, quantile, measureCase, histogram,
    freshState, stateToHash, stateOfHash,
  });
}
