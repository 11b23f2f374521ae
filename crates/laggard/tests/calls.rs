//! `laggard calls`: exact counts, exit statuses, and comparisons of call traces.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::{Place, Ran};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const LIBRARY: &str = "int add_one(int x) { return x + 1; } int add_two(int x) { return x + 2; }";
const PROGRAM: &str = r#"
#include <stdlib.h>
int add_one(int x);
int add_two(int x);
__attribute__((noinline)) static int many(int x) {
    for (int i = 0; i < 100000; i++) x = add_one(x);
    return x;
}
int main(int argc, char **argv) {
    int x = many(0);
    if (argc > 2) x = add_two(x);
    return x < 0 ? 1 : argc > 1 ? atoi(argv[1]) : 0;
}
"#;

/// A working directory with the program `app` and its library.
fn place() -> Place {
    let place = Place::with(&[]);
    let compile = |source: &str, name: &str, out: &str, flags: &[&str]| {
        std::fs::write(place.path(name), source).unwrap();
        let mut cc = Command::new("cc");
        cc.current_dir(place.path("")).args(["-O2", "-g", "-o", out, name]).args(flags);
        assert!(cc.status().unwrap().success());
    };
    compile(LIBRARY, "lib.c", "libtraced.so", &["-fPIC", "-shared"]);
    compile(PROGRAM, "app.c", "app", &["libtraced.so", "-Wl,-rpath,$ORIGIN"]);
    place
}

fn traced(place: &Place, output: &str, words: &[&str]) -> Ran {
    let mut args = vec!["calls", "--lib", "libtraced", "-o", output, "--", "./app"];
    args.extend(words);
    place.run(&args)
}

fn json(place: &Place, args: &[&str]) -> Value {
    serde_json::from_str(&place.data(args)).unwrap()
}

#[test]
fn counts_calls_exactly_and_names_the_caller() {
    let place = place();
    let ran = traced(&place, "run.lag", &["7"]);
    assert_eq!(ran.code, Some(7), "{}", ran.stderr);
    assert!(ran.stderr.contains("100,000 calls to 1 function"), "{}", ran.stderr);
    let report = json(&place, &["report", "--json", "run.lag"]);
    assert_eq!(report["schema"], "laggard.calls/1");
    let function = &report["tables"]["function"]["rows"][0];
    assert_eq!(function["name"], "add_one");
    assert_eq!(function["of"], "libtraced.so");
    assert_eq!((&function["calls"], &function["timed"]), (&100_000.into(), &100_000.into()));
    let caller = &report["tables"]["caller"]["rows"][0]["caller"];
    assert_eq!(caller["library"], "app");
    assert!(caller["function"].as_str().unwrap().starts_with("many"), "{caller}");
    assert_eq!(caller["place"], "app.c:6");
    let callers = json(&place, &["report", "--json", "--callers", "add_one", "run.lag"]);
    assert_eq!(callers["tables"]["caller"]["rows"][0]["calls"], 100_000);
    let callees = json(&place, &["report", "--json", "--callees", "many", "run.lag"]);
    assert_eq!(callees["tables"]["function"]["rows"][0]["name"], "add_one");
    let histogram = json(&place, &["report", "--json", "--histogram", "add_one", "run.lag"]);
    let classes = histogram["histogram"]["classes"].as_array().unwrap();
    let sum: u64 = classes.iter().map(|class| class["calls"].as_u64().unwrap()).sum();
    assert_eq!(sum, 100_000);
    let stacks = place.data(&["convert", "run.lag", "-", "--to", "collapsed"]);
    assert!(stacks.starts_with("many") || stacks.contains(";many"), "{stacks}");
    assert!(stacks.contains(";add_one ") && !stacks.contains('`'), "{stacks}");
}

#[test]
fn compare_lists_functions_called_by_one_side() {
    let place = place();
    assert_eq!(traced(&place, "a.lag", &["0"]).code, Some(0));
    assert_eq!(traced(&place, "b.lag", &["0", "more"]).code, Some(0));
    let found = json(&place, &["compare", "--json", "a.lag", "b.lag"]);
    assert_eq!(found["schema"], "laggard.compare-calls/1");
    let rows = found["rows"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["function"] == name).unwrap();
    assert_eq!(row("add_two")["only_in"], "B");
    assert_eq!(row("add_one")["only_in"], Value::Null);
    assert_eq!(row("add_one")["count_ratio"], 1.0);
    let text = place.data(&["compare", "a.lag", "b.lag"]);
    assert!(text.contains("Only called by B") && !text.contains("Only called by A"), "{text}");
}

#[test]
fn lists_loaded_libraries_if_none_matches() {
    let place = place();
    let ran = place.run(&["calls", "--lib", "openblas", "-o", "no.lag", "--", "./app", "3"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("no loaded library matches --lib openblas"), "{}", ran.stderr);
    assert!(ran.stderr.contains("libtraced.so"), "{}", ran.stderr);
}

#[test]
fn reports_argument_values() {
    let place = place();
    let args = ["calls", "--fn", "add_*", "--args", "1", "-o", "run.lag", "--", "./app", "0", "x"];
    assert_eq!(place.run(&args).code, Some(0));
    let report =
        json(&place, &["report", "--json", "--by", "arguments", "--fn", "add_two", "run.lag"]);
    let row = &report["arguments"]["rows"][0];
    assert_eq!((&row["function"], &row["calls"]), (&"add_two".into(), &1.into()));
    assert_eq!(row["values"][0], 100_000);
}

/// BLAS functions with Fortran's interface, and C functions with similar names.
const BLAS: &str = r#"
void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha) {}
void scipy_zgemm_64_(const char *ta, const char *tb, const long *m, const long *n, const long *k, const void *alpha) {}
void dscal(int n, double alpha, double *x, int incx) {}
void dtrsm_(const char *side, const char *uplo, const char *ta, const char *diag, const int *m, const int *n) {}
void saxpy_(const int *n, const float *alpha, const float *x, const int *incx, float *y, const int *incy) {}
"#;
const BLAS_PROGRAM: &str = r#"
void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *);
void scipy_zgemm_64_(const char *, const char *, const long *, const long *, const long *, const void *);
void dscal(int, double, double *, int);
void dtrsm_(const char *, const char *, const char *, const char *, const int *, const int *);
void saxpy_(const int *, const float *, const float *, const int *, float *, const int *);
int main(void) {
    double alpha[10] = {1};
    for (int i = 0; i < 10; i++) {
        int m = 400, n = 300, k = -200;
        dgemm_("N", "T", &m, &n, &k, alpha + i);
    }
    long wide = 5000000000, narrow = 7;
    scipy_zgemm_64_("C", "N", &wide, &narrow, &narrow, alpha);
    dscal(100000, 2, alpha, 1);
    int one = 1;
    dtrsm_("L", 0, "N", "U", &one, &one);
    float x[2];
    saxpy_(&one, x, x, &one, x, &one);
    return 0;
}
"#;

#[test]
fn arguments_of_blas_functions_are_sizes_and_letters() {
    let place = Place::with(&[]);
    let compile = |source: &str, name: &str, out: &str, flags: &[&str]| {
        std::fs::write(place.path(name), source).unwrap();
        let mut cc = Command::new("cc");
        cc.current_dir(place.path("")).args(["-O1", "-o", out, name]).args(flags);
        assert!(cc.status().unwrap().success());
    };
    compile(BLAS, "blas.c", "libfakeblas.so", &["-fPIC", "-shared"]);
    compile(BLAS_PROGRAM, "app.c", "app", &["libfakeblas.so", "-Wl,-rpath,$ORIGIN"]);
    let args = ["calls", "--lib", "fakeblas", "--args", "6", "-o", "run.lag", "--", "./app"];
    let ran = place.run(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let text = place.data(&["report", "--by", "arguments", "run.lag"]);
    for expected in [
        "dgemm_(transa N, transb T, m 400, n 300, k -200)",
        "scipy_zgemm_64_(transa C, transb N, m 5000000000, n 7, k 7)",
        // A C function that takes values: 100,000 is not a readable address.
        "dscal(n 100000,",
        // A null pointer is kept.
        "dtrsm_(side L, uplo 0, transa N, diag U, m 1, n 1)",
        "saxpy_(n 1, incx 1, incy 1)",
    ] {
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    }
    let report =
        json(&place, &["report", "--json", "--by", "arguments", "--fn", "dgemm_", "run.lag"]);
    let rows = report["arguments"]["rows"].as_array().unwrap();
    // Calls with different arrays are one row.
    assert_eq!((rows.len(), &rows[0]["calls"]), (1, &10.into()));
    assert_eq!(rows[0]["names"], serde_json::json!(["transa", "transb", "m", "n", "k", "alpha"]));
    assert_eq!(rows[0]["values"], serde_json::json!([78, 84, 400, 300, -200, 0]));
}

#[test]
fn default_output_contains_the_program_name() {
    let place = place();
    assert_eq!(place.run(&["calls", "--", "./app"]).code, Some(0));
    let names = place.names();
    let is_ours = |name: &String| {
        name.starts_with("laggard-app-") && Path::new(name).extension().is_some_and(|s| s == "lag")
    };
    assert!(names.iter().any(is_ours), "{names:?}");
}
