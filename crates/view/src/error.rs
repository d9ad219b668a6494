//! Why something cannot be shown.

use unwedge_capture::NotADump;
use unwedge_hw::SelectError;
use unwedge_stream::query::{ExprError, Mistake};

/// What to do where there is nothing to walk.
const NO_STREAMS: &str = "the dump holds no command stream of an engine whose packets are known; what holds one: \
                          devcoredumps of amdgpu with ring contents, reports of RADV with trace.log or umr_ring.log, \
                          the output of `umr --ring-stream`, error states with rings or batches";

/// Why something cannot be shown. What an input is called is for the caller to add.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The input is not a dump of any driver.
    #[error(transparent)]
    NotADump(#[from] NotADump),
    /// The dump does not tell where the GPU hung.
    #[error("the dump does not say where the command processor stopped")]
    NoHang,
    /// The dump does not tell of which GPU it is, or of one that has no register database.
    #[error("the GPU of the dump is not known")]
    UnknownGpu,
    /// The GPU has no register of that name.
    #[error(transparent)]
    UnknownRegister(#[from] SelectError),
    /// A GPU of AMD or Intel has no register or command of that name.
    #[error(transparent)]
    NoRegister(Mistake),
    /// Passes are of tiled rendering, which GPUs of this vendor do not do.
    #[error("--pass is about tiled rendering on Adreno, and this is a dump of {0}")]
    NoPasses(&'static str),
    /// The dump says where the engine stopped, but does not hold what it read there.
    #[error("the dump does not hold the stream that the engine stopped in")]
    NoStreamOfHang,
    /// The dump holds no command stream.
    #[error("{NO_STREAMS}")]
    NoStreams,
    /// Of one side a draw, a submit or all is to be compared, and of the other not the same.
    #[error("one side is a draw, a submit or a file, and the other is not: select the same of both")]
    UnlikeSides,
    /// The submit or draw to compare is not on both sides.
    #[error("nothing to compare: {0}")]
    Absent(String),
    /// A condition cannot be understood, or not asked of a GPU.
    #[error("{error}{}", pointed(text, error))]
    Condition {
        /// The condition.
        text: String,
        /// What is wrong with it, and where.
        error: ExprError,
    },
}

/// A condition with a mark below what is wrong.
fn pointed(text: &str, error: &ExprError) -> String {
    let flat = text.replace(['\n', '\t', '\r'], " ");
    let before = flat.get(..error.start).map_or(0, |before| before.chars().count());
    let marked = flat.get(error.start..error.end).map_or(0, |marked| marked.chars().count()).max(1);
    let mark = format!("{:before$}{}", "", "^".repeat(marked));
    format!("\n    {flat}\n    {mark}")
}
