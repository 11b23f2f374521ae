//! Selects the kernels once per process, from the CPU and the environment.
//!
//! | variable | values | default |
//! |---|---|---|
//! | `RAPTORS_SIMD` | `auto`, `1`; `scalar`, `0`; `sse2`, `avx2`, `avx512` | widest supported by the CPU |
//! | `RAPTORS_THREADS` | a number; `auto` for one per CPU | 1 |
//! | `RAPTORS_BLAS` | path or name of a library; `1`, `auto` to search for one; `0` | none |
//! | `RAPTORS_CACHE_MB` | a number | 64 |
//!
//! A request that cannot be fulfilled is an error; there is no fallback.

use crate::blas::Blas;
use crate::kernels::{Kernels, Tables, scalar};
use std::sync::OnceLock;

/// An instruction set with kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// One element per instruction.
    Scalar,
    /// 128 bits.
    Sse2,
    /// 256 bits.
    Avx2,
    /// 512 bits.
    Avx512,
}

impl Isa {
    /// All, narrowest first.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Sse2, Self::Avx2, Self::Avx512];

    /// The name in `RAPTORS_SIMD`, and the suffix of kernel names.
    pub fn word(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse2 => "sse2",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Whether this CPU supports it.
    pub fn is_here(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        match self {
            Self::Scalar => true,
            Self::Sse2 => is_x86_feature_detected!("sse2"),
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            Self::Avx512 => is_x86_feature_detected!("avx512f"),
        }
        #[cfg(not(target_arch = "x86_64"))]
        return self == Self::Scalar;
    }

    /// The widest that this CPU supports.
    fn widest() -> Self {
        Self::ALL.into_iter().rev().find(|isa| isa.is_here()).unwrap_or(Self::Scalar)
    }
}

/// The kernels of an instruction set; `None` if this CPU does not support it.
pub(crate) fn table(isa: Isa) -> Option<&'static Tables> {
    if !isa.is_here() {
        return None;
    }
    match isa {
        Isa::Scalar => Some(&scalar::TABLES),
        #[cfg(target_arch = "x86_64")]
        Isa::Sse2 => Some(&crate::kernels::sse2::TABLES),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => Some(&crate::kernels::avx2::TABLES),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => Some(&crate::kernels::avx512::TABLES),
        #[cfg(not(target_arch = "x86_64"))]
        _ => None,
    }
}

/// Configuration of a process.
pub struct Backend {
    /// The instruction set of the kernels.
    pub isa: Isa,
    pub(crate) f32: &'static Kernels<f32>,
    pub(crate) f64: &'static Kernels<f64>,
    pub(crate) i32: &'static Kernels<i32>,
    /// Maximum number of threads.
    pub threads: usize,
    /// The library for sums along an axis, if requested.
    pub blas: Option<Blas>,
    /// Maximum bytes of freed results in the cache.
    pub cache_bytes: usize,
    /// Operations on at least this many bytes use streaming stores.
    pub stream_from_bytes: usize,
}

/// An environment variable with a request that cannot be fulfilled.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("{name}={value}: {why}")]
pub struct BadSetting {
    name: &'static str,
    value: String,
    why: String,
}

static BACKEND: OnceLock<Backend> = OnceLock::new();

/// Configures the process from the environment, unless already done.
pub fn start() -> Result<&'static Backend, BadSetting> {
    if let Some(backend) = BACKEND.get() {
        return Ok(backend);
    }
    let backend = Backend::by_settings(|name| std::env::var(name).ok())?;
    Ok(BACKEND.get_or_init(|| backend))
}

/// The configuration of this process; the default if the environment was not read.
pub(crate) fn current() -> &'static Backend {
    BACKEND.get_or_init(|| Backend::new(Isa::widest(), &scalar::TABLES))
}

impl Backend {
    fn new(isa: Isa, otherwise: &'static Tables) -> Self {
        let &Tables { f32, f64, i32 } = table(isa).unwrap_or(otherwise);
        Self {
            isa,
            f32,
            f64,
            i32,
            threads: 1,
            blas: None,
            cache_bytes: 64 << 20,
            // Half of the cache, to leave space for other data.
            stream_from_bytes: last_cache_bytes() / 2,
        }
    }

    fn by_settings(get: impl Fn(&'static str) -> Option<String>) -> Result<Self, BadSetting> {
        let ask = |name| get(name).filter(|value| !value.is_empty()).map(|value| (name, value));
        let isa = ask("RAPTORS_SIMD").map_or(Ok(Isa::widest()), isa_of)?;
        let mut backend = Self::new(isa, &scalar::TABLES);
        if let Some(setting) = ask("RAPTORS_THREADS") {
            backend.threads = threads_of(setting)?;
        }
        if let Some((name, value)) = ask("RAPTORS_BLAS").filter(|(_, value)| value != "0") {
            backend.blas =
                Some(Blas::open(&value).map_err(|why| BadSetting { name, value, why })?);
        }
        if let Some((name, value)) = ask("RAPTORS_CACHE_MB") {
            let bytes = value.parse().ok().and_then(|mb: usize| mb.checked_mul(1 << 20));
            let why = || "expected a number of megabytes".into();
            backend.cache_bytes = bytes.ok_or_else(|| BadSetting { name, value, why: why() })?;
        }
        Ok(backend)
    }
}

/// Size of the last-level cache; a default if the system does not report it. Does not use `sysconf`, which returns a
/// multiple on some AMD CPUs.
fn last_cache_bytes() -> usize {
    (2..=4)
        .rev()
        .filter_map(|index| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
            let size = std::fs::read_to_string(path).ok()?;
            let kib: usize = size.trim().strip_suffix('K')?.parse().ok()?;
            kib.checked_mul(1 << 10)
        })
        .next()
        .unwrap_or(32 << 20)
}

fn isa_of((name, value): (&'static str, String)) -> Result<Isa, BadSetting> {
    let isa = match value.as_str() {
        "auto" | "1" => Isa::widest(),
        "0" => Isa::Scalar,
        word => match Isa::ALL.into_iter().find(|isa| isa.word() == word) {
            Some(isa) => isa,
            None => {
                let why = "expected auto, scalar, sse2, avx2 or avx512".into();
                return Err(BadSetting { name, value, why });
            }
        },
    };
    if isa.is_here() {
        return Ok(isa);
    }
    let why = format!("this processor has none; the widest here is {}", Isa::widest().word());
    Err(BadSetting { name, value, why })
}

fn threads_of((name, value): (&'static str, String)) -> Result<usize, BadSetting> {
    if value == "auto" {
        return Ok(std::thread::available_parallelism().map_or(1, usize::from));
    }
    match value.parse() {
        Ok(threads) if (1..=1024).contains(&threads) => Ok(threads),
        _ => {
            Err(BadSetting { name, value, why: "expected auto or a number from 1 to 1024".into() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &'static str, value: &str, expected: Result<(Isa, usize), &str>) {
        let asked = Backend::by_settings(|asked| (asked == name).then(|| value.to_owned()));
        let got = asked.map(|backend| (backend.isa, backend.threads));
        assert_eq!(got.map_err(|bad| bad.to_string()), expected.map_err(str::to_owned));
    }

    /// A forced code path is used or rejected with an error.
    #[test]
    fn settings_decide_or_are_refused() {
        check("RAPTORS_SIMD", "0", Ok((Isa::Scalar, 1)));
        check("RAPTORS_SIMD", "scalar", Ok((Isa::Scalar, 1)));
        check("RAPTORS_SIMD", "1", Ok((Isa::widest(), 1)));
        check("RAPTORS_SIMD", "", Ok((Isa::widest(), 1)));
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_here()) {
            check("RAPTORS_SIMD", isa.word(), Ok((isa, 1)));
        }
        let why = "RAPTORS_SIMD=mmx: expected auto, scalar, sse2, avx2 or avx512";
        check("RAPTORS_SIMD", "mmx", Err(why));
        check("RAPTORS_THREADS", "3", Ok((Isa::widest(), 3)));
        let why = "RAPTORS_THREADS=0: expected auto or a number from 1 to 1024";
        check("RAPTORS_THREADS", "0", Err(why));
        let why = "RAPTORS_CACHE_MB=-1: expected a number of megabytes";
        check("RAPTORS_CACHE_MB", "-1", Err(why));
    }
}
