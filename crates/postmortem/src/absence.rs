//! Why something is not in a dump, as the values of a finding: the same names for every driver.

use crate::args::{Arg, Args};
use unwedge_capture::SectionAbsence;

/// `absence`: `dump-cut`, `kernel-too-old`, `kernel-unknown`, `never-written` or `nothing-recorded`; `since`: the first
/// kernel that writes it, where that is why.
pub(crate) fn values(args: Args, why: SectionAbsence) -> Args {
    let since = why.since().map(|(major, minor)| Arg::name(format!("{major}.{minor}")));
    args.with("absence", Arg::name(why.id())).with_some("since", since)
}

/// The same, with the `kernel` of the dump where it has one.
pub(crate) fn of_kernel(args: Args, why: SectionAbsence, kernel: Option<&str>) -> Args {
    let kernel = kernel.map(str::trim).filter(|release| !release.is_empty());
    values(args, why).with_some("kernel", kernel.map(|release| Arg::Text(release.to_owned())))
}
