// The contract between the page's data and its code, for the type checker only.

interface PageData {
  schema: "laggard.page/1";
  flame?: FlameData;
  timeline?: TimelineData;
  distributions?: DistributionData[];
}

interface FlameData {
  event: string;
  /** Of the weights. Shares are parts of a million of the side's own samples. */
  unit: "ns" | "bytes" | "count" | "share";
  /** Empty when weights are of the whole run, else what they are per: "call". */
  per: string;
  /** One name, or two: A, the reference, and B, the one asked about. */
  sides: string[];
  strings: string[];
  /** Indexes into `strings`. Kinds: 0 native, 1 inlined, 2 Python, 3 kernel, 4 a remark. */
  functions: { name: number[]; library: number[]; kind: number[]; file: number[]; line: number[] };
  /** Node 0 is the root, its parent -1; every parent comes before its children. */
  nodes: { parent: number[]; function: number[]; self: number[][] };
  wholes: number[];
  samples: number[];
  /** Frames folded away, and the share below which they were. */
  hidden: { nodes: number; least: number };
  /** 95 % intervals of a function's total gap, B minus A. */
  intervals?: { [f: number]: [number, number] };
}

interface TimelineData {
  end: number;
  unit: "ns";
  strings: string[];
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
  /** Into `strings`. */
  label: number[];
  /** Into `classes`. */
  class: number[];
  /** Into `phases`, -1 for none; may be empty. */
  phase: number[];
  /** Nodes of the flame graph, where items are samples; may be empty. */
  node: number[];
  weight: number[];
}

interface DistributionData {
  title: string;
  unit: "ns";
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
  library(f: number): string;
}

interface Weights {
  self: Float64Array[];
  total: Float64Array[];
  /** The column that frames are as wide as where both sides are shown. */
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
  /** The function all paths start from, -1 for all stacks. */
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
  /** Sum of the durations before each item. */
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
  /** Function of the sandwich, -1 for the one with most weight of its own. */
  fn: number;
  /** Tree, first and last node of the path that is zoomed to. */
  zoom: [number, number, number] | null;
  collapse: boolean;
  /** Column of the table, "-" before it when descending. */
  sort: string;
  /** Times that the flame graph is restricted to. */
  range: [number, number] | null;
  /** Times that the timeline shows. */
  window: [number, number] | null;
  timelineColour: string;
}

/** What a canvas of frames tells to the panel that it is in. */
interface StageOwner {
  hover(frame: Frame | null, event: MouseEvent | null): void;
  zoomTo(frame: Frame): void;
  open(f: number): void;
  /** By parts of the width. */
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
