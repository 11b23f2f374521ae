//! External programs that laggard uses.

use super::root::Root;
use super::{Places, run};
use laggard_core::model::host::{Known, Tool, Tools};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

pub(super) fn read(root: &Root, places: &Places) -> Tools {
    if !root.is_real() {
        return Tools::default();
    }
    Tools {
        perf: Known::Is(tool(places, &["perf"])),
        valgrind: Known::Is(tool(places, &["valgrind"])),
        compiler: Known::Is(tool(places, &["cc", "gcc", "clang"])),
    }
}

fn tool(places: &Places, names: &[&str]) -> Option<Tool> {
    let path = names.iter().find_map(|name| find(&places.programs, name))?;
    let version = match run::run(&path, &["--version"]) {
        Ok((text, true)) => match text.lines().find(|line| !line.trim().is_empty()) {
            Some(line) => Known::Is(line.trim().to_owned()),
            None => Known::unknown("it printed no version"),
        },
        Ok((text, false)) => {
            let said = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no output");
            Known::unknown(format!("--version failed: {}", said.trim()))
        }
        Err(why) => Known::Unknown(why),
    };
    Some(Tool { path: path.display().to_string(), version })
}

fn find(programs: &[PathBuf], name: &str) -> Option<PathBuf> {
    programs.iter().map(|directory| directory.join(name)).find(|path| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    })
}
