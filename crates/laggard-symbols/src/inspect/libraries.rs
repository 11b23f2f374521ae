//! Well-known libraries, by file name and by characteristic functions.

use crate::Elf;
use laggard_core::model::code::{Known, Role};

/// Prefixes of file names, without `lib`.
const FILES: &[(&str, Role, &str)] = &[
    ("openblas", Role::Blas, "OpenBLAS"),
    ("scipy_openblas", Role::Blas, "OpenBLAS"),
    ("mkl_", Role::Blas, "MKL"),
    ("blis", Role::Blas, "BLIS"),
    ("atlas", Role::Blas, "ATLAS"),
    ("satlas", Role::Blas, "ATLAS"),
    ("tatlas", Role::Blas, "ATLAS"),
    ("f77blas", Role::Blas, "ATLAS"),
    ("ptf77blas", Role::Blas, "ATLAS"),
    ("armpl", Role::Blas, "Arm Performance Libraries"),
    ("nvpl_blas", Role::Blas, "NVPL"),
    ("nvpl_lapack", Role::Lapack, "NVPL"),
    ("Accelerate", Role::Blas, "Accelerate"),
    ("cblas", Role::Blas, "system BLAS"),
    ("blas", Role::Blas, "system BLAS"),
    ("flame", Role::Lapack, "libFLAME"),
    ("lapack", Role::Lapack, "system LAPACK"),
    ("gomp", Role::OpenMp, "libgomp"),
    ("iomp5", Role::OpenMp, "libiomp5"),
    ("omp.", Role::OpenMp, "libomp"),
    ("omp-", Role::OpenMp, "libomp"),
    ("omp5", Role::OpenMp, "libomp"),
    ("tbb", Role::OpenMp, "TBB"),
    ("jemalloc", Role::Allocator, "jemalloc"),
    ("tcmalloc", Role::Allocator, "tcmalloc"),
    ("mimalloc", Role::Allocator, "mimalloc"),
    ("tbbmalloc", Role::Allocator, "TBB malloc"),
    ("m.so", Role::Math, "libm"),
    ("mvec", Role::Math, "libmvec"),
    ("svml", Role::Math, "SVML"),
    ("imf", Role::Math, "Intel libimf"),
    ("sleef", Role::Math, "SLEEF"),
    ("alm", Role::Math, "AMD libm"),
    ("amdlibm", Role::Math, "AMD libm"),
    ("cublas", Role::Gpu, "cuBLAS"),
    ("cudnn", Role::Gpu, "cuDNN"),
    ("cudart", Role::Gpu, "CUDA"),
    ("cuda", Role::Gpu, "CUDA"),
    ("nccl", Role::Gpu, "NCCL"),
    ("rocblas", Role::Gpu, "rocBLAS"),
    ("hipblas", Role::Gpu, "hipBLAS"),
    ("amdhip64", Role::Gpu, "HIP"),
    ("OpenCL", Role::Gpu, "OpenCL"),
    ("rccl", Role::Gpu, "RCCL"),
];

/// Functions that only one library has.
const FUNCTIONS: &[(&str, Role, &str)] = &[
    ("openblas_get_config", Role::Blas, "OpenBLAS"),
    ("openblas_get_config64_", Role::Blas, "OpenBLAS"),
    ("scipy_openblas_get_config", Role::Blas, "OpenBLAS"),
    ("scipy_openblas_get_config64_", Role::Blas, "OpenBLAS"),
    ("MKL_Get_Version_String", Role::Blas, "MKL"),
    ("mkl_serv_get_version_string", Role::Blas, "MKL"),
    ("bli_info_get_version_str", Role::Blas, "BLIS"),
    ("ATL_buildinfo", Role::Blas, "ATLAS"),
    ("GOMP_parallel", Role::OpenMp, "libgomp"),
    ("__kmpc_fork_call", Role::OpenMp, "libomp"),
    ("mallocx", Role::Allocator, "jemalloc"),
    ("_rjem_malloc", Role::Allocator, "jemalloc"),
    ("je_malloc", Role::Allocator, "jemalloc"),
    ("tc_malloc", Role::Allocator, "tcmalloc"),
    ("mi_malloc", Role::Allocator, "mimalloc"),
    ("__svml_expf8", Role::Math, "SVML"),
];

/// Identifies a library by its file name. The longest match is used.
pub(super) fn by_file(name: &str) -> Option<Known> {
    let stem = name.strip_prefix("lib").unwrap_or(name);
    let fits = FILES.iter().filter(|(start, ..)| stem.starts_with(start));
    fits.max_by_key(|(start, ..)| start.len()).map(|&(_, role, name)| Known { role, name })
}

/// Identifies libraries that are linked into a file.
pub(super) fn by_functions(elf: &Elf) -> Vec<Known> {
    let mut found: Vec<Known> = vec![];
    for symbol in elf.functions() {
        let fits = FUNCTIONS.iter().find(|(name, ..)| *name == symbol.name);
        if let Some(&(_, role, name)) = fits
            && !found.contains(&Known { role, name })
        {
            found.push(Known { role, name });
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifies_libraries_by_name() {
        for (file, expected) in [
            ("libopenblas.so.0", Some((Role::Blas, "OpenBLAS"))),
            ("libscipy_openblas64_-f48b354e.so", Some((Role::Blas, "OpenBLAS"))),
            ("libmkl_rt.so.2", Some((Role::Blas, "MKL"))),
            ("libblas.so.3", Some((Role::Blas, "system BLAS"))),
            ("liblapack.so.3", Some((Role::Lapack, "system LAPACK"))),
            ("libgomp-a34b3233.so.1.0.0", Some((Role::OpenMp, "libgomp"))),
            ("libomp.so.5", Some((Role::OpenMp, "libomp"))),
            ("libtbbmalloc.so.2", Some((Role::Allocator, "TBB malloc"))),
            ("libm.so.6", Some((Role::Math, "libm"))),
            ("libmagic.so.1", None),
            ("libc.so.6", None),
            ("", None),
        ] {
            let found = by_file(file).map(|known| (known.role, known.name));
            assert_eq!(found, expected, "{file}");
        }
    }
}
