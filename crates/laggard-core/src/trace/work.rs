//! Arithmetic of operators from their recorded input shapes, sizes of data types, and bus factors
//! of collectives.
//!
//! [`work`] takes an operator's name and its recorded inputs and returns its floating-point
//! operations. A multiplication and an addition count as two. The result is `None` for unsupported
//! operators and if a required input (a stride, the lengths of packed sequences) was not recorded.

use serde_json::Value;

/// The arithmetic of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Floating-point operations.
    pub flops: f64,
    /// Kind of operator.
    pub kind: WorkKind,
    /// Recorded element type of the first operand; empty if not recorded.
    pub dtype: String,
    /// The problem size as shown to users: "M×N×K 4096×1024×512".
    pub shape: String,
}

/// Kinds of operators whose arithmetic follows from their shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkKind {
    /// A matrix product.
    Gemm,
    /// A convolution.
    Convolution,
    /// Attention: two matrix products; the softmax is not counted.
    Attention,
}

/// The arithmetic of an operator. `dims`, `types` and `concrete` are the recorded JSON texts, empty
/// if not recorded.
///
/// Causal attention counts as half of the full products, and the backward pass as 2.5 times the
/// forward pass. FlashAttention uses the same convention.
pub fn work(op: &str, dims: &str, types: &str, concrete: &str) -> Option<Work> {
    let call = Call {
        dims: list(dims)?,
        types: list(types).unwrap_or_default(),
        concrete: list(concrete).unwrap_or_default(),
    };
    match op {
        "aten::mm" | "aten::_scaled_mm" | "aten::_int_mm" | "aten::matmul" | "aten::bmm" => {
            call.product(0, 1)
        }
        "aten::addmm" | "aten::baddbmm" => call.product(1, 2),
        "aten::linear" | "vllm::rocm_unquantized_gemm" => call.linear(),

        "aten::conv1d" | "aten::conv2d" | "aten::conv3d" => call.convolution(3, 4, 5, None),
        "aten::convolution" | "aten::_convolution" => call.convolution(3, 4, 5, Some(6)),
        "aten::cudnn_convolution" => call.convolution(3, 2, 4, None),
        "aten::miopen_convolution" => call.convolution(4, 3, 5, None),
        "aten::convolution_backward" => call.convolution_backward(0, 1, 2, Some(7), 10),
        "aten::cudnn_convolution_backward" => call.convolution_backward(1, 0, 2, None, 10),

        "aten::scaled_dot_product_attention" => call.attention(0, Layout::HeadsFirst, 5),
        "aten::_scaled_dot_product_flash_attention" => call.attention(0, Layout::HeadsFirst, 4),
        "aten::_scaled_dot_product_efficient_attention" => call.attention(0, Layout::HeadsFirst, 6),
        // Older versions have no bias and therefore two arguments fewer.
        "aten::_scaled_dot_product_cudnn_attention" if call.dims.len() <= 7 => {
            call.attention(0, Layout::HeadsFirst, 4)
        }
        "aten::_scaled_dot_product_cudnn_attention" => call.attention(0, Layout::HeadsFirst, 6),
        "aten::_flash_attention_forward" => call.attention(0, Layout::TokensFirst, 8),
        "aten::_efficient_attention_forward" => call.attention(0, Layout::TokensFirst, 9),
        "flash_attn::_flash_attn_forward" => call.attention(0, Layout::TokensFirst, 5),

        "aten::_scaled_dot_product_flash_attention_backward"
        | "aten::_scaled_dot_product_efficient_attention_backward" => {
            call.attention(1, Layout::HeadsFirst, 11).map(backward)
        }
        "aten::_scaled_dot_product_cudnn_attention_backward" => {
            call.attention(1, Layout::HeadsFirst, 14).map(backward)
        }
        "aten::_flash_attention_backward" | "flash_attn::_flash_attn_backward" => {
            call.attention(1, Layout::TokensFirst, 11).map(backward)
        }
        _ => None,
    }
}

/// Order of the four dimensions of attention inputs.
#[derive(Clone, Copy)]
enum Layout {
    /// Batch, heads, tokens, head dimension.
    HeadsFirst,
    /// Batch, tokens, heads, head dimension.
    TokensFirst,
}

/// The recorded inputs of one call.
struct Call {
    dims: Vec<Value>,
    types: Vec<Value>,
    concrete: Vec<Value>,
}

impl Call {
    /// The product of two inputs with broadcast batch dimensions. A vector is a row on the left and
    /// a column on the right.
    fn product(&self, left: usize, right: usize) -> Option<Work> {
        let (mut a, mut b) = (self.shape(left)?, self.shape(right)?);
        if a.len() == 1 {
            a.insert(0, 1);
        }
        if b.len() == 1 {
            b.push(1);
        }
        let (k, m) = (a.pop()?, a.pop()?);
        let (n, rows) = (b.pop()?, b.pop()?);
        (k == rows).then_some(())?;
        self.gemm(left, &broadcast(&a, &b)?, [m, n, k])
    }

    /// An input of any rank times a transposed weight.
    fn linear(&self) -> Option<Work> {
        let (mut input, weight) = (self.shape(0)?, self.shape(1)?);
        let [n, k] = weight[..] else { return None };
        (input.pop()? == k).then_some(())?;
        let m = input.iter().try_fold(1u64, |m, dim| m.checked_mul(*dim))?;
        self.gemm(0, &[], [m, n, k])
    }

    fn gemm(&self, operand: usize, batch: &[u64], [m, n, k]: [u64; 3]) -> Option<Work> {
        let batch = batch.iter().try_fold(1u64, |all, dim| all.checked_mul(*dim))?;
        let shape = match batch {
            1 => format!("M×N×K {}", times(&[m, n, k])),
            _ => format!("B×M×N×K {}", times(&[batch, m, n, k])),
        };
        self.done(2.0 * count(&[batch, m, n, k]), WorkKind::Gemm, operand, shape)
    }

    /// Input and weight are the first two arguments. The parameters are the indexes of the other
    /// arguments.
    fn convolution(
        &self,
        stride: usize,
        padding: usize,
        dilation: usize,
        transposed: Option<usize>,
    ) -> Option<Work> {
        let (input, weight) = (self.shape(0)?, self.shape(1)?);
        let shape = format!("{} * {}", times(&input), times(&weight));
        let (batch, size) = images(&input, &weight)?;
        if transposed.is_some_and(|at| self.flag(at) == Some(true)) {
            // Every input element is multiplied by the whole weight of its channel.
            return self.done(
                2.0 * count(&[batch]) * count(size) * count(&weight),
                WorkKind::Convolution,
                0,
                shape,
            );
        }
        let kernel = &weight[2..];
        let stride = self.numbers(stride, kernel.len())?;
        let dilation = self.numbers(dilation, kernel.len())?;
        let padding = self.padding(padding, kernel, &dilation)?;
        let mut positions = 1.0;
        for axis in 0..kernel.len() {
            let reach = dilation[axis].checked_mul(kernel[axis].checked_sub(1)?)?;
            let room = size[axis].checked_add(padding[axis])?.checked_sub(reach)?.checked_sub(1)?;
            positions *= room.checked_div(stride[axis])? as f64 + 1.0;
        }
        self.done(
            2.0 * count(&[batch]) * positions * count(&weight),
            WorkKind::Convolution,
            0,
            shape,
        )
    }

    /// The gradients of input and weight each cost as much as the forward pass. `mask` selects the
    /// gradients computed; both if it was not recorded.
    fn convolution_backward(
        &self,
        gradient: usize,
        input: usize,
        weight: usize,
        transposed: Option<usize>,
        mask: usize,
    ) -> Option<Work> {
        let (out, image, kernel) = (self.shape(gradient)?, self.shape(input)?, self.shape(weight)?);
        let shape = format!("{} * {}", times(&image), times(&kernel));
        let transposed = transposed.is_some_and(|at| self.flag(at) == Some(true));
        let (batch, positions) = images(if transposed { &image } else { &out }, &kernel)?;
        let wanted = match self.text(mask).filter(|text| !text.is_empty()) {
            Some(text) => {
                let mut flags = text.trim_matches(['[', ']']).split(',');
                flags.by_ref().take(2).filter(|flag| flag.trim() == "True").count()
            }
            None => 2,
        };
        let one = 2.0 * count(&[batch]) * count(positions) * count(&kernel);
        self.done(wanted as f64 * one, WorkKind::Convolution, input, shape)
    }

    /// Query, key and value are consecutive arguments from `query` on. Packed sequences have three
    /// dimensions and unrecorded lengths, so they are not supported.
    fn attention(&self, query: usize, layout: Layout, causal: usize) -> Option<Work> {
        let heads_first = |at: usize| -> Option<[u64; 4]> {
            let [batch, x, y, width] = self.shape(at)?[..] else { return None };
            Some(match layout {
                Layout::HeadsFirst => [batch, x, y, width],
                Layout::TokensFirst => [batch, y, x, width],
            })
        };
        let [batch, heads, tokens, width] = heads_first(query)?;
        let [key_batch, _, key_tokens, key_width] = heads_first(query + 1)?;
        let [_, _, value_tokens, value_width] = heads_first(query + 2)?;
        (batch == key_batch && width == key_width && key_tokens == value_tokens).then_some(())?;
        let mut flops =
            2.0 * count(&[batch, heads, tokens, key_tokens]) * (width as f64 + value_width as f64);
        let mut shape = format!("B×H×Q×K×D {}", times(&[batch, heads, tokens, key_tokens, width]));
        if self.flag(causal) == Some(true) {
            flops /= 2.0;
            shape.push_str(" causal");
        }
        self.done(flops, WorkKind::Attention, query, shape)
    }

    fn done(&self, flops: f64, kind: WorkKind, operand: usize, shape: String) -> Option<Work> {
        let dtype = self.types.get(operand).and_then(Value::as_str).unwrap_or_default().to_string();
        (flops > 0.0 && flops.is_finite()).then_some(Work { flops, kind, dtype, shape })
    }

    /// The shape of a tensor; `None` for scalars, lists of tensors and missing arguments.
    fn shape(&self, at: usize) -> Option<Vec<u64>> {
        let dims = self.dims.get(at)?.as_array()?;
        (!dims.is_empty()).then_some(())?;
        dims.iter().map(Value::as_u64).collect()
    }

    fn text(&self, at: usize) -> Option<&str> {
        self.concrete.get(at)?.as_str()
    }

    /// A recorded boolean. Attention also records its mask type as a number, where 0 means no mask.
    fn flag(&self, at: usize) -> Option<bool> {
        match self.text(at)? {
            "" => None,
            "True" | "true" => Some(true),
            "False" | "false" => Some(false),
            number => number.parse::<i64>().ok().map(|n| n > 0),
        }
    }

    /// A recorded list such as `[2, 2]`; a single number applies to all axes.
    fn numbers(&self, at: usize, axes: usize) -> Option<Vec<u64>> {
        let text = self.text(at)?.trim().trim_matches(['[', ']']);
        let numbers: Vec<u64> =
            text.split(',').map(|n| n.trim().parse().ok()).collect::<Option<_>>()?;
        match numbers[..] {
            [one] => Some(vec![one; axes]),
            _ => (numbers.len() == axes).then_some(numbers),
        }
    }

    /// Total padding of both ends by axis; it can be recorded as "same" or "valid".
    fn padding(&self, at: usize, kernel: &[u64], dilation: &[u64]) -> Option<Vec<u64>> {
        match self.text(at)?.trim() {
            "valid" => Some(vec![0; kernel.len()]),
            "same" => {
                kernel.iter().zip(dilation).map(|(k, d)| d.checked_mul(k.checked_sub(1)?)).collect()
            }
            _ => self
                .numbers(at, kernel.len())?
                .into_iter()
                .map(|one_end| one_end.checked_mul(2))
                .collect(),
        }
    }
}

fn backward(forward: Work) -> Work {
    Work { flops: 2.5 * forward.flops, ..forward }
}

fn list(json: &str) -> Option<Vec<Value>> {
    serde_json::from_str(json).ok()
}

/// Batch size and spatial size of an image; the batch size is 1 without a batch dimension.
fn images<'a>(image: &'a [u64], weight: &[u64]) -> Option<(u64, &'a [u64])> {
    let axes = weight.len().checked_sub(2).filter(|axes| *axes > 0)?;
    match image.len().checked_sub(axes)? {
        2 => Some((image[0], &image[2..])),
        1 => Some((1, &image[1..])),
        _ => None,
    }
}

fn broadcast(a: &[u64], b: &[u64]) -> Option<Vec<u64>> {
    let rank = a.len().max(b.len());
    let dim = |shape: &[u64], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(1, |at| shape[at])
    };
    (0..rank)
        .map(|axis| match (dim(a, axis), dim(b, axis)) {
            (x, y) if x == y => Some(x),
            (1, x) | (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

fn count(dims: &[u64]) -> f64 {
    dims.iter().map(|dim| *dim as f64).product()
}

fn times(dims: &[u64]) -> String {
    dims.iter().map(u64::to_string).collect::<Vec<_>>().join("×")
}

/// Factor from a collective's bandwidth to its bus bandwidth, as defined by nccl-tests. It is 1 for
/// other operations and if the number of ranks is unknown.
pub fn bus_factor(collective: &str, ranks: u64) -> f64 {
    if ranks == 0 {
        return 1.0;
    }
    let name: String =
        collective.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    let share = (ranks - 1) as f64 / ranks as f64;
    let has = |word| name.contains(word);
    if has("allreduce") {
        2.0 * share
    } else if has("allgather")
        || has("reducescatter")
        || has("alltoall")
        || has("gather")
        || has("scatter")
    {
        share
    } else {
        1.0
    }
}

/// Bytes per element, by the profiler's type name.
pub fn dtype_bytes(dtype: &str) -> Option<u32> {
    Some(match plain(dtype).as_str() {
        "bool" | "byte" | "char" | "signed char" | "unsigned char" | "int8" | "uint8" | "qint8"
        | "quint8" => 1,
        name if name.starts_with("float8_") || name.starts_with("float4_") => 1,
        "half" | "float16" | "bfloat16" | "short" | "short int" | "int16" | "unsigned short"
        | "uint16" => 2,
        "float" | "float32" | "int" | "int32" | "unsigned int" | "uint32" | "qint32"
        | "complexhalf" | "complex<half>" => 4,
        "double" | "float64" | "long" | "long int" | "long long" | "int64" | "unsigned long"
        | "uint64" => 8,
        "complexfloat" | "complex<float>" | "complex64" => 8,
        "complexdouble" | "complex<double>" | "complex128" => 16,
        _ => return None,
    })
}

/// The key of the rate in [`DevicePeak`](crate::classify::DevicePeak) for arithmetic in this type;
/// empty for types without a rate. The type does not tell whether fp32 products ran as tf32.
pub fn peak_key(dtype: &str) -> &'static str {
    match plain(dtype).as_str() {
        "double" | "float64" | "complexdouble" | "complex<double>" | "complex128" => "fp64",
        "float" | "float32" | "complexfloat" | "complex<float>" | "complex64" => "fp32",
        "half" | "float16" | "complexhalf" | "complex<half>" => "fp16",
        "bfloat16" => "bf16",
        name if name.starts_with("float8_") => "fp8",
        name if name.starts_with("float4_") => "fp4",
        "byte" | "char" | "signed char" | "unsigned char" | "int8" | "uint8" | "qint8"
        | "quint8" => "int8",
        _ => "",
    }
}

fn plain(dtype: &str) -> String {
    dtype.trim().to_lowercase().replace("c10::", "").replace("at::", "").replace("torch.", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(op: &str, dims: &str, concrete: &str, flops: f64, shape: &str) {
        let types = r#"["c10::BFloat16","c10::BFloat16","c10::BFloat16"]"#;
        let work =
            work(op, dims, types, concrete).unwrap_or_else(|| panic!("no work for {op} {dims}"));
        assert_eq!(work.flops, flops, "{op} {dims}");
        assert_eq!(work.shape, shape, "{op} {dims}");
        assert_eq!(work.dtype, "c10::BFloat16");
    }

    #[test]
    fn products() {
        check(
            "aten::mm",
            "[[32768,2048],[2048,2048],[32768,2048]]",
            r#"["","",""]"#,
            274_877_906_944.0,
            "M×N×K 32768×2048×2048",
        );
        check(
            "aten::addmm",
            "[[640],[888,2880],[2880,640],[],[]]",
            "",
            3_273_523_200.0,
            "M×N×K 888×640×2880",
        );
        check(
            "aten::linear",
            "[[888,2880],[640,2880],[640]]",
            "",
            3_273_523_200.0,
            "M×N×K 888×640×2880",
        );
        check(
            "aten::linear",
            "[[16,559,1024],[1024,1024],[1024]]",
            "",
            18_756_927_488.0,
            "M×N×K 8944×1024×1024",
        );
        check("aten::bmm", "[[1024,96,50],[1024,50,8]]", "", 78_643_200.0, "B×M×N×K 1024×96×8×50");
        check("aten::baddbmm", "[[4,2,5],[4,2,3],[4,3,5],[],[]]", "", 240.0, "B×M×N×K 4×2×5×3");
        check("aten::matmul", "[[1024,96,50],[50,15]]", "", 147_456_000.0, "B×M×N×K 1024×96×15×50");
        check("aten::matmul", "[[2,1,3,4],[5,4,6]]", "", 1440.0, "B×M×N×K 10×3×6×4");
        check("aten::matmul", "[[7],[7]]", "", 14.0, "M×N×K 1×1×7");
        check(
            "aten::_scaled_mm",
            "[[16,32],[32,64],[],[],[],[],[],[]]",
            "",
            65_536.0,
            "M×N×K 16×64×32",
        );
        check(
            "vllm::rocm_unquantized_gemm",
            "[[32,2880],[201088,2880],[]]",
            "",
            37_064_540_160.0,
            "M×N×K 32×201088×2880",
        );
    }

    #[test]
    fn convolutions() {
        // 2 × 10 images × 112² positions × 64·3·7² weights.
        let first = 2.0 * 10.0 * 112.0 * 112.0 * 9408.0;
        let image = "10×3×224×224 * 64×3×7×7";
        let concrete = r#"["","","","[2, 2]","[3, 3]","[1, 1]","False","[0, 0]","1"]"#;
        check(
            "aten::convolution",
            "[[10,3,224,224],[64,3,7,7],[],[],[],[],[],[],[]]",
            concrete,
            first,
            image,
        );
        let concrete = r#"["","","","[3, 3]","[2, 2]","[1, 1]","1","False","False"]"#;
        check(
            "aten::miopen_convolution",
            "[[10,3,224,224],[64,3,7,7],[],[],[],[],[],[],[]]",
            concrete,
            first,
            image,
        );
        let concrete = r#"["","","[0, 0]","[16, 16]","[1, 1]","1","False","False","True"]"#;
        let patches = 2.0 * 4.0 * 14.0 * 14.0 * 589_824.0;
        check(
            "aten::cudnn_convolution",
            "[[4,3,224,224],[768,3,16,16],[],[],[],[],[],[],[]]",
            concrete,
            patches,
            "4×3×224×224 * 768×3×16×16",
        );
        let concrete = r#"["","","","1","same","1","1"]"#;
        check(
            "aten::conv2d",
            "[[1,8,9,9],[8,1,3,3],[],[],[],[],[]]",
            concrete,
            2.0 * 81.0 * 72.0,
            "1×8×9×9 * 8×1×3×3",
        );
        let concrete = r#"["","","","[2]","[0]","[1]","True","[0]","1"]"#;
        check(
            "aten::convolution",
            "[[3,4,10],[4,5,2],[],[],[],[],[],[],[]]",
            concrete,
            2.0 * 3.0 * 10.0 * 40.0,
            "3×4×10 * 4×5×2",
        );
    }

    #[test]
    fn convolution_backward_counts_the_selected_gradients() {
        let dims = "[[10,64,112,112],[10,3,224,224],[64,3,7,7],[],[],[],[],[],[],[],[]]";
        let one = 2.0 * 10.0 * 112.0 * 112.0 * 9408.0;
        let with = |mask: &str| {
            format!(r#"["","","","[0]","[2, 2]","[3, 3]","[1, 1]","False","[0, 0]","1","{mask}"]"#)
        };
        let shape = "10×3×224×224 * 64×3×7×7";
        check("aten::convolution_backward", dims, &with("[False, True, False]"), one, shape);
        check("aten::convolution_backward", dims, &with("[True, True, False]"), 2.0 * one, shape);
        check("aten::convolution_backward", dims, "", 2.0 * one, shape);
        let old = "[[32,256,14,14],[32,1024,14,14],[1024,256,1,1],[],[],[],[],[],[],[],[]]";
        check(
            "aten::cudnn_convolution_backward",
            old,
            "",
            6_576_668_672.0,
            "32×256×14×14 * 1024×256×1×1",
        );
    }

    #[test]
    fn attention() {
        let dims = "[[8,16,4096,128],[8,16,4096,128],[8,16,4096,128],[],[],[],[]]";
        let concrete = r#"["","","","0.","False","False","0.088388347648318433"]"#;
        let full = 1_099_511_627_776.0;
        check(
            "aten::_scaled_dot_product_flash_attention",
            dims,
            concrete,
            full,
            "B×H×Q×K×D 8×16×4096×4096×128",
        );
        let dims =
            "[[16,559,16,64],[16,559,16,64],[16,559,16,64],[],[],[],[],[],[],[],[],[],[],[],[]]";
        let concrete = r#"["","","","","","559","559","0.","True","False","0.125","","","",""]"#;
        let half = 10_239_377_408.0;
        check(
            "aten::_flash_attention_forward",
            dims,
            concrete,
            half,
            "B×H×Q×K×D 16×16×559×559×64 causal",
        );
        let dims = "[[],[2,4,8,16],[2,1,32,16],[2,1,32,16],[],[],[],[],[],[],[],[]]";
        check(
            "aten::_scaled_dot_product_efficient_attention_backward",
            dims,
            "",
            327_680.0,
            "B×H×Q×K×D 2×4×8×32×16",
        );
        let dims = "[[2,8,4,16],[2,32,1,16],[2,32,1,16],[],[],[]]";
        check(
            "flash_attn::_flash_attn_forward",
            dims,
            r#"["","","","0.","1.","True"]"#,
            65_536.0,
            "B×H×Q×K×D 2×4×8×32×16 causal",
        );
    }

    #[test]
    fn missing_inputs_are_not_guessed() {
        let none =
            |op, dims, concrete| assert_eq!(work(op, dims, "", concrete), None, "{op} {dims}");
        none("aten::mm", "", "");
        none("aten::mm", "null", "");
        none("aten::mm", "[[2,3]]", "");
        none("aten::mm", "[[2,3],[4,5]]", "");
        none("aten::mm", "[[2,-3],[-3,5]]", "");
        none("aten::mm", "[[0,3],[3,5]]", "");
        none("aten::mm", "[[2,3],[3", "");
        none("aten::add", "[[2,3],[3,5]]", "");
        none("aten::linear", "[[],[3,5]]", "");
        none("aten::cudnn_convolution", "[[32,256,14,14],[1024,256,1,1],[],[],[],[],[],[],[]]", "");
        none(
            "aten::conv2d",
            "[[1,1,2,2],[1,1,5,5]]",
            r#"["","","","[1, 1]","[0, 0]","[1, 1]","1"]"#,
        );
        none(
            "aten::conv2d",
            "[[1,1,9,9],[1,1,5,5]]",
            r#"["","","","[0, 0]","[0, 0]","[1, 1]","1"]"#,
        );
        none("flash_attn::_flash_attn_forward", "[[888,8,64],[888,1,64],[888,1,64]]", "");
        none(
            "vllm::unified_attention_with_output",
            "[[888,8,64],[888,1,64],[888,1,64],[888,8,64],[],[],[]]",
            "",
        );
    }

    #[test]
    fn collectives() {
        let check =
            |name, ranks, expected| assert_eq!(bus_factor(name, ranks), expected, "{name} {ranks}");
        check("allreduce", 8, 1.75);
        check("nccl:all_reduce", 2, 1.0);
        check("_allgather_base", 4, 0.75);
        check("_reduce_scatter_base", 4, 0.75);
        check("all_to_allv", 4, 0.75);
        check("broadcast", 4, 1.0);
        check("_reduce_oop", 4, 1.0);
        check("ncclKernel_SendRecv_RING_SIMPLE", 4, 1.0);
        check("allreduce", 1, 0.0);
        check("allreduce", 0, 1.0);
    }

    #[test]
    fn types() {
        let check = |name, bytes, key| {
            assert_eq!((dtype_bytes(name), peak_key(name)), (bytes, key), "{name}");
        };
        check("Float", Some(4), "fp32");
        check("float", Some(4), "fp32");
        check("c10::BFloat16", Some(2), "bf16");
        check("Half", Some(2), "fp16");
        check("Double", Some(8), "fp64");
        check("Float8_e4m3fn", Some(1), "fp8");
        check("c10::Float8_e5m2fnuz", Some(1), "fp8");
        check("Byte", Some(1), "int8");
        check("signed char", Some(1), "int8");
        check("Bool", Some(1), "");
        check("Int", Some(4), "");
        check("long int", Some(8), "");
        check("Long", Some(8), "");
        check("c10::complex<float>", Some(8), "fp32");
        check("Scalar", None, "");
        check("", None, "");
    }

    proptest! {
        #[test]
        fn arbitrary_inputs_do_not_panic(
            op in prop::sample::select(vec!["aten::matmul", "aten::linear", "aten::conv2d", "aten::convolution", "aten::convolution_backward", "aten::_flash_attention_forward"]),
            dims in prop::collection::vec(prop::collection::vec(prop_oneof![0u64..9, any::<u64>()], 0..5), 0..12),
            concrete in prop::collection::vec("(\\[?[0-9]{0,20}(, [0-9])?\\]?|True|same|\\PC{0,4})", 0..12),
        ) {
            let dims = serde_json::to_string(&dims).unwrap();
            let concrete = serde_json::to_string(&concrete).unwrap();
            let found = work(op, &dims, &dims, &concrete);
            prop_assert!(found.is_none_or(|work| work.flops > 0.0));
            work(op, &concrete, &concrete, &dims);
        }
    }
}
