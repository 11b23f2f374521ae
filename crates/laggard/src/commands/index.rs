//! `laggard index`: lists or deletes indexes of traces.

use crate::cli::IndexArgs;
use crate::printer::Printer;
use laggard_formats::lag;
use laggard_report::number;

/// Runs the verb.
pub(crate) fn run(args: &IndexArgs, printer: &Printer) -> anyhow::Result<()> {
    let mut entries = lag::list(&args.places)?;
    if args.stale {
        entries.iter_mut().for_each(lag::IndexEntry::look_closely);
        entries.retain(|entry| entry.problem.is_some());
    }
    if args.clear {
        for entry in &entries {
            lag::remove(entry)?;
            printer.detail(&format!("removed {}", entry.path.display()));
        }
    }
    if args.json {
        let row = |entry: &lag::IndexEntry| serde_json::json!({"path": entry.path, "bytes": entry.size, "trace": entry.trace, "problem": entry.problem});
        let all = serde_json::json!({"schema": "laggard.index-list/1", "removed": args.clear, "indexes": entries.iter().map(row).collect::<Vec<_>>()});
        return printer.data(&format!("{all:#}\n"));
    }
    let size: u64 = entries.iter().map(|entry| entry.size).sum();
    let verb = if args.clear { "removed" } else { "found" };
    let mut text = String::new();
    if !args.clear {
        for entry in &entries {
            let problem =
                entry.problem.as_ref().map_or_else(String::new, |problem| format!("  ({problem})"));
            text += &format!(
                "{}  {}{problem}\n",
                number::bytes(entry.size as i64),
                entry.path.display()
            );
        }
    }
    let word = if entries.len() == 1 { "index" } else { "indexes" };
    text += &format!("{verb} {} {word}, {}\n", entries.len(), number::bytes(size as i64));
    printer.data(&text)
}
