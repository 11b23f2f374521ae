// Names, numbers, the URL hash and the size of the page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { files, load, shipped, web } from "./load.mjs";

const page = load();

test("invisible characters are escaped", () => {
  for (const [text, expected] of [
    ["plain <int>", "plain <int>"],
    ["a\nb\tc\rd", "a\\nb\\tc\\rd"],
    ["x\u202etxt.\u2066", "x\\u{202e}txt.\\u{2066}"],
    ["\u001b[31m\u009b", "\\u{1b}[31m\\u{9b}"],
    ["a\u200bb\u2028c\ufeff\u{e0041}", "a\\u{200b}b\\u{2028}c\\u{feff}\\u{e0041}"],
    ["核 é", "核 é"],
  ]) assert.equal(page.visible(text), expected);
});

test("long names are shortened in the middle", () => {
  for (const [text, letters, expected] of [["short", 5, "short"], ["abcdefghij", 5, "ab…ij"], ["abc", 1, "…"], ["😀😀😀", 4, "😀…"]]) assert.equal(page.fit(text, letters), expected);
  assert.ok(page.shownName("long_".repeat(2000)).length <= 300);
});

test("numbers have three digits and a suitable unit", () => {
  for (const [value, unit, expected] of [
    [0, "ns", "0 ns"], [999, "ns", "999 ns"], [7894, "ns", "7.89 µs"], [999500, "ns", "1.00 ms"], [1.234e9, "ns", "1.23 s"], [5432.1e9, "ns", "5,432 s"],
    [0.25, "ns", "0.250 ns"], [-7894, "ns", "-7.89 µs"], [1234567890, "bytes", "1.23 GB"], [12345, "count", "12,345"], [12345678, "count", "12.3 M"], [NaN, "ns", "-"],
  ]) assert.equal(page.quantity(value, unit), expected);
});

test("changes have a sign", () => {
  for (const [shown, expected] of [
    [page.signed(4.1e6, "ns"), "+4.10 ms"], [page.signed(-4.1e6, "ns"), "-4.10 ms"], [page.signed(0, "ns"), "0 ns"],
    [page.percent(0.3421), "34.2 %"], [page.percent(0.0001), "<0.1 %"], [page.signedPercent(-0.25), "-25.0 %"], [page.signedPercent(0.0001), "+<0.1 %"],
    [page.longGap(100e6, 112.3e6, "ns"), "+12.3 % (+12.3 ms)"], [page.longGap(0, 5e6, "ns"), "only in B (+5.00 ms)"], [page.longGap(5e6, 0, "ns"), "only in A (-5.00 ms)"],
    [page.ratio(2, 1), "0.500×"], [page.ratio(0, 0), "-"],
  ]) assert.equal(shown, expected);
});

test("the URL hash holds the state", () => {
  const fresh = page.freshState(2);
  assert.equal(page.stateToHash(fresh, fresh), "");
  const state = { ...fresh, view: "sandwich", side: "ab", colour: "kind", search: "/a&b=#%/", fn: 12, zoom: [1, 5, 900], collapse: true, sort: "self1", range: [10, 20], window: [0, 1e9] };
  assert.deepEqual(page.stateOfHash(`#${page.stateToHash(state, fresh)}`, fresh), state);
});

test("invalid URL hashes are ignored", () => {
  for (const fresh of [page.freshState(1), page.freshState(2)]) {
    const hash = "#v=<img>&s=9&c=__proto__&f=x&z=1_2&t=-a;b&from=9_1&w=1_NaN&o=constructor&r=2&tc=no";
    assert.deepEqual(page.stateOfHash(hash, fresh), fresh);
    assert.deepEqual(page.stateOfHash("#z=-1_2_3", fresh), fresh);
  }
  assert.equal(page.stateOfHash("#c=change&s=d", page.freshState(1)).colour, "library");
});

test("rows without a value are last in both orders", () => {
  for (const [descending, expected] of [[false, [1, 2, NaN]], [true, [2, 1, NaN]]]) {
    const rows = [NaN, 1, 2];
    page.sortRows(rows, (row) => row, descending);
    assert.deepEqual(rows, expected);
  }
});

test("scripts and styles stay small", () => {
  const bytes = [...files, "page.css"].reduce((sum, name) => sum + Buffer.byteLength(shipped(name)), 0);
  const lines = files.reduce((sum, name) => sum + readFileSync(new URL(name, web), "utf8").split("\n").length, 0);
  // Every page contains them: a page of a small profile is little more than its scripts.
  assert.ok(bytes <= 93_000, `${bytes} bytes`);
  assert.ok(lines <= 2550, `${lines} lines`);
});

test("shipped code cannot turn text into markup or code, nor use the network", () => {
  for (const name of files) {
    const source = readFileSync(new URL(name, web), "utf8");
    assert.doesNotMatch(source, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function\(|\bfetch\(|XMLHttpRequest|WebSocket|import\(|https?:/, name);
    assert.doesNotMatch(source, /<\/script|<!--/i, name);
  }
});

test("shares of the total differ from relative changes, and rounding errors are no change", () => {
  assert.equal(page.quantity(392157, "share"), "39.2 %");
  assert.equal(page.longGap(392157, 645161, "share"), "+64.5 % (+25.3 % of total)");
  assert.equal(page.longGap(1e6, 1e6 + 1e-7, "share"), "0.0 % (0.0 % of total)");
  assert.equal(page.gapOf(3, 3.1) > 0, true);
});
