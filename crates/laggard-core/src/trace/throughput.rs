//! Throughput of devices: bandwidth of copies, arithmetic rate of operators and bus bandwidth of
//! collectives.

use super::summary::{Analysis, Collectives, Copies, Spread, Work};
use super::work::{self, WorkKind, bus_factor, dtype_bytes, peak_key};
use crate::classify::DevicePeak;
use crate::model::NONE;
use crate::model::timeline::Activity;
use rustc_hash::{FxHashMap, FxHashSet};

const NS_PER_S: f64 = 1e9;

fn per_second(amount: f64, time_ns: i64) -> f64 {
    if time_ns > 0 { amount * NS_PER_S / time_ns as f64 } else { 0.0 }
}

/// Copies and fills by kind, with the bandwidth of each.
pub(super) fn copies(analysis: &Analysis) -> Vec<Copies> {
    let timeline = analysis.timeline;
    let gpu = &timeline.gpu;
    let mut kinds: FxHashMap<u32, (Copies, Vec<i64>)> = FxHashMap::default();
    for &row in &analysis.rows {
        if !matches!(analysis.activity(row), Activity::Copy | Activity::Fill) {
            continue;
        }
        let row = row as usize;
        let time = gpu.spans.dur[row].max(0);
        let (copies, bandwidths) = kinds.entry(gpu.spans.name[row]).or_default();
        copies.count += 1;
        copies.time_ns = copies.time_ns.saturating_add(time);
        if let Some(bytes) = timeline.ids.number(gpu.bytes[row]) {
            copies.bytes = copies.bytes.saturating_add(bytes);
            if time > 0 {
                bandwidths.push(per_second(bytes as f64, time) as i64);
            }
        }
    }
    let mut copies: Vec<Copies> = kinds
        .into_iter()
        .map(|(name, (copies, mut bandwidths))| Copies {
            kind: timeline.strings.get(name).to_owned(),
            bandwidth: Spread::of(&mut bandwidths),
            ..copies
        })
        .collect();
    copies.sort_by(|a, b| b.time_ns.cmp(&a.time_ns).then_with(|| a.kind.cmp(&b.kind)));
    copies
}

/// Arithmetic by operator and shape, if shapes were recorded; all rows, most time first.
pub fn work(analysis: &Analysis) -> Vec<Work> {
    let timeline = analysis.timeline;
    let (gpu, ops) = (&timeline.gpu, &timeline.ops);
    let peak = device_peak(analysis);
    // Arithmetic per call, device time and number of calls, by operator name and inputs.
    type Inputs = (u32, u32, u32, u32);
    let mut groups: FxHashMap<Inputs, Option<(work::Work, i64, u64)>> = FxHashMap::default();
    // Whether a kernel name indicates that fp32 values are multiplied as tf32.
    let mut is_shortened: FxHashMap<Inputs, bool> = FxHashMap::default();
    let mut counted = vec![false; ops.spans.len()];
    for &row in &analysis.rows {
        let op = gpu.op[row as usize] as usize;
        if op >= ops.spans.len()
            || ops.dims[op] == NONE
            || analysis.activity(row) != Activity::Kernel
        {
            continue;
        }
        let inputs = (ops.spans.name[op], ops.dims[op], ops.types[op], ops.concrete[op]);
        let text = |id: u32| timeline.strings.get(id);
        let group = groups.entry(inputs).or_insert_with(|| {
            work::work(text(inputs.0), text(inputs.1), text(inputs.2), text(inputs.3))
                .map(|work| (work, 0, 0))
        });
        if let Some((_, time, calls)) = group {
            *is_shortened.entry(inputs).or_default() |=
                has_short_floats(text(gpu.spans.name[row as usize]));
            *time = time.saturating_add(gpu.spans.dur[row as usize].max(0));
            *calls += u64::from(!std::mem::replace(&mut counted[op], true));
        }
    }
    // Inputs with the same arithmetic are one row.
    let mut rows: FxHashMap<(String, String, String), Work> = FxHashMap::default();
    let mut short: FxHashSet<(String, String, String)> = FxHashSet::default();
    for (inputs, group) in groups {
        let (name, ..) = inputs;
        let Some((work, time, calls)) = group else { continue };
        let op = timeline.strings.get(name).to_owned();
        let row =
            rows.entry((op.clone(), work.shape.clone(), work.dtype.clone())).or_insert_with(|| {
                Work {
                    kind: match work.kind {
                        WorkKind::Gemm => "gemm",
                        WorkKind::Convolution => "convolution",
                        WorkKind::Attention => "attention",
                    }
                    .to_owned(),
                    op,
                    shape: work.shape.clone(),
                    dtype: work.dtype.clone(),
                    ..Work::default()
                }
            });
        row.count += calls;
        row.time_ns = row.time_ns.saturating_add(time);
        row.flops += work.flops * calls as f64;
        if is_shortened.get(&inputs).copied().unwrap_or(false) {
            short.insert((row.op.clone(), row.shape.clone(), row.dtype.clone()));
        }
    }
    let mut rows: Vec<Work> = rows.into_values().collect();
    for row in &mut rows {
        row.flops_per_s = per_second(row.flops, row.time_ns);
        let is_short = short.contains(&(row.op.clone(), row.shape.clone(), row.dtype.clone()));
        row.peak_share = peak
            .and_then(|peak| peak_of(peak, &row.dtype, is_short))
            .map(|peak| row.flops_per_s / peak);
    }
    rows.sort_by(|a, b| {
        b.time_ns
            .cmp(&a.time_ns)
            .then_with(|| (&a.op, &a.shape, &a.dtype).cmp(&(&b.op, &b.shape, &b.dtype)))
    });
    rows
}

/// The peak rate for a type.
fn peak_of(peak: &DevicePeak, dtype: &str, has_short_floats: bool) -> Option<f64> {
    let key = peak_key(dtype);
    let is_shortened = key == "fp32" && has_short_floats;
    peak.flops("tf32").filter(|_| is_shortened).or_else(|| peak.flops(key))
}

/// Whether a kernel name indicates that it multiplies fp32 values as tf32.
fn has_short_floats(kernel: &str) -> bool {
    ["tf32", "s1688"].iter().any(|word| kernel.contains(word))
}

fn device_peak<'a>(analysis: &Analysis<'a>) -> Option<&'a DevicePeak> {
    let device = analysis.timeline.about.devices.first()?;
    analysis.rules.device(&device.name, device.sms, device.memory)
}

/// Collectives with their bus bandwidth, if the trace has their sizes.
pub(super) fn collectives(analysis: &Analysis) -> Vec<Collectives> {
    let timeline = analysis.timeline;
    let gpu = &timeline.gpu;
    let details = timeline.collective_details();
    let number = |code: u32| timeline.ids.number(code).unwrap_or(0).max(0);
    let mut groups: FxHashMap<(u32, u32, i64), (Collectives, Vec<i64>)> = FxHashMap::default();
    for &row in &analysis.rows {
        if !analysis.rules.is_communication(analysis.class(row)) {
            continue;
        }
        let Some(collective) = details(row) else { continue };
        let ranks = number(collective.group_size);
        let operation = timeline.strings.get(collective.operation);
        let size = dtype_bytes(timeline.strings.get(collective.dtype)).unwrap_or(0);
        let elements = number(collective.elements_in).max(number(collective.elements_out));
        let bytes = elements.saturating_mul(i64::from(size));
        let time = gpu.spans.dur[row as usize].max(0);
        let key = (collective.operation, collective.dtype, ranks);
        let (group, bandwidths) = groups.entry(key).or_default();
        group.count += 1;
        group.bytes = group.bytes.saturating_add(bytes);
        group.time_ns = group.time_ns.saturating_add(time);
        if time > 0 && bytes > 0 {
            let moved = bytes as f64 * bus_factor(operation, ranks as u64);
            bandwidths.push(per_second(moved, time) as i64);
        }
    }
    let named =
        |((operation, dtype, ranks), (group, mut bandwidths)): (_, (Collectives, Vec<i64>))| {
            Collectives {
                operation: timeline.strings.get(operation).to_owned(),
                dtype: timeline.strings.get(dtype).to_owned(),
                ranks: i64::cast_unsigned(ranks),
                bus_bandwidth: Spread::of(&mut bandwidths),
                ..group
            }
        };
    let mut rows: Vec<Collectives> = groups.into_iter().map(named).collect();
    rows.sort_by(|a, b| {
        let names = || (&a.operation, &a.dtype, a.ranks).cmp(&(&b.operation, &b.dtype, b.ranks));
        b.time_ns.cmp(&a.time_ns).then_with(names)
    });
    rows
}

/// Arithmetic of a group of device operations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Arithmetic {
    /// Floating-point operations.
    pub(crate) flops: f64,
    /// Time of the kernels that performed them.
    pub(crate) time_ns: i64,
    /// Time they would take at the device's peak rate; `None` if the peak of a type is unknown.
    pub(crate) at_peak_ns: Option<f64>,
    /// Number of operators.
    pub(crate) n: u64,
}

/// Arithmetic by group; `of_row` is the group of each row of the analysis. The arithmetic of an
/// operator is attributed to its longest kernel.
pub(crate) fn arithmetic(analysis: &Analysis, of_row: &[u32], groups: usize) -> Vec<Arithmetic> {
    let timeline = analysis.timeline;
    let (gpu, ops) = (&timeline.gpu, &timeline.ops);
    let mut longest = vec![NONE; ops.spans.len()];
    let kernels = || {
        let all = analysis.rows.iter().zip(0u32..);
        all.filter(|(row, _)| analysis.activity(**row) == Activity::Kernel)
            .map(|(&row, at)| (row as usize, gpu.op[row as usize] as usize, at))
            .filter(|&(_, op, _)| ops.dims.get(op).is_some_and(|&dims| dims != NONE))
    };
    let dur = |at: u32| gpu.spans.dur[analysis.rows[at as usize] as usize];
    for (row, op, at) in kernels() {
        if longest[op] == NONE || dur(longest[op]) < gpu.spans.dur[row] {
            longest[op] = at;
        }
    }
    let peak = device_peak(analysis);
    // Floating-point operations and peak rate, by operator name, inputs and kernel.
    type Known = FxHashMap<([u32; 4], u32), Option<(f64, Option<f64>)>>;
    let mut known = Known::default();
    let mut sums = vec![Arithmetic { at_peak_ns: Some(0.0), ..Arithmetic::default() }; groups];
    for (row, op, at) in kernels() {
        let inputs = [ops.spans.name[op], ops.dims[op], ops.types[op], ops.concrete[op]];
        let text = |id: u32| timeline.strings.get(id);
        let kernel = gpu.spans.name[row];
        let work = *known.entry((inputs, kernel)).or_insert_with(|| {
            let [name, dims, types, concrete] = inputs.map(text);
            let work = work::work(name, dims, types, concrete)?;
            Some((
                work.flops,
                peak.and_then(|peak| peak_of(peak, &work.dtype, has_short_floats(text(kernel)))),
            ))
        });
        let group = of_row[at as usize];
        let Some((flops, peak)) = work else { continue };
        let Some(sum) = sums.get_mut(group as usize) else { continue };
        if of_row[longest[op] as usize] != group {
            continue;
        }
        sum.time_ns = sum.time_ns.saturating_add(gpu.spans.dur[row].max(0));
        if longest[op] == at {
            sum.flops += flops;
            sum.n += 1;
            let ns = peak.map(|peak| flops / peak * NS_PER_S);
            sum.at_peak_ns = sum.at_peak_ns.zip(ns).map(|(sum, ns)| sum + ns);
        }
    }
    sums
}
