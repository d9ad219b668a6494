//! A fault of the GPU's MMU, in the words of the driver.

use super::ring::TTBR0;
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::{Client, GpuFault};
use crate::adreno::{CpStop, ThreadId};
use std::fmt;
use unwedge_base::Generation;

/// What the driver says of a fault: its address, and who accessed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultReport {
    /// The page table.
    pub ttbr0: u64,
    /// The access.
    pub fault: GpuFault,
    /// The block, as the driver names it: `CP`, `BR_SP`.
    pub source: &'static str,
    /// CP_SCRATCH_REG 4 to 7.
    pub scratch: [u32; 4],
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FaultReport { ttbr0, fault, source, scratch: [a, b, c, d] } = self;
        let (iova, direction, kind) = (fault.iova, fault.direction(), fault.kind.name());
        write!(f, "*** gpu fault: ttbr0={ttbr0:016x} iova={iova:016x} dir={direction} type={kind} ")?;
        write!(f, "source={source} ({a},{b},{c},{d})")
    }
}

/// The driver's name for the block behind an access: CP and CCU by the master's number, the others by the client of UCHE.
fn source(client: Client, thread: ThreadId, generation: Generation) -> &'static str {
    // Names of the clients of UCHE: a6xx, and BR and BV of a7xx.
    let [older, br, bv] = match client {
        Client::Cp => return "CP",
        Client::Ccu | Client::CcuDepth => return "CCU",
        Client::Sp => ["SP", "BR_SP", "BV_SP"],
        Client::Tp => ["TP", "BR_TP", "BV_TP"],
        Client::Vfd => ["VFD", "BR_VFD", "BV_VFD"],
        Client::Pc => ["PC", "BR_PC", "BV_PC"],
        Client::Vpc => ["VPC", "BR_VPC", "BV_VPC"],
        Client::Vsc => ["VSC", "BR_VSC", "BV_VSC"],
    };
    match (generation >= Generation::A7xx, thread) {
        (false, _) => older,
        (true, ThreadId::Br) => br,
        (true, ThreadId::Bv) => bv,
    }
}

impl AdrenoMachine<'_> {
    /// What the driver says where a thread stopped at a fault of the MMU. `None` where it did not, or where the machine only
    /// lacks the contents of memory.
    pub fn fault_report(&self, thread: ThreadId, stop: &CpStop) -> Option<FaultReport> {
        let fault = stop.gpu_fault().filter(|fault| fault.kind.is_of_hardware())?;
        let scratch = self.places.scratch;
        let scratch =
            [4, 5, 6, 7].map(|n| scratch.map_or(0, |reg| self.read_register(ThreadId::Br, reg + n)));
        let source = source(fault.client, thread, self.generation);
        let ttbr0 = if self.ttbr0 == 0 { TTBR0 } else { self.ttbr0 };
        Some(FaultReport { ttbr0, fault, source, scratch })
    }
}
