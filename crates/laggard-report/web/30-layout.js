// Layout of a tree: rows of frames that are visible in a window of weight.

const LEAST_WIDTH = 0.5;

/** Offset of a node from the left edge of the tree. @param {CallTree} tree @param {number} node @param {number} column */
function offsetOf(tree, node, column) {
  const total = tree.total[column];
  let offset = 0;
  for (let at = node; at > 0; at = tree.parent[at]) {
    for (const kid of tree.children(tree.parent[at])) {
      if (kid === at) break;
      offset += total[kid];
    }
  }
  return offset;
}

/** The window that shows a node, magnified and shifted. `span` is the weight of the full width, shared by all panes.
 * @param {CallTree} tree @param {number} node @param {number} column @param {number} span @param {Lens} lens @returns {Span} */
function windowOn(tree, node, column, span, lens) {
  let shown = node;
  // A node without weight on this side is not visible, so show its nearest visible ancestor.
  while (shown > 0 && tree.total[column][shown] === 0) shown = tree.parent[shown];
  const from = offsetOf(tree, shown, column) + lens.shift * span;
  return { from, span: span / lens.scale };
}

/** The visible frames by row, from left to right.
 * @param {CallTree} tree @param {number} column @param {Span} window @param {number} width @returns {Row[]} */
function layOut(tree, column, window, width) {
  /** @type {Row[]} */
  const rows = [];
  if (window.span <= 0) return rows;
  const total = tree.total[column];
  const scale = width / window.span;
  // A stack of node, row and left edge. Call trees can be deeper than the recursion limit of JavaScript.
  const open = [0, 0, 0];
  while (open.length > 0) {
    const offset = /** @type {number} */ (open.pop());
    const depth = /** @type {number} */ (open.pop());
    const node = /** @type {number} */ (open.pop());
    const row = (rows[depth] ??= { x: [], w: [], node: [] });
    row.x.push((offset - window.from) * scale);
    row.w.push(total[node] * scale);
    row.node.push(node);
    const kids = tree.children(node);
    let right = offset;
    for (const kid of kids) right += total[kid];
    // In reverse, so that the leftmost is popped first.
    for (let i = kids.length - 1; i >= 0; i--) {
      right -= total[kids[i]];
      const x = (right - window.from) * scale;
      const w = total[kids[i]] * scale;
      if (w >= LEAST_WIDTH && x < width && x + w > 0) open.push(kids[i], depth + 1, right);
    }
  }
  return rows;
}

/** The node at a position in a row; -1 if there is none. @param {Row} row @param {number} x */
function nodeAt(row, x) {
  const i = lowerBound(row.x, x + 1e-9) - 1;
  return i >= 0 && x < row.x[i] + Math.max(row.w[i], 1) ? row.node[i] : -1;
}
