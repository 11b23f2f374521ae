// Text from the data is hostile until shown otherwise: it reaches the page only as text, with whatever is invisible spelled out.

// Controls, marks of direction, and what has no ink but changes how a name reads.
const HIDDEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
/** @type {Record<string, string>} */
const SHORT_ESCAPES = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const LONGEST_NAME = 300;

/** The text with everything invisible escaped: `\n`, `\u{202e}`. @param {string} text */
function visible(text) {
  return text.replace(HIDDEN, (c) => SHORT_ESCAPES[c] ?? `\\u{${c.codePointAt(0)?.toString(16)}}`);
}

/** The text with its middle left out where it is longer than that. @param {string} text @param {number} letters */
function fit(text, letters) {
  if (text.length <= letters) return text;
  const kept = Math.max(letters - 1, 0);
  const head = Math.ceil(kept / 2);
  // Half of a surrogate pair is not a letter.
  const start = text.slice(0, head).replace(/[\ud800-\udbff]$/, "");
  const end = text.slice(text.length - (kept - head)).replace(/^[\udc00-\udfff]/, "");
  return start + "…" + end;
}

/** A name as the page shows it. @param {string} text */
function shownName(text) {
  // Only both ends of a huge name are ever shown, so only they are escaped.
  return fit(visible(fit(text, 4 * LONGEST_NAME)), LONGEST_NAME);
}

/** An element by its `tag` or `tag.class`, with its attributes, listeners (`onclick`) and content.
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
