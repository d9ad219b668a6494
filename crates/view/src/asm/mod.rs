//! Machine code and what runs it, as text.

pub mod sqe_log;
pub mod sqe_session;
