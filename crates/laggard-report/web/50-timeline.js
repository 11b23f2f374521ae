// The timeline of threads or streams.
// Items narrower than a pixel are merged, so that the cost depends on the width in pixels only.

const GUTTER = 170;
const AXIS = 24;
const TRACK_HEIGHT = 20;
const LINE_HEIGHT = 22;

/** Builds a track with sorted columns. @param {TrackData} data @returns {Track} */
function trackOf(data) {
  const n = data.start.length;
  let order = null;
  for (let i = 1; i < n && !order; i++) if (data.start[i] < data.start[i - 1]) order = data.start.map((_, i) => i);
  order?.sort((a, b) => data.start[a] - data.start[b]);
  const sorted = (/** @type {number[]} */ column) => (order && column.length > 0 ? order.map((i) => column[i]) : column);
  const start = new Float64Array(sorted(data.start));
  const duration = new Float64Array(sorted(data.duration));
  const reach = new Float64Array(n);
  const busy = new Float64Array(n + 1);
  for (let i = 0; i < n; i++) {
    reach[i] = Math.max(i > 0 ? reach[i - 1] : 0, start[i] + duration[i]);
    busy[i + 1] = busy[i] + duration[i];
  }
  const [label, kind, phase, node, weight] = [data.label, data.class, data.phase, data.node, data.weight].map(sorted);
  return { name: data.name, group: data.group, start, duration, reach, busy, label, class: kind, phase, node, weight };
}

/** Calls `wide` for every visible item at least one pixel wide, and `narrow` once per pixel for all narrower items.
 * @param {Track} track @param {number} from @param {number} perPixel @param {number} width
 * @param {(i: number, x: number, w: number) => void} wide @param {(i: number, end: number, x: number) => void} narrow */
function eachVisible(track, from, perPixel, width, wide, narrow) {
  const { start, duration, reach } = track;
  const to = from + width * perPixel;
  const draw = (/** @type {number} */ i) => wide(i, (start[i] - from) / perPixel, duration[i] / perPixel);
  let i = lowerBound(reach, from);
  while (i < start.length && start[i] < to) {
    if (duration[i] >= perPixel) {
      draw(i++);
      continue;
    }
    const pixel = Math.floor((start[i] - from) / perPixel);
    const edge = from + (pixel + 1) * perPixel;
    const end = Math.max(lowerBound(start, edge, i), i + 1);
    narrow(i, end, pixel);
    // A wide item can only exist if an item extends beyond the pixel.
    if (reach[end - 1] > edge) for (let k = i; k < end; k++) if (duration[k] >= perPixel) draw(k);
    i = end;
  }
}

/** Round times for the axis, about one per 110 pixels. @param {number} from @param {number} to @param {number} width */
function axisTicks(from, to, width) {
  const rough = ((to - from) * 110) / Math.max(width, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((n) => n * power >= rough) ?? 10);
  const ticks = [];
  for (let i = Math.ceil(from / step); i * step <= to; i++) ticks.push(i * step);
  return { ticks, step };
}

/** An axis label with the unit and digits that the step needs. @param {number} time @param {number} step */
function axisTime(time, step) {
  const [name, size] = LADDERS.ns.findLast(([, size]) => step >= size || (step * 1e4 >= size && time >= size)) ?? LADDERS.ns[0];
  const decimals = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
  return `${thousands((time / size).toFixed(decimals))} ${name}`;
}

class TimelinePanel {
  /** @param {HTMLElement} section @param {TimelineData} timeline @param {Track[]} tracks @param {Page} page */
  constructor(section, timeline, tracks, page) {
    this.page = page;
    this.timeline = timeline;
    this.tracks = tracks;
    // Whether dragging filters the flame graph instead of zooming.
    this.filters = page.filters;
    this.end = Math.max(timeline.end, 1);
    /** @type {[number, number]} */ this.shown = [0, this.end];
    /** @type {[number, number] | null} */ this.brush = null;
    /** @type {{ y: number, track: Track | null, text: string }[]} */ this.lines = [];
    this.height = AXIS;
    this.#arrange();
    const { canvas, spacer, element } = makeStage(`timeline of ${count(tracks.length)} tracks`);
    this.canvas = canvas;
    this.spacer = spacer;
    this.stage = element;
    this.redraw = oncePerPaint(() => this.#draw());
    this.#build(section);
    this.#listen();
    new ResizeObserver(this.redraw).observe(this.stage);
  }

  #arrange() {
    let group = "";
    for (const track of this.tracks) {
      if (track.group !== group && track.group !== "") {
        this.lines.push({ y: this.height, track: null, text: shownName(track.group) });
        this.height += LINE_HEIGHT;
      }
      group = track.group;
      this.lines.push({ y: this.height, track, text: shownName(track.name) });
      this.height += LINE_HEIGHT;
    }
  }

  /** @param {HTMLElement} section */
  #build(section) {
    const { page, timeline } = this;
    this.colour = choice(page, "colour", "timelineColour", ["class", "phase"]);
    this.chosen = make("output.result");
    const button = (/** @type {string} */ text, /** @type {() => void} */ onclick) => make("button", { onclick }, text);
    const all = button("reset zoom", () => this.showAll());
    const zoom = button("zoom to selection", () => page.change({ window: page.state.range }));
    this.uses = this.filters ? [zoom, button("clear selection", () => page.change({ range: null }))] : [];
    this.legend = make("div.legend", { "aria-label": "Colours" });
    const drag = this.filters ? "Drag to filter the flame graph and the table by time" : "Drag to zoom";
    section.append(
      make("p.minor", {}, `${drag}; Shift+drag to pan; Ctrl+wheel, or click and then wheel, to zoom. ${shownName(timeline.note)}`),
      make("div.toolbar", {}, timeline.phases.length > 0 ? this.colour.element : null,
        make("div.choice", {}, all, ...this.uses), this.chosen),
      this.legend, this.stage);
  }

  /** Updates the panel from the page's state. */
  update() {
    const { state } = this.page;
    this.shown = state.window ? [Math.min(state.window[0], this.end), Math.min(state.window[1], this.end)] : [0, this.end];
    if (this.shown[1] <= this.shown[0]) this.shown = [0, this.end];
    this.colour?.update();
    const { range } = state;
    for (const button of this.uses ?? []) button.disabled = !range;
    const times = range ? [range[0], range[1], range[1] - range[0]].map((time) => quantity(time, "ns")) : [];
    this.chosen.replaceChildren(range ? `${times[0]} to ${times[1]}, ${times[2]}` : "");
    if (this.painted !== state.timelineColour) this.recolour();
    this.redraw();
  }

  /** Redraws everything in the colours of the theme. */
  recolour() {
    this.painted = this.page.state.timelineColour;
    const { strings, classes, phases } = this.timeline;
    const names = this.#byPhase ? phases : classes;
    // The classes of samples are libraries.
    const slots = this.#byPhase ? null : this.page.flame?.slots;
    const paintOf = (/** @type {string} */ name, /** @type {number} */ i) => {
      const slot = slots?.get(name);
      return slot === undefined ? classPaint(name, i, theme()) : huePaint(slot, theme());
    };
    const paints = (this.paints = names.map((name, i) => paintOf(strings[name], i)));
    this.none = classPaint("", -1, theme());
    const sums = this.#sums(names.length);
    const whole = sums.reduce((a, b) => a + b, 0);
    this.legend.replaceChildren(...names.map((name, i) => chip(paints[i].fill, strings[name], shareOf(sums[i], whole))));
    this.redraw();
  }

  get #byPhase() {
    return this.page.state.timelineColour === "phase" && this.timeline.phases.length > 0;
  }

  /** Time of each class or phase, or the number of items without durations. @param {number} many */
  #sums(many) {
    const sums = new Array(many).fill(0);
    for (const track of this.tracks) {
      const keys = this.#byPhase ? track.phase : track.class;
      const timed = track.busy[track.start.length] > 0;
      for (let i = 0; i < keys.length; i++) if (keys[i] >= 0) sums[keys[i]] += timed ? track.duration[i] : 1;
    }
    return sums;
  }

  /** @param {Track} track @param {number} i @returns {Paint} */
  #paint(track, i) {
    const key = (this.#byPhase ? track.phase : track.class)[i] ?? -1;
    return this.paints?.[key] ?? /** @type {Paint} */ (this.none);
  }

  #draw() {
    const width = this.stage.clientWidth;
    if (width === 0) return;
    const most = Math.max(window.innerHeight * 0.55, 200);
    this.stage.style.height = `${Math.min(this.height + 4, most)}px`;
    const height = this.stage.clientHeight;
    this.spacer.style.height = `${Math.max(this.height - height, 0)}px`;
    const context = sharpContext(this.canvas, width, height);
    const style = getComputedStyle(this.stage);
    const [ink, ground, line] = ["--ink", "--ground", "--line"].map((name) => style.getPropertyValue(name));
    context.font = FRAME_FONT;
    context.textBaseline = "middle";
    this.#drawAxis(context, width, height, ink, line);
    clipped(context, [0, AXIS, width, height], () => {
      for (const { y, track, text } of this.lines) {
        const top = y - this.stage.scrollTop;
        if (top + LINE_HEIGHT < AXIS || top > height) continue;
        const [left, wide] = track ? [8, GUTTER - 12] : [4, width];
        context.font = track ? FRAME_FONT : `bold ${FRAME_FONT}`;
        context.fillStyle = ink;
        context.fillText(fit(text, Math.floor(wide / LETTER_WIDTH)), left, top + TRACK_HEIGHT / 2, wide);
        if (track) clipped(context, [GUTTER, top, width, TRACK_HEIGHT], () => this.#drawTrack(context, track, top, width - GUTTER));
      }
    });
    this.#drawBrush(context, width, height, ink, ground);
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width @param {number} height @param {string} ink @param {string} line */
  #drawAxis(context, width, height, ink, line) {
    const [from, to] = this.shown;
    const { ticks, step } = axisTicks(from, to, width - GUTTER);
    context.fillStyle = ink;
    context.fillText("time since start", 8, AXIS / 2);
    for (const time of ticks) {
      const x = GUTTER + ((time - from) / (to - from)) * (width - GUTTER);
      context.fillStyle = line;
      context.fillRect(Math.round(x), 0, 1, height);
      context.fillStyle = ink;
      const text = axisTime(time, step);
      if (x + text.length * LETTER_WIDTH + 4 < width) context.fillText(text, x + 4, AXIS / 2);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {Track} track @param {number} top @param {number} width */
  #drawTrack(context, track, top, width) {
    const [from, to] = this.shown;
    const perPixel = (to - from) / width;
    const timed = track.busy[track.start.length] > 0;
    // Without durations, a full bar is twice the mean number of items.
    const full = timed ? perPixel : Math.max((2 * track.start.length * perPixel) / this.end, 1);
    context.translate(GUTTER, 0);
    const { strings, short } = this.timeline;
    const label = (/** @type {number} */ i, /** @type {number} */ letters) => {
      const name = shownName(strings[track.label[i]] ?? "");
      return fit(name.length > letters ? shownName(short[track.label[i]] ?? name) : name, letters);
    };
    eachVisible(track, from, perPixel, width, (i, x, w) => {
      drawBox(context, this.#paint(track, i), x, w, width, top, TRACK_HEIGHT, (letters) => (letters < 5 ? "" : label(i, letters)));
    }, (i, end, x) => {
      const filled = timed ? track.busy[end] - track.busy[i] : end - i;
      const high = Math.min(Math.max(filled / full, 0.2), 1) * TRACK_HEIGHT;
      context.fillStyle = this.#paint(track, this.#commonest(track, i, end)).fill;
      context.fillRect(x, top + TRACK_HEIGHT - high, 1, high);
    });
  }

  /** An item of the most common class or phase, estimated from a sample.
   * @param {Track} track @param {number} from @param {number} end */
  #commonest(track, from, end) {
    if (end - from < 3) return from;
    const keys = this.#byPhase ? track.phase : track.class;
    const seen = new Map();
    let best = from;
    for (let i = from; i < end; i += Math.ceil((end - from) / 16)) {
      seen.set(keys[i], (seen.get(keys[i]) ?? 0) + 1);
      if (seen.get(keys[i]) > (seen.get(keys[best]) ?? 0)) best = i;
    }
    return best;
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width @param {number} height @param {string} ink @param {string} ground */
  #drawBrush(context, width, height, ink, ground) {
    const range = this.brush ?? this.page.state.range;
    if (!range) return;
    const [from, to] = this.shown;
    const [left, right] = range.map((time) => Math.min(Math.max(GUTTER + ((time - from) / (to - from)) * (width - GUTTER), GUTTER), width));
    // Dim the area outside the selection.
    context.globalAlpha = 0.6;
    context.fillStyle = ground;
    context.fillRect(GUTTER, AXIS, left - GUTTER, height);
    context.fillRect(right, AXIS, width - right, height);
    context.globalAlpha = 1;
    context.fillStyle = ink;
    context.fillRect(left, 0, 1, height);
    context.fillRect(right - 1, 0, 1, height);
  }

  #listen() {
    const { stage, page } = this;
    /** @type {{ x: number, time: number, pan: boolean, shown: [number, number] } | null} */
    let drag = null;
    stage.addEventListener("scroll", this.redraw, { passive: true });
    stage.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      if (event.button !== 0 || this.#x(event) < GUTTER) return;
      drag = { x: event.clientX, time: this.#timeAt(event), pan: event.shiftKey, shown: this.shown };
      stage.setPointerCapture(event.pointerId);
    });
    stage.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (!drag) return this.#hover(event);
      page.note.hide();
      if (drag.pan) {
        const by = ((drag.x - event.clientX) * (drag.shown[1] - drag.shown[0])) / (stage.clientWidth - GUTTER);
        this.#look(drag.shown[0] + by, drag.shown[1] + by);
      } else if (this.brush || Math.abs(event.clientX - drag.x) > 3) {
        const now = this.#timeAt(event);
        this.brush = now < drag.time ? [now, drag.time] : [drag.time, now];
        this.redraw();
      }
    });
    stage.addEventListener("pointerup", () => {
      const range = this.brush;
      drag = this.brush = null;
      if (range) page.change(this.filters ? { range } : { window: range });
    });
    stage.addEventListener("pointerleave", () => page.note.hide());
    stage.addEventListener("wheel", (/** @type {WheelEvent} */ event) => {
      // The wheel scrolls the page unless the timeline has the focus.
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== stage) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / 1000);
      else this.zoom(Math.exp(-event.deltaY / 300), this.#timeAt(event));
    }, { passive: false });
  }

  /** @param {MouseEvent} event */
  #x(event) {
    return event.clientX - this.canvas.getBoundingClientRect().left;
  }

  /** @param {MouseEvent} event */
  #timeAt(event) {
    const [from, to] = this.shown;
    const share = (this.#x(event) - GUTTER) / (this.stage.clientWidth - GUTTER);
    return Math.round(Math.min(Math.max(from + share * (to - from), 0), this.end));
  }

  /** @param {MouseEvent} event */
  #hover(event) {
    const y = event.clientY - this.canvas.getBoundingClientRect().top;
    const line = this.lines.find((line) => line.y <= y + this.stage.scrollTop && y + this.stage.scrollTop < line.y + LINE_HEIGHT);
    if (!line?.track || y < AXIS) return this.page.note.hide();
    if (this.#x(event) < GUTTER) return this.page.note.show([make("strong", {}, line.text)], event);
    const perPixel = (this.shown[1] - this.shown[0]) / (this.stage.clientWidth - GUTTER);
    const time = this.#timeAt(event);
    const i = itemAt(line.track, time, 2 * perPixel);
    if (i < 0) return this.page.note.hide();
    const near = lowerBound(line.track.start, time + perPixel) - lowerBound(line.track.start, time - perPixel);
    this.page.note.show(this.#describe(line.track, i, near), event);
  }

  /** @param {Track} track @param {number} i @param {number} near */
  #describe(track, i, near) {
    const { strings, classes, phases } = this.timeline;
    const phase = track.phase[i] >= 0 ? strings[phases[track.phase[i]]] : "";
    const words = [strings[classes[track.class[i]]] ?? "", phase].filter((word) => word !== "");
    const length = track.duration[i] > 0 ? `, for ${quantity(track.duration[i], "ns")}` : "";
    const content = [
      make("strong.name", {}, shownName(strings[track.label[i]] ?? "")),
      make("div.place", {}, words.map(shownName).join(" · ")),
      make("div", {}, `at ${axisTime(track.start[i], Math.max((this.shown[1] - this.shown[0]) / 2000, 1))}${length}`),
    ];
    if (near > 1) content.push(make("div.place", {}, `one of ${count(near)} items here`));
    return content;
  }

  /** @param {number} factor @param {number} [at] */
  zoom(factor, at = (this.shown[0] + this.shown[1]) / 2) {
    const [from, to] = this.shown;
    this.#look(at - (at - from) / factor, at + (to - at) / factor);
  }

  /** @param {number} share */
  pan(share) {
    const by = share * (this.shown[1] - this.shown[0]);
    this.#look(this.shown[0] + by, this.shown[1] + by);
  }

  /** Shows a time range, limited to the recording. @param {number} from @param {number} to */
  #look(from, to) {
    const span = Math.min(Math.max(to - from, 10), this.end);
    const start = Math.min(Math.max(from, 0), this.end - span);
    this.page.change({ window: span >= this.end ? null : [Math.round(start), Math.round(start + span)] });
  }

  /** @param {number} lines */
  scroll(lines) {
    return scrolled(this.stage, lines * LINE_HEIGHT);
  }

  showAll() {
    this.page.change({ window: null });
  }

  /** Handles a key. Returns whether it has a function. @param {string} key */
  key(key) {
    if (key === "Escape") this.page.change({ range: null, window: null });
    else if (key === "c") this.page.change({ timelineColour: this.#byPhase ? "class" : "phase" });
    else return false;
    return true;
  }
}

/** The item of a track at a time, or the nearest one within a distance; -1 if there is none.
 * @param {Track} track @param {number} time @param {number} distance */
function itemAt(track, time, distance) {
  const { start, duration, reach } = track;
  const before = lowerBound(start, time + 1e-9) - 1;
  // Later items are drawn on top of earlier ones.
  for (let i = before; i >= 0 && reach[i] >= time; i--) if (start[i] + duration[i] >= time) return i;
  if (before >= 0 && time - (start[before] + duration[before]) <= distance) return before;
  return before + 1 < start.length && start[before + 1] - time <= distance ? before + 1 : -1;
}
