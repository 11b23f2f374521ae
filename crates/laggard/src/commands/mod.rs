//! One file per verb.

pub(crate) mod bench;
pub(crate) mod calls;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod doctor;
pub(crate) mod drive;
pub(crate) mod dump;
pub(crate) mod ffi;
pub(crate) mod flame;
pub(crate) mod index;
pub(crate) mod inspect;
pub(crate) mod package;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod view;
pub(crate) mod why;
