//! Parameters of BLAS and LAPACK functions.
//!
//! Fortran passes pointers: the tracer reads the letters and integers that they point to, and leaves
//! out other arguments. CBLAS passes values.

/// A parameter of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in the reference implementation: `transa`, `m`, `lda`.
    pub name: &'static str,
    /// Its type.
    pub role: Role,
}

/// Type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An option: a letter in Fortran, a number in C.
    Letter,
    /// A size or stride.
    Integer,
    /// A floating-point number, behind a pointer in Fortran and for complex numbers.
    Float,
    /// An array or a result.
    Array,
}

/// Number of integer arguments that are passed in registers.
const IN_REGISTERS: usize = 6;

/// Functions without the letter of their type, and their first parameters: letters end in `'`, numbers
/// in `.` and arrays in `*`.
const SIGNATURES: &[(&str, &str)] = &[
    // BLAS, level 1. Complex dot products are missing: some compilers return them in an argument.
    ("axpy", "n alpha. x* incx y* incy"),
    ("scal", "n alpha. x* incx"),
    ("copy", "n x* incx y* incy"),
    ("swap", "n x* incx y* incy"),
    ("dot", "n x* incx y* incy"),
    ("nrm2", "n x* incx"),
    ("asum", "n x* incx"),
    ("amax", "n x* incx"),
    ("rot", "n x* incx y* incy c."),
    // Level 2.
    ("gemv", "trans' m n alpha. a* lda x* incx"),
    ("gbmv", "trans' m n kl ku alpha. a* lda"),
    ("ger", "m n alpha. x* incx y* incy"),
    ("geru", "m n alpha. x* incx y* incy"),
    ("gerc", "m n alpha. x* incx y* incy"),
    ("symv", "uplo' n alpha. a* lda x* incx"),
    ("hemv", "uplo' n alpha. a* lda x* incx"),
    ("sbmv", "uplo' n k alpha. a* lda x*"),
    ("hbmv", "uplo' n k alpha. a* lda x*"),
    ("spmv", "uplo' n alpha. ap* x* incx beta."),
    ("hpmv", "uplo' n alpha. ap* x* incx beta."),
    ("trmv", "uplo' trans' diag' n a* lda"),
    ("trsv", "uplo' trans' diag' n a* lda"),
    ("syr", "uplo' n alpha. x* incx a* lda"),
    ("her", "uplo' n alpha. x* incx a* lda"),
    ("syr2", "uplo' n alpha. x* incx y* incy"),
    ("her2", "uplo' n alpha. x* incx y* incy"),
    // Level 3.
    ("gemm", "transa' transb' m n k alpha."),
    ("gemm3m", "transa' transb' m n k alpha."),
    ("gemmt", "uplo' transa' transb' n k alpha."),
    ("symm", "side' uplo' m n alpha. a* lda"),
    ("hemm", "side' uplo' m n alpha. a* lda"),
    ("syrk", "uplo' trans' n k alpha. a* lda"),
    ("herk", "uplo' trans' n k alpha. a* lda"),
    ("syr2k", "uplo' trans' n k alpha. a* lda"),
    ("her2k", "uplo' trans' n k alpha. a* lda"),
    ("trmm", "side' uplo' transa' diag' m n"),
    ("trsm", "side' uplo' transa' diag' m n"),
    // LAPACK: factorizations and linear systems.
    ("getrf", "m n a* lda ipiv* info*"),
    ("getrf2", "m n a* lda ipiv* info*"),
    ("getf2", "m n a* lda ipiv* info*"),
    ("getri", "n a* lda ipiv* work* lwork"),
    ("getrs", "trans' n nrhs a* lda ipiv*"),
    ("gesv", "n nrhs a* lda ipiv* b*"),
    ("posv", "uplo' n nrhs a* lda b*"),
    ("sysv", "uplo' n nrhs a* lda ipiv*"),
    ("hesv", "uplo' n nrhs a* lda ipiv*"),
    ("gtsv", "n nrhs dl* d* du* b*"),
    ("gbsv", "n kl ku nrhs ab* ldab"),
    ("potrf", "uplo' n a* lda info*"),
    ("potrf2", "uplo' n a* lda info*"),
    ("potri", "uplo' n a* lda info*"),
    ("potrs", "uplo' n nrhs a* lda b*"),
    ("sytrf", "uplo' n a* lda ipiv* work*"),
    ("hetrf", "uplo' n a* lda ipiv* work*"),
    ("trtri", "uplo' diag' n a* lda info*"),
    ("trtrs", "uplo' trans' diag' n nrhs a*"),
    ("geqrf", "m n a* lda tau* work*"),
    ("geqp3", "m n a* lda jpvt* tau*"),
    ("gelqf", "m n a* lda tau* work*"),
    ("orgqr", "m n k a* lda tau*"),
    ("ungqr", "m n k a* lda tau*"),
    ("ormqr", "side' trans' m n k a*"),
    ("unmqr", "side' trans' m n k a*"),
    ("laswp", "n a* lda k1 k2 ipiv*"),
    ("gecon", "norm' n a* lda anorm. rcond*"),
    ("pocon", "uplo' n a* lda anorm. rcond*"),
    // Least squares.
    ("gels", "trans' m n nrhs a* lda"),
    ("gelsd", "m n nrhs a* lda b*"),
    ("gelss", "m n nrhs a* lda b*"),
    ("gelsy", "m n nrhs a* lda b*"),
    // Eigenvalues and singular values.
    ("syev", "jobz' uplo' n a* lda w*"),
    ("syevd", "jobz' uplo' n a* lda w*"),
    ("syevr", "jobz' range' uplo' n a* lda"),
    ("syevx", "jobz' range' uplo' n a* lda"),
    ("heev", "jobz' uplo' n a* lda w*"),
    ("heevd", "jobz' uplo' n a* lda w*"),
    ("heevr", "jobz' range' uplo' n a* lda"),
    ("heevx", "jobz' range' uplo' n a* lda"),
    ("sygvd", "itype jobz' uplo' n a* lda"),
    ("hegvd", "itype jobz' uplo' n a* lda"),
    ("sytrd", "uplo' n a* lda d* e*"),
    ("hetrd", "uplo' n a* lda d* e*"),
    ("geev", "jobvl' jobvr' n a* lda w*"),
    ("ggev", "jobvl' jobvr' n a* lda b*"),
    ("gesvd", "jobu' jobvt' m n a* lda"),
    ("gesdd", "jobz' m n a* lda s*"),
    // Auxiliary functions.
    ("lange", "norm' m n a* lda work*"),
    ("lansy", "norm' uplo' n a* lda work*"),
    ("lacpy", "uplo' m n a* lda b*"),
    ("laset", "uplo' m n alpha. beta. a*"),
];

/// Letters of the types. Some functions have two: `scnrm2`, `zdscal`, `idamax`.
const TYPES: [&str; 12] = ["s", "d", "c", "z", "sc", "dz", "cs", "zd", "is", "id", "ic", "iz"];

/// A name taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name<'a> {
    /// The name without prefixes, suffixes and the letter of the type.
    stem: &'a str,
    type_letters: &'a str,
    is_cblas: bool,
    /// Whether integers have 64 bits.
    is_wide: bool,
}

impl<'a> Name<'a> {
    fn parse(function: &'a str) -> Option<(Name<'a>, &'static str)> {
        let name = function.strip_prefix("scipy_").unwrap_or(function);
        let (name, is_cblas) = name.strip_prefix("cblas_").map_or((name, false), |n| (n, true));
        let (name, is_wide) = ["64_", "_64"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .map_or((name, false), |name| (name, true));
        let name = name.strip_suffix('_').unwrap_or(name);
        TYPES.iter().find_map(|letters| {
            let stem = name.strip_prefix(letters)?;
            let (_, signature) = SIGNATURES.iter().find(|(known, _)| *known == stem)?;
            Some((
                Name { stem, type_letters: &name[..letters.len()], is_cblas, is_wide },
                *signature,
            ))
        })
    }
}

/// The parameters of a function that are passed in integer registers; `None` if it is not known.
pub fn parameters(function: &str) -> Option<Vec<Parameter>> {
    let (name, signature) = Name::parse(function)?;
    let all = signature.split(' ').map(parameter);
    if !name.is_cblas {
        return Some(all.take(IN_REGISTERS).collect());
    }
    // Only BLAS has this interface. Real numbers are passed in vector registers.
    let is_vector =
        name.stem == "amax" || !signature.contains('\'') && !name.stem.starts_with("ge");
    let layout = (!is_vector).then_some(Parameter { name: "layout", role: Role::Letter });
    let is_real = matches!(name.type_letters, "s" | "d" | "cs" | "zd");
    let in_registers = all.filter(|one| !(is_real && one.role == Role::Float));
    Some(layout.into_iter().chain(in_registers).take(IN_REGISTERS).collect())
}

fn parameter(word: &'static str) -> Parameter {
    let role = match word.as_bytes().last() {
        Some(b'\'') => Role::Letter,
        Some(b'.') => Role::Float,
        Some(b'*') => Role::Array,
        _ => Role::Integer,
    };
    Parameter { name: word.trim_end_matches(['\'', '.', '*']), role }
}

/// One recorded argument of a known function: its name and value. Omitted arguments have none.
pub fn described(function: &str, values: &[i64]) -> Option<Vec<(&'static str, String)>> {
    let parameters = parameters(function)?;
    let (name, _) = Name::parse(function)?;
    let values = parameters.iter().zip(values);
    let shown = values.filter_map(|(parameter, &value)| {
        let text = match parameter.role {
            Role::Letter => letter(value, name.is_cblas)?,
            // The upper half of a 32-bit integer in a register is undefined.
            Role::Integer if name.is_cblas && !name.is_wide => (value as i32).to_string(),
            Role::Integer => number(value),
            Role::Float | Role::Array => return None,
        };
        Some((parameter.name, text))
    });
    Some(shown.collect())
}

/// Addresses that could not be read are hexadecimal. No size of an array is that large.
fn number(value: i64) -> String {
    const LARGEST: u64 = 1 << 40;
    if value.unsigned_abs() < LARGEST { value.to_string() } else { format!("{value:#x}") }
}

/// An option of Fortran, or one of the constants of CBLAS.
fn letter(value: i64, is_cblas: bool) -> Option<String> {
    let constant = match value as i32 {
        101 => "row-major",
        102 => "column-major",
        111 | 131 => "N",
        112 => "T",
        113 => "C",
        121 | 132 => "U",
        122 | 141 => "L",
        142 => "R",
        _ => "",
    };
    if is_cblas && !constant.is_empty() {
        return Some(constant.to_owned());
    }
    match u8::try_from(value) {
        Ok(byte) if byte.is_ascii_graphic() && !is_cblas => Some(char::from(byte).to_string()),
        _ => Some(number(value)),
    }
}

/// The signatures for the tracer: `gemm=ccnnn.`, with `c` for a letter, `n` for an integer and `.` for
/// an argument that is left out.
pub fn signatures() -> impl Iterator<Item = String> {
    SIGNATURES.iter().map(|(stem, signature)| {
        let code = |word: &'static str| match parameter(word).role {
            Role::Letter => 'c',
            Role::Integer => 'n',
            Role::Float | Role::Array => '.',
        };
        format!("{stem}={}", signature.split(' ').take(IN_REGISTERS).map(code).collect::<String>())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_names() {
        let check = |function: &str, values: &[i64], expected: &str| {
            let shown = described(function, values).unwrap_or_default();
            let shown: Vec<String> =
                shown.iter().map(|(name, value)| format!("{name} {value}")).collect();
            assert_eq!(shown.join(", "), expected, "{function}");
        };
        let gemm = [78, 84, 400, 300, 200, 0];
        let expected = "transa N, transb T, m 400, n 300, k 200";
        for function in
            ["dgemm_", "sgemm_", "zgemm_", "cgemm", "scipy_dgemm_", "dgemm_64_", "scipy_dgemm_64_"]
        {
            check(function, &gemm, expected);
        }
        check("dgemm_", &gemm[..3], "transa N, transb T, m 400");
        check(
            "scipy_cblas_sgemm64_",
            &[101, 111, 112, 400, 300, 200],
            "layout row-major, transa N, transb T, m 400, n 300, k 200",
        );
        check(
            "cblas_dgemv",
            &[102, 112, 0x7fff_0000_0003, 4, 0x7f00, 4],
            "layout column-major, trans T, m 3, n 4, lda 4",
        );
        check(
            "cblas_zgemv",
            &[101, 111, 3, 4, 0x7f00, 0x7f00],
            "layout row-major, trans N, m 3, n 4",
        );
        check("cblas_ddot", &[100, 0x7f00, 1, 0x7f00, 2], "n 100, incx 1, incy 2");
        check("cblas_idamax", &[100, 0x7f00, 1], "n 100, incx 1");
        check("cblas_dger", &[101, 3, 4, 0x7f00, 1, 0x7f00], "layout row-major, m 3, n 4, incx 1");
        check("zdscal_", &[100, 0, 0, 1], "n 100, incx 1");
        check("scnrm2_", &[100, 0, 1], "n 100, incx 1");
        check("dgesdd_", &[65, 30, 20, 0, 30, 0], "jobz A, m 30, n 20, lda 30");
        // Recorded without the tables: the arguments are addresses.
        check(
            "dgemm_",
            &[0x7fff_1234_5678; 3],
            "transa 0x7fff12345678, transb 0x7fff12345678, m 0x7fff12345678",
        );
    }

    #[test]
    fn other_functions_have_no_known_parameters() {
        for function in
            ["", "add_one", "gemm", "xgemm_", "dgemm_kernel", "my_dgemm_", "zdotu_", "d", "_"]
        {
            assert_eq!(parameters(function), None, "{function}");
        }
    }

    #[test]
    fn the_tracer_gets_a_code_for_each_register() {
        let all: Vec<String> = signatures().collect();
        assert!(all.contains(&"gemm=ccnnn.".to_owned()) && all.contains(&"scal=n..n".to_owned()));
        assert!(all.iter().all(|text| {
            text.split_once('=').is_some_and(|(_, code)| (1..=6).contains(&code.len()))
        }));
    }
}
