//! The diagnosis as text, Markdown and CSV.

use super::{Check, Diagnosis, Fix, Group, Verdict};
use crate::document::wrapped;
use crate::escape;
use crate::table::{Column, Style, Table};

const INDENT: usize = 2;
/// Width of the verdict column.
const WORD: usize = 7;
const BETWEEN: usize = 2;
/// Minimum line width, also on narrower terminals.
const NARROWEST: usize = 60;

/// For a terminal: the summary, the findings by group, and the commands of all fixes.
pub fn text(diagnosis: &Diagnosis, style: &Style) -> String {
    let width = style.columns().max(NARROWEST);
    let mut text = wrapped(&diagnosis.verdict, 0, width, |line| style.bold(line));
    let titles =
        diagnosis.checks.iter().map(|check| escape::columns(&escape::visible(&check.title)));
    let widest = titles.max().unwrap_or(0).min(width / 4);
    for group in Group::ALL {
        let mut checks = diagnosis.checks.iter().filter(|check| check.group == group).peekable();
        if checks.peek().is_some() {
            text += &format!("\n{}\n", style.heading(group.title()));
        }
        for check in checks {
            text += &row(check, widest, width, style);
        }
    }
    for Fixes { title, steps } in fixes(diagnosis) {
        text += &format!("\n{}\n", style.heading(title));
        for (comment, lines) in steps {
            text += &commented(&comment, width, style);
            // Commands are not wrapped, so that they can be pasted.
            text.extend(
                lines.iter().map(|line| format!("{:INDENT$}{}\n", "", escape::visible(line))),
            );
        }
    }
    text
}

/// A comment as wrapped shell comment lines.
fn commented(comment: &str, width: usize, style: &Style) -> String {
    let lines = wrapped(comment, 0, width.saturating_sub(INDENT + 2), str::to_owned);
    let line = |line: &str| format!("{:INDENT$}{}\n", "", style.minor(&format!("# {line}")));
    lines.lines().map(line).collect()
}

fn row(check: &Check, widest: usize, width: usize, style: &Style) -> String {
    let hang = INDENT + WORD + BETWEEN + widest + BETWEEN;
    let word = format!("{:WORD$}", check.verdict.word());
    let word = match check.verdict {
        Verdict::Blocks | Verdict::Costs => style.bold(&word),
        Verdict::Unknown | Verdict::Fine => style.minor(&word),
    };
    let title = escape::fit(&check.title, widest);
    let space = " ".repeat(widest - escape::columns(&title));
    let found = wrapped(&check.found, hang, width, str::to_owned);
    let mut text = format!("{:INDENT$}{word}  {title}{space}  {}", "", found.trim_start());
    if !check.cost.is_empty() {
        text += &wrapped(&format!("→ {}", check.cost), hang, width, str::to_owned);
    }
    text
}

/// A heading with its fixes.
struct Fixes {
    title: &'static str,
    /// A comment and its commands.
    steps: Vec<(String, Vec<String>)>,
}

/// All fixes, worst first: inside the container, then outside.
fn fixes(diagnosis: &Diagnosis) -> Vec<Fixes> {
    let both = [("Fixes", false), ("Fixes outside the container", true)];
    let fixes = both.map(|(title, outside)| Fixes { title, steps: steps(diagnosis, outside) });
    fixes.into_iter().filter(|fixes| !fixes.steps.is_empty()).collect()
}

fn steps(diagnosis: &Diagnosis, outside: bool) -> Vec<(String, Vec<String>)> {
    let mut checks: Vec<(&Check, &Fix)> = diagnosis
        .checks
        .iter()
        .filter_map(|check| Some((check, check.fix.as_ref()?)))
        .filter(|(_, fix)| fix.outside == outside)
        .collect();
    checks.sort_by_key(|(check, _)| check.verdict);
    let mut steps: Vec<(String, Vec<String>)> = vec![];
    for (check, fix) in checks.iter().filter(|(_, fix)| fix.package.is_none()) {
        let step = (format!("{}: {}", check.title, fix.effect), fix.commands.clone());
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps.extend(installations(&checks));
    let settings: Vec<&str> = checks.iter().filter_map(|(_, fix)| fix.sysctl.as_deref()).collect();
    if !settings.is_empty() {
        let is_sudo = |(_, fix): &(&Check, &Fix)| {
            fix.sysctl.is_some() && fix.commands.iter().any(|command| command.starts_with("sudo "))
        };
        let sudo = if checks.iter().any(is_sudo) { "sudo " } else { "" };
        let command = format!(
            "printf '%s\\n' {} | {sudo}tee /etc/sysctl.d/90-laggard.conf",
            settings.join(" ")
        );
        steps.push(("keep the sysctl settings after a reboot".to_owned(), vec![command]));
    }
    steps
}

/// Merges packages with the same install command into one command.
fn installations(checks: &[(&Check, &Fix)]) -> Vec<(String, Vec<String>)> {
    let mut ways: Vec<(&str, Vec<&str>, Vec<&str>)> = vec![];
    let all_of = |titles: &[&str]| {
        let one = |(check, fix): &(&Check, &Fix)| {
            (titles == [check.title.as_str()]).then(|| format!("{}: {}", check.title, fix.effect))
        };
        checks
            .iter()
            .find_map(one)
            .unwrap_or_else(|| format!("{}: install packages", titles.join(", ")))
    };
    for (check, fix) in checks {
        let (Some(package), Some(command)) = (fix.package.as_deref(), fix.commands.first()) else {
            continue;
        };
        let way = command.strip_suffix(package).unwrap_or(command);
        match ways.iter_mut().find(|(known, ..)| *known == way) {
            Some((_, packages, _)) if packages.contains(&package) => {}
            Some((_, packages, titles)) => {
                packages.push(package);
                titles.push(&check.title);
            }
            None => ways.push((way, vec![package], vec![&check.title])),
        }
    }
    let step = |(way, packages, titles): (&str, Vec<&str>, Vec<&str>)| {
        (all_of(&titles), vec![format!("{way}{}", packages.join(" "))])
    };
    ways.into_iter().map(step).collect()
}

/// For a Markdown document.
pub fn markdown(diagnosis: &Diagnosis) -> String {
    let mut text = format!("## Doctor\n\n{}\n", escape::markdown(&diagnosis.verdict));
    for group in Group::ALL {
        let mut table = Table::new(["verdict", "check", "found", "impact"].map(Column::text));
        for check in diagnosis.checks.iter().filter(|check| check.group == group) {
            let cells = [check.verdict.word(), &check.title, &check.found, &check.cost];
            table.push(cells.map(str::to_owned));
        }
        if !table.is_empty() {
            text += &format!("\n## {}\n\n{}", group.title(), table.markdown());
        }
    }
    for Fixes { title, steps } in fixes(diagnosis) {
        text += &format!("\n## {title}\n\n```sh\n");
        for (comment, lines) in steps {
            // Backticks could close the fence.
            text += &format!("# {}\n", escape::visible(&comment).replace('`', "'"));
            text.extend(lines.iter().map(|line| format!("{}\n", escape::visible(line))));
        }
        text += "```\n";
    }
    text
}

/// One row per finding.
pub fn csv(diagnosis: &Diagnosis) -> String {
    let columns = ["group", "check", "verdict", "title", "found", "cost", "fix", "effect"];
    let mut table = Table::new(columns.map(Column::text));
    for check in &diagnosis.checks {
        let fix = check.fix.as_ref();
        table.push([
            check.group.key().to_owned(),
            check.id.to_owned(),
            check.verdict.word().to_owned(),
            check.title.clone(),
            check.found.clone(),
            check.cost.clone(),
            fix.map_or_else(String::new, |fix| fix.commands.join("; ")),
            fix.map_or_else(String::new, |fix| fix.effect.clone()),
        ]);
    }
    table.csv()
}
