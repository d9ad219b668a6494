//! The drop-ins: what follows their names is theirs to read.

use clap::Args;
use std::ffi::OsString;

/// `crashdec`
#[derive(Args, Debug)]
pub struct Crashdec {
    /// Options as Mesa's crashdec takes them: [-achmsv] [-f FILE]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    pub args: Vec<OsString>,
}

/// A drop-in with options of its own.
#[derive(Args, Debug)]
pub struct DropIn {
    /// Options and files as the tool takes them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub args: Vec<OsString>,
}
