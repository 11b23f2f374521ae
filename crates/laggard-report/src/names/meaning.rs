//! What a name means: a head, and details in order of importance.

use super::cpp::{Node, parse_function};
use super::kernels;
use crate::escape;

/// Details longer than this are split into shorter ones.
const LONGEST_DETAIL: usize = 24;
/// Maximum number of details. Names of large template expressions have thousands.
const MOST_DETAILS: usize = 200;

/// Namespaces of implementations. They do not help to recognize a function.
const NOISE: [&str; 17] = [
    "at",
    "native",
    "detail",
    "impl",
    "internal",
    "kernels",
    "kernel",
    "device",
    "std",
    "__1",
    "__cxx11",
    "c10",
    "cuda",
    "hip",
    "templates",
    "_GLOBAL__N_1",
    "at_cuda_detail",
];

fn is_noise(namespace: &str) -> bool {
    NOISE.contains(&namespace) || namespace.starts_with("ROCPRIM_")
}

/// A name taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Meaning {
    /// What the function does, the longest text first.
    heads: Vec<String>,
    /// Number of heads that contain the details that are shown.
    complete: usize,
    /// What distinguishes it from similar functions.
    details: Vec<String>,
    /// Number of details that are shown if they fit. The others are shown only if they distinguish
    /// the name from another.
    shown: usize,
    /// Whether the details are the rest of the name, so that omissions are marked.
    is_plain: bool,
    /// Used if no head fits.
    words: Option<Box<Meaning>>,
}

impl Meaning {
    /// Takes apart a name without hidden characters.
    pub(super) fn parse(name: &str) -> Meaning {
        let demangled = demangle(name);
        let name = demangled.as_deref().unwrap_or(name);
        if let Some(meaning) = kernels::from_identifier(name) {
            return meaning;
        }
        if name.contains("::") || name.contains(['<', '(']) && !name.contains(".py") {
            let (name, clone) = name.split_once(" [clone .").unwrap_or((name, ""));
            let clone = clone.trim_end_matches(']');
            let node = parse_function(name);
            if !node.name.is_empty() {
                return kernels::from_node(&node).unwrap_or_else(|| from_function(&node, clone));
            }
        }
        from_plain(name)
    }

    /// A head with details. `shown` are shown if they fit, `rest` only to distinguish names.
    pub(super) fn new(head: String, shown: Vec<String>, rest: Vec<String>) -> Meaning {
        Meaning::with_heads(vec![head], shown, rest)
    }

    fn with_heads(heads: Vec<String>, shown: Vec<String>, rest: Vec<String>) -> Meaning {
        let mut details: Vec<String> = vec![];
        let mut add = |detail: String| {
            let is_new = !detail.is_empty() && !details.contains(&detail);
            if is_new && details.len() < MOST_DETAILS {
                details.push(detail);
            }
            details.len()
        };
        let shown = shown.into_iter().fold(0, |_, detail| add(detail));
        rest.into_iter().for_each(|detail| {
            add(detail);
        });
        Meaning { heads, details, shown, ..Meaning::default() }
    }

    /// The meaning to use for forms with `width` columns.
    pub(super) fn at(&self, width: usize) -> &Meaning {
        let fits = self.heads.last().is_some_and(|head| escape::columns(head) <= width);
        self.words.as_deref().filter(|_| !fits).unwrap_or(self)
    }

    pub(super) fn details(&self) -> &[String] {
        &self.details
    }

    /// The longest form with at most `width` columns.
    pub(super) fn fit(&self, width: usize) -> String {
        self.fit_with(&[], width)
            .unwrap_or_else(|| cut(self.heads.last().map_or("", String::as_str), width))
    }

    /// The longest form with at most `width` columns that contains the details at the positions
    /// `needed`.
    pub(super) fn fit_with(&self, needed: &[usize], width: usize) -> Option<String> {
        let mut is_shown = vec![false; self.details.len()];
        needed.iter().for_each(|&i| is_shown[i] = true);
        let fits = |text: &str| escape::columns(text) <= width;
        let texts = self.heads.iter().map(|head| self.text(head, &is_shown));
        let (i, mut text) = texts.enumerate().find(|(_, text)| fits(text))?;
        if i < self.complete {
            return Some(text);
        }
        for detail in 0..self.shown {
            let was_shown = std::mem::replace(&mut is_shown[detail], true);
            let longer = self.text(&self.heads[i], &is_shown);
            if !fits(&longer) {
                is_shown[detail] = was_shown;
                if self.is_plain && needed.is_empty() {
                    text = part_of_word(&text, &self.details[detail], width);
                }
                break;
            }
            text = longer;
        }
        Some(text)
    }

    fn text(&self, head: &str, is_shown: &[bool]) -> String {
        let mut text = head.to_owned();
        for (detail, &is_shown) in self.details.iter().zip(is_shown) {
            match (is_shown, self.is_plain) {
                (true, true) => text.push_str(detail),
                (true, false) => text = text + " " + detail,
                (false, true) if !text.ends_with('…') => text.push('…'),
                (false, _) => {}
            }
        }
        text
    }
}

/// Adds the start of a word to a cut name, if at least three of its letters fit.
fn part_of_word(cut: &str, word: &str, width: usize) -> String {
    const FEWEST: usize = 4;
    let text = cut.trim_end_matches('…');
    let room = width.saturating_sub(escape::columns(text) + 1);
    let mut used = 0;
    let start = word.chars().take_while(|c| {
        used += escape::columns(c.encode_utf8(&mut [0; 4]));
        used <= room
    });
    if room < FEWEST { cut.to_owned() } else { format!("{text}{}…", start.collect::<String>()) }
}

/// A C++ or Rust function. `clone` is the part of it that a compiler split off, such as `cold`.
fn from_function(node: &Node, clone: &str) -> Meaning {
    let scopes: Vec<&Node> = node.scopes.iter().filter(|scope| !is_noise(&scope.name)).collect();
    let suffix = if node.lambda.is_some() { "::{lambda}" } else { "" };
    let suffix = format!("{suffix}{}{clone}", if clone.is_empty() { "" } else { " " });
    let path = |from: usize, text: fn(&Node) -> String| {
        let scopes = scopes[from..].iter().map(|scope| text(scope) + "::");
        scopes.collect::<String>() + &text(node) + &suffix
    };
    // A method without its class is the last resort.
    let complete = if node.args.is_empty() { scopes.len().max(1) } else { scopes.len() + 1 };
    let mut heads: Vec<String> = (0..complete).map(|from| path(from, typed_text)).collect();
    heads.extend((0..=scopes.len()).map(|from| path(from, |part| part.name.clone())));
    let mut shown: Vec<String> = node.args.iter().filter_map(kernels::type_name).collect();
    for part in std::iter::once(&node).chain(&scopes) {
        part.args.iter().for_each(|arg| add_details(arg, &mut shown));
    }
    let mut rest = vec![flags(node)];
    node.params.iter().for_each(|param| add_details(param, &mut rest));
    rest.extend(scopes.iter().map(|scope| scope.name.clone()));
    rest.push(node.lambda_numbers.clone());
    let mut words = from_plain(&node.name);
    words.details.extend(shown.iter().chain(&rest).take(MOST_DETAILS).map(|d| format!(" {d}")));
    Meaning { complete, words: Some(Box::new(words)), ..Meaning::with_heads(heads, shown, rest) }
}

/// The truth values of the template arguments: `flags010`.
fn flags(node: &Node) -> String {
    let values = node.args.iter().filter_map(|arg| match &*arg.name {
        "true" => Some('1'),
        "false" => Some('0'),
        _ => None,
    });
    let bits: String = values.collect();
    if bits.len() > 1 { format!("flags{bits}") } else { String::new() }
}

/// Adds a template argument; long ones as their parts.
pub(super) fn add_details(node: &Node, details: &mut Vec<String>) {
    if details.len() >= MOST_DETAILS {
        return;
    }
    let text = typed_text(node);
    // The name of a type in a template, such as `Policy<long>::Policy800`, is less specific than the template.
    let is_in_template = node.scopes.iter().any(|scope| !scope.args.is_empty());
    if escape::columns(&text) <= LONGEST_DETAIL && !is_in_template {
        details.push(text);
        return;
    }
    let templates = node.scopes.iter().filter(|scope| !scope.args.is_empty());
    templates.for_each(|scope| add_details(scope, details));
    details.push(node.name.clone());
    let lambda = node.lambda.iter().flatten();
    lambda.chain(&node.args).for_each(|part| add_details(part, details));
    details.push(node.lambda_numbers.clone());
}

/// The text of a type, with short names of numeric types and without default template arguments.
fn typed_text(node: &Node) -> String {
    const DEFAULTS: [&str; 4] = ["allocator", "char_traits", "less", "default_delete"];
    if let Some(short) = kernels::type_name(node) {
        return short;
    }
    if node.is_value() {
        return node.name.trim_end_matches(['u', 'l']).to_owned();
    }
    let args = node.args.iter().filter(|arg| !DEFAULTS.contains(&&*arg.name));
    let args: Vec<String> = args.map(typed_text).collect();
    match args.is_empty() {
        true => node.name.clone(),
        false => format!("{}<{}>", node.name, args.join(", ")),
    }
}

/// A name without template arguments: a Python function, a C function, a path, words.
fn from_plain(name: &str) -> Meaning {
    // A path may precede a function: `models/vit.py(252): forward`.
    if name.split(' ').next().is_some_and(|path| path.contains('/')) {
        return Meaning { heads: suffixes(name, '/', "…/"), ..Meaning::default() };
    }
    let is_dotted = name.matches('.').count() > 1 && !name.contains([' ', '/']);
    if is_dotted {
        return Meaning { heads: suffixes(name, '.', ""), ..Meaning::default() };
    }
    let mut words = split_words(name);
    let head = if words.is_empty() { name.to_owned() } else { words.remove(0) };
    let shown = words.len();
    Meaning { heads: vec![head], details: words, shown, is_plain: true, ..Meaning::default() }
}

/// Splits in front of `_` and spaces, and long words in front of capital letters. Joined, the words are
/// the name.
fn split_words(name: &str) -> Vec<String> {
    const LONGEST_WORD: usize = 16;
    let mut words: Vec<String> = vec![];
    let mut before = '_';
    for c in name.chars() {
        let is_long = words.last().is_some_and(|word| word.len() > LONGEST_WORD / 2);
        let starts_word = matches!(c, '_' | ' ') && !matches!(before, '_' | ' ')
            || is_long && c.is_uppercase() && before.is_lowercase();
        match words.last_mut().filter(|_| !starts_word) {
            Some(word) => word.push(c),
            None => words.push(c.to_string()),
        }
        before = c;
    }
    words
}

/// The name, and the name without its first, its first two … components.
fn suffixes(name: &str, separator: char, start: &str) -> Vec<String> {
    let rest = name
        .match_indices([separator, ' '])
        .take_while(|(_, found)| *found != " ")
        .map(|(at, _)| format!("{start}{}", &name[at + 1..]));
    std::iter::once(name.to_owned()).chain(rest.filter(|text| text.len() > start.len())).collect()
}

/// Cuts at a word's end. The last word is kept if it is a number, as the counter at the end of a Triton
/// kernel.
pub(super) fn cut(text: &str, width: usize) -> String {
    if escape::columns(text) <= width {
        return text.to_owned();
    }
    let number = text.rsplit_once('_').map(|(_, last)| last).filter(|last| {
        !last.is_empty() && last.len() < 4 && last.bytes().all(|b| b.is_ascii_digit())
    });
    let tail = number.map_or_else(|| "…".to_owned(), |number| format!("…_{number}"));
    let Some(room) = width.checked_sub(escape::columns(&tail)) else { return "…".to_owned() };
    let mut used = 0;
    let kept: String = text
        .chars()
        .take_while(|c| {
            used += escape::columns(c.encode_utf8(&mut [0; 4]));
            used <= room
        })
        .collect();
    let end = kept.rfind(|c: char| !c.is_alphanumeric()).filter(|&end| 2 * end > kept.len());
    kept[..end.unwrap_or(kept.len())].to_owned() + &tail
}

/// The name of a mangled symbol. Traces of AMD devices contain mangled names.
fn demangle(name: &str) -> Option<String> {
    const LONGEST: usize = 1 << 14;
    if !name.starts_with("_Z") || name.len() > LONGEST {
        return None;
    }
    readable(name).or_else(|| nested_name(name))
}

fn readable(name: &str) -> Option<String> {
    // `DF16b` is bfloat16, which the demangler does not support.
    let name = name.replace("DF16b", "u6__bf16");
    let options = cpp_demangle::DemangleOptions::new().no_return_type();
    let mut text = Bounded(String::new());
    let symbol = cpp_demangle::Symbol::new(name.as_bytes()).ok()?;
    symbol.structured_demangle(&mut text, &options).ok()?;
    Some(text.0)
}

/// The scopes and the name of a symbol that the demangler does not support, with the identifiers of
/// its template arguments: `a::f<T>` for `_ZN1a1fI1T…`.
fn nested_name(name: &str) -> Option<String> {
    let mut rest = name.strip_prefix("_ZN")?;
    let mut scopes = vec![];
    while let Some((identifier, next)) = identifier(rest) {
        scopes.push(identifier);
        rest = next;
    }
    let mut args = vec![];
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        match identifier(&rest[start..]) {
            // Shorter ones are likely other codes: `S3_EX`.
            Some((identifier, next)) if !identifier.starts_with('_') || identifier.len() > 5 => {
                args.push(identifier);
                rest = next;
            }
            _ => rest = rest[start..].trim_start_matches(|c: char| c.is_ascii_digit()),
        }
    }
    let args = if args.is_empty() { String::new() } else { format!("<{}>", args.join(", ")) };
    (!scopes.is_empty()).then(|| scopes.join("::") + &args)
}

/// The identifier in front of a mangled name, which follows its length.
fn identifier(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let length: usize = text[..digits].parse().ok()?;
    let end = digits.checked_add(length)?;
    let identifier = text.get(digits..end)?;
    let is_name = identifier.starts_with(|c: char| c.is_alphabetic() || c == '_');
    is_name.then(|| (identifier, &text[end..]))
}

/// A text with a maximum length: back references make huge names from short symbols.
struct Bounded(String);

impl std::fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        const LONGEST: usize = 1 << 15;
        if self.0.len() + text.len() > LONGEST {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}
