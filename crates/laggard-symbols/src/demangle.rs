//! Demangles symbol names.

use std::borrow::Cow;
use std::fmt;

/// Maximum length of a demangled name. Longer ones stay mangled: with back references, a short C++
/// symbol can expand to a huge name.
const LONGEST: usize = 1 << 14;

/// Demangles Rust names (both schemes, without the hash) and C++ names. Other names are returned
/// unchanged.
pub fn demangle(name: &str) -> Cow<'_, str> {
    let (plain, suffix) = match name.strip_suffix("@plt") {
        Some(plain) => (plain, "@plt"),
        None => (name, ""),
    };
    match rust(plain).or_else(|| cpp(plain)).or_else(|| cython(plain)) {
        Some(readable) => Cow::Owned(readable + suffix),
        None => Cow::Borrowed(name),
    }
}

/// The last component of a path: `libc.so.6` of `/lib/x86_64-linux-gnu/libc.so.6`.
pub fn short_name(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

fn rust(name: &str) -> Option<String> {
    let is_rust = name.starts_with("_R") || has_legacy_hash(name);
    let readable = is_rust.then(|| rustc_demangle::try_demangle(name).ok())??;
    let mut bounded = Bounded::default();
    fmt::write(&mut bounded, format_args!("{readable:#}")).ok()?;
    Some(bounded.0)
}

/// `pydantic.main.BaseModel.__init__` for `__pyx_pw_8pydantic_4main_9BaseModel_1__init__`. Components
/// with their length precede the function's name, which has a number in front if it is not the first
/// one of its scope.
fn cython(name: &str) -> Option<String> {
    const PREFIXES: [&str; 3] = ["__pyx_pw_", "__pyx_pf_", "__pyx_f_"];
    let mut rest = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let mut readable = String::new();
    while let Some((component, next)) = cython_component(rest) {
        readable.push_str(component);
        readable.push('.');
        rest = next;
    }
    let function = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    (!readable.is_empty() && !function.is_empty()).then(|| readable + function)
}

/// The component in front, such as `8pydantic_`, and what follows it.
fn cython_component(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let length: usize = text[..digits].parse().ok()?;
    let component = text.get(digits..digits.checked_add(length)?)?;
    let next = text.get(digits + length..)?.strip_prefix('_')?;
    let is_name = component.starts_with(|c: char| c.is_alphabetic() || c == '_');
    (is_name && !component.trim_matches('_').is_empty() && !next.is_empty())
        .then_some((component, next))
}

/// Rust's legacy scheme is that of C++ with `17h` and a hash of 16 digits as the last component.
fn has_legacy_hash(name: &str) -> bool {
    let Some(at) = name.starts_with("_ZN").then(|| name.rfind("17h")).flatten() else {
        return false;
    };
    let hash = name.as_bytes().get(at + 3..at + 19);
    hash.is_some_and(|hash| hash.iter().all(u8::is_ascii_hexdigit))
        && name.as_bytes().get(at + 19) == Some(&b'E')
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let (symbol, tail) = cpp_demangle::BorrowedSymbol::with_tail(name.as_bytes()).ok()?;
    let mut bounded = Bounded::default();
    symbol.structured_demangle(&mut bounded, &cpp_demangle::DemangleOptions::new()).ok()?;
    bounded.0.push_str(std::str::from_utf8(tail).ok()?);
    Some(bounded.0)
}

/// A text with a maximum length.
#[derive(Default)]
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demangles_names() {
        for (mangled, readable) in [
            ("main", "main"),
            ("sgemm_kernel_SKYLAKEX", "sgemm_kernel_SKYLAKEX"),
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
            ("_ZN3foo3barEi", "foo::bar(int)"),
            ("_ZN3foo3barEi@plt", "foo::bar(int)@plt"),
            ("_ZN3foo3barEi.cold", "foo::bar(int) [clone .cold]"),
            ("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function"),
            ("__pyx_pw_8pydantic_4main_9BaseModel_1__init__", "pydantic.main.BaseModel.__init__"),
            ("__pyx_pf_8pydantic_4main_9BaseModel___init__", "pydantic.main.BaseModel.__init__"),
            ("__pyx_pw_8pydantic_4main_11validate_model", "pydantic.main.validate_model"),
            ("__pyx_f_6pandas_5_libs_3lib_f", "pandas._libs.lib.f"),
            ("__pyx_pw_9", "__pyx_pw_9"),
            ("__pyx_f_99999999999999999999_x", "__pyx_f_99999999999999999999_x"),
            ("_ZNot mangled at all", "_ZNot mangled at all"),
            ("_Z", "_Z"),
            ("", ""),
        ] {
            assert_eq!(demangle(mangled), readable);
        }
    }

    #[test]
    fn keeps_exploding_name_mangled() {
        let bomb = format!("_Z1f{}", "1TIS_S_S_E".repeat(40));
        assert!(demangle(&bomb).len() <= LONGEST);
    }

    #[test]
    fn short_name_is_the_last_component() {
        assert_eq!(short_name("/lib/libc.so.6"), "libc.so.6");
        assert_eq!(short_name("[vdso]"), "[vdso]");
        assert_eq!(short_name("/"), "/");
    }
}
