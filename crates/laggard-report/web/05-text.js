// Text from the data is untrusted. It is inserted only as text nodes, with invisible characters escaped.

// Control characters, bidirectional controls and other invisible characters.
const HIDDEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
/** @type {Record<string, string>} */
const SHORT_ESCAPES = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const LONGEST_NAME = 300;

/** Escapes invisible characters: `\n`, `\u{202e}`. @param {string} text */
function visible(text) {
  return text.replace(HIDDEN, (c) => SHORT_ESCAPES[c] ?? `\\u{${c.codePointAt(0)?.toString(16)}}`);
}

/** Shortens a text by removing its middle. @param {string} text @param {number} letters */
function fit(text, letters) {
  if (text.length <= letters) return text;
  const kept = Math.max(letters - 1, 0);
  const head = Math.ceil(kept / 2);
  // Do not split surrogate pairs.
  const start = text.slice(0, head).replace(/[\ud800-\udbff]$/, "");
  const end = text.slice(text.length - (kept - head)).replace(/^[\udc00-\udfff]/, "");
  return start + "…" + end;
}

/** A name as displayed. @param {string} text */
function shownName(text) {
  // Shorten first, because escaping a huge name is slow.
  return fit(visible(fit(text, 4 * LONGEST_NAME)), LONGEST_NAME);
}

/** Creates an element from `tag` or `tag.class` with attributes, listeners (`onclick`) and content.
 * Strings become text nodes, never markup.
 * @param {string} tag @param {Record<string, any>} [attributes] @param {(Node | string | null)[]} content @returns {any} */
function make(tag, attributes = {}, ...content) {
  const [name, kind] = tag.split(".");
  const element = document.createElement(name);
  if (kind) element.className = kind;
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  for (const part of content) if (part !== null) element.append(part);
  return element;
}
