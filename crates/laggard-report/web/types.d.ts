// Types of the page's data and code, used only by the type checker.

interface PageData {
  schema: "laggard.page/1";
  flame?: FlameData;
  timeline?: TimelineData;
  distributions?: DistributionData[];
}

interface FlameData {
  event: string;
  /** Unit of weights. Shares are in parts per million of the side's samples. */
  unit: "ns" | "bytes" | "count" | "share";
  /** Empty if weights are for the whole run; "call" if they are per call. */
  per: string;
  /** One name, or two: the reference A, and B. */
  sides: string[];
  strings: string[];
  /** Short forms of long names, by index in `strings`. */
  short: { [string: number]: string };
  /** Indexes into `strings`. Kinds: 0 native, 1 inlined, 2 Python, 3 kernel, 4 placeholder. */
  functions: { name: number[]; library: number[]; kind: number[]; file: number[]; line: number[] };
  /** Node 0 is the root with parent -1; parents precede their children. */
  nodes: { parent: number[]; function: number[]; self: number[][] };
  wholes: number[];
  samples: number[];
  /** Number of pruned frames, and the share below which frames were pruned. */
  hidden: { nodes: number; least: number };
  /** 95 % confidence intervals of a function's difference in total, B minus A. */
  intervals?: { [f: number]: [number, number] };
}

interface TimelineData {
  end: number;
  unit: "ns";
  strings: string[];
  /** Short forms of long names, by index in `strings`. */
  short: { [string: number]: string };
  classes: number[];
  phases: number[];
  tracks: TrackData[];
  note: string;
}

interface TrackData {
  name: string;
  group: string;
  start: number[];
  duration: number[];
  /** Indexes into `strings`. */
  label: number[];
  /** Indexes into `classes`. */
  class: number[];
  /** Indexes into `phases`, -1 for none; may be empty. */
  phase: number[];
  /** Nodes of the flame graph if items are samples; may be empty. */
  node: number[];
  weight: number[];
}

interface DistributionData {
  title: string;
  unit: "ns";
  /** Title of the time axis. */
  axis: string;
  sides: { name: string; values: number[]; interval?: [number, number, number] }[];
}

interface Profile {
  flame: FlameData;
  parent: Int32Array;
  fn: Int32Array;
  first: Int32Array;
  child: Int32Array;
  outer: Uint8Array;
  functionCount: number;
  name(f: number): string;
  /** The name, shortened by meaning if it is long. */
  short(f: number): string;
  library(f: number): string;
}

interface Weights {
  self: Float64Array[];
  total: Float64Array[];
  /** The column that determines the width of frames in the difference view. */
  widest: number;
}

interface Tally {
  self: Float64Array[];
  total: Float64Array[];
}

interface Paths {
  starts: number[];
  ats: number[];
}

interface TreeShape {
  /** From callee to caller. */
  upwards: boolean;
  /** The function that all paths start from, -1 for all stacks. */
  root: number;
  order: string;
  collapse: boolean;
}

interface Row {
  x: number[];
  w: number[];
  node: number[];
}

interface Span {
  from: number;
  span: number;
}

interface Lens {
  scale: number;
  shift: number;
}

interface Paint {
  fill: string;
  ink: string;
}

/** One tree in one pane. Row r is drawn `direction * r` rows from `origin`. */
interface Part {
  tree: CallTree;
  which: number;
  rows: Row[];
  origin: number;
  direction: number;
}

interface Pane {
  x: number;
  width: number;
  column: number;
  parts: Part[];
}

interface Frame {
  tree: CallTree;
  node: number;
  which: number;
}

interface Track {
  name: string;
  group: string;
  start: Float64Array;
  duration: Float64Array;
  /** The latest end of this item and all before it. */
  reach: Float64Array;
  /** Sum of durations before each item. */
  busy: Float64Array;
  label: ArrayLike<number>;
  class: ArrayLike<number>;
  phase: ArrayLike<number>;
  node: ArrayLike<number>;
  weight: ArrayLike<number>;
}

interface PageState {
  view: string;
  order: string;
  side: string;
  colour: string;
  search: string;
  /** Function of the sandwich view, -1 for the one with the most self weight. */
  fn: number;
  /** Tree, first node and last node of the zoomed path. */
  zoom: [number, number, number] | null;
  collapse: boolean;
  /** Column of the table, with a leading "-" if descending. */
  sort: string;
  /** Time range that filters the flame graph. */
  range: [number, number] | null;
  /** Time range that the timeline shows. */
  window: [number, number] | null;
  timelineColour: string;
}

/** Callbacks from the canvas to its panel. */
interface StageOwner {
  hover(frame: Frame | null, event: MouseEvent | null): void;
  zoomTo(frame: Frame): void;
  open(f: number): void;
  /** Pans by a share of the width. */
  pan(share: number): void;
  zoom(factor: number, at: number): void;
}

interface TableOwner {
  pick(f: number): void;
  open(f: number): void;
  sortBy(key: string): void;
}

interface Column {
  key: string;
  title: string;
  number?: boolean;
  width?: number;
  value(f: number): string | number;
  text(f: number): string;
  change?(f: number): number;
}

declare var exports: any;
