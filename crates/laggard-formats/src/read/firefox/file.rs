//! The fields of a processed profile that are read, with the names of the format.

use crate::read::json::{Number, Row};
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct File {
    #[serde(default)]
    pub(super) meta: Meta,
    #[serde(default)]
    pub(super) libs: Vec<Lib>,
    #[serde(default)]
    pub(super) shared: Option<TablesOf>,
    pub(super) threads: Vec<OneThread>,
}

#[derive(Default, Deserialize)]
pub(super) struct Meta {
    #[serde(default, rename = "preprocessedProfileVersion")]
    pub(super) version: Number,
    #[serde(default)]
    pub(super) product: String,
    #[serde(default, rename = "importedFrom")]
    pub(super) imported_from: String,
    #[serde(default)]
    pub(super) interval: Number,
    #[serde(default, rename = "startTime")]
    pub(super) start_time: Number,
    #[serde(default)]
    pub(super) oscpu: String,
    #[serde(default, rename = "CPUName")]
    pub(super) cpu: String,
    #[serde(default)]
    pub(super) categories: Vec<Category>,
}

#[derive(Deserialize)]
pub(super) struct Category {
    #[serde(default)]
    pub(super) name: String,
}

#[derive(Deserialize)]
pub(super) struct Lib {
    pub(super) name: Option<String>,
    pub(super) path: Option<String>,
    #[serde(rename = "debugName")]
    pub(super) debug_name: Option<String>,
    #[serde(rename = "debugPath")]
    pub(super) debug_path: Option<String>,
    #[serde(rename = "codeId")]
    pub(super) code_id: Option<String>,
}

/// A thread.
#[derive(Deserialize)]
#[serde(from = "Plain")]
pub(super) struct OneThread {
    pub(super) name: String,
    pub(super) process_name: Option<String>,
    pub(super) pid: Number,
    pub(super) tid: Number,
    pub(super) libs: Vec<Lib>,
    pub(super) samples: Samples,
    pub(super) tables: TablesOf,
}

/// A thread with its tables as direct fields. Not flattened by serde, which would first store every
/// number as a generic value.
#[derive(Deserialize)]
struct Plain {
    #[serde(default)]
    name: String,
    #[serde(rename = "processName")]
    process_name: Option<String>,
    #[serde(default)]
    pid: Number,
    #[serde(default)]
    tid: Number,
    #[serde(default)]
    libs: Vec<Lib>,
    #[serde(default)]
    samples: Samples,
    #[serde(rename = "stackTable")]
    stacks: Option<Stacks>,
    #[serde(rename = "frameTable")]
    frames: Option<FrameTable>,
    #[serde(rename = "funcTable")]
    functions: Option<Functions>,
    #[serde(rename = "resourceTable")]
    resources: Option<Resources>,
    #[serde(rename = "stringArray")]
    strings: Option<Vec<String>>,
}

impl From<Plain> for OneThread {
    fn from(plain: Plain) -> OneThread {
        let Plain { name, process_name, pid, tid, libs, samples, .. } = plain;
        let tables = TablesOf {
            stacks: plain.stacks,
            frames: plain.frames,
            functions: plain.functions,
            resources: plain.resources,
            strings: plain.strings,
            sources: None,
        };
        OneThread { name, process_name, pid, tid, libs, samples, tables }
    }
}

#[derive(Default, Deserialize)]
pub(super) struct Samples {
    #[serde(default)]
    pub(super) stack: Vec<Row>,
    pub(super) time: Option<Vec<Number>>,
    #[serde(rename = "timeDeltas")]
    pub(super) time_deltas: Option<Vec<Number>>,
    pub(super) weight: Option<Vec<Number>>,
    #[serde(rename = "weightType")]
    pub(super) weight_type: Option<String>,
}

/// Tables of one thread, or shared by all threads.
#[derive(Default, Deserialize)]
pub(super) struct TablesOf {
    #[serde(rename = "stackTable")]
    pub(super) stacks: Option<Stacks>,
    #[serde(rename = "frameTable")]
    pub(super) frames: Option<FrameTable>,
    #[serde(rename = "funcTable")]
    pub(super) functions: Option<Functions>,
    #[serde(rename = "resourceTable")]
    pub(super) resources: Option<Resources>,
    #[serde(rename = "stringArray")]
    pub(super) strings: Option<Vec<String>>,
    pub(super) sources: Option<Sources>,
}

#[derive(Deserialize)]
pub(super) struct Stacks {
    #[serde(default)]
    pub(super) frame: Vec<Row>,
    #[serde(default)]
    pub(super) prefix: Vec<Row>,
}

#[derive(Deserialize)]
pub(super) struct FrameTable {
    #[serde(default)]
    pub(super) address: Vec<Number>,
    #[serde(default, rename = "inlineDepth")]
    pub(super) inline_depth: Vec<Number>,
    #[serde(default)]
    pub(super) category: Vec<Row>,
    #[serde(default)]
    pub(super) func: Vec<Row>,
    #[serde(default)]
    pub(super) line: Vec<Row>,
}

#[derive(Deserialize)]
pub(super) struct Functions {
    #[serde(default)]
    pub(super) name: Vec<Row>,
    #[serde(default)]
    pub(super) resource: Vec<Row>,
    #[serde(default, rename = "fileName")]
    pub(super) file_name: Vec<Row>,
    /// Replaces the file name in newer versions.
    #[serde(default)]
    pub(super) source: Vec<Row>,
}

#[derive(Deserialize)]
pub(super) struct Resources {
    #[serde(default)]
    pub(super) lib: Vec<Row>,
}

#[derive(Deserialize)]
pub(super) struct Sources {
    #[serde(default)]
    pub(super) filename: Vec<Row>,
}
