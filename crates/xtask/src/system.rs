//! Programs that come from the system's packages.

use crate::project;
use anyhow::{Result, bail};
use std::process::Command;

/// Makes sure that `program` can be run, installing Debian's `package` if it cannot.
pub(crate) fn ensure_debian(package: &str, program: &str) -> Result<()> {
    if project::which(program).is_none() {
        install_debian(package)?;
    }
    if project::which(program).is_none() {
        bail!("there is no {program} in PATH, even with the package {package} installed");
    }
    Ok(())
}

/// Installs a package of Debian or Ubuntu, which takes root.
pub(crate) fn install_debian(package: &str) -> Result<()> {
    if project::which("apt-get").is_none() {
        bail!(
            "the package {package} is missing, and there is no apt-get to install it\nhint: install what it is called on this system"
        );
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    let install = ["install", "--yes", "--quiet", "--no-install-recommends", package];
    if project::must(&mut apt(&install)).is_ok() {
        return Ok(());
    }
    // The list of packages may be old or missing.
    let updated = project::must(&mut apt(&["update", "--quiet"]))
        .and_then(|()| project::must(&mut apt(&install)));
    if updated.is_err() {
        bail!(
            "cannot install the package {package}\nhint: run `apt-get install {package}` as root"
        );
    }
    Ok(())
}
