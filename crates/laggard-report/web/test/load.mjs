// Loads the page's code as the report assembles it, without a page.

import { readFileSync, readdirSync } from "node:fs";

export const web = new URL("..", import.meta.url);
export const files = readdirSync(web).filter((name) => /^\d\d-.*\.js$/.test(name)).sort();

/** A file without comments, types and indentation, as shipped in a page. */
export function shipped(name) {
  const comment = (line) => line.startsWith("//") || line.startsWith("*") || (line.startsWith("/*") && (line.endsWith("*/") || !line.includes("*/")));
  const lines = readFileSync(new URL(name, web), "utf8").split("\n").map((line) => line.trim());
  return lines.filter((line) => line !== "" && !comment(line)).map((line) => line.replace(/\/\*\* @type .*?\*\/ ?/g, "") + "\n").join("");
}

/** The exports of the page's code. */
export function load() {
  const source = files.filter((name) => name !== "00-theme.js").map(shipped).join("");
  const exported = {};
  new Function("exports", `"use strict";\n${source}`)(exported);
  return exported;
}

/** A reproducible generator of random numbers below 1. */
export function dice(seed) {
  let state = seed;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}

/** A random flame graph with recursion, siblings of the same function, and stacks of only one side. */
export function randomFlame(seed, { nodes = 200, functions = 9, sides = 1 } = {}) {
  const roll = dice(seed);
  const parent = [-1];
  const fn = [0];
  for (let i = 1; i < nodes; i++) {
    parent.push(Math.floor(roll() * i));
    fn.push(1 + Math.floor(roll() * functions));
  }
  const side = () => parent.map((_, i) => (i === 0 || roll() < 0.4 ? 0 : 1 + Math.floor(roll() * 100)));
  return flameOf(parent, fn, Array.from({ length: sides }, side));
}

/** A flame graph with functions named f0, f1, ... */
export function flameOf(parent, fn, self) {
  const many = fn.reduce((a, b) => Math.max(a, b)) + 1;
  const zeros = Array(many).fill(0);
  return {
    event: "cycles", unit: "ns", per: "", sides: self.map((_, s) => "AB"[s]),
    strings: ["", ...zeros.map((_, f) => `f${f}`)], short: {},
    functions: { name: zeros.map((_, f) => f + 1), library: zeros, kind: zeros, file: zeros, line: zeros },
    nodes: { parent, function: fn, self },
    wholes: self.map((side) => side.reduce((a, b) => a + b, 0)), samples: self.map(() => 1), hidden: { nodes: 0, least: 0 },
  };
}

/** Stacks with their weights, outermost function first, without the root. */
export function stacksOf({ nodes: { parent, function: fn, self } }) {
  return parent.map((_, i) => {
    const stack = [];
    for (let at = i; at > 0; at = parent[at]) stack.unshift(fn[at]);
    return { stack, weights: self.map((side) => side[i]) };
  }).filter(({ weights }) => weights.some((w) => w > 0));
}
