// The function table, which renders only visible rows, and sorting for the report's tables.

const TABLE_ROW = 23;

class FunctionTable {
  /** @param {Profile} profile @param {TableOwner} owner */
  constructor(profile, owner) {
    this.profile = profile;
    this.owner = owner;
    /** @type {Tally} */ this.sums = { self: [], total: [] };
    /** @type {number[]} */ this.rows = [];
    this.selected = -1;
    this.sort = "";
    this.head = make("tr", { "aria-rowindex": 1 });
    this.body = make("tbody");
    this.table = make("table.functions", {}, make("thead", {}, this.head), this.body);
    this.element = make("div.functions-frame", { tabindex: "0", role: "region", "aria-label": "Functions" }, this.table);
    this.redraw = oncePerPaint(() => this.#draw());
    this.element.addEventListener("scroll", this.redraw, { passive: true });
    new ResizeObserver(this.redraw).observe(this.element);
    this.element.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.#key(event));
  }

  /** @param {Tally} sums @param {number[]} wholes @param {Uint8Array | null} found @param {string} sort */
  update(sums, wholes, found, sort) {
    this.sums = sums;
    this.columns = tableColumns(this.profile, sums, wholes);
    const total = sums.total[sums.total.length - 1];
    this.rows = [];
    for (let f = 0; f < total.length; f++) if (total[f] > 0 && (!found || found[f])) this.rows.push(f);
    this.sort = sort;
    const key = sort.replace("-", "");
    const column = this.columns.find((column) => column.key === key) ?? this.columns[0];
    sortRows(this.rows, column.value, sort.startsWith("-"));
    this.#drawHead();
    this.redraw();
  }

  /** Selects a function and scrolls to its row. @param {number} f */
  select(f) {
    this.selected = f;
    const y = this.rows.indexOf(f) * TABLE_ROW;
    const { scrollTop, clientHeight } = this.element;
    if (y < scrollTop || y + 3 * TABLE_ROW > scrollTop + clientHeight) this.element.scrollTop = y - clientHeight / 2;
    this.redraw();
  }

  #drawHead() {
    const columns = this.columns ?? [];
    const cells = columns.map(({ key, title, number, width }, i) => {
      // A share column sorts like its weight column; only the weight column shows the sort order.
      const twin = columns[i - 1]?.key === key;
      const state = twin ? "none" : this.sort === key ? "ascending" : this.sort === `-${key}` ? "descending" : "none";
      // Numbers sort in descending order first, names in ascending order.
      const next = this.sort === `-${key}` ? key : this.sort === key || number ? `-${key}` : key;
      const button = make("button", { onclick: () => this.owner.sortBy(next) }, title);
      return make("th", { class: number ? "n" : "", scope: "col", "aria-sort": state, style: width && `width:${width}px` }, button);
    });
    this.head.replaceChildren(...cells);
    this.table.setAttribute("aria-rowcount", String(this.rows.length + 1));
  }

  #draw() {
    const columns = this.columns ?? [];
    const first = Math.max(Math.floor(this.element.scrollTop / TABLE_ROW) - 5, 0);
    const last = Math.min(first + Math.ceil(this.element.clientHeight / TABLE_ROW) + 10, this.rows.length);
    const rows = [];
    for (let i = first; i < last; i++) rows.push(this.#row(columns, this.rows[i], i));
    const space = (/** @type {number} */ many) =>
      make("tr", { "aria-hidden": "true", class: "space" }, make("td", { colspan: columns.length, style: `height:${many * TABLE_ROW}px` }));
    this.body.replaceChildren(space(first), ...rows, space(this.rows.length - last));
  }

  /** @param {Column[]} columns @param {number} f @param {number} i */
  #row(columns, f, i) {
    const cells = columns.map((column) => {
      const text = column.text(f);
      const cell = make("td", { class: column.number ? "n" : "", title: column.number ? undefined : text }, text);
      if (column.change) {
        const rgb = changeFill(column.change(f), theme());
        cell.style.background = `rgb(${rgb.join(" ")})`;
        cell.style.color = inkOn(rgb);
      }
      return cell;
    });
    return make("tr", {
      "aria-rowindex": i + 2, "aria-selected": String(f === this.selected),
      onclick: () => this.owner.pick(f), ondblclick: () => this.owner.open(f),
    }, ...cells);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (event.key === "Enter" && this.selected >= 0 && event.target === this.element) this.owner.open(this.selected);
    else if (step === undefined || this.rows.length === 0) return;
    else {
      const next = Math.min(Math.max(this.rows.indexOf(this.selected) + step, 0), this.rows.length - 1);
      this.owner.pick(this.rows[next]);
    }
    event.preventDefault();
    event.stopPropagation();
  }
}

/** The columns of the table. @param {Profile} profile @param {Tally} sums @param {number[]} wholes @returns {Column[]} */
function tableColumns(profile, sums, wholes) {
  const { flame } = profile;
  const { self, total } = sums;
  /** @type {Column[]} */
  const names = [
    { key: "name", title: "Function", value: profile.name, text: (f) => shownName(profile.name(f)) },
    { key: "library", title: "Library", width: 150, value: profile.library, text: (f) => shownName(profile.library(f)) },
  ];
  /** @type {(key: string, title: string, column: Float64Array) => Column} */
  const weight = (key, title, column) => ({
    key, title, number: true, width: 92, value: (f) => column[f], text: (f) => quantity(column[f], flame.unit),
  });
  /** @type {(key: string, column: Float64Array) => Column} */
  const share = (key, column) => ({
    key, title: "%", number: true, width: 76, value: (f) => column[f], text: (f) => percent(shareOf(column[f], wholes[0])),
  });
  if (flame.sides.length === 1) {
    const pair = (/** @type {string} */ key, /** @type {string} */ title, /** @type {Float64Array} */ column) => [
      weight(key, title, column), share(key, column)];
    return [...names, ...pair("self0", "Self", self[0]), ...pair("total0", "Total", total[0])];
  }
  /** @type {(key: string, title: string, columns: Float64Array[]) => Column} */
  const gap = (key, title, [a, b]) => ({
    key, title, number: true, width: 92,
    value: (f) => gapOf(a[f], b[f]), text: (f) => signed(gapOf(a[f], b[f]), flame.unit), change: (f) => changeOf(a[f], b[f]),
  });
  /** @type {Column} */
  const relation = {
    key: "ratio", title: "B / A", number: true, width: 82,
    value: (f) => (total[0][f] === 0 ? Infinity : total[1][f] / total[0][f]), text: (f) => ratio(total[0][f], total[1][f]),
  };
  const sides = [weight("total0", "Total A", total[0]), weight("total1", "Total B", total[1])];
  const columns = [...names, ...sides, gap("gap", "Diff.", total), relation];
  const { intervals } = flame;
  if (intervals) {
    columns.push({
      key: "interval", title: "95 % CI", number: true, width: 170, value: (f) => intervals[f]?.[0] ?? NaN,
      text: (f) => (intervals[f] ? intervalText(intervals[f], flame.unit) : "-"),
    });
  }
  return [...columns, weight("self0", "Self A", self[0]), weight("self1", "Self B", self[1]), gap("selfgap", "Self diff.", self)];
}

/** Sorts rows by a value. Rows without a value are always last.
 * @template T @param {T[]} rows @param {(row: T) => string | number} value @param {boolean} descending */
function sortRows(rows, value, descending) {
  const keyed = rows.map((row, i) => ({ row, i, key: value(row) }));
  const missing = (/** @type {string | number} */ key) => Number.isNaN(key);
  keyed.sort((a, b) => {
    if (missing(a.key) || missing(b.key)) return Number(missing(a.key)) - Number(missing(b.key)) || a.i - b.i;
    const order = a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
    return (descending ? -order : order) || a.i - b.i;
  });
  keyed.forEach(({ row }, i) => (rows[i] = row));
}

/** Makes a table of the report sortable by its column headers. @param {HTMLTableElement} table */
function makeSortable(table) {
  const heads = [...(table.tHead?.rows[table.tHead.rows.length - 1]?.cells ?? [])];
  heads.forEach((head, i) => {
    head.tabIndex = 0;
    head.classList.add("sortable");
    const sort = () => {
      const number = head.classList.contains("n");
      const was = head.getAttribute("aria-sort");
      const descending = was === "ascending" || (was !== "descending" && number);
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      for (const body of table.tBodies) {
        const rows = [...body.rows];
        sortRows(rows, (row) => cellKey(row.cells[i], number), descending);
        body.append(...rows);
      }
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      sort();
    });
  });
}

/** @param {HTMLTableCellElement | undefined} cell @param {boolean} number */
function cellKey(cell, number) {
  const raw = cell?.dataset.v;
  if (raw !== undefined && raw !== "") return Number(raw);
  return number ? NaN : (cell?.textContent ?? "").toLowerCase();
}
