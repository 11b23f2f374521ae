//! The steps of the simulated job: training of a transformer, or an inference server.

use super::kernels::Work;
use super::machine::{Label, Machine, Thread, What};
use super::ops::Op;
use super::steady::PAUSE_NS;
use super::{Recipe, Variant, Workload};

/// Runs one step; its events are in `machine.events`.
pub(super) fn step(machine: &mut Machine, recipe: &Recipe, number: u64) {
    match recipe.workload {
        Workload::Training => training_step(machine, recipe, number),
        Workload::Decode => decode_step(machine, recipe, number),
    }
}

fn training_step(m: &mut Machine, recipe: &Recipe, number: u64) {
    let first = m.events.len();
    m.annotate(Label::Step(number), |m| {
        m.python("train.py(61): step", |m| {
            load_batch(m);
            m.module("Transformer", 0, "model.py(112): forward", |m| {
                for layer in 0..recipe.layers {
                    forward_block(m, layer);
                }
            });
            loss(m);
            if m.variant == Variant::PauseAmid {
                m.python("train.py(74): log", |m| {
                    m.synchronize();
                    m.spend(PAUSE_NS);
                });
            }
            m.python("torch/autograd/graph.py(824): _engine_run_backward", |m| {
                m.on_thread(Thread::Autograd, |m| {
                    for _ in 0..recipe.layers {
                        backward_block(m, recipe.ranks > 1);
                    }
                });
            });
            if recipe.ranks > 1 && recipe.steady.is_some() {
                m.wait_for_communication();
            }
            m.annotate(Label::Fixed("Optimizer.step#AdamW.step"), |m| {
                m.python("torch/optim/adamw.py(201): step", |m| {
                    m.op(Op::ForeachAdd, |m| m.run(Work::Accumulate));
                    for _ in 0..1 + recipe.layers / 4 {
                        m.op(Op::FusedAdam, |m| m.run(Work::Adam));
                    }
                });
            });
            m.synchronize();
        });
    });
    let external = m.events[first].external;
    m.annotate_device(Label::Step(number), external);
    m.spend(9_000);
}

fn load_batch(m: &mut Machine) {
    m.python("torch/utils/data/dataloader.py(708): __next__", |m| {
        m.python("torch/utils/data/_utils/fetch.py(46): fetch", |m| m.spend(420_000));
    });
    m.op(Op::To, |m| {
        m.op(Op::ToCopy, |m| {
            m.small_op(Op::Empty);
            m.allocate(32_768);
            m.op(Op::CopyInto, |m| m.copy(32_768));
        });
    });
    m.python("torch/optim/optimizer.py(955): zero_grad", |m| {
        m.op(Op::Zero, |m| m.op(Op::Fill, |m| m.fill(4_194_304)));
    });
}

fn forward_block(m: &mut Machine, layer: u32) {
    m.module("Block", layer, "model.py(88): forward", |m| {
        norm(m, 2 * layer, Work::Norm);
        m.module("Attention", layer, "model.py(41): forward", |m| {
            linear(m, 4 * layer, Work::Gemm);
            m.small_op(Op::View);
            m.python("<built-in function scaled_dot_product_attention>", |m| {
                m.op(Op::Attention, |m| {
                    m.op(Op::FlashAttention, |m| {
                        m.small_op(Op::Empty);
                        m.allocate(16_777_216);
                        m.run(Work::Attention);
                    });
                });
            });
            linear(m, 4 * layer + 1, Work::Gemm);
        });
        add_norm(m, 2 * layer + 1);
        m.module("FeedForward", layer, "model.py(63): forward", |m| {
            linear(m, 4 * layer + 2, Work::WideGemm);
            m.module("GELU", layer, "torch/nn/modules/activation.py(734): forward", |m| {
                m.python("<built-in function gelu>", |m| {
                    m.op(Op::Gelu, |m| {
                        m.allocate(67_108_864);
                        m.run(Work::Gelu);
                    });
                });
            });
            linear(m, 4 * layer + 3, Work::WideGemm);
        });
        m.op(Op::Add, |m| m.run(Work::Add));
        m.allocate(-16_777_216);
    });
}

/// The sum and the norm inside a layer. The kernel of torch.compile is not in a module call.
fn add_norm(m: &mut Machine, number: u32) {
    if m.variant == Variant::AddNormFused {
        m.python("torch/_dynamo/eval_frame.py(736): compile_wrapper", |m| {
            m.op(Op::CompiledRegion, |m| m.op(Op::AddNorm, |m| m.run(Work::AddNorm)));
        });
        return;
    }
    m.op(Op::Add, |m| m.run(Work::Add));
    let apart = m.variant == Variant::AddNormApart;
    norm(m, number, if apart { Work::NormApart } else { Work::Norm });
}

fn norm(m: &mut Machine, number: u32, work: Work) {
    m.module("LayerNorm", number, "torch/nn/modules/normalization.py(217): forward", |m| {
        m.python("torch/nn/functional.py(2893): layer_norm", |m| {
            m.op(Op::LayerNorm, |m| {
                m.op(Op::NativeLayerNorm, |m| {
                    m.small_op(Op::Empty);
                    m.run(work);
                });
            });
        });
    });
}

fn linear(m: &mut Machine, number: u32, work: Work) {
    m.module("Linear", number, "torch/nn/modules/linear.py(124): forward", |m| {
        m.python("<built-in function linear>", |m| {
            m.op(Op::Linear, |m| {
                m.op(Op::T, |m| m.op(Op::Transpose, |m| m.small_op(Op::AsStrided)));
                m.op(Op::Addmm, |m| m.run(work));
            });
        });
    });
}

fn loss(m: &mut Machine) {
    m.python("torch/nn/functional.py(3390): cross_entropy", |m| {
        m.op(Op::CrossEntropy, |m| {
            m.op(Op::LogSoftmax, |m| m.run(Work::Softmax));
            m.op(Op::NllLoss, |m| m.run(Work::Loss));
        });
    });
}

fn backward_block(m: &mut Machine, distributed: bool) {
    for _ in 0..2 {
        m.op(Op::BackwardLinear, |m| {
            m.op(Op::AddmmBackward, |m| m.op(Op::Mm, |m| m.run(Work::GemmBackward)));
        });
    }
    m.op(Op::BackwardNorm, |m| m.op(Op::NativeLayerNormBackward, |m| m.run(Work::NormBackward)));
    m.op(Op::BackwardAttention, |m| {
        m.op(Op::FlashAttentionBackward, |m| m.run(Work::AttentionBackward));
    });
    m.op(Op::Add, |m| m.run(Work::Accumulate));
    if distributed {
        m.op(Op::Communicate, |m| {
            m.annotate(Label::Fixed("nccl:all_reduce"), Machine::communicate);
        });
    }
}

/// The work of one layer for one token of every request.
const DECODE_LAYER: [Work; 9] = [
    Work::Norm,
    Work::DecodeGemm,
    Work::Rotary,
    Work::KvCache,
    Work::PagedAttention,
    Work::DecodeGemm,
    Work::DecodeGemm,
    Work::Activation,
    Work::DecodeGemm,
];

/// By default, every eighth step processes a prompt, and odd steps replay a graph.
fn decode_step(m: &mut Machine, recipe: &Recipe, number: u64) {
    let (prefill, graph) = match m.variant {
        Variant::PrefillEvery(steps) => (number.is_multiple_of(steps), true),
        _ => (number.is_multiple_of(8), number % 2 == 1),
    };
    let label = Label::Phase { prefill, tokens: if prefill { 1024 } else { 32 } };
    let first = m.events.len();
    m.annotate(label, |m| {
        m.op(Op::To, |m| m.op(Op::CopyInto, |m| m.copy(16_384)));
        if prefill {
            for layer in 0..recipe.layers {
                forward_block(m, layer);
            }
        } else if graph {
            m.run_graph(&DECODE_LAYER, recipe.layers);
        } else {
            for _ in 0..recipe.layers {
                decode_layer(m, recipe.ranks > 1);
            }
        }
        m.op(Op::Sample, |m| m.run(Work::TopK));
        m.op(Op::CopyInto, |m| m.copy(128));
        m.synchronize();
    });
    debug_assert!(matches!(m.events[first].what, What::Annotation(_)));
    let external = m.events[first].external;
    m.annotate_device(label, external);
    m.spend(170_000);
}

fn decode_layer(m: &mut Machine, distributed: bool) {
    m.run(Work::Norm);
    m.op(Op::Mm, |m| m.run(Work::DecodeGemm));
    m.op(Op::Rotary, |m| m.run(Work::Rotary));
    m.op(Op::KvCache, |m| m.run(Work::KvCache));
    m.run(Work::PagedAttention);
    m.op(Op::Mm, |m| m.run(Work::DecodeGemm));
    if distributed {
        m.op(Op::Communicate, |m| {
            m.annotate(Label::Fixed("nccl:all_reduce"), Machine::communicate);
        });
    }
    m.op(Op::Mm, |m| m.run(Work::DecodeGemm));
    m.run(Work::Activation);
    m.op(Op::Mm, |m| m.run(Work::DecodeGemm));
}
