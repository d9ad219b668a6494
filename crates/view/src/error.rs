//! Why something cannot be shown.

use unwedge_capture::msm::NotDevcore;
use unwedge_hw::SelectError;
use unwedge_stream::query::ExprError;

/// Why something cannot be shown. What an input is called is for the caller to add.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The input is of another kind.
    #[error("not a msm devcoredump")]
    NotDevcore(#[from] NotDevcore),
    /// The dump does not tell where the GPU hung.
    #[error("the dump does not say where the command processor stopped")]
    NoHang,
    /// The dump does not tell of which GPU it is, or of one that has no register database.
    #[error("the GPU of the dump is not known")]
    UnknownGpu,
    /// The GPU has no register of that name.
    #[error(transparent)]
    UnknownRegister(#[from] SelectError),
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
