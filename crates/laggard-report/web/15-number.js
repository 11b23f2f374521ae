// Number formatting: three significant digits, a unit, and a sign for differences.

/** @type {Record<string, [string, number][]>} */
const LADDERS = {
  ns: [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]],
  bytes: [["B", 1], ["kB", 1e3], ["MB", 1e6], ["GB", 1e9], ["TB", 1e12]],
  count: [["", 1], ["M", 1e6], ["G", 1e9], ["T", 1e12]],
};

/** Inserts thousands separators. @param {string} number */
function thousands(number) {
  const [whole, fraction] = number.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/** Three significant digits with at most three decimals; digits before the point are not rounded. @param {number} value */
function significant(value) {
  if (!Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 0.0005) return "<0.001";
  const decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
  return thousands(value.toFixed(decimals));
}

/** `1,234,567`. @param {number} n */
const count = (n) => thousands(String(Math.round(n)));

/** A value with a suitable unit. @param {number} value @param {string} unit */
function quantity(value, unit) {
  if (unit === "share") return percent(value / 1e6);
  if (!Number.isFinite(value)) return "-";
  const ladder = LADDERS[unit] ?? LADDERS.count;
  // The largest unit in which the value is at least 1 after rounding.
  const [name, size] = ladder.findLast(([, size]) => Math.abs(value) >= 0.9995 * size) ?? ladder[0];
  const number = size === 1 && Number.isInteger(value) ? thousands(String(value)) : significant(value / size);
  return name === "" ? number : `${number} ${name}`;
}

/** Like `quantity`, with a sign. @param {number} value @param {string} unit */
function signed(value, unit) {
  const sign = value > 0 ? "+" : value < 0 ? "-" : "";
  return sign + quantity(Math.abs(value), unit);
}

/** A share as `12.3 %`; small nonzero shares are `<0.1 %`. @param {number} share */
function percent(share) {
  const value = share * 100;
  if (!Number.isFinite(value)) return "-";
  if (value !== 0 && Math.abs(value) < 0.05) return "<0.1 %";
  return `${thousands(value.toFixed(1))} %`;
}

/** @param {number} share */
function signedPercent(share) {
  const sign = share > 0 ? "+" : share < 0 ? "-" : "";
  return sign + percent(Math.abs(share));
}

/** Part over whole; 0 if the whole is 0. @param {number} part @param {number} whole */
const shareOf = (part, whole) => (whole === 0 ? 0 : part / whole);

/** B over A: `1.21×`, or `only in A` or `only in B`. @param {number} a @param {number} b */
function ratio(a, b) {
  if (a === 0 && b === 0) return "-";
  if (a === 0) return "only in B";
  if (b === 0) return "only in A";
  return `${significant(b / a)}×`;
}

/** B minus A; 0 if only rounding errors differ. @param {number} a @param {number} b */
const gapOf = (a, b) => (Math.abs(b - a) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b)) ? 0 : b - a);

/** The change from A to B relative to A: `+12.3 %`. @param {number} a @param {number} b */
function shortGap(a, b) {
  if (a === 0 || b === 0) return ratio(a, b);
  return signedPercent(gapOf(a, b) / a);
}

/** @param {[number, number]} interval @param {string} unit */
const intervalText = ([low, high], unit) => `[${signed(low, unit)}, ${signed(high, unit)}]`;

/** The change from A to B, relative and absolute: `+12.3 % (+4.10 ms)`. @param {number} a @param {number} b @param {string} unit */
function longGap(a, b, unit) {
  // Distinguishes a difference in percentage points from a relative change.
  return `${shortGap(a, b)} (${signed(gapOf(a, b), unit)}${unit === "share" ? " of total" : ""})`;
}
