// Colours: the Okabe-Ito palette for kinds and classes, hashed hues for libraries, and blue (less) to orange (more) for changes.

const KIND_MARK = 4;
const KIND_NAMES = ["native", "inlined", "Python", "kernel", "placeholder"];
const KIND_FILLS = ["#56b4e9", "#009e73", "#e69f00", "#d55e00", "#999999"];
const CLASS_FILLS = ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#f0e442", "#4f8fc0", "#999999"];

// Distinguishable with all types of colour blindness, and readable with black text.
const MORE = [0xf0, 0xa8, 0x68];
const LESS = [0x7f, 0xb8, 0xdc];
const NEUTRAL = { light: [0xf2, 0xf2, 0xf2], dark: [0x3a, 0x3a, 0x3a] };
const HUES = 12;

/** @returns {"light" | "dark"} */
const theme = () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light");

/** The change from A to B, from -1 (only in A) to +1 (only in B). Half is -0.5 and double is +0.5.
 * @param {number} a @param {number} b */
function changeOf(a, b) {
  const larger = Math.max(a, b);
  return larger === 0 ? 0 : (b - a) / larger;
}

/** The colour of a change: orange for more, blue for less; larger changes are more saturated.
 * @param {number} change @param {"light" | "dark"} theme */
function changeFill(change, theme) {
  const end = change > 0 ? MORE : LESS;
  // Small changes get a larger part of the scale, to make them visible.
  const strength = Math.min(Math.abs(change), 1) ** 0.6;
  return NEUTRAL[theme].map((from, i) => Math.round(from + (end[i] - from) * strength));
}

/** Black or white, whichever has more contrast on the colour. @param {number[]} rgb */
function inkOn(rgb) {
  const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000" : "#fff";
}

/** Hash of a text (FNV-1a). @param {string} text */
function hashOf(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** Assigns hue slots to names, heaviest first, by hash. Collisions move to the next free slot.
 * @param {string[]} names @returns {Map<string, number>} */
function hueSlots(names) {
  const slots = new Map();
  const taken = new Set();
  for (const name of names) {
    let slot = hashOf(name) % HUES;
    // Five and the number of hues are coprime, so all slots are tried and consecutive ones are far apart.
    for (let tries = 0; taken.has(slot) && tries < HUES; tries++) slot = (slot + 5) % HUES;
    taken.add(slot);
    slots.set(name, slot);
  }
  return slots;
}

/** @param {number} slot @param {"light" | "dark"} theme @returns {Paint} */
function huePaint(slot, theme) {
  const hue = Math.round((slot * 360) / HUES);
  return theme === "dark"
    ? { fill: `hsl(${hue} 38% ${slot % 2 ? 30 : 38}%)`, ink: "#fff" }
    : { fill: `hsl(${hue} ${slot % 2 ? 75 : 55}% ${slot % 2 ? 82 : 74}%)`, ink: "#000" };
}

/** Libraries with their self weights, heaviest first.
 * @param {Profile} profile @param {Tally} sums @returns {[string, number][]} */
function librariesByWeight(profile, sums) {
  /** @type {Map<string, number>} */
  const weights = new Map();
  const own = sums.self[sums.self.length - 1];
  for (let f = 0; f < profile.functionCount; f++) {
    const library = profile.library(f);
    weights.set(library, (weights.get(library) ?? 0) + own[f]);
  }
  return [...weights].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

/** The paint function of a colour mode.
 * @param {Profile} profile @param {Map<string, number>} slots hue slots of the libraries @param {string} mode @returns {(tree: CallTree, node: number) => Paint} */
function frameColours(profile, slots, mode) {
  const now = theme();
  const kinds = profile.flame.functions.kind;
  const mark = { fill: now === "dark" ? "#444" : "#ddd", ink: now === "dark" ? "#ddd" : "#333" };
  if (mode === "change") {
    /** @type {Map<number, Paint>} */
    const known = new Map();
    return (tree, node) => {
      const step = Math.round(changeOf(tree.total[0][node], tree.total[1][node]) * 64);
      let paint = known.get(step);
      if (!paint) {
        const rgb = changeFill(step / 64, now);
        known.set(step, (paint = { fill: `rgb(${rgb.join(" ")})`, ink: inkOn(rgb) }));
      }
      return paint;
    };
  }
  const paints = kinds.map((kind, f) => {
    if (kind === KIND_MARK) return mark;
    if (mode === "kind") return { fill: KIND_FILLS[kind], ink: "#000" };
    return huePaint(slots.get(profile.library(f)) ?? 0, now);
  });
  return (tree, node) => paints[tree.fn[node]];
}

/** The paint of a class or phase in the timeline. Kinds of frames have the same colours as in the flame graph.
 * @param {string} name @param {number} number @param {"light" | "dark"} theme @returns {Paint} */
function classPaint(name, number, theme) {
  if (KIND_NAMES.includes(name)) return { fill: KIND_FILLS[KIND_NAMES.indexOf(name)], ink: "#000" };
  if (number < 0) return { fill: theme === "dark" ? "#555" : "#ccc", ink: theme === "dark" ? "#fff" : "#000" };
  if (number < CLASS_FILLS.length) return { fill: CLASS_FILLS[number], ink: "#000" };
  return huePaint((number * 5) % HUES, theme);
}
