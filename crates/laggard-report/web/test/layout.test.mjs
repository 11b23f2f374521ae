// Layout of frames, colours and the timeline.

import assert from "node:assert/strict";
import { test } from "node:test";
import { dice, load, randomFlame } from "./load.mjs";

const page = load();
const NO_LENS = { scale: 1, shift: 0 };

function treeOf(flame) {
  const profile = page.profileOf(flame);
  return new page.CallTree(profile, page.weigh(profile, flame.nodes.self), { upwards: false, root: -1, order: "heavy", collapse: false });
}

test("in the difference, children lie inside their parents and do not overlap", () => {
  for (const seed of [1, 2, 3, 4]) {
    const tree = treeOf(randomFlame(seed, { sides: 2, nodes: 400 }));
    const rows = page.layOut(tree, 2, page.windowOn(tree, 0, 2, tree.total[2][0], NO_LENS), 1000);
    const place = new Map(rows.flatMap(({ x, w, node }) => node.map((n, i) => [n, [x[i], x[i] + w[i]]])));
    assert.ok(Math.abs(rows[0].w[0] - 1000) < 1e-6);
    for (const { x, w, node } of rows) {
      node.forEach((n, i) => {
        if (i > 0) assert.ok(x[i] >= x[i - 1] + w[i - 1] - 1e-6);
        const [left, right] = place.get(tree.parent[n]) ?? [0, 1000];
        assert.ok(x[i] >= left - 1e-6 && x[i] + w[i] <= right + 1e-6);
      });
    }
  }
});

test("a frame is at least as wide as its larger side, so that frames of only A are visible", () => {
  const tree = treeOf(randomFlame(9, { sides: 2 }));
  for (let node = 0; node < tree.fn.length; node++) {
    tree.children(node);
    assert.ok(tree.total[2][node] >= Math.max(tree.total[0][node], tree.total[1][node]));
  }
});

test("the change of a parent is the change of its totals", () => {
  const tree = treeOf(randomFlame(4, { sides: 2 }));
  for (let node = 0; node < tree.fn.length; node++) {
    const below = tree.children(node).reduce((gap, kid) => gap + tree.total[1][kid] - tree.total[0][kid], 0);
    const own = tree.self(node, 1) - tree.self(node, 0);
    assert.ok(Math.abs(tree.total[1][node] - tree.total[0][node] - below - own) < 1e-6);
  }
});

test("a zoomed frame fills the width", () => {
  const tree = treeOf(randomFlame(2));
  const node = tree.children(tree.children(0)[0])[0];
  const rows = page.layOut(tree, 0, page.windowOn(tree, node, 0, tree.total[0][node], NO_LENS), 800);
  const at = rows[2].node.indexOf(node);
  assert.ok(Math.abs(rows[2].x[at]) < 1e-6 && Math.abs(rows[2].w[at] - 800) < 1e-6);
  assert.equal(page.nodeAt(rows[2], 400), node);
  assert.equal(page.nodeAt({ x: [10], w: [5], node: [3] }, 20), -1);
});

test("more is orange, less is blue, no change is neutral", () => {
  for (const theme of ["light", "dark"]) {
    const [more, less, same] = [page.changeOf(1, 2), page.changeOf(2, 1), page.changeOf(3, 3)].map((c) => page.changeFill(c, theme));
    assert.ok(more[0] > more[2], "orange has more red than blue");
    assert.ok(less[2] > less[0], "blue has more blue than red");
    assert.equal(same[0], same[2]);
    assert.deepEqual(page.changeFill(page.changeOf(0, 5), theme), [0xf0, 0xa8, 0x68]);
    assert.deepEqual(page.changeFill(page.changeOf(5, 0), theme), [0x7f, 0xb8, 0xdc]);
  }
  assert.deepEqual([page.changeOf(1, 2), page.changeOf(2, 1), page.changeOf(0, 0)], [0.5, -0.5, 0]);
});

test("text has enough contrast on every change colour", () => {
  const light = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  for (let change = -1; change <= 1; change += 1 / 64) {
    for (const theme of ["light", "dark"]) {
      const rgb = page.changeFill(change, theme);
      const ground = 0.2126 * light(rgb[0]) + 0.7152 * light(rgb[1]) + 0.0722 * light(rgb[2]);
      const contrast = page.inkOn(rgb) === "#000" ? (ground + 0.05) / 0.05 : 1.05 / (ground + 0.05);
      assert.ok(contrast >= 4.5, `${change} ${theme} ${contrast}`);
    }
  }
});

test("libraries have distinct colours if there are enough", () => {
  const names = ["libc.so.6", "python3.12", "libtorch_cpu.so", "[kernel]", "numpy", "a", "b", "c", "d", "e", "f", "g"];
  assert.equal(new Set(page.hueSlots(names).values()).size, names.length);
  assert.equal(page.hueSlots(["x", "libc.so.6"]).get("libc.so.6"), page.hueSlots(["libc.so.6"]).get("libc.so.6"));
});

test("names are shortened before the signed number", () => {
  for (const [letters, expected] of [[40, "multiply +12.3 % (+4.10 ms)"], [20, "multiply +12.3 %"], [14, "mul…ly +12.3 %"], [8, "+12.3 %"], [5, ""]]) {
    assert.equal(page.frameLabel("multiply", "+12.3 % (+4.10 ms)", "+12.3 %", letters), expected);
  }
  assert.equal(page.frameLabel("multiply", "12.3 %", "", 9), "multiply");
  assert.equal(page.frameLabel("multiply", "12.3 %", "", 4), "");
});

test("every item of a timeline is drawn, alone or merged", () => {
  const roll = dice(11);
  const start = Array.from({ length: 5000 }, () => Math.floor(roll() * 1e6)).sort((a, b) => a - b);
  const duration = start.map(() => (roll() < 0.05 ? 20000 : Math.floor(roll() * 50)));
  const track = page.trackOf({ name: "", group: "", start, duration, label: [], class: [], phase: [], node: [], weight: [] });
  for (const [from, perPixel] of [[0, 1000], [250000, 100], [500000, 3]]) {
    const seen = new Set();
    page.eachVisible(track, from, perPixel, 1000, (i) => seen.add(i), (i, end) => { for (; i < end; i++) seen.add(i); });
    start.forEach((time, i) => {
      if (time + duration[i] > from && time < from + 1000 * perPixel) assert.ok(seen.has(i), `${i} at ${from}`);
    });
  }
});

test("an item is found by its time", () => {
  const track = page.trackOf({ name: "", group: "", start: [10, 20, 40], duration: [5, 10, 0], label: [], class: [], phase: [], node: [], weight: [] });
  for (const [time, expected] of [[12, 0], [16, 0], [25, 1], [41, 2], [35, -1], [8, 0], [0, -1]]) assert.equal(page.itemAt(track, time, 2), expected, time);
});

test("the axis has round times", () => {
  const { ticks, step } = page.axisTicks(0, 1e9, 1000);
  assert.equal(step, 2e8);
  assert.deepEqual(ticks.map((tick) => page.axisTime(tick, step)), ["0 ms", "200 ms", "400 ms", "600 ms", "800 ms", "1.0 s"]);
});

test("the axis of a distribution cuts off a long tail", () => {
  const values = [...Array.from({ length: 99 }, (_, i) => 100 + i), 100000];
  const { sides, from, to } = page.measureCase({ title: "", unit: "ns", axis: "time per call", sides: [{ name: "A", values }] });
  assert.ok(from < 100 && to > 198 && to < 300);
  assert.equal(sides[0].median, 149.5);
  assert.equal(page.histogram(sides[0].sorted, from, to, 20).reduce((a, b) => a + b), 99);
});
