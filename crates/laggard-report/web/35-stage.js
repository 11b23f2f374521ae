// The canvas of the flame graph: drawing, scrolling, zooming and hit testing.

const ROW_HEIGHT = 19;
const LETTER_WIDTH = 6.65;
const FRAME_FONT = "11px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";

/** The label of a frame with room for so many letters. The name is shortened before the signed number is dropped.
 * @param {string} name @param {string} long @param {string} short @param {number} letters */
function frameLabel(name, long, short, letters) {
  for (const figure of [long, short]) {
    if (figure !== "" && name.length + figure.length + 1 <= letters) return `${name} ${figure}`;
  }
  const room = letters - short.length - 1;
  if (short !== "" && room >= 4) return `${fit(name, room)} ${short}`;
  if (short !== "") return short.length <= letters ? short : "";
  return name.length <= letters || letters >= 5 ? fit(name, letters) : "";
}

/** Prepares a canvas for drawing in CSS pixels on high-density screens.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
function sharpContext(canvas, width, height) {
  const dots = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * dots), Math.round(height * dots)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(dots, 0, 0, dots, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Draws clipped to a box.
 * @param {CanvasRenderingContext2D} context @param {[number, number, number, number]} box @param {() => void} draw */
function clipped(context, box, draw) {
  context.save();
  context.beginPath();
  context.rect(...box);
  context.clip();
  draw();
  context.restore();
}

/** Draws the part of a labelled box between 0 and `limit`. Returns its left and right edges.
 * @param {CanvasRenderingContext2D} context @param {Paint} paint @param {number} x @param {number} w @param {number} limit
 * @param {number} y @param {number} height @param {(letters: number) => string} label */
function drawBox(context, paint, x, w, limit, y, height, label) {
  const [left, right] = [Math.max(x, -1), Math.min(x + w, limit + 1)];
  context.fillStyle = paint.fill;
  // Only wide boxes get a gap; narrow ones would disappear.
  context.fillRect(left, y, right - left - (right - left > 3 ? 1 : 0), height);
  const start = Math.max(left, 0) + 3;
  const letters = Math.floor((right - start - 4) / LETTER_WIDTH);
  if (letters >= 2) {
    context.fillStyle = paint.ink;
    context.fillText(label(letters), start, y + height / 2, right - start - 2);
  }
  return [left, right];
}

/** Creates a canvas that stays in place while its content scrolls. @param {string} label */
function makeStage(label) {
  const canvas = make("canvas", { role: "img", "aria-label": label });
  const spacer = make("div");
  return { canvas, spacer, element: make("div.stage", { tabindex: "0" }, canvas, spacer) };
}

/** Scrolls. Returns whether the position changed. @param {HTMLElement} element @param {number} by */
function scrolled(element, by) {
  const before = element.scrollTop;
  element.scrollTop += by;
  return element.scrollTop !== before;
}

/** Coalesces calls into one before the next paint. @param {() => void} work */
function oncePerPaint(work) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      work();
    });
  };
}

class FlameStage {
  /** @param {Profile} profile @param {StageOwner} owner */
  constructor(profile, owner) {
    this.profile = profile;
    this.owner = owner;
    const { canvas, spacer, element } = makeStage("call graph; the table view has the same data as text");
    this.canvas = canvas;
    this.spacer = spacer;
    this.element = element;
    /** @type {Pane[]} */ this.panes = [];
    this.rows = 0;
    /** @type {(tree: CallTree, node: number) => Paint} */ this.paint = () => ({ fill: "", ink: "" });
    /** @type {Uint8Array | null} */ this.found = null;
    /** @type {Frame | null} */ this.selected = null;
    /** @type {Frame | null} */ this.hovered = null;
    /** @type {string[]} */ this.names = [];
    this.redraw = oncePerPaint(() => this.#draw());
    this.#listen();
  }

  /** Sets the frames to show. @param {Pane[]} panes @param {number} rows */
  show(panes, rows) {
    this.panes = panes;
    this.rows = rows;
    // Set the height immediately, because the caller may scroll.
    const { clientHeight } = this.element;
    this.canvas.style.height = `${clientHeight}px`;
    this.spacer.style.height = `${Math.max(rows * ROW_HEIGHT - clientHeight, 0)}px`;
    this.redraw();
  }

  /** Sets the height to fit the rows, up to a share of the window. @param {number} rows @param {number} share */
  resize(rows, share) {
    const most = Math.max(window.innerHeight * share, 240);
    this.element.style.height = `${Math.round(Math.min(Math.max(rows * ROW_HEIGHT + 2, 120), most))}px`;
  }

  /** Scrolls a row into view. @param {number} row @param {boolean} [always] */
  reveal(row, always = false) {
    const { scrollTop, clientHeight } = this.element;
    const y = row * ROW_HEIGHT;
    if (always || y < scrollTop || y + ROW_HEIGHT > scrollTop + clientHeight) {
      this.element.scrollTop = y - clientHeight / 2;
    }
  }

  get width() {
    return this.element.clientWidth;
  }

  #listen() {
    const stage = this.element;
    /** @type {{ x: number, y: number, moved: boolean } | null} */
    let drag = null;
    stage.addEventListener("scroll", this.redraw, { passive: true });
    stage.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      drag = { x: event.clientX, y: event.clientY, moved: false };
    });
    stage.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (drag && event.buttons === 1 && (drag.moved || Math.abs(event.clientX - drag.x) > 4)) {
        this.owner.pan((drag.x - event.clientX) / this.width);
        stage.scrollTop += drag.y - event.clientY;
        drag = { x: event.clientX, y: event.clientY, moved: true };
        return;
      }
      this.hover(this.#frameAt(event), event);
    });
    stage.addEventListener("pointerleave", () => this.hover(null, null));
    stage.addEventListener("click", (/** @type {MouseEvent} */ event) => {
      const frame = drag?.moved ? null : this.#frameAt(event);
      drag = null;
      if (frame) this.owner.zoomTo(frame);
    });
    stage.addEventListener("dblclick", (/** @type {MouseEvent} */ event) => {
      const frame = this.#frameAt(event);
      if (frame) this.owner.open(frame.tree.fn[frame.node]);
    });
    stage.addEventListener("wheel", (/** @type {WheelEvent} */ event) => {
      // Without a modifier key, the wheel scrolls.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const pane = this.panes.find((pane) => event.offsetX < pane.x + pane.width) ?? this.panes[0];
      if (pane) this.owner.zoom(Math.exp(-event.deltaY / 300), (event.offsetX - pane.x) / pane.width);
    }, { passive: false });
  }

  /** @param {Frame | null} frame @param {MouseEvent | null} event */
  hover(frame, event) {
    const changed = frame?.node !== this.hovered?.node || frame?.tree !== this.hovered?.tree;
    this.hovered = frame;
    this.owner.hover(frame, event);
    if (changed) this.redraw();
  }

  /** @param {MouseEvent} event @returns {Frame | null} */
  #frameAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const line = Math.floor((event.clientY - box.top + this.element.scrollTop) / ROW_HEIGHT);
    for (const pane of this.panes) {
      if (x < pane.x || x >= pane.x + pane.width) continue;
      for (const part of pane.parts) {
        const row = part.rows[(line - part.origin) * part.direction];
        const node = row ? nodeAt(row, x - pane.x) : -1;
        if (node >= 0) return { tree: part.tree, node, which: part.which };
      }
    }
    return null;
  }

  #draw() {
    const { clientWidth: width, clientHeight: height, scrollTop } = this.element;
    if (width === 0) return;
    const context = sharpContext(this.canvas, width, height);
    context.font = FRAME_FONT;
    context.textBaseline = "middle";
    for (const pane of this.panes) {
      clipped(context, [pane.x, 0, pane.width, height], () => {
        context.translate(pane.x, -scrollTop);
        for (const part of pane.parts) {
          part.rows.forEach((row, r) => {
            const y = (part.origin + part.direction * r) * ROW_HEIGHT;
            if (y + ROW_HEIGHT > scrollTop && y < scrollTop + height) this.#drawRow(context, pane, part, row, y);
          });
        }
      });
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {Pane} pane @param {Part} part @param {Row} row @param {number} y */
  #drawRow(context, pane, part, row, y) {
    const { tree } = part;
    for (let i = 0; i < row.node.length; i++) {
      const node = row.node[i];
      // Frames that do not match a search are dimmed, so that colours keep their meaning.
      context.globalAlpha = this.found && !this.found[tree.fn[node]] ? 0.28 : 1;
      const [left, right] = drawBox(context, this.paint(tree, node), row.x[i], row.w[i], pane.width, y, ROW_HEIGHT - 1,
        (letters) => this.#label(tree, node, letters));
      const thick = [this.hovered, this.selected].findLastIndex((frame) => frame?.node === node && frame.tree === tree) + 1;
      if (thick > 0) this.#outline(context, left, right, y, thick);
    }
    context.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} context @param {number} left @param {number} right @param {number} y @param {number} thick */
  #outline(context, left, right, y, thick) {
    context.globalAlpha = 1;
    context.lineWidth = thick;
    context.strokeStyle = theme() === "dark" ? "#fff" : "#000";
    context.strokeRect(left + thick / 2, y + thick / 2, Math.max(right - left - thick - 1, 1), ROW_HEIGHT - 1 - thick);
  }

  /** @param {CallTree} tree @param {number} node @param {number} letters */
  #label(tree, node, letters) {
    const f = tree.fn[node];
    const full = (this.names[f] ??= shownName(this.profile.name(f)));
    const name = full.length > letters ? shownName(this.profile.short(f)) : full;
    if (tree.total.length === 1) {
      return frameLabel(name, percent(shareOf(tree.total[0][node], tree.total[0][0])), "", letters);
    }
    const [a, b] = [tree.total[0][node], tree.total[1][node]];
    return frameLabel(name, longGap(a, b, this.profile.flame.unit), shortGap(a, b), letters);
  }
}
