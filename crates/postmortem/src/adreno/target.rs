//! What of the stream points at a faulting address: the packet that writes it, the last work whose target is there.
//!
//! Never: how large a target is; that depends on its layout. A target counts that starts at or before the address in the same
//! buffer, or in the one that ends before it.

use unwedge_base::Buffer;

use crate::adreno::case::{AdrenoCase, register, seen};
use crate::adreno::hang::CpStop;
use crate::adreno::inflight;
use crate::adreno::trace::TracedWork;
use crate::adreno::writer;
use crate::args::{Arg, Args};
use crate::awaited::{AwaitedWrite, WaitEnd};
use crate::report::{Evidence, Fact};

/// What of the stream points at an address.
#[derive(Default)]
pub(super) struct AddressUsers {
    /// `packet`, `iova`, `ring`, `order` of the packet that writes it.
    pub(super) writer: Option<Args>,
    /// The last work with a target there: as work is, with `register`, `base` and `distance`.
    pub(super) target: Option<Args>,
    pub(super) evidence: Vec<Evidence>,
}

/// Looks for them. `before` is the buffer that ends before the address, where it is in none.
pub(super) fn users(
    case: &AdrenoCase<'_>,
    stop: &CpStop,
    iova: u64,
    before: Option<&Buffer>,
) -> AddressUsers {
    let mut users = AddressUsers {
        writer: writer::find(case, stop, None, iova).and_then(WaitEnd::writer).map(AwaitedWrite::into_args),
        ..AddressUsers::default()
    };
    let home = case.memory.find(iova).or(before);
    let Some(home) = home else { return users };
    let work = stop.scene.own_work.iter().chain(stop.scene.work.iter().rev());
    let found = work.filter_map(|work| Some((work, target(case, work, iova, home)?))).next();
    if let Some((work, (reg, base))) = found {
        let name = case.gpu.reg(reg).map_or_else(|| format!("{reg:#x}"), |r| r.name().to_owned());
        let args = inflight::work_args(case, work);
        users.evidence.push(Evidence { iova: work.iova, ..seen("stream", Fact::Work(args.clone())) });
        let held = seen(
            format!("state of {} {}", args.text("kind").unwrap_or("work"), work.number),
            register(name.clone(), base),
        );
        users.evidence.push(Evidence { iova: Some(base), ..held });
        users.target = Some(
            args.with("register", Arg::name(name))
                .with("base", Arg::Address(base))
                .with("distance", Arg::Value(iova.saturating_sub(base))),
        );
    }
    users
}

/// The register with the target of a piece of work that starts nearest below an address in a buffer, and where that is.
fn target(case: &AdrenoCase<'_>, work: &TracedWork, iova: u64, home: &Buffer) -> Option<(u32, u64)> {
    let is_target = |reg: u32| {
        let reg = case.gpu.reg(reg);
        // Code is read, not written.
        reg.is_some_and(|reg| reg.name().starts_with("RB_") && reg.ty().is_some_and(|ty| ty.is_address()))
    };
    let targets = work.state.iter().copied().filter(|&(reg, base)| is_target(reg) && base != 0);
    targets.filter(|&(_, base)| base <= iova && home.contains(base)).max_by_key(|&(_, base)| base)
}
