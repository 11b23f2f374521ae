// The view state and its encoding in the URL hash, so that links restore the view.

const VIEWS = ["icicle", "flame", "inverted", "sandwich", "table"];
const SIDES = ["0", "1", "d", "ab", "abd"];
const COLOURS = ["library", "kind", "change"];

/** The initial state. @param {number} sides @returns {PageState} */
function freshState(sides) {
  return {
    view: "icicle", order: "heavy",
    side: sides === 2 ? "d" : "0", colour: sides === 2 ? "change" : "library",
    search: "", fn: -1, zoom: null, collapse: false,
    sort: sides === 2 ? "-gap" : "-self0",
    range: null, window: null, timelineColour: "class",
  };
}

/** Encodes the fields of a state that differ from the initial state. @param {PageState} state @param {PageState} fresh */
function stateToHash(state, fresh) {
  const fields = new URLSearchParams();
  for (const [key, name] of Object.entries(HASH_NAMES)) {
    const value = /** @type {any} */ (state)[key];
    if (String(value) === String(/** @type {any} */ (fresh)[key])) continue;
    const plain = typeof value === "boolean" ? Number(value) : value;
    fields.set(name, Array.isArray(plain) ? plain.join("_") : String(plain));
  }
  return fields.toString();
}

/** Decodes a hash. Invalid fields get their initial values.
 * @param {string} hash @param {PageState} fresh @returns {PageState} */
function stateOfHash(hash, fresh) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (/** @type {keyof PageState} */ key) => fields.get(HASH_NAMES[key]);
  const oneOf = (/** @type {keyof PageState} */ key, /** @type {string[]} */ allowed) => {
    const value = text(key);
    return value !== null && allowed.includes(value) ? value : /** @type {string} */ (fresh[key]);
  };
  const twoSides = fresh.side === "d";
  const fn = Number(text("fn") ?? -1);
  return {
    view: oneOf("view", VIEWS),
    order: oneOf("order", ["heavy", "name"]),
    side: twoSides ? oneOf("side", SIDES) : fresh.side,
    colour: oneOf("colour", twoSides ? COLOURS : COLOURS.slice(0, 2)),
    search: text("search") ?? "",
    fn: Number.isInteger(fn) ? fn : -1,
    zoom: /** @type {[number, number, number] | null} */ (numbers(text("zoom"), 3, Number.isInteger)),
    collapse: text("collapse") === "1",
    sort: /^-?[a-zA-Z]+[01]?$/.test(text("sort") ?? "") ? /** @type {string} */ (text("sort")) : fresh.sort,
    range: rangeOf(text("range")),
    window: rangeOf(text("window")),
    timelineColour: oneOf("timelineColour", ["class", "phase"]),
  };
}

/** @type {Record<keyof PageState, string>} */
const HASH_NAMES = {
  view: "v", order: "o", side: "s", colour: "c", search: "q", fn: "f", zoom: "z", collapse: "r",
  sort: "t", range: "from", window: "w", timelineColour: "tc",
};

/** Parses `many` non-negative numbers separated by `_`; null if invalid.
 * @param {string | null} text @param {number} many @param {(n: number) => boolean} good */
function numbers(text, many, good) {
  const parts = (text ?? "").split("_").map((part) => (part === "" ? NaN : Number(part)));
  return parts.length === many && parts.every((n) => good(n) && n >= 0) ? parts : null;
}

/** @param {string | null} text @returns {[number, number] | null} */
function rangeOf(text) {
  const range = numbers(text, 2, Number.isFinite);
  return range && range[0] < range[1] ? [range[0], range[1]] : null;
}

/** Replaces the hash without adding a history entry. @param {string} hash */
function writeHash(hash) {
  try {
    history.replaceState(null, "", hash === "" ? location.pathname + location.search : `#${hash}`);
  } catch {
    // Some browsers forbid this for local files or if it happens too often. Only the link is lost.
  }
}
