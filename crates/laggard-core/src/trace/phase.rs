//! Phases of inference and training, detected by the names of annotations and operators.
//!
//! A phase is a number, as in the `phase` column of the GPU table: [`Phase`] for built-in phases,
//! [`FIRST_USER`] and up for user-defined phases.

/// Built-in phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Phase {
    /// No phase annotation.
    None = 0,
    /// Processing of prompts.
    Prefill = 1,
    /// Generation of tokens.
    Decode = 2,
    /// A batch with prefill and decode.
    Mixed = 3,
    /// The forward pass of training or inference.
    Forward = 4,
    /// The backward pass.
    Backward = 5,
    /// The optimizer step.
    Optimizer = 6,
}

/// Number of the first user-defined phase.
pub const FIRST_USER: u8 = 7;

const LABELS: [&str; FIRST_USER as usize] =
    ["none", "prefill", "decode", "mixed", "forward", "backward", "optimizer"];

/// Maps names to phases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// User-defined phases: a name and a pattern for annotations. A pattern matches anywhere in the
    /// annotation, ignoring case; `*` matches any characters. User-defined patterns take precedence
    /// over built-in ones. A name that is already defined, or built in, refers to that phase.
    pub user: Vec<(String, String)>,
}

impl Phases {
    /// The phase that an annotation starts, if any.
    pub fn of_annotation(&self, name: &str) -> Option<u8> {
        self.of_user(name).or_else(|| known(name).map(|phase| phase as u8))
    }

    /// The phase of an operator, if its name determines it.
    pub fn of_op(&self, name: &str) -> Option<u8> {
        self.of_user(name).or_else(|| known_op(name).map(|phase| phase as u8))
    }

    /// The label of a phase.
    pub fn label(&self, phase: u8) -> &str {
        let user = || self.user.get(usize::from(phase.checked_sub(FIRST_USER)?));
        match LABELS.get(usize::from(phase)) {
            Some(label) => label,
            None => user().map_or("unknown", |(name, _)| name),
        }
    }

    /// The phase with a label, ignoring case.
    pub fn parse(&self, label: &str) -> Option<u8> {
        let label = label.trim();
        let known = LABELS.iter().position(|known| known.eq_ignore_ascii_case(label));
        let user =
            || self.user.iter().position(|(name, _)| name.trim().eq_ignore_ascii_case(label));
        match known {
            Some(at) => u8::try_from(at).ok(),
            None => u8::try_from(user()? + usize::from(FIRST_USER)).ok(),
        }
    }

    fn of_user(&self, name: &str) -> Option<u8> {
        if self.user.is_empty() {
            return None;
        }
        let lower = name.to_lowercase();
        let (label, _) =
            self.user.iter().find(|(_, pattern)| fits(&lower, &pattern.to_lowercase()))?;
        self.parse(label)
    }
}

/// The number of a profiler step, such as `ProfilerStep#12`.
pub fn step_number(name: &str) -> Option<u64> {
    name.strip_prefix("ProfilerStep#")?.trim().parse().ok()
}

/// Whether an annotation is one iteration of a serving engine (vLLM, SGLang, TensorRT-LLM).
pub fn is_iteration(name: &str) -> bool {
    batch(name).is_some() || sglang_mode(name).is_some()
}

fn known(name: &str) -> Option<Phase> {
    if let Some((context, generation)) = batch(name) {
        return match (context > 0, generation > 0) {
            (true, false) => Some(Phase::Prefill),
            (false, true) => Some(Phase::Decode),
            (true, true) => Some(Phase::Mixed),
            (false, false) => None,
        };
    }
    if let Some(mode) = sglang_mode(name) {
        // Extension of a draft model and verification of its tokens are part of decoding.
        return match mode {
            "DECODE" | "TARGET_VERIFY" | "DRAFT_EXTEND" | "DRAFT_EXTEND_V2" => Some(Phase::Decode),
            "MIXED" => Some(Phase::Mixed),
            "EXTEND" | "PREFILL" | "SPLIT_PREFILL" => Some(Phase::Prefill),
            _ => None,
        };
    }
    by_words(name)
}

/// Detects a phase by words in a name: `## forward ##`, `Optimizer.step#SGD.step`,
/// `DistributedDataParallel.forward`, `model_prefill`.
fn by_words(name: &str) -> Option<Phase> {
    // The scopes of vLLM within an iteration are not separate phases.
    if step_number(name).is_some() || name.starts_with("gpu_model_runner") {
        return None;
    }
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let has = |word| words.clone().any(|own| own == word);
    let (decode, forward, backward) = (has("decode"), has("forward"), has("backward"));
    let prefill = lower.contains("prefill");
    let optimizer = has("optimizer") || lower.contains("zero_grad");
    match (prefill, decode) {
        (true, true) => return Some(Phase::Mixed),
        (true, false) => return Some(Phase::Prefill),
        (false, true) => return Some(Phase::Decode),
        (false, false) => {}
    }
    match (forward, backward, optimizer) {
        (_, _, true) => Some(Phase::Optimizer),
        (true, false, _) => Some(Phase::Forward),
        (false, true, _) => Some(Phase::Backward),
        _ => None,
    }
}

fn known_op(name: &str) -> Option<Phase> {
    let backward = name.starts_with("autograd::engine::evaluate_function")
        || name.starts_with("torch::autograd::AccumulateGrad")
        || name.ends_with("_backward")
        || name.trim_end_matches(|c: char| c.is_ascii_digit()).ends_with("Backward");
    if backward {
        return Some(Phase::Backward);
    }
    // Traces from 2021 record annotations as operators. Real operators have a namespace.
    if name.contains("::") { None } else { known(name) }
}

/// Number of prefill and decode requests in the batch of a serving engine.
fn batch(name: &str) -> Option<(u64, u64)> {
    if name.starts_with("execute_") {
        // vLLM: execute_context_1(888_788544)_generation_0(0),
        // execute_32_context_0(sq0…)_generation_32(…)
        return Some((number_after(name, "context_")?, number_after(name, "generation_")?));
    }
    if name.contains("_forward_step") || name.starts_with("executeStep") {
        // TensorRT-LLM: [Executor] _forward_step 12: 3 ctx reqs, 5 gen reqs
        return Some((number_before(name, " ctx reqs")?, number_before(name, " gen reqs")?));
    }
    None
}

/// Extracts `DECODE` from `step[DECODE bs=32]`.
fn sglang_mode(name: &str) -> Option<&str> {
    let inside = name.strip_prefix("step[")?.split(']').next()?;
    let mode = inside.split_whitespace().next()?;
    mode.starts_with(|c: char| c.is_ascii_uppercase()).then_some(mode)
}

fn number_after(text: &str, mark: &str) -> Option<u64> {
    let rest = &text[text.find(mark)? + mark.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn number_before(text: &str, mark: &str) -> Option<u64> {
    let rest = &text[..text.find(mark)?];
    let start = rest.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    rest.get(start..)?.parse().ok()
}

/// Whether the parts of a pattern between its `*` occur in a text in order.
fn fits(text: &str, pattern: &str) -> bool {
    let mut rest = text;
    let found = pattern.split('*').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    });
    found && !pattern.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(name: &str, expected: Option<Phase>) {
        assert_eq!(
            Phases::default().of_annotation(name),
            expected.map(|phase| phase as u8),
            "{name}"
        );
    }

    #[test]
    fn serving_engines() {
        check("execute_context_1(888_788544)_generation_0(0)", Some(Phase::Prefill));
        check("execute_context_3(1200)_generation_2(50)", Some(Phase::Mixed));
        check("execute_context_0(0)_generation_64(64)", Some(Phase::Decode));
        check("execute_context_0(0)_generation_0(0)", None);
        check(
            "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)",
            Some(Phase::Decode),
        );
        check(
            "execute_1_context_3(sq128sk256sqsq1sqsk1)_generation_2(sq1sk300sqsq1sqsk1)",
            Some(Phase::Mixed),
        );
        check("step[DECODE bs=32]", Some(Phase::Decode));
        check("step[EXTEND bs=1 toks=107]", Some(Phase::Prefill));
        check("step[MIXED bs=2]", Some(Phase::Mixed));
        check("step[TARGET_VERIFY bs=4]", Some(Phase::Decode));
        check("step[IDLE bs=0]", None);
        check("[Executor] _forward_step 12: 3 ctx reqs, 0 gen reqs", Some(Phase::Prefill));
        check(
            "[Executor] _forward_step 60000: 0 ctx reqs, 0 ctx tokens, 32 gen reqs",
            Some(Phase::Decode),
        );
        check("executeStep: 1 ctx reqs, 7 gen reqs", Some(Phase::Mixed));
        check("prefill", Some(Phase::Prefill));
        check("model.Decode", Some(Phase::Decode));
        check("decode[bs=8]", Some(Phase::Decode));
        check("DecoderLayer", None);
        check("gpu_model_runner: forward", None);
    }

    #[test]
    fn training() {
        check("## forward ##", Some(Phase::Forward));
        check("## forward:bottom_mlp ##", Some(Phase::Forward));
        check("## backward ##", Some(Phase::Backward));
        check("## optimizer ##", Some(Phase::Optimizer));
        check("## zero_grad ##", Some(Phase::Optimizer));
        check("DistributedDataParallel.forward", Some(Phase::Forward));
        check("FullyShardedDataParallel._pre_backward_hook", Some(Phase::Backward));
        check("Optimizer.step#SGD.step", Some(Phase::Optimizer));
        check("Optimizer.zero_grad#Adagrad.zero_grad", Some(Phase::Optimizer));
        check("[param|pytorch.model.alex_net|0|0|0|measure|forward]", Some(Phase::Forward));
        check("forward-backward", None);
        check("ProfilerStep#4", None);
        check("nccl:all_reduce", None);
        check("## all2all_data:lengths ##", None);
        check("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", None);
        check("", None);
    }

    #[test]
    fn operators() {
        let check = |name: &str, expected: Option<Phase>| {
            assert_eq!(Phases::default().of_op(name), expected.map(|phase| phase as u8), "{name}");
        };
        check("autograd::engine::evaluate_function: ConvolutionBackward0", Some(Phase::Backward));
        check("ConvolutionBackward0", Some(Phase::Backward));
        check("CompiledFunctionBackward", Some(Phase::Backward));
        check("aten::convolution_backward", Some(Phase::Backward));
        check("torch::autograd::AccumulateGrad", Some(Phase::Backward));
        check("Optimizer.step#SGD.step", Some(Phase::Optimizer));
        check("aten::_flash_attention_forward", None);
        check("flash_attn::_flash_attn_forward", None);
        check("aten::mm", None);
        check("ProfilerStep#10", None);
    }

    #[test]
    fn steps_and_iterations() {
        assert_eq!(step_number("ProfilerStep#1009"), Some(1009));
        assert_eq!(step_number("ProfilerStep#"), None);
        assert_eq!(step_number("Step#3"), None);
        assert!(is_iteration("execute_context_0(0)_generation_64(64)"));
        assert!(is_iteration("step[IDLE bs=0]"));
        assert!(is_iteration("[Executor] _forward_step 12: 3 ctx reqs, 0 gen reqs"));
        assert!(!is_iteration("execute_model"));
        assert!(!is_iteration("step[3]"));
        assert!(!is_iteration("ProfilerStep#3"));
    }

    #[test]
    fn user_defined_phases() {
        let pairs =
            [("warm-up", "warm*run"), ("decode", "gen_loop"), ("warm-up", "heat"), ("all", "*x*")];
        let phases = Phases { user: pairs.map(|(a, b)| (a.to_string(), b.to_string())).to_vec() };
        let check = |name, expected| assert_eq!(phases.of_annotation(name), expected, "{name}");
        check("my Warm-up RUN 3", Some(7));
        check("run warm", None);
        check("gen_loop", Some(Phase::Decode as u8));
        check("preheat", Some(7));
        check("xx", Some(10));
        check("## forward ##", Some(Phase::Forward as u8));
        assert_eq!(phases.of_op("aten::heat"), Some(7));
        assert_eq!(phases.label(7), "warm-up");
        assert_eq!(phases.label(2), "decode");
        assert_eq!(phases.label(200), "unknown");
        assert_eq!(phases.parse("Warm-Up"), Some(7));
        assert_eq!(phases.parse("PREFILL"), Some(1));
        assert_eq!(phases.parse("sometimes"), None);
        assert_eq!(Phases { user: vec![("a".into(), String::new())] }.of_annotation("b"), None);
    }

    proptest! {
        #[test]
        fn arbitrary_names_do_not_panic(name in "\\PC{0,40}|(execute_|step\\[|context_|ctx reqs|[0-9é*]){0,6}", pattern in "\\PC{0,8}") {
            let phases = Phases { user: vec![("mine".into(), pattern)] };
            let phase = phases.of_annotation(&name);
            prop_assert!(phase.is_none_or(|phase| phases.parse(phases.label(phase)) == Some(phase)));
            phases.of_op(&name);
            is_iteration(&name);
        }
    }
}
