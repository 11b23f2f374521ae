//! Parses C++ names: scopes, template arguments, parameters and lambdas. Text that is not C++ results
//! in a name without arguments.

/// Deeper template arguments are dropped, so that malformed names cannot exhaust the stack.
const DEEPEST: usize = 40;

/// A type, function or number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// Enclosing namespaces and classes, outermost first, without lambdas.
    pub(super) scopes: Vec<Node>,
    /// Last component. For a lambda: the function that contains it.
    pub(super) name: String,
    /// Template arguments.
    pub(super) args: Vec<Node>,
    /// Function parameters.
    pub(super) params: Vec<Node>,
    /// Parameters of the innermost lambda.
    pub(super) lambda: Option<Vec<Node>>,
    /// Numbers of the lambdas, outermost first: `2.4.1`.
    pub(super) lambda_numbers: String,
}

impl Node {
    /// The node and its template arguments, depth first.
    pub(super) fn all(&self) -> Vec<&Node> {
        let below = self.scopes.iter().chain(&self.args).flat_map(Node::all);
        std::iter::once(self).chain(below).collect()
    }

    /// Whether the node is a number or a truth value.
    pub(super) fn is_value(&self) -> bool {
        self.name.starts_with(|c: char| c.is_ascii_digit() || c == '-')
            || matches!(&*self.name, "true" | "false")
    }
}

/// Parses the name of a function: drops its return type.
pub(super) fn parse_function(text: &str) -> Node {
    node(&components(text), true, 0)
}

fn parse_type(text: &str, depth: usize) -> Node {
    let text = without_qualifiers(text.trim());
    // A cast to an enumeration: `(cub::BlockLoadAlgorithm)3`.
    let text = match text.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((_, value)) if value.starts_with(|c: char| c.is_ascii_digit()) => value,
        _ => text,
    };
    node(&components(text), false, depth)
}

fn node(components: &[&str], is_function: bool, depth: usize) -> Node {
    let mut parts: Vec<Node> = vec![];
    let mut lambda = None;
    let mut numbers: Vec<&str> = vec![];
    for component in components {
        let component = component.trim();
        let component = match is_function.then(|| name_start(component)).flatten() {
            Some(start) => {
                parts.clear();
                &component[start..]
            }
            None => component,
        };
        match component {
            "" | "(anonymous namespace)" | "{anonymous}" | "'anonymous namespace'" => {}
            _ if component.starts_with("{lambda") || component.starts_with("'lambda") => {
                let component = component.trim_start_matches('{');
                let (_, params) = split_list(component, '(', depth);
                lambda = Some(params);
                let number = component.rsplit_once('#').map_or("", |(_, n)| n);
                numbers.push(number.trim_end_matches(['}', '\'']));
            }
            _ if component.starts_with("operator()") && !parts.is_empty() => {}
            _ => parts.push(part(component, depth)),
        }
    }
    let is_call = components.last().is_some_and(|last| last.trim().starts_with("operator()"));
    if is_function && is_call && lambda.is_none() && !parts.is_empty() {
        parts.push(Node { name: "operator()".to_owned(), ..Node::default() });
    }
    let mut last = parts.pop().unwrap_or_default();
    last.scopes = parts;
    last.lambda = lambda;
    last.lambda_numbers = numbers.join(".");
    last
}

/// One component with its template arguments and parameters.
fn part(component: &str, depth: usize) -> Node {
    if let Some(operator) = component.strip_prefix("operator") {
        let start = component.len() - operator.len();
        let params = operator.find('(').map_or(component.len(), |at| start + at);
        let end = component.find(" <").unwrap_or(params).min(params);
        return Node { name: component[..end].to_owned(), ..Node::default() };
    }
    // A trait's method in Rust: `<Vec<T> as Iterator>`.
    if let Some((of, _)) = component.strip_prefix('<').and_then(|rest| rest.split_once(" as ")) {
        return if depth < DEEPEST { parse_type(of, depth + 1) } else { Node::default() };
    }
    let (before, params) = split_list(component, '(', depth);
    let (name, args) = split_list(before, '<', depth);
    Node { name: name.trim().to_owned(), args, params, ..Node::default() }
}

/// The text in front of the first bracket `open`, and the elements in it.
fn split_list(text: &str, open: char, depth: usize) -> (&str, Vec<Node>) {
    let Some(start) = positions(text)
        .find(|&(at, c, is_top)| is_top && c == open && at > 0 && text.is_char_boundary(at))
    else {
        return (text, vec![]);
    };
    let inner = &text[start.0 + 1..];
    let close = if open == '(' { ')' } else { '>' };
    let end = positions(inner).find(|&(_, c, is_top)| is_top && c == close);
    let inner = end.map_or(inner, |(at, ..)| &inner[..at]);
    let elements = if depth < DEEPEST { split_top(inner, ",") } else { vec![] };
    let elements = elements.into_iter().filter(|e| !e.trim().is_empty());
    (&text[..start.0], elements.map(|e| parse_type(e, depth + 1)).collect())
}

fn components(text: &str) -> Vec<&str> {
    split_top(text, "::")
}

/// Splits at separators that are not in brackets.
fn split_top<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let mut parts = vec![];
    let mut start = 0;
    for (at, _, is_top) in positions(text) {
        if is_top && at >= start && text[at..].starts_with(separator) {
            parts.push(&text[start..at]);
            start = at + separator.len();
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Start of the function's name in its first component, after the return type.
fn name_start(component: &str) -> Option<usize> {
    if component.contains("operator") {
        return None;
    }
    let end = positions(component)
        .find(|&(at, c, is_top)| is_top && c == '(' && at > 0)
        .map_or(component.len(), |(at, ..)| at);
    let starts_name = |at: &usize| {
        let next = &component[at + 1..];
        let is_name = next.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '{'));
        next.starts_with("(anonymous") || is_name && !next.starts_with("const")
    };
    let spaces = positions(component).filter(|&(at, c, is_top)| is_top && c == ' ' && at < end);
    spaces.map(|(at, ..)| at).filter(starts_name).last().map(|at| at + 1)
}

/// Each character with its position and whether it is outside of brackets. A bracket belongs to the
/// text that contains it. `<` and `>` in parentheses or after `operator` are operators.
fn positions(text: &str) -> impl Iterator<Item = (usize, char, bool)> + '_ {
    let mut open: Vec<char> = vec![];
    let mut before = ' ';
    text.char_indices().map(move |(at, c)| {
        let is_operator = text[..at].ends_with("operator") || text[..at].ends_with("operator<");
        let is_top_before = open.is_empty();
        match c {
            '(' | '{' | '[' => open.push(c),
            '<' if !is_operator && opens_list(&text[..at]) => open.push(c),
            ')' | '}' | ']' => while open.pop().is_some_and(|other| other == '<') {},
            '>' if before != '-' && open.last() == Some(&'<') => {
                open.pop();
            }
            _ => {}
        }
        before = c;
        (at, c, is_top_before)
    })
}

/// Whether `<` after this text starts template arguments.
fn opens_list(before: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
    let of_operator = ["operator()", "operator<< ", "operator< "];
    before.is_empty()
        || before.ends_with(is_name)
        || of_operator.iter().any(|operator| before.ends_with(operator))
}

/// Drops `const`, pointers and references.
fn without_qualifiers(mut text: &str) -> &str {
    loop {
        let shorter = ["const", "volatile", "*", "&", "__restrict__", "struct "]
            .into_iter()
            .fold(text, |t, word| t.trim_end_matches(word).trim_end());
        let shorter = shorter.strip_prefix("const ").unwrap_or(shorter);
        if shorter == text {
            return text;
        }
        text = shorter;
    }
}
