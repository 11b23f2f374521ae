//! Command lines of sides: split into words, or run by a shell.

use crate::failure;
use anyhow::{Context, ensure};
use std::ffi::OsString;

/// Splits a command line. Only the quoting rules of a shell apply, so that starting a shell is not
/// part of the time. Fails if the line needs a shell; `help` states how to use one.
pub(crate) fn words(line: &str, help: &str) -> anyhow::Result<Vec<OsString>> {
    let words = shlex::split(line).with_context(|| format!("unbalanced quotes in {line:?}"))?;
    ensure!(!words.is_empty(), "the command of a side is empty");
    if let Some(syntax) = shell_syntax(line) {
        return Err(failure::with_hint(
            format!("{line:?} contains shell syntax ({syntax}), but commands run without a shell"),
            format!("{help}, or quote the characters to pass them to the program"),
        ));
    }
    Ok(words.into_iter().map(OsString::from).collect())
}

/// The command that runs a line in a shell.
pub(crate) fn shell_words(line: &str) -> anyhow::Result<Vec<OsString>> {
    ensure!(!line.trim().is_empty(), "the command of a side is empty");
    Ok(["sh", "-c", line].map(OsString::from).to_vec())
}

/// The first unquoted part of a line that only a shell interprets.
fn shell_syntax(line: &str) -> Option<String> {
    let chars: Vec<char> = line.chars().collect();
    if let Some(variable) = assignment(&chars) {
        return Some(variable);
    }
    let first = chars.iter().take_while(|c| c.is_whitespace()).count();
    let mut is_quoted = false;
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let next = chars.get(at + 1).copied();
        let is_word_start = at == 0 || chars[at - 1].is_whitespace();
        match c {
            '\\' => at += 1,
            '"' => is_quoted = !is_quoted,
            '\'' if !is_quoted => {
                at += 1 + chars[at + 1..].iter().take_while(|&&c| c != '\'').count();
            }
            // A shell also replaces these within double quotes.
            '`' => return Some("`".into()),
            '$' if next.is_some_and(|c| c.is_alphanumeric() || "_{(?@#*!".contains(c)) => {
                let is_name = |c: &&char| c.is_alphanumeric() || **c == '_';
                let name: String = chars[at + 1..].iter().take_while(is_name).collect();
                let rest = if name.is_empty() { next.map(String::from) } else { Some(name) };
                return Some(format!("${}", rest.unwrap_or_default()));
            }
            _ if is_quoted => {}
            '|' | '<' | '>' | ';' | '*' => return Some(c.into()),
            '\n' if chars[at..].iter().any(|c| !c.is_whitespace()) && at > first => {
                return Some("line break".into());
            }
            '&' if next == Some('&') => return Some("&&".into()),
            '&' if is_word_start || next.is_none() => return Some("&".into()),
            '~' if is_word_start && next.is_none_or(|c| c == '/' || c.is_whitespace()) => {
                return Some("~".into());
            }
            '#' if is_word_start => return Some("#".into()),
            _ => {}
        }
        at += 1;
    }
    None
}

/// `NAME=VALUE` before the program, which sets a variable in a shell.
fn assignment(chars: &[char]) -> Option<String> {
    let first: String = chars.iter().skip_while(|c| c.is_whitespace()).collect();
    let first = first.split_whitespace().next()?;
    let (name, _) = first.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| format!("{name}="))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests fail by panicking

    use super::*;

    /// Without this error, a pipe would be an argument of the first program, and the benchmark would
    /// measure something else.
    #[test]
    fn shell_syntax_is_detected_unless_it_is_quoted() {
        for (line, expected) in [
            ("a | b", Some("|")),
            ("a|b", Some("|")),
            ("sort < in", Some("<")),
            ("ls > out", Some(">")),
            ("ls 2>/dev/null", Some(">")),
            ("a && b", Some("&&")),
            ("a || b", Some("|")),
            ("a; b", Some(";")),
            ("sleep 1 &", Some("&")),
            ("cat *.txt", Some("*")),
            ("echo $HOME", Some("$HOME")),
            ("echo \"$HOME/x\"", Some("$HOME")),
            ("echo ${HOME}", Some("${")),
            ("echo $(date)", Some("$(")),
            ("echo `date`", Some("`")),
            ("ls ~/x", Some("~")),
            ("X=1 python a.py", Some("X=")),
            ("true # comment", Some("#")),
            ("echo 'a|b'", None),
            ("echo \"a|b; c > d * && e\"", None),
            ("echo a\\|b \\$X \"\\$X\"", None),
            ("echo '$X `y`' '*'", None),
            ("echo it\\'s fine", None),
            ("python -c 'x = \"a\"; print(x)'", None),
            ("curl http://host/?a=1&b=2#c", None),
            ("program --name=value a=b", None),
            ("seq {n} 100$ 5$", None),
            ("ls a~ x~/y", None),
            ("./a=b c", None),
        ] {
            assert_eq!(shell_syntax(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn quotes_separate_words_as_in_a_shell() {
        let split = |line| words(line, "").unwrap();
        assert_eq!(split("a 'b c' d\\ e"), ["a", "b c", "d e"]);
        assert!(words("a 'b", "").unwrap_err().to_string().contains("unbalanced quotes"));
        assert!(words(" ", "").is_err() && shell_words(" ").is_err());
        assert_eq!(shell_words("a | b").unwrap(), ["sh", "-c", "a | b"]);
    }
}
