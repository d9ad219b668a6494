//! `unwedge shader`: whether shaders are valid, what passes make of them, and what they do in the interpreter, as text and JSON.
//!
//! Never: reads a shader or runs it, which [`unwedge_shader`] does. What the options of a run say is parsed here; files are the caller's.

mod execution;
pub(crate) mod optimization;
pub(crate) mod request;
pub(crate) mod run;
pub(crate) mod validity;

pub use execution::{RunRequest, ShaderRunError};
pub use optimization::{OptimizationView, PrintAfter, PrintRequest};
pub use request::{BufferRequest, BufferSource, OutputRequest, PushRequest, Specialization, Workgroups};
pub use run::RunView;
pub use validity::{Validity, ValidityView};
