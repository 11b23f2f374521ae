// Totals and trees, checked against a brute-force computation over the stacks.

import assert from "node:assert/strict";
import { test } from "node:test";
import { flameOf, load, randomFlame, stacksOf } from "./load.mjs";

const page = load();
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];

function treeOf(flame, shape) {
  const profile = page.profileOf(flame);
  const weights = page.weigh(profile, flame.nodes.self);
  return new page.CallTree(profile, weights, { upwards: false, root: -1, order: "heavy", collapse: false, ...shape });
}

/** Weights by side of every node of a tree, by path of functions. */
function unfolded(tree, sides) {
  const found = new Map();
  const visit = (node, path) => {
    for (const kid of tree.children(node)) {
      const here = [...path, tree.fn[kid]];
      found.set(here.join(" "), Array.from({ length: sides }, (_, s) => tree.total[s][kid]));
      visit(kid, here);
    }
  };
  visit(0, []);
  return found;
}

/** Weights of all prefixes of the given paths. */
function naive(paths, sides) {
  const found = new Map();
  for (const { path, weights } of paths) {
    for (let i = 1; i <= path.length; i++) {
      const key = path.slice(0, i).join(" ");
      const sums = found.get(key) ?? Array(sides).fill(0);
      found.set(key, sums.map((sum, s) => sum + weights[s]));
    }
  }
  return found;
}

function checkEvery(shapeOf, pathsOf) {
  for (const seed of SEEDS) {
    for (const sides of [1, 2]) {
      const flame = randomFlame(seed, { sides });
      assert.deepEqual(unfolded(treeOf(flame, shapeOf(seed)), sides), naive(pathsOf(stacksOf(flame), seed), sides));
    }
  }
}

test("totals include all descendants", () => {
  const flame = flameOf([-1, 0, 1, 0], [0, 1, 2, 3], [[0, 10, 5, 7]]);
  const profile = page.profileOf(flame);
  assert.deepEqual([...page.weigh(profile, flame.nodes.self).total[0]], [22, 15, 5, 7]);
});

test("recursive calls count once", () => {
  const flame = flameOf([-1, 0, 1, 2], [0, 1, 2, 1], [[0, 1, 2, 4]]);
  const profile = page.profileOf(flame);
  const sums = page.tally(profile, page.weigh(profile, flame.nodes.self));
  assert.deepEqual([...sums.total[0]], [0, 7, 6]);
  assert.deepEqual([...sums.self[0]], [0, 5, 2]);
});

test("the total of a function is the weight of its stacks", () => {
  for (const seed of SEEDS) {
    const flame = randomFlame(seed);
    const profile = page.profileOf(flame);
    const { self, total } = page.tally(profile, page.weigh(profile, flame.nodes.self));
    for (let f = 1; f < profile.functionCount; f++) {
      const stacks = stacksOf(flame);
      const sum = (list) => list.reduce((all, { weights }) => all + weights[0], 0);
      assert.equal(total[0][f], sum(stacks.filter(({ stack }) => stack.includes(f))));
      assert.equal(self[0][f], sum(stacks.filter(({ stack }) => stack.at(-1) === f)));
    }
  }
});

test("the callee tree matches the stacks from the root", () => {
  checkEvery(() => ({}), (stacks) => stacks.map(({ stack, weights }) => ({ path: stack, weights })));
});

test("the inverted tree matches the reversed stacks", () => {
  checkEvery(() => ({ upwards: true }), (stacks) => stacks.map(({ stack, weights }) => ({ path: stack.toReversed(), weights })));
});

test("the sandwich view has callers and callees of the outermost frame", () => {
  const within = (stacks, f, part) => stacks.flatMap(({ stack, weights }) =>
    stack.includes(f) ? [{ path: part(stack, stack.indexOf(f)), weights }] : []);
  const root = (seed) => 1 + (seed % 9);
  checkEvery((seed) => ({ root: root(seed) }), (stacks, seed) => within(stacks, root(seed), (stack, at) => stack.slice(at + 1)));
  checkEvery((seed) => ({ root: root(seed), upwards: true }), (stacks, seed) => within(stacks, root(seed), (stack, at) => stack.slice(0, at).reverse()));
});

test("collapsed recursion is one frame", () => {
  const once = (stack) => stack.filter((f, i) => f !== stack[i - 1]);
  checkEvery(() => ({ collapse: true }), (stacks) => stacks.map(({ stack, weights }) => ({ path: once(stack), weights })));
  checkEvery(() => ({ collapse: true, upwards: true }), (stacks) => stacks.map(({ stack, weights }) => ({ path: once(stack).reverse(), weights })));
});

test("a node is found by its path", () => {
  const shapes = [{}, { upwards: true }, { root: 3 }, { root: 3, upwards: true }, { collapse: true }];
  for (const shape of shapes) {
    const flame = randomFlame(5);
    const tree = treeOf(flame, shape);
    unfolded(tree, 1);
    const again = treeOf(flame, shape);
    for (let node = 1; node < tree.fn.length; node++) {
      const found = again.find(...tree.path[node]);
      const names = (t, n) => t.lineage(n).map((at) => t.fn[at]);
      assert.deepEqual(names(again, found), names(tree, node), JSON.stringify(shape));
    }
  }
});

test("a search counts each stack once", () => {
  for (const seed of SEEDS) {
    const flame = randomFlame(seed);
    const profile = page.profileOf(flame);
    const found = page.matchFunctions(profile, "/^f[123]$/");
    const expected = stacksOf(flame).filter(({ stack }) => stack.some((f) => f >= 1 && f <= 3)).reduce((sum, { weights }) => sum + weights[0], 0);
    assert.equal(page.matchedWeight(profile, page.weigh(profile, flame.nodes.self), found, 0), expected);
  }
});

test("a search is a case-insensitive substring or a regex", () => {
  for (const [query, name, expected] of [["READ", "pread64", true], ["/^read/", "pread64", false], ["/READ\\d+/", "pread64", true], ["/(/", "(", false], ["a.c", "abc", false]]) {
    assert.equal(page.matcher(query)(name), expected, query);
  }
  assert.equal(page.matcher("  "), null);
});

test("samples within a time range keep their weights", () => {
  const flame = flameOf([-1, 0, 1], [0, 1, 2], [[0, 1, 1]]);
  const track = page.trackOf({ name: "", group: "", start: [30, 10, 20], duration: [0, 0, 0], label: [], class: [], phase: [], node: [2, 1, 1], weight: [4, 1, 2] });
  assert.deepEqual([...page.selfWithin(page.profileOf(flame), [track], [15, 30])], [0, 2, 4]);
});

test("300,000 nodes take less than five seconds", () => {
  const flame = randomFlame(3, { nodes: 300_000, functions: 20_000 });
  const begin = performance.now();
  for (const shape of [{}, { upwards: true }, { root: 7 }, { root: 7, upwards: true }]) {
    const tree = treeOf(flame, shape);
    page.layOut(tree, 0, page.windowOn(tree, 0, 0, tree.total[0][0], { scale: 1, shift: 0 }), 1600);
  }
  assert.ok(performance.now() - begin < 5000);
});
