//! Everything unwedge shows, as text and JSON, written to a [`std::io::Write`].
//!
//! Never: opens a file, reads arguments or the environment, knows a terminal.

#[cfg(feature = "aco")]
pub mod aco;
pub mod advice;
pub mod amd;
pub mod around;
pub mod asm;
pub mod batch;
#[cfg(feature = "sim")]
pub mod breadcrumbs;
pub mod browse;
pub mod bundle;
pub mod cffdump;
pub mod crashdec;
pub mod decode;
pub mod device;
pub mod diff;
#[cfg(feature = "sim")]
pub mod edit;
mod error;
mod facts;
pub mod html;
pub mod info;
pub mod intel;
pub mod json;
pub mod layout;
pub mod lines;
#[cfg(feature = "sim")]
pub mod lint;
pub mod listing;
pub mod lrc;
pub mod plural;
pub mod query;
pub mod rd;
pub mod regs;
#[cfg(feature = "sim")]
pub mod replay;
pub mod report;
pub mod schema;
#[cfg(feature = "shader")]
pub mod shader;
mod source;
mod sqe;
pub mod streams;
mod style;
pub mod value;
pub mod words;

pub use error::ViewError;
pub use source::CaptureStream;
pub use style::Style;
