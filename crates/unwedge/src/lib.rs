//! Why did the GPU hang?
//!
//! What programs link: [`open`] reads what any driver left of a hang, and [`Opened`] explains, decodes, queries and
//! compares it; [`adreno`] lists, decodes, queries and compares captures, assembles and disassembles shaders and firmware;
//! [`amd`] assembles, disassembles, checks and runs machine code; [`shader`] reads, validates and runs shaders. The crates underneath are modules here ([`base`], [`hw`],
//! [`capture`], …) for what goes further. [`files`] reads files and undoes their compression. Never: arguments, a terminal.
//!
//! Features choose what there is beside dumps: `adreno` for captures and firmware, `amd` for machine code, `intel` for
//! context images, `shader` for SPIR-V and the IR. Dumps of every vendor are read and explained in any case, and by the same crates; what is not linked
//! without `adreno` and `amd` are the emulators.
//!
//! ```
//! use unwedge::{ShowOptions, DumpPart, open};
//! # use unwedge_testkit::devcore::DevcoreBuilder;
//! # let dump = DevcoreBuilder::a6xx().text();
//! let opened = open(&[DumpPart { name: "devcore", bytes: &dump }])?;
//! let report = opened.explain();
//! assert_eq!(report.gpu.family().as_deref(), Some("a6xx"));
//! assert!(report.signature().starts_with("adreno/a6xx/"));
//! let mut lines = Vec::new();
//! opened.decode_json(&ShowOptions::default(), &mut lines);
//! assert!(lines.starts_with(b"{"));
//! # Ok::<(), unwedge::NotADump>(())
//! ```

#[cfg(feature = "adreno")]
pub mod adreno;
#[cfg(feature = "amd")]
pub mod amd;
mod compare;
#[cfg(feature = "adreno")]
pub mod demo;
mod dump;
#[cfg(feature = "files")]
pub mod files;

pub use compare::{DiffPlace, DiffQuestion, Differences};
pub use dump::{Format, Opened, Place, QueryOptions, ShowOptions, ValueForm, open};
pub use unwedge_capture::{DumpPart, FileKind, NotADump, sniff};
pub use unwedge_postmortem::Report;
pub use unwedge_view::regs::chip::chip_override;
pub use unwedge_view::{CaptureStream, ViewError};

pub use unwedge_base as base;
pub use unwedge_capture as capture;
#[cfg(any(feature = "amd", feature = "intel"))]
pub use unwedge_check as check;
#[cfg(feature = "adreno")]
pub use unwedge_device as device;
#[cfg(feature = "adreno")]
pub use unwedge_edit as edit;
pub use unwedge_hw as hw;
#[cfg(feature = "intel")]
pub use unwedge_intel as intel;
pub use unwedge_isa as isa;
pub use unwedge_postmortem as postmortem;
#[cfg(feature = "shader")]
pub use unwedge_shader as shader;
#[cfg(feature = "sim")]
pub use unwedge_sim as sim;
pub use unwedge_stream as stream;
