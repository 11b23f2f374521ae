//! Tests each judge with evidence of a known cause.

use super::*;
use crate::model::code::{Class, Mark, Marks, Mix};
use crate::model::counts::{Counts, FunctionCounts};
use crate::stats::growth::Growth;
use proptest::prelude::*;

const LIBRARY: &str = "libwork.so";

/// A function of a role with the given time.
fn work(role: Role, name: &str, ns: f64) -> Work {
    Work {
        role,
        name: name.into(),
        library: if role == Role::Interpreter { "python3.13" } else { LIBRARY }.into(),
        ns,
        samples: ns as u64 / 10,
        ..Work::default()
    }
}

/// A compute function: half of its instructions have this class and these marks, half are plain
/// integer instructions.
fn code(name: &str, ns: f64, class: Class, marks: &[Mark]) -> Work {
    let mut mix = Mix::default();
    mix.count(class, marks.iter().fold(Marks::default(), |all, mark| all.and(*mark)), 500);
    mix.count(Class::Integer, Marks::default(), 500);
    Work { mix: Some(mix), ..work(Role::Compute, name, ns) }
}

/// A single-threaded side that runs only these functions.
fn side(work: Vec<Work>) -> Seen {
    let user_ns = work.iter().map(|work| work.ns).sum();
    Seen { wall_ns: user_ns, user_ns, threads: 1, rounds: 100, work, ..Seen::default() }
}

fn counts(instructions: f64, branch_misses: f64, cache_misses: f64) -> Option<Simulated> {
    Some(Simulated {
        instructions,
        branches: instructions / 5.0,
        branch_misses,
        accesses: instructions / 3.0,
        cache_misses,
        memory_accesses: 0.0,
    })
}

fn first(a: &Seen, b: &Seen) -> Option<(Kind, f64)> {
    let judgement = judge(&Pair { a, b });
    judgement.culprits.first().map(|culprit| (culprit.finding.kind, culprit.explains))
}

/// Asserts that the first culprit has this kind, explains more than half and has facts and advice.
fn check(a: &Seen, b: &Seen, kind: Kind) {
    let judgement = judge(&Pair { a, b });
    let Some(culprit) = judgement.culprits.first() else {
        panic!("{kind:?}: no culprit named, missing: {:?}", judgement.missing);
    };
    assert_eq!(culprit.finding.kind, kind, "{judgement:?}");
    assert!(culprit.explains > 0.5, "{kind:?} explains {}", culprit.explains);
    assert!(!culprit.finding.facts.is_empty() && !culprit.finding.advice.is_empty());
}

#[test]
fn vector_code_is_compared_with_scalar_and_narrower_code() {
    let wide = || code("kernel", 1000.0, Class::Avx512, &[Mark::PackedMath]);
    let scalar = code("kernel", 9000.0, Class::Float, &[Mark::ScalarMath]);
    check(&side(vec![wide()]), &side(vec![scalar]), Kind::ScalarLoop);
    let other_library_scalar = || Work {
        library: "libother.so".into(),
        ..code("own_loop", 9000.0, Class::Float, &[Mark::ScalarMath])
    };
    check(&side(vec![wide()]), &side(vec![other_library_scalar()]), Kind::ScalarLoop);
    let named = Work { name: "own::kernel_f32_scalar".into(), ..other_library_scalar() };
    let available = ["own::kernel_f32_avx2", "own::kernel_f64_avx2", "own::kernel_f32_scalar"];
    let available = available.map(|name| ("libother.so".to_owned(), name.to_owned())).into();
    let b = Seen { available, ..side(vec![named]) };
    let a = side(vec![wide()]);
    let judgement = judge(&Pair { a: &a, b: &b });
    let advice = &judgement.culprits[0].finding.advice;
    assert!(advice.starts_with("libother.so also contains kernel_f32_avx2:"), "{advice}");
    let short = code("kernel", 3000.0, Class::Sse, &[Mark::PackedMath]);
    check(&side(vec![wide()]), &side(vec![short]), Kind::NarrowSimd);
    let divides = code("kernel", 4000.0, Class::Avx512, &[Mark::PackedMath, Mark::Divide]);
    check(&side(vec![wide()]), &side(vec![divides]), Kind::SlowInstruction);
}

#[test]
fn additional_time_in_one_role_names_its_cause() {
    let compute = || work(Role::Compute, "kernel", 1000.0);
    let a = side(vec![compute()]);
    for (role, name, kind) in [
        (Role::Copy, "__memmove_avx_unaligned_erms", Kind::Copy),
        (Role::Conversion, "cast_float_to_double", Kind::Conversion),
        (Role::Allocation, "malloc", Kind::Allocation),
        (Role::Interpreter, "_PyEval_EvalFrameDefault", Kind::Interpreter),
        (Role::StartUp, "_dl_relocate_object", Kind::StartUp),
        (Role::Sync, "pthread_mutex_lock", Kind::Waiting),
    ] {
        check(&a, &side(vec![compute(), work(role, name, 2000.0)]), kind);
    }
}

#[test]
fn uncontended_locks_are_detected_by_their_time() {
    let compute = || work(Role::Compute, "kernel", 1000.0);
    let (a, b) = (side(vec![compute()]), side(vec![compute(), work(Role::Sync, "lock", 2000.0)]));
    let found = judge(&Pair { a: &a, b: &b });
    let finding = &found.culprits[0].finding;
    let facts: Vec<(&str, [f64; 2])> =
        finding.facts.iter().map(|fact| (&*fact.what, [fact.a, fact.b])).collect();
    assert_eq!(facts, [("time in lock functions", [0.0, 2000.0])]);
    assert!(finding.advice.starts_with("the locks are not contended"), "{}", finding.advice);
}

#[test]
fn frequent_native_calls_are_distinguished_from_a_slow_interpreter() {
    let calls = |count| {
        Some(vec![Called { name: "add".into(), library: LIBRARY.into(), count, ns: 10.0 * count }])
    };
    let loops = || vec![work(Role::Interpreter, "_PyEval_EvalFrameDefault", 9000.0)];
    let a = Seen { calls: calls(1.0), ..side(vec![work(Role::Compute, "kernel", 1000.0)]) };
    check(&a, &Seen { calls: calls(1000.0), ..side(loops()) }, Kind::CallOverhead);
    check(&a, &Seen { calls: calls(1.0), ..side(loops()) }, Kind::Interpreter);
    let glue = vec![work(Role::Binding, "ffi_call", 5000.0), work(Role::Compute, "kernel", 1000.0)];
    check(&a, &Seen { calls: None, ..side(glue) }, Kind::CallOverhead);
}

#[test]
fn blas_kernels_are_recognized_by_name() {
    let kernel = |name: &str, ns| side(vec![work(Role::Blas, name, ns)]);
    let new = kernel("sgemm_kernel_SKYLAKEX", 1000.0);
    check(&new, &kernel("sgemm_kernel_NEHALEM", 4000.0), Kind::OldKernel);
    check(&new, &side(vec![work(Role::Compute, "triple_loop", 90_000.0)]), Kind::LibraryNotUsed);
    let zen = kernel("sgemm_kernel_ZEN", 4000.0);
    assert_eq!(first(&kernel("sgemm_kernel_HASWELL", 1000.0), &zen), None, "same generation");
    let of = |library: &str, ns| {
        side(vec![Work { library: library.into(), ..work(Role::Blas, "dgemm_", ns) }])
    };
    let fast = of("libscipy_openblas64_-f48b354e.so", 1000.0);
    check(&fast, &of("libblas.so.3", 9000.0), Kind::OtherLibrary);
    assert_eq!(first(&fast, &of("libscipy_openblas64_-3d4e.so", 9000.0)), None, "same library");
}

#[test]
fn a_faster_function_of_the_same_library_is_named() {
    let available = vec![(LIBRARY.into(), "sum_contiguous".into())];
    let below = |name, ns| Work { parent: "sum".into(), ..work(Role::Compute, name, ns) };
    let a = side(vec![below("sum_contiguous", 1000.0)]);
    let slow = vec![below("sum_strided", 5000.0)];
    check(&a, &Seen { available: available.clone(), ..side(slow.clone()) }, Kind::SlowPath);
    let other = vec![work(Role::Compute, "sum_strided", 5000.0)];
    assert_eq!(first(&a, &Seen { available, ..side(other) }), None, "the caller selected it");
    assert_eq!(first(&a, &side(slow.clone())), None, "not available");
    let small =
        [slow, vec![work(Role::Interpreter, "_PyEval_EvalFrameDefault", 50_000.0)]].concat();
    let available = vec![(LIBRARY.into(), "sum_contiguous".into())];
    let found = judge(&Pair { a: &a, b: &Seen { available, ..side(small) } });
    assert!(found.culprits.iter().all(|culprit| culprit.finding.kind != Kind::SlowPath));
}

#[test]
fn kernel_time_and_threads_are_judged_by_counts() {
    let compute = || vec![work(Role::Compute, "kernel", 1000.0)];
    let a = side(compute());
    let faults = Seen { wall_ns: 3000.0, system_ns: 2000.0, faults: 10.0, ..side(compute()) };
    check(&a, &faults, Kind::PageFaults);
    let calls = Seen { wall_ns: 3000.0, system_ns: 2000.0, ..side(compute()) };
    assert_eq!(judge(&Pair { a: &a, b: &calls }).missing, [Missing::SystemCalls]);
    let waits = Seen { wall_ns: 9000.0, waits: 3.0, ..side(compute()) };
    check(&a, &waits, Kind::Waiting);
    let spread = Seen { wall_ns: 500.0, threads: 2, ..side(compute()) };
    check(&spread, &side(compute()), Kind::NotParallel);
    let busy = Seen { wall_ns: 9000.0, waits: 4.0, threads: 2, ..side(compute()) };
    check(&a, &busy, Kind::TooParallel);
}

#[test]
fn the_same_code_is_judged_by_counts() {
    let kernel = |ns, counted| {
        let work = code("kernel", ns, Class::Avx256, &[Mark::PackedMath]);
        side(vec![Work { counted, ..work }])
    };
    let a = kernel(1000.0, counts(1e4, 10.0, 100.0));
    check(&a, &kernel(2000.0, counts(2e4, 20.0, 200.0)), Kind::MoreInstructions);
    check(&a, &kernel(5000.0, counts(1e4, 1500.0, 100.0)), Kind::BranchMisses);
    check(&a, &kernel(5000.0, counts(1e4, 10.0, 3000.0)), Kind::Layout);
    check(&a, &kernel(2000.0, counts(1e4, 10.0, 600.0)), Kind::CacheMisses);
    check(&a, &kernel(9000.0, counts(1e4, 10.0, 100.0)), Kind::Denormals);
    let far = counts(1e4, 10.0, 600.0).map(|all| Simulated { memory_accesses: 400.0, ..all });
    check(&a, &kernel(9000.0, far), Kind::MemoryBound);
    let unknown = judge(&Pair { a: &kernel(1000.0, None), b: &kernel(2000.0, None) });
    assert_eq!((unknown.culprits.len(), unknown.not_explained), (0, 1.0));
    assert_eq!(unknown.missing, [Missing::Counts]);
}

#[test]
fn variants_of_a_function_share_a_slice() {
    for (a, b) in [
        ("broadcast_row_add_f32_avx512", "broadcast_row_add_f32_scalar"),
        ("sgemm_kernel_SKYLAKEX", "sgemm_kernel_HASWELL"),
        ("__memmove_avx_unaligned_erms", "__memmove_sse2_unaligned"),
        ("work::sum<f32>", "work::sum<f64>"),
        ("kernel.cold", "kernel"),
    ] {
        assert_eq!(partition::shared_name(a), partition::shared_name(b));
    }
    assert_ne!(partition::shared_name("sum_f32"), partition::shared_name("sum_f64"));
}

#[test]
fn roles_depend_on_names_and_libraries() {
    let of = |function, library| {
        role(Place { function, library, library_role: None, is_loading: false })
    };
    assert_eq!(of("__memmove_avx_unaligned_erms", "libc.so.6"), Role::Copy);
    assert_eq!(of("_int_malloc", "libc.so.6"), Role::Allocation);
    assert_eq!(of("_PyEval_EvalFrameDefault", "python3.12"), Role::Interpreter);
    assert_eq!(of("_PyObject_Free", "libpython3.12.so.1.0"), Role::Interpreter);
    assert_eq!(of("take_gil", "libpython3.12.so.1.0"), Role::Sync);
    assert_eq!(of("ffi_call_int", "libffi.so.8"), Role::Binding);
    assert_eq!(of("npy_get_floatstatus_barrier", "_multiarray_umath.so"), Role::Interpreter);
    assert_eq!(of("double_add", "_multiarray_umath.so"), Role::Interpreter);
    assert_eq!(of("double_sum_of_products_two", "_multiarray_umath.so"), Role::Compute);
    assert_eq!(of("_aligned_strided_to_contig_size8", "_multiarray_umath.so"), Role::Rearrangement);
    assert_eq!(of("broadcast_row_add_f32_scalar", "raptors.so"), Role::Compute);
    assert_eq!(of("FLOAT_add", "_multiarray_umath.so"), Role::Compute);
    assert_eq!(
        of("_aligned_contig_cast_float_to_double", "_multiarray_umath.so"),
        Role::Conversion
    );
    let blas = Some(crate::model::code::Role::Blas);
    let place = Place {
        function: "sgemm_",
        library: "libopenblas.so",
        library_role: blas,
        is_loading: false,
    };
    assert_eq!(role(place), Role::Blas);
    assert_eq!(role(Place { is_loading: true, ..place }), Role::StartUp);
}

#[test]
fn only_variants_of_a_function_share_a_row() {
    let a =
        side(vec![work(Role::Compute, "scale_avx2", 100.0), work(Role::Compute, "parse", 50.0)]);
    let b =
        side(vec![work(Role::Compute, "scale_scalar", 300.0), work(Role::Compute, "read", 70.0)]);
    let mut rows = time_rows(&Pair { a: &a, b: &b });
    rows.retain(|row| row.part == Part::Functions(Role::Compute));
    let names = |row: &TimeRow| row.functions.clone().map(|(name, _)| name);
    let found: Vec<[String; 2]> = rows.iter().map(names).collect();
    let expected = [["parse", ""], ["", "read"], ["scale_avx2", "scale_scalar"]];
    assert!(expected.iter().all(|row| found.contains(&row.map(str::to_owned))), "{found:?}");
    assert_eq!(found.len(), 3);
}

#[test]
fn a_larger_exponent_is_the_first_culprit() {
    let growth = |exponent: f64| {
        let samples = [1e3, 2e3, 4e3].map(|n: f64| (n, vec![n.powf(exponent); 9]));
        Growth::fit("n", &samples, 1)
    };
    let with = |ns, exponent| Seen {
        growth: growth(exponent),
        ..side(vec![work(Role::Compute, "search", ns)])
    };
    let (a, b) = (with(4e3, 1.0), with(16e6, 2.0));
    let judgement = judge(&Pair { a: &a, b: &b });
    assert_eq!(judgement.culprits[0].finding.kind, Kind::Complexity);
    let explained: f64 = judgement.culprits.iter().map(|culprit| culprit.explains).sum();
    assert!((explained + judgement.not_explained - 1.0).abs() < 1e-9, "{judgement:?}");
    let same = judge(&Pair { a: &a, b: &with(16e6, 1.0) });
    assert!(same.culprits.iter().all(|culprit| culprit.finding.kind != Kind::Complexity));
}

#[test]
fn unnamed_functions_share_the_counts_of_their_library() {
    let mut seen = side(vec![
        work(Role::Compute, "[libwork.so+0x10]", 300.0),
        work(Role::Compute, "[libwork.so+0x90]", 100.0),
        work(Role::Compute, "named", 100.0),
        Work { library: "libother.so".into(), ..work(Role::Compute, "[libother.so+0x1]", 50.0) },
    ]);
    let of = |name: &str, instructions| FunctionCounts {
        name: name.into(),
        library: format!("/usr/lib/{LIBRARY}"),
        own: counts(instructions, 0.0, 0.0).unwrap_or_default(),
    };
    let functions = vec![of("0x10", 600.0), of("0x90", 200.0), of("named", 50.0)];
    add_counts(&mut seen, &Counts { functions, ..Counts::default() });
    let instructions = |work: &Work| work.counted.map(|counted| counted.instructions);
    let found: Vec<Option<f64>> = seen.work.iter().map(instructions).collect();
    assert_eq!(found, [Some(600.0), Some(200.0), Some(50.0), None]);
}

#[test]
fn yielding_threads_explain_time_in_the_kernel() {
    let called = |count| {
        let (name, library) = ("sched_yield".into(), "libc.so.6".into());
        Some(vec![Called { name, library, count, ns: 0.0 }])
    };
    let compute = work(Role::Compute, "dgemv", 10_000.0);
    let a = Seen { calls: called(0.0), ..side(vec![compute.clone()]) };
    let waiting = work(Role::Sync, "blas_thread_server", 1_000.0);
    let mut b = Seen { calls: called(30.0), system_ns: 40_000.0, ..side(vec![compute, waiting]) };
    b.wall_ns = b.user_ns + b.system_ns;
    check(&a, &b, Kind::TooParallel);
}

#[test]
fn calls_that_each_make_a_system_call_are_one_culprit_with_it() {
    let fact = |what: &str, b| Fact {
        what: what.into(),
        a: 8.0,
        b,
        unit: Unit::Count,
        n: 1,
        is_inferred: false,
    };
    let culprit = |kind, what, count, explains| {
        let finding = Finding {
            kind,
            facts: vec![fact(what, count)],
            at: "read (libc)".into(),
            advice: "read larger blocks".into(),
        };
        Culprit::new(finding, explains, explains * 100.0)
    };
    let joined = |reads| {
        let more = culprit(Kind::MoreCalls, "calls of FileIO.read", 6_251.0, 0.6);
        let system = culprit(Kind::SystemCalls, "calls of read", reads, 0.4);
        let mut judgement = Judgement { culprits: vec![more, system], ..Judgement::default() };
        judgement.join_system_calls();
        judgement.culprits
    };
    let one = joined(6_254.0);
    assert_eq!((one.len(), one[0].finding.kind), (1, Kind::SystemCalls));
    assert!((one[0].explains - 1.0).abs() < 1e-9 && one[0].finding.facts.len() == 2);
    assert_eq!(joined(100.0).len(), 2);
}

fn any_role() -> impl Strategy<Value = Role> {
    prop::sample::select(vec![
        Role::Compute,
        Role::Blas,
        Role::Copy,
        Role::Allocation,
        Role::Sync,
        Role::Interpreter,
        Role::Binding,
    ])
}

fn any_side() -> impl Strategy<Value = Seen> {
    let one = (any_role(), "[a-d]_(avx2|scalar|x)", 0.0..1e6);
    let all = prop::collection::vec(one, 0..8);
    (all, 0.0..1e6, 0.0..2.0, 1u32..4, 0.0..9.0).prop_map(
        |(all, system_ns, stretch, threads, waits)| {
            let work = all.into_iter().map(|(role, name, ns)| work(role, &name, ns)).collect();
            let side = side(work);
            let wall_ns = (side.user_ns + system_ns) * (0.4 + stretch) + 1.0;
            Seen { wall_ns, system_ns, threads, waits, ..side }
        },
    )
}

proptest! {
    /// Slices add up to the lag, and shares add up to 1.
    #[test]
    fn slices_add_up_to_the_lag(a in any_side(), b in any_side()) {
        let pair = Pair { a: &a, b: &b };
        let gap: f64 = partition(&pair).iter().map(Slice::gap_ns).sum();
        prop_assert!((gap - (b.wall_ns - a.wall_ns)).abs() < 1e-3 * (1.0 + a.wall_ns + b.wall_ns));
        let rows: f64 = time_rows(&pair).iter().map(TimeRow::gap_ns).sum();
        prop_assert!((gap - rows).abs() < 1e-3 * (1.0 + a.wall_ns + b.wall_ns));
        let judgement = judge(&pair);
        let explained: f64 = judgement.culprits.iter().map(|culprit| culprit.explains).sum();
        let any = !judgement.culprits.is_empty();
        prop_assert!(!any || (explained + judgement.not_explained - 1.0).abs() < 1e-9);
        prop_assert!(judgement.culprits.iter().all(|culprit| !culprit.finding.facts.is_empty()));
    }
}
