//! The array libraries that an interpreter can import, which are the default sides of the built-in
//! suites.

use crate::cli::EachSideArgs;
use crate::failure;
use anyhow::Context;
use std::path::Path;
use std::process::{Command, Stdio};

/// Import names, the reference first.
const KNOWN: [&str; 4] = ["numpy", "torch", "cupy", "jax.numpy"];

/// Prints the names that can be imported. Only CuPy is imported: it is useless without a GPU.
const ASK: &str = "
import importlib.util, sys
for name in sys.argv[1:]:
    try:
        found = importlib.util.find_spec(name.partition('.')[0]) is not None
        if found and name == 'cupy':
            import cupy
            found = cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:
        found = False
    if found: print(name)
";

/// The installed array libraries. Fails with advice if there are fewer than `fewest`.
pub(super) fn libraries(each: &EachSideArgs, fewest: usize) -> anyhow::Result<Vec<String>> {
    let python = each.python.as_deref().or(each.a_python.as_deref());
    let python = python.unwrap_or(Path::new("python3"));
    let output = Command::new(python)
        .args(["-c", ASK])
        .args(KNOWN)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", python.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found: Vec<String> = text.lines().map(str::to_owned).collect();
    let python = python.display();
    if found.first().is_none_or(|name| name != KNOWN[0]) {
        return Err(failure::with_hint(
            format!("the built-in suites need NumPy, which {python} cannot import"),
            format!("install it ({python} -m pip install numpy), or set --python"),
        ));
    }
    if found.len() < fewest {
        return Err(failure::with_hint(
            format!("{python} has only NumPy, and the built-in suites compare at least two libraries"),
            "install PyTorch, JAX or CuPy, name the sides (numpy and another import name), or compare \
             with an earlier result: bench --baseline FILE"
                .into(),
        ));
    }
    Ok(found)
}
