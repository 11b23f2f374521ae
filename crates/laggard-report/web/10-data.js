// The page's data as columns: decoding, weights, totals by function, search, and samples within a time range.

/** Reads the data of the page, plain or compressed. @param {HTMLElement} element @returns {Promise<PageData>} */
async function readPage(element) {
  const text = element.textContent ?? "";
  if (element.dataset.encoding !== "gzip-base64") return JSON.parse(text);
  const packed = new Blob([bytesOfBase64(text)]).stream();
  return new Response(packed.pipeThrough(new DecompressionStream("gzip"))).json();
}

/** @param {string} text */
function bytesOfBase64(text) {
  // Available only in recent browsers, but several times faster.
  const native = /** @type {any} */ (Uint8Array).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** The call tree without weights. Children of node i are `child[first[i]]` up to `child[first[i + 1]]`.
 * @param {FlameData} flame @returns {Profile} */
function profileOf(flame) {
  const parent = new Int32Array(flame.nodes.parent);
  const fn = new Int32Array(flame.nodes.function);
  const first = new Int32Array(parent.length + 1);
  for (let i = 1; i < parent.length; i++) first[parent[i] + 1]++;
  for (let i = 0; i < parent.length; i++) first[i + 1] += first[i];
  const child = new Int32Array(Math.max(parent.length - 1, 0));
  const next = first.slice();
  for (let i = 1; i < parent.length; i++) child[next[parent[i]]++] = i;
  const { functions, strings } = flame;
  return {
    flame, parent, fn, first, child,
    outer: outermost(fn, first, child, functions.name.length),
    name: (f) => strings[functions.name[f]] || "(no name)",
    short: (f) => flame.short[functions.name[f]] ?? strings[functions.name[f]],
    library: (f) => strings[functions.library[f]],
    functionCount: functions.name.length,
  };
}

/** Marks frames that are not nested in a frame of the same function. Only they add to the function's total.
 * @param {Int32Array} fn @param {Int32Array} first @param {Int32Array} child @param {number} functionCount */
function outermost(fn, first, child, functionCount) {
  const outer = new Uint8Array(fn.length);
  const open = new Int32Array(functionCount);
  const todo = fn.length > 0 ? [0] : [];
  while (todo.length > 0) {
    const node = /** @type {number} */ (todo.pop());
    if (node < 0) {
      open[fn[~node]]--;
      continue;
    }
    if (open[fn[node]]++ === 0) outer[node] = 1;
    // The complement of a node marks the end of its subtree.
    todo.push(~node);
    for (let i = first[node]; i < first[node + 1]; i++) todo.push(child[i]);
  }
  return outer;
}

/** Self weights and totals by node, one column per side. With two sides, a third column holds the larger weight of each
 * stack. It is additive, so in the difference view children fit into their parents and frames of one side are visible.
 * @param {Profile} profile @param {ArrayLike<number>[]} sides @returns {Weights} */
function weigh(profile, sides) {
  const self = sides.map((side) => new Float64Array(side));
  if (self.length === 2) self.push(self[0].map((a, i) => Math.max(a, self[1][i])));
  const total = self.map((column) => {
    const sum = column.slice();
    for (let i = sum.length - 1; i > 0; i--) sum[profile.parent[i]] += sum[i];
    return sum;
  });
  return { self, total, widest: self.length - 1 };
}

/** Self weight and total of every function, one column per side. Recursive calls count once per stack.
 * @param {Profile} profile @param {Weights} weights @returns {Tally} */
function tally(profile, weights) {
  const { fn, outer, functionCount } = profile;
  const self = weights.self.map(() => new Float64Array(functionCount));
  const total = weights.total.map(() => new Float64Array(functionCount));
  for (let c = 0; c < self.length; c++) {
    const [ownOf, allOf] = [weights.self[c], weights.total[c]];
    // The root is not a function.
    for (let i = 1; i < fn.length; i++) {
      self[c][fn[i]] += ownOf[i];
      if (outer[i]) total[c][fn[i]] += allOf[i];
    }
  }
  return { self, total };
}

/** Parses a search: a case-insensitive substring or a /regex/. Null for an empty search.
 * @param {string} query @returns {((name: string) => boolean) | null} */
function matcher(query) {
  const pattern = /^\/(.+)\/i?$/.exec(query);
  if (pattern) {
    try {
      const regex = new RegExp(pattern[1], "i");
      return (name) => regex.test(name);
    } catch {
      // An incomplete pattern matches nothing.
      return () => false;
    }
  }
  const wanted = query.trim().toLowerCase();
  return wanted === "" ? null : (name) => name.toLowerCase().includes(wanted);
}

/** Flags the functions that match a search; null for an empty search.
 * @param {Profile} profile @param {string} query @returns {Uint8Array | null} */
function matchFunctions(profile, query) {
  const matches = matcher(query);
  if (!matches) return null;
  const found = new Uint8Array(profile.functionCount);
  for (let f = 0; f < found.length; f++) {
    if (profile.flame.functions.kind[f] !== KIND_MARK && matches(profile.name(f))) found[f] = 1;
  }
  return found;
}

/** The weight of all stacks that contain a matching function; each stack counts once.
 * @param {Profile} profile @param {Weights} weights @param {Uint8Array} found @param {number} column */
function matchedWeight(profile, weights, found, column) {
  const covered = new Uint8Array(profile.fn.length);
  let sum = 0;
  for (let i = 1; i < covered.length; i++) {
    if (covered[profile.parent[i]]) covered[i] = 1;
    else if (found[profile.fn[i]]) {
      covered[i] = 1;
      sum += weights.total[column][i];
    }
  }
  return sum;
}

/** The first index in a sorted column whose value is not below `value`.
 * @param {ArrayLike<number>} sorted @param {number} value @param {number} [from] */
function lowerBound(sorted, value, from = 0) {
  let [low, high] = [from, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Self weight of every node from the samples within a time range.
 * @param {Profile} profile @param {Track[]} tracks @param {[number, number]} range */
function selfWithin(profile, tracks, [from, to]) {
  const self = new Float64Array(profile.fn.length);
  for (const { start, duration, node, weight } of tracks) {
    if (node.length === 0) continue;
    for (let i = lowerBound(start, from); i < start.length && start[i] <= to; i++) {
      self[node[i]] += weight.length > 0 ? weight[i] : duration[i] || 1;
    }
  }
  return self;
}
