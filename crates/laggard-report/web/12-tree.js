// Call trees derived from the profile: callees, inverted, and callers of one function.
// Nodes are expanded on demand, so that invisible ones cost nothing.

class CallTree {
  /** @param {Profile} profile @param {Weights} weights @param {TreeShape} shape */
  constructor(profile, weights, shape) {
    this.profile = profile;
    this.weights = weights;
    this.shape = shape;
    /** @type {number[]} */ this.fn = [];
    /** @type {number[]} */ this.parent = [];
    /** @type {number[][]} */ this.total = weights.total.map(() => []);
    // A node represents paths of the profile, each from `starts` to `ats`. Its first path identifies it permanently.
    /** @type {[number, number][]} */ this.path = [];
    /** @type {(Paths | null)[]} */ this.paths = [];
    /** @type {(number[] | null)[]} */ this.kids = [];
    const all = weights.total[weights.widest];
    const seeds = shape.root < 0 ? [0] : seedsOf(profile, shape.root).filter((i) => all[i] > 0);
    this.#add(-1, shape.root < 0 ? profile.fn[0] : shape.root, { starts: seeds, ats: seeds });
    // The root of an inverted tree includes all stacks, although no stack ends in it.
    if (this.inverted) this.total.forEach((column, c) => (column[0] = weights.total[c][0]));
  }

  get inverted() {
    return this.shape.upwards && this.shape.root < 0;
  }

  /** Children in drawing order. @param {number} node @returns {number[]} */
  children(node) {
    const known = this.kids[node];
    if (known) return known;
    /** @type {Map<number, Paths>} */
    const groups = new Map();
    const add = (/** @type {number} */ start, /** @type {number} */ at) => {
      const f = this.profile.fn[at];
      let group = groups.get(f);
      if (!group) groups.set(f, (group = { starts: [], ats: [] }));
      group.starts.push(start);
      group.ats.push(at);
    };
    if (this.inverted && node === 0) this.#ends(add);
    else if (this.shape.upwards) this.#callers(node, add);
    else this.#callees(node, add);
    const kids = [];
    for (const [f, paths] of groups) kids.push(this.#add(node, f, paths));
    kids.sort(this.#order());
    // The paths are no longer needed.
    this.paths[node] = null;
    return (this.kids[node] = kids);
  }

  /** Self weight of a node. @param {number} node @param {number} column */
  self(node, column) {
    const total = this.total[column];
    const rest = this.children(node).reduce((left, kid) => left - total[kid], total[node]);
    // Rounding errors count as zero.
    return rest < total[node] * 1e-9 ? 0 : rest;
  }

  /** Nodes from the root to this one. @param {number} node */
  lineage(node) {
    const line = [];
    for (let at = node; at >= 0; at = this.parent[at]) line.push(at);
    return line.reverse();
  }

  /** The node of a path of the profile, or its nearest existing ancestor. @param {number} start @param {number} at */
  find(start, at) {
    const { parent, fn } = this.profile;
    const [low, high] = this.shape.upwards ? [start, at] : [at, start];
    const functions = [];
    for (let i = low; i >= 0; i = parent[i]) {
      functions.push(fn[i]);
      if (i === high) break;
    }
    if (!this.shape.upwards) functions.reverse();
    // The first frame of a path is the root, except in inverted trees.
    let node = 0;
    for (const f of this.inverted ? functions : functions.slice(1)) {
      const kid = this.children(node).find((kid) => this.fn[kid] === f);
      if (kid === undefined && this.shape.collapse && this.fn[node] === f) continue;
      if (kid === undefined) break;
      node = kid;
    }
    return node;
  }

  /** @param {number} parent @param {number} f @param {Paths} paths */
  #add(parent, f, paths) {
    const { self, total } = this.weights;
    const [source, keys] = this.inverted ? [self, paths.starts] : [total, this.shape.upwards ? paths.starts : paths.ats];
    const node = this.fn.length;
    this.fn.push(f);
    this.parent.push(parent);
    this.path.push([paths.starts[0] ?? 0, paths.ats[0] ?? 0]);
    this.paths.push(paths);
    this.kids.push(null);
    source.forEach((column, c) => {
      let sum = 0;
      for (const key of keys) sum += column[key];
      this.total[c].push(sum);
    });
    return node;
  }

  /** Adds the ends of all stacks. @param {(start: number, at: number) => void} add */
  #ends(add) {
    const own = this.weights.self[this.weights.widest];
    for (let i = 1; i < own.length; i++) if (own[i] > 0) add(i, i);
  }

  /** @param {number} node @param {(start: number, at: number) => void} add */
  #callers(node, add) {
    const { parent, fn } = this.profile;
    const { starts, ats } = /** @type {Paths} */ (this.paths[node]);
    for (let i = 0; i < ats.length; i++) {
      let up = parent[ats[i]];
      while (this.shape.collapse && up > 0 && fn[up] === this.fn[node]) up = parent[up];
      if (up > 0) add(starts[i], up);
    }
  }

  /** @param {number} node @param {(start: number, at: number) => void} add */
  #callees(node, add) {
    const { first, child, fn } = this.profile;
    const total = this.weights.total[this.weights.widest];
    const { starts, ats } = /** @type {Paths} */ (this.paths[node]);
    const open = ats.map((at, i) => [starts[i], at]);
    for (let o = 0; o < open.length; o++) {
      const [start, at] = open[o];
      for (let i = first[at]; i < first[at + 1]; i++) {
        if (total[child[i]] === 0) continue;
        // Recursive calls are merged: their callees become callees of this node.
        if (this.shape.collapse && fn[child[i]] === this.fn[node]) open.push([start, child[i]]);
        else add(start, child[i]);
      }
    }
  }

  /** Left-heavy order by the larger side, so that both sides of a comparison have the same order. @returns {(a: number, b: number) => number} */
  #order() {
    const { fn, profile, shape } = this;
    const total = this.total[this.weights.widest];
    if (shape.order === "heavy") return (a, b) => total[b] - total[a] || fn[a] - fn[b];
    const name = (/** @type {number} */ node) => profile.name(fn[node]);
    return (a, b) => (name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : fn[a] - fn[b]);
  }
}

/** The outermost frames of a function. @param {Profile} profile @param {number} f */
function seedsOf(profile, f) {
  const seeds = [];
  for (let i = 1; i < profile.fn.length; i++) if (profile.fn[i] === f && profile.outer[i]) seeds.push(i);
  return seeds;
}

/** Nodes with matching functions, heaviest first. Nodes with a tiny share are skipped.
 * @param {CallTree} tree @param {Uint8Array} found @param {number} column */
function foundNodes(tree, found, column) {
  const total = tree.total[column];
  const least = total[0] * 0.0005;
  const nodes = [];
  const open = [0];
  for (let o = 0; o < open.length && nodes.length < 1000; o++) {
    if (o > 0 && found[tree.fn[open[o]]]) nodes.push(open[o]);
    for (const kid of tree.children(open[o])) if (total[kid] > least) open.push(kid);
  }
  return nodes.sort((a, b) => total[b] - total[a]);
}
