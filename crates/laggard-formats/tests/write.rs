//! Output formats for other programs.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use laggard_core::model::profile::Profile;
use laggard_core::profile::{View, join_workers};
use laggard_formats::write;
use laggard_samples::profile::{Sketch, matrix_product};
use serde_json::Value;
use std::io;

fn written(
    profile: &Profile,
    write: impl Fn(&View, &mut dyn io::Write) -> io::Result<()>,
) -> String {
    let mut out = vec![];
    write(&View::whole(profile), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn parsed(profile: &Profile, write: impl Fn(&View, &mut dyn io::Write) -> io::Result<()>) -> Value {
    serde_json::from_str(&written(profile, write)).unwrap()
}

fn joined() -> Profile {
    let mut profile = matrix_product();
    join_workers(&mut profile);
    profile
}

#[test]
fn writes_one_line_per_collapsed_stack() {
    let profile = Sketch::default()
        .samples(2, "app!main;run (a.py:3);liba.so!0x1f")
        .samples(1, "app!main;run (a.py:3);liba.so!0x1f")
        .samples(1, "app!operator\n new")
        .samples(1, "")
        .done();
    assert_eq!(
        written(&profile, write::collapsed),
        "[no stack] 1\nmain;run (a.py:3);[liba.so+0x1f] 3\noperator  new 1\n"
    );
    let mut profile = Profile::default();
    let mut sketch = Sketch::default().samples(1, "app!x").done();
    sketch.texts = laggard_core::model::profile::Texts::default();
    std::mem::swap(&mut profile, &mut sketch);
    profile.frames[0].function = profile.texts.add("Vec<[u8; 4]>\r\n::f");
    assert_eq!(written(&profile, write::collapsed), "Vec<[u8: 4]>  ::f 1\n");
}

#[test]
fn writes_samples_as_csv() {
    let profile = Sketch::default()
        .thread(1, 2, "a,b", "say \"hi\"")
        .samples(1, "app!f(int, int);app!g")
        .done();
    assert_eq!(
        written(&profile, write::csv),
        "time_ns,pid,tid,process,thread,event,weight,state,stack\r\n0,1,2,\"a,b\",\"say \"\"hi\"\"\",task-clock,1000000,0,\"f(int, int);g\"\r\n"
    );
}

#[test]
fn speedscope_has_one_profile_per_thread() {
    let file = parsed(&joined(), |view, out| write::speedscope(view, "run", out));
    let frames = file["shared"]["frames"].as_array().unwrap();
    let product = frames.iter().find(|frame| frame["name"] == "product").unwrap();
    assert_eq!((product["file"].as_str(), product["line"].as_u64()), (Some("app.py"), Some(7)));
    let profiles = file["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), 3);
    let mut samples = 0;
    for profile in profiles {
        let stacks = profile["samples"].as_array().unwrap();
        let weights = profile["weights"].as_array().unwrap();
        assert_eq!((profile["type"].as_str(), stacks.len()), (Some("sampled"), weights.len()));
        let sum: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
        assert_eq!(profile["endValue"].as_u64(), Some(sum));
        let mut all = stacks.iter().flat_map(|stack| stack.as_array().unwrap());
        assert!(all.all(|frame| (frame.as_u64().unwrap() as usize) < frames.len()));
        samples += stacks.len();
    }
    assert_eq!(samples, 83);
}

#[test]
fn firefox_tables_refer_to_each_other() {
    let file = parsed(&joined(), |view, out| write::firefox(view, "run", out));
    let threads = file["threads"].as_array().unwrap();
    assert_eq!(threads.len(), 3);
    let mut leaves = 0;
    for thread in threads {
        let length = |table: &str| thread[table]["length"].as_u64().unwrap();
        for table in [
            "samples",
            "stackTable",
            "frameTable",
            "funcTable",
            "resourceTable",
            "markers",
            "nativeSymbols",
        ] {
            for (name, column) in thread[table].as_object().unwrap() {
                if let Some(column) = column.as_array() {
                    assert_eq!(column.len() as u64, length(table), "{table}.{name}");
                }
            }
        }
        let strings = thread["stringArray"].as_array().unwrap();
        let inside = |table: &str, name: &str, limit: u64| {
            for number in thread[table][name].as_array().unwrap() {
                let number = number.as_i64();
                assert!(number.is_none_or(|n| n == -1 || (n as u64) < limit), "{table}.{name}");
            }
        };
        inside("samples", "stack", length("stackTable"));
        inside("stackTable", "frame", length("frameTable"));
        inside("frameTable", "func", length("funcTable"));
        inside("funcTable", "name", strings.len() as u64);
        inside("funcTable", "fileName", strings.len() as u64);
        inside("funcTable", "resource", length("resourceTable"));
        inside("resourceTable", "name", strings.len() as u64);
        inside("resourceTable", "lib", file["libs"].as_array().unwrap().len() as u64);
        for (row, prefix) in thread["stackTable"]["prefix"].as_array().unwrap().iter().enumerate() {
            assert!(
                prefix.as_u64().is_none_or(|prefix| (prefix as usize) < row),
                "callers come first"
            );
        }
        let at = |table: &str, name: &str, row: &Value| {
            thread[table][name][row.as_u64().unwrap() as usize].clone()
        };
        for stack in thread["samples"]["stack"].as_array().unwrap() {
            if stack.is_null() {
                continue;
            }
            let function = at("frameTable", "func", &at("stackTable", "frame", stack));
            let name = &strings[at("funcTable", "name", &function).as_u64().unwrap() as usize];
            leaves += u64::from(name == "dgemm_kernel_HASWELL");
        }
    }
    assert_eq!(leaves, 58);
}

#[test]
fn writes_empty_profile() {
    let profile = Profile::default();
    assert_eq!(written(&profile, write::collapsed), "");
    assert_eq!(
        parsed(&profile, |view, out| write::speedscope(view, "", out))["profiles"],
        serde_json::json!([])
    );
    assert_eq!(
        parsed(&profile, |view, out| write::firefox(view, "", out))["threads"],
        serde_json::json!([])
    );
}
