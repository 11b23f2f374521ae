//! Programs from system packages.

use crate::project;
use anyhow::{Result, bail};
use std::process::Command;

/// Installs the Debian package `package` if `program` is not in PATH.
pub(crate) fn ensure_debian(package: &str, program: &str) -> Result<()> {
    if project::which(program).is_none() {
        install_debian(package)?;
    }
    if project::which(program).is_none() {
        bail!("{program} is not in PATH, although the package {package} is installed");
    }
    Ok(())
}

/// Installs a package on Debian or Ubuntu. Requires root.
pub(crate) fn install_debian(package: &str) -> Result<()> {
    if project::which("apt-get").is_none() {
        bail!(
            "the package {package} is missing, and apt-get is not available\nhint: install the corresponding package of this system"
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
    // The package list may be out of date or missing.
    let updated = project::must(&mut apt(&["update", "--quiet"]))
        .and_then(|()| project::must(&mut apt(&install)));
    if updated.is_err() {
        bail!(
            "cannot install the package {package}\nhint: run `apt-get install {package}` as root"
        );
    }
    Ok(())
}
