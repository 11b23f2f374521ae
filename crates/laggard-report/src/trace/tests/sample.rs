//! A trace with data for every section of the report.

use laggard_core::trace::By;
use laggard_core::trace::summary::{
    About, Breakdown, Category, Collectives, Copies, CountTime, Device, Group, Idle, Launches,
    Links, Loss, PeakMemory, Spread, Step, Steps, Stream, Summary, Totals, Work,
};

/// A breakdown whose total is the sum of these rows.
pub(super) fn breakdown(by: By, rows: Vec<Group>) -> Breakdown {
    let total = CountTime {
        count: rows.iter().map(|row| row.count).sum(),
        time_ns: rows.iter().map(|row| row.time_ns).sum(),
    };
    Breakdown { by, distinct: rows.len() as u64, total, rows }
}

fn group(name: &str, class: &str, count: u64, time_ns: i64, median_ns: i64) -> Group {
    Group {
        name: name.into(),
        class: class.into(),
        count,
        time_ns,
        min_ns: median_ns / 2,
        median_ns,
        max_ns: median_ns * 4,
    }
}

fn spread(n: u64, median: i64) -> Spread {
    Spread {
        n,
        min: median / 4,
        p25: median * 3 / 4,
        median,
        p75: median * 3 / 2,
        p95: median * 6,
        max: median * 40,
    }
}

fn device(number: &str, span_ns: i64) -> Device {
    Device {
        device: number.into(),
        name: "NVIDIA H100 80GB HBM3".into(),
        span_ns,
        busy_ns: span_ns / 10 * 8,
        idle_ns: span_ns / 10 * 2,
        compute_ns: span_ns / 10 * 7,
        communication_ns: span_ns / 10 * 2,
        exposed_communication_ns: span_ns / 20,
        copy_ns: span_ns / 50,
        exposed_copy_ns: span_ns / 300,
        idle: Idle {
            gaps: 4_812,
            host_bound_ns: span_ns / 10,
            synchronisation_ns: span_ns / 14,
            other_ns: span_ns / 35,
        },
        streams: vec![
            Stream { stream: "7".into(), count: 41_020, busy_ns: span_ns / 10 * 7 },
            Stream { stream: "20".into(), count: 812, busy_ns: span_ns / 10 * 2 },
        ],
    }
}

fn breakdowns() -> Vec<Breakdown> {
    let gemm = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1\
                _execute_segment_k_off_kernel__5x_cublas";
    vec![
        breakdown(
            By::Class,
            vec![
                group("gemm", "gemm", 6_144, 520_300_000, 81_000),
                group("other", "other", 12_004, 318_000_000, 9_000),
                group("attention", "attention", 1_536, 80_100_000, 52_100),
                group("norm", "norm", 3_072, 9_870_000, 3_100),
                group("copy", "copy", 200, 1_200_000, 2_010),
            ],
        ),
        breakdown(
            By::Kernel,
            vec![
                group(gemm, "gemm", 6_144, 520_300_000, 81_000),
                group("evil\nrow\u{1b}[31m | `code` <b>", "other", 12_004, 318_000_000, 9_000),
                group("say \"hi\", \u{202e}fake", "attention", 1_536, 80_100_000, 52_100),
                group(
                    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
                    "norm",
                    3_072,
                    9_870_000,
                    3_100,
                ),
            ],
        ),
        breakdown(
            By::Phase,
            vec![
                group("prefill", "gemm", 4_000, 500_000_000, 90_000),
                group("decode", "attention", 18_000, 420_000_000, 11_000),
                group("none", "other", 756, 8_270_000, 3_000),
            ],
        ),
        breakdown(By::Op, vec![group("aten::mm", "gemm", 6_144, 520_300_000, 81_000)]),
        breakdown(By::Python, vec![group("(no Python frame)", "gemm", 6_144, 520_300_000, 81_000)]),
    ]
}

pub(super) fn summary() -> Summary {
    let count_time = |count: u64, time_ns: i64| CountTime { count, time_ns };
    let property = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Summary {
        about: About {
            gpus: vec![("NVIDIA H100 80GB HBM3".into(), 8)],
            rank: Some(0),
            world_size: Some(8),
            backend: Some("nccl".into()),
            base_time_ns: 1_700_000_000_000_000_000,
            properties: vec![
                property("cuda_runtime_version", "12090"),
                property("cupti_version", "26"),
                property("trace_id", "4F3A"),
            ],
            shapes: true,
            stacks: false,
        },
        totals: Totals {
            events: 3_456_789,
            bytes: 1_234_567_890,
            span_ns: 1_312_000_000,
            start_ns: 12,
            kernels: count_time(22_756, 929_470_000),
            copies: count_time(180, 15_300_000),
            fills: count_time(20, 40_000),
            runtime: count_time(81_220, 402_000_000),
            ops: count_time(120_400, 2_912_000_000),
            flows: 45_512,
            ..Totals::default()
        },
        categories: vec![Category { phase: "X".into(), category: "kernel".into(), count: 22_756 }],
        losses: vec![Loss {
            reason: "truncated".into(),
            explanation: "the file ends in the middle; all whole events were kept".into(),
            count: 1,
            first_offset: 1_234_567_880,
        }],
        links: Links {
            rows: 22_956,
            launched: 22_800,
            with_op: 21_004,
            with_python: 0,
            graph_launches: 12,
            graph_rows: 6_144,
            largest_graph: 512,
        },
        devices: vec![device("0", 1_200_000_000), device("1", 1_100_000_000)],
        breakdowns: breakdowns(),
        launches: Launches {
            latency_ns: spread(16_668, 48_200),
            idle_latency_ns: spread(4_812, 6_100),
            call_ns: spread(16_668, 4_400),
            queued: 11_856,
            mean_queue: 14.26,
        },
        copies: vec![
            Copies {
                kind: "Memcpy HtoD (Pageable -> Device)".into(),
                count: 180,
                bytes: 212_000_000,
                time_ns: 15_300_000,
                bandwidth: spread(180, 13_900_000_000),
            },
            Copies {
                kind: "Memset (Device)".into(),
                count: 20,
                time_ns: 40_000,
                ..Copies::default()
            },
        ],
        work_distinct: 2,
        work: vec![
            Work {
                kind: "gemm".into(),
                op: "aten::mm".into(),
                shape: "m4096 n4096 k11008".into(),
                dtype: "bf16".into(),
                count: 64,
                time_ns: 40_000_000,
                flops: 2.3e13,
                flops_per_s: 5.91e14,
                peak_share: Some(0.5976),
            },
            Work {
                kind: "attention".into(),
                op: "aten::_scaled_dot_product_flash_attention".into(),
                shape: "b8 h32 q2048 k2048 d128".into(),
                dtype: "bf16".into(),
                count: 32,
                time_ns: 21_000_000,
                flops: 8.8e12,
                flops_per_s: 4.19e14,
                peak_share: None,
            },
        ],
        collectives: vec![Collectives {
            operation: "allreduce".into(),
            dtype: "BFloat16".into(),
            ranks: 8,
            count: 128,
            bytes: 17_179_869_184,
            time_ns: 201_000_000,
            bus_bandwidth: spread(128, 210_000_000_000),
        }],
        steps: Some(Steps {
            marker: "ProfilerStep".into(),
            duration_ns: Spread::of(&mut [642_000_000, 655_000_000]),
            gpu_ns: Spread::of(&mut [470_000_000, 459_000_000]),
            rows: vec![
                Step {
                    name: "ProfilerStep#3".into(),
                    start_ns: 1_000,
                    duration_ns: 655_000_000,
                    gpu_ns: 470_000_000,
                    gpu_count: 11_400,
                },
                Step {
                    name: "ProfilerStep#4".into(),
                    start_ns: 656_000_000,
                    duration_ns: 642_000_000,
                    gpu_ns: 459_000_000,
                    gpu_count: 11_400,
                },
            ],
        }),
        unclassified_share: 0.3421,
        peak_memory: Some(PeakMemory {
            allocated: 45_600_000_000,
            reserved: 50_100_000_000,
            n: 1_234,
        }),
    }
}
