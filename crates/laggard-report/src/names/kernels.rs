//! Kernels of known libraries: what they compute, on which type, with which tile.

use super::cpp::Node;
use super::meaning::{Meaning, add_details};

/// Short name of a numeric type.
pub(super) fn dtype(name: &str) -> Option<&'static str> {
    Some(match name {
        "float" | "float32" | "fp32" => "f32",
        "double" => "f64",
        "half" | "__half" | "Half" | "half_t" | "_Float16" | "fp16" => "f16",
        "BFloat16" | "__nv_bfloat16" | "__hip_bfloat16" | "bfloat16_t" | "hip_bfloat16"
        | "__bf16" => "bf16",
        "tfloat32_t" => "tf32",
        "Float8_e4m3fn" | "Float8_e4m3fnuz" | "float_e4m3_t" | "__nv_fp8_e4m3" => "f8e4m3",
        "Float8_e5m2" | "Float8_e5m2fnuz" | "float_e5m2_t" | "__nv_fp8_e5m2" => "f8e5m2",
        "signed char" | "int8_t" => "i8",
        "short" | "int16_t" => "i16",
        "int" | "int32_t" => "i32",
        "long" | "long long" | "int64_t" => "i64",
        "unsigned char" | "uint8_t" => "u8",
        "unsigned short" | "uint16_t" => "u16",
        "unsigned int" | "uint32_t" => "u32",
        "unsigned long" | "unsigned long long" | "uint64_t" => "u64",
        _ => return None,
    })
}

/// A kernel whose name is one identifier with coded parts.
pub(super) fn from_identifier(name: &str) -> Option<Meaning> {
    let name = name.strip_suffix(".kd").unwrap_or(name);
    if name.starts_with("nccl") {
        return name.split_once('(').map(|(name, params)| {
            let params = params.trim_end_matches(')').split(", ").map(str::to_owned).collect();
            Meaning::new(name.to_owned(), vec![], params)
        });
    }
    if name.contains([':', '<', '(', ' ', '.', '/']) {
        return None;
    }
    if name.starts_with("Cijk_") {
        return Some(tensile(name));
    }
    gemm(name, None)
}

/// A kernel whose name is a C++ name.
pub(super) fn from_node(node: &Node) -> Option<Meaning> {
    let name = &*node.name;
    match name {
        _ if name.contains("elementwise") => elementwise(node),
        "multi_tensor_apply_kernel" => multi_tensor(node),
        "reduce_kernel" => reduction(node),
        "Kernel" | "Kernel2" | "device_kernel" => cutlass(node),
        "trampoline_kernel" => rocprim(node),
        "kentry" => composable(node),
        _ if name.starts_with("flash_fwd") || name.starts_with("flash_bwd") => flash(node),
        _ => None,
    }
}

/// Details of all template arguments and parameters, which distinguish names that are otherwise equal.
fn all_details(node: &Node) -> Vec<String> {
    let mut details = vec![];
    node.args.iter().chain(&node.params).for_each(|arg| add_details(arg, &mut details));
    details
}

/// PyTorch's kernels that apply a function to each element: `elementwise mul bf16 vec4`.
fn elementwise(node: &Node) -> Option<Meaning> {
    let function = node.args.iter().find(|arg| is_function(arg))?;
    let variant = node.name.replace("_kernel", "");
    let (before, after) = variant.split_once("elementwise")?;
    let sizes: Vec<&str> = sizes(node).collect();
    let (prefix, access) = match before.trim_matches('_') {
        "vectorized" => ("", sizes.first().map_or_else(String::new, |n| format!("vec{n}"))),
        "unrolled" => ("", "unrolled".to_owned()),
        "distribution" => ("", String::new()),
        other => (other, sizes.join("x")),
    };
    let operation = Operation::new(function);
    let name = operation.name;
    let head = match name.starts_with(prefix) {
        true => format!("elementwise {name}"),
        false => format!("{prefix} elementwise {name}"),
    };
    let casts = |part: &&Node| matches!(&*part.name, "LoadWithCast" | "StoreWithCast");
    let mut shown = operation.shown;
    shown.extend(node.all().iter().any(casts).then(|| "cast".to_owned()));
    shown.push(access);
    let mut rest = operation.rest;
    rest.push(after.trim_matches('_').to_owned());
    rest.extend(all_details(node));
    Some(Meaning::new(head, shown, rest))
}

/// Kernels of PyTorch and Apex that apply a function to lists of tensors: `multi_tensor adam f32`.
fn multi_tensor(node: &Node) -> Option<Meaning> {
    let mut functions = node.args.iter().filter(|arg| is_function(arg));
    let first = functions.next()?;
    // The operation follows a functor that only describes the operands.
    let is_generic = ["Binary", "Unary", "Pointwise", "Ternary"];
    let is_generic = is_generic.iter().any(|prefix| first.name.starts_with(prefix));
    let function = functions.next().filter(|_| is_generic).unwrap_or(first);
    let operation = Operation::new(function);
    let mut rest = operation.rest;
    rest.push(first.name.clone());
    rest.extend(all_details(node));
    Some(Meaning::new(format!("multi_tensor {}", operation.name), operation.shown, rest))
}

/// PyTorch's reductions: `reduce sum f32`.
fn reduction(node: &Node) -> Option<Meaning> {
    let op = node.args.iter().find(|arg| arg.name == "ReduceOp")?;
    let function = op.args.iter().find(|arg| is_function(arg))?;
    let operation = Operation::new(function);
    let mut shown: Vec<String> = op.args.iter().filter_map(type_name).collect();
    // The type of indices.
    shown.retain(|name| name != "u32");
    shown.dedup();
    shown.push(sizes(node).collect::<Vec<_>>().join("x"));
    Some(Meaning::new(format!("reduce {}", operation.name), shown, all_details(node)))
}

/// Flash attention: `flash_fwd hdim128 bf16 causal 128x64`.
fn flash(node: &Node) -> Option<Meaning> {
    let traits = node.args.iter().find(|arg| arg.name.ends_with("traits"))?;
    let mut numbers = sizes(traits);
    let hdim = numbers.next()?;
    let tile: Vec<&str> = numbers.take(2).collect();
    let flags: Vec<bool> =
        node.args.iter().filter(|arg| arg.is_value()).map(|arg| arg.name == "true").collect();
    // Kernels with split keys have no dropout; others have it in front.
    let is_split = node.name.contains("splitkv");
    let is_set = |at: usize| flags.get(at).copied().unwrap_or(false);
    let (is_causal, has_dropout) =
        if is_split { (is_set(0), false) } else { (is_set(1), is_set(0)) };
    let mut shown = vec![format!("hdim{hdim}")];
    shown.extend(traits.args.iter().filter_map(element_type));
    shown.extend(is_causal.then(|| "causal".to_owned()));
    shown.extend(has_dropout.then(|| "dropout".to_owned()));
    shown.push(tile.join("x"));
    let bits = flags.iter().map(|&flag| if flag { '1' } else { '0' });
    let mut rest = vec![format!("flags{}", bits.collect::<String>())];
    rest.extend(all_details(node));
    Some(Meaning::new(node.name.replace("_kernel", ""), shown, rest))
}

/// Kernels of CUTLASS, whose template argument is the kernel: `cutlass gemm 128x128x32 bf16 tn`.
fn cutlass(node: &Node) -> Option<Meaning> {
    if !node.scopes.iter().any(|scope| scope.name.starts_with("cutlass")) {
        return None;
    }
    let inner = node.args.first()?;
    if inner.args.is_empty() {
        return gemm(&inner.name, Some(&node.name));
    }
    let kernel =
        inner.all().into_iter().find(|part| part.name.starts_with("Flash")).unwrap_or(inner);
    let parts = kernel.all();
    let mut shapes = parts.iter().filter(|part| part.name == "GemmShape" || part.name == "Shape");
    let mut shown: Vec<String> =
        shapes.next().map(|shape| sizes(shape).collect::<Vec<_>>().join("x")).into_iter().collect();
    shown.extend(parts.iter().find_map(|part| element_type(part)));
    Some(Meaning::new(format!("cutlass {}", kernel.name), shown, all_details(node)))
}

/// Kernels of rocPRIM: `rocprim scan i64`.
fn rocprim(node: &Node) -> Option<Meaning> {
    let config = node.args.first()?;
    let name = config.name.strip_prefix("wrapped_")?.strip_suffix("_config")?;
    let shown = config.args.iter().filter_map(type_name).collect();
    Some(Meaning::new(format!("rocprim {name}"), shown, all_details(node)))
}

/// Kernels of CK Tile, whose template argument is the kernel: `ck_tile Rmsnorm2dFwd bf16`.
fn composable(node: &Node) -> Option<Meaning> {
    let inner = node.args.iter().find(|arg| is_function(arg))?;
    let shown = inner.all().into_iter().find_map(element_type).into_iter().collect();
    Some(Meaning::new(format!("ck_tile {}", inner.name), shown, all_details(node)))
}

/// Tensile's matrix products: `Tensile gemm 128x64x32 bf16 tn`.
fn tensile(name: &str) -> Meaning {
    let words: Vec<&str> = name.split('_').skip(1).collect();
    let a = if words.contains(&"Alik") { 't' } else { 'n' };
    let b = if words.contains(&"Bjlk") { 't' } else { 'n' };
    // The types follow the layout of B.
    let is_layout = |word: &&str| word.starts_with('B') && word.len() == 4 && word.ends_with('k');
    let coded = words.iter().position(is_layout).map_or(0, |at| at + 1);
    let types = words.get(coded).copied().unwrap_or("");
    let dtype = match types.as_bytes() {
        [b'F', b'8', ..] => "f8",
        [b'B', b'8', ..] => "bf8",
        [b'B', ..] => "bf16",
        [b'H', ..] => "f16",
        [b'D', ..] => "f64",
        [b'S', ..] => "f32",
        [b'I', ..] => "i8",
        [b'C', ..] => "complex f32",
        [b'Z', ..] => "complex f64",
        _ => types,
    };
    let is_tile = |word: &str| {
        word.strip_prefix("MT").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let tile = words.iter().find(|word| is_tile(word)).map_or("", |word| &word[2..]);
    let shown = vec![tile.to_owned(), dtype.to_owned(), format!("{a}{b}")];
    let rest = words.iter().skip(coded).filter(|word| !is_tile(word));
    // A number alone is a second value of the option in front of it.
    let rest = rest.filter(|word| !word.bytes().all(|b| b.is_ascii_digit()));
    Meaning::new("Tensile gemm".to_owned(), shown, rest.map(|&word| word.to_owned()).collect())
}

/// Operations in names of matrix products and convolutions.
const PRODUCTS: [&str; 5] = ["gemm", "fprop", "dgrad", "wgrad", "gemv"];
/// Words that all kernels of a library have.
const EMPTY_WORDS: [&str; 6] = ["execute", "kernel", "cublas", "cudnn", "", "tensorop"];

/// Matrix products and convolutions of CUTLASS, cuBLAS and cuDNN, named after their properties.
/// `entry` is the name of the C++ template around it.
fn gemm(name: &str, entry: Option<&str>) -> Option<Meaning> {
    let words: Vec<&str> = name.split('_').collect();
    let library = match words[0] {
        "cutlass" | "cutlass3x" => "cutlass",
        chip @ ("ampere" | "turing" | "volta" | "maxwell" | "hopper" | "ada") => chip,
        chip if chip.starts_with("sm") && words.get(1) == Some(&"xmma") => "xmma",
        _ => return None,
    };
    let at =
        words.iter().position(|word| PRODUCTS.iter().any(|product| word.ends_with(product)))?;
    let product = PRODUCTS.iter().find(|product| words[at].ends_with(**product))?;
    let code = words[at].strip_suffix(product)?;
    let is_convolution = matches!(*product, "fprop" | "dgrad" | "wgrad");
    let head = format!("{library} {product}");
    let mut tile = String::new();
    let mut dtypes: Vec<String> = vec![];
    let mut layout = String::new();
    let mut rest: Vec<String> = vec![];
    let mut architecture = words[0].to_owned();
    for (i, &word) in words.iter().enumerate().skip(1) {
        let size = word.strip_prefix("tilesize").unwrap_or(word);
        match word {
            _ if i == at || word == "xmma" || EMPTY_WORDS.contains(&word) => {}
            _ if is_convolution && matches!(word, "implicit" | "gemm") => {}
            _ if is_size(size) && tile.is_empty() => size.clone_into(&mut tile),
            // Depth of the tile and number of stages.
            _ if is_size(word) && tile.matches('x').count() == 1 && library == "cutlass" => {
                let (depth, stages) = word.split_once('x')?;
                tile = format!("{tile}x{depth}");
                rest.push(format!("stages{stages}"));
            }
            // The architecture of CUTLASS kernels.
            "70" | "75" | "80" | "90" | "100" if i == 1 => architecture = format!("sm{word}"),
            "nn" | "nt" | "tn" | "tt" if layout.is_empty() => word.clone_into(&mut layout),
            _ => match number_types(word) {
                Some(of) => dtypes.extend(of.map(str::to_owned)),
                None => rest.push(word.to_owned()),
            },
        }
    }
    match code {
        "s" | "d" | "h" | "i" if dtypes.is_empty() => {
            let of = ["f32", "f64", "f16", "i8"]["sdhi".find(code).unwrap_or(0)];
            dtypes.push(of.to_owned());
        }
        _ => rest.insert(0, code.to_owned()),
    }
    let dtype = dtypes.first().cloned().unwrap_or_default();
    let mut shown = vec![tile, dtype, layout];
    shown.extend(rest);
    let mut rest = dtypes;
    rest.push(architecture);
    rest.extend(entry.map(str::to_owned));
    Some(Meaning::new(head, shown, rest))
}

/// Types in a word such as `bf16`, `tf32f32` or `bf16bf16`.
fn number_types(word: &str) -> Option<impl Iterator<Item = &'static str>> {
    const TYPES: [&str; 8] = ["tf32", "bf16", "f32", "f16", "f64", "fp16", "e4m3", "e5m2"];
    let mut rest = word;
    let mut found = vec![];
    while !rest.is_empty() {
        let of = TYPES.into_iter().find(|of| rest.starts_with(of))?;
        found.push(if of == "fp16" { "f16" } else { of });
        rest = &rest[of.len()..];
    }
    found.dedup();
    Some(found.into_iter())
}

/// Whether a word is a size such as `128x64`.
fn is_size(word: &str) -> bool {
    word.contains('x')
        && word.split('x').all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// The function that a kernel applies.
struct Operation {
    name: String,
    shown: Vec<String>,
    rest: Vec<String>,
}

impl Operation {
    fn new(function: &Node) -> Operation {
        let mut node = function;
        let mut is_scalar = false;
        let mut types = vec![];
        // Wrappers have the function as an argument.
        while let Some(inner) = is_wrapper(node).then(|| wrapped(node)).flatten() {
            is_scalar |= node.name.starts_with("AUnary") || node.name.starts_with("BUnary");
            types.extend(node.args.iter().filter_map(type_name));
            node = inner;
        }
        let mut of_lambda: Vec<String> =
            node.lambda.iter().flatten().filter_map(type_name).collect();
        of_lambda.dedup();
        types.extend(node.args.iter().filter_map(type_name));
        let mut words = words(&node.name);
        if node.name.contains("OnSelf") || node.name.contains("OnOther") {
            words.retain(|word| !matches!(&**word, "on" | "self" | "other"));
            is_scalar = true;
        }
        let mut shown = match of_lambda.is_empty() || !types.is_empty() {
            true => types.iter().take(1).cloned().collect(),
            false => of_lambda.clone(),
        };
        shown.extend(is_scalar.then(|| "scalar".to_owned()));
        let mut rest = types;
        rest.extend(of_lambda);
        if !node.lambda_numbers.is_empty() {
            rest.push(format!("lambda{}", node.lambda_numbers));
        }
        rest.push(function.name.clone());
        let name = if words.is_empty() { node.name.clone() } else { words.join("_") };
        Operation { name, shown, rest }
    }
}

fn is_wrapper(node: &Node) -> bool {
    const WRAPPERS: [&str; 6] = [
        "AUnaryFunctor",
        "BUnaryFunctor",
        "BinaryFunctor",
        "func_wrapper_t",
        "UnaryOpFunctor",
        "gpu",
    ];
    let is_binary_list = node.name.starts_with("BinaryOp") || node.name.starts_with("PointwiseOp");
    is_binary_list
        || node.name.starts_with("gpu_kernel")
        || node.name.contains("gpu_kernel_with")
        || WRAPPERS.contains(&&*node.name)
}

fn wrapped(node: &Node) -> Option<&Node> {
    node.args.iter().rev().find(|arg| is_function(arg))
}

/// Whether a template argument is neither a number nor a type nor a description of memory.
fn is_function(node: &Node) -> bool {
    const MEMORY: [&str; 4] = ["array", "OffsetCalculator", "Metadata", "With"];
    let name = node.name.to_lowercase();
    !node.is_value()
        && type_name(node).is_none()
        && !MEMORY.iter().any(|word| name.contains(&word.to_lowercase()))
}

/// Short name of a type of numbers.
pub(super) fn type_name(node: &Node) -> Option<String> {
    match &*node.name {
        "bool" => Some("bool".to_owned()),
        "complex" => {
            node.args.first().map(|of| format!("complex {}", dtype(&of.name).unwrap_or("")))
        }
        // PyTorch copies elements of a size, whatever their type.
        "OpaqueType" => node.args.first().map(|n| format!("{}B", n.name.trim_end_matches('u'))),
        name => dtype(name).map(str::to_owned),
    }
}

/// Short name of a type of numbers other than truth values and indices.
fn element_type(node: &Node) -> Option<String> {
    type_name(node).filter(|name| !matches!(&**name, "bool" | "i32" | "u32" | "i64" | "u64"))
}

/// Numeric template arguments.
fn sizes(node: &Node) -> impl Iterator<Item = &str> {
    let numbers = node.args.iter().map(|arg| arg.name.trim_end_matches(['u', 'l']));
    numbers.filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Words of an identifier that name an operation, in lower case.
fn words(name: &str) -> Vec<String> {
    const EMPTY: [&str; 14] = [
        "kernel", "cuda", "impl", "functor", "op", "ops", "gpu", "launch", "direct", "t", "nocast",
        "template", "fn", "",
    ];
    let mut words: Vec<String> = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        let starts_word = c.is_uppercase() && before.is_lowercase();
        if c == '_' || starts_word {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c != '_') {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    // `CUDAKernel` has no lower-case letter between its words.
    let mut words: Vec<String> = words
        .into_iter()
        .map(|word| word.strip_prefix("cuda").map_or(word.clone(), str::to_owned))
        .collect();
    words.retain(|word| !EMPTY.contains(&&**word));
    words
}
