//! Hazards: what one instruction does that another must not follow too closely.
//!
//! Each rule keeps what its first instruction did as something pending, until enough has happened since or what cures it; the
//! second instruction then finds it. One function per group of generations: they share no hazard. Where a rule is
//! broken its cure is assumed from there on, so that one error is reported once.
//!
//! Facts: `data/amd/check/rules.txt`.

mod cdna;
mod gfx10;
mod gfx11;
mod gfx6;

use super::facts::Rule;
use super::op::{ProgramOp, TouchedRegs, UnitClass, flag};
use super::program::CheckedProgram;
use super::state::{EMPTY, EVERY, PendingEvent, PendingList, RegSet};
use super::waits::{WaitValues, add_regs};
use std::collections::BTreeMap;
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::waits::Counter;
use unwedge_isa::amdgcn::{Gfx, Gpu};

/// What is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum HazardKind {
    ValuSgpr,
    /// Of the same instruction: all scalar registers that nothing else has written since.
    ValuKept,
    /// vcc, whatever has written it since.
    ValuVcc,
    SaluSgpr,
    ValuVgpr,
    ValuExec,
    InterpVgpr,
    SetReg,
    Vskip,
    TrapSts,
    SaluM0,
    /// CDNA: results of matrix instructions by kind, registers that XDL instructions add to, and that a DGEMM instruction came.
    MfmaXdl,
    MfmaSgemm,
    MfmaDgemm,
    MfmaAddend,
    Dgemm,
    /// Vector registers that the vector ALU wrote.
    ValuLanes,
    AccWrite,
    AccRead,
    TransLanes,
    PartLanes,
    StoreData,
    /// Of a group of scalar memory instructions.
    GroupReads,
    GroupWrites,
    GroupStore,
    /// Scalar memory was read, and vcc not written since it was over.
    StaleVccz,
    /// Scalar memory was written, and the cache not since.
    SmemStored,

    VmemReads,
    StoreReads,
    DsReads,
    SmemReads,
    Cmpx,
    Vopc,
    ExecRead,
    Vmem,
    VmemBranch,
    Ds,
    DsBranch,
    BigNsa,
    Writelane,
    FloatAtomic,

    ValuUsed,
    LoadUsed,
    SampleUsed,
    BvhUsed,
    StoreUsed,
    DsUsed,
    Trans,
    MaskRead,
    MaskSalu,
    MaskValu,
    Wmma,
    SgprRead,
    SgprSalu,
    SgprValu,
}

impl HazardKind {
    /// Whether something pending matters where code goes on that is not known.
    pub fn stays_open(p: &PendingEvent) -> bool {
        const OWN: [HazardKind; 4] =
            [HazardKind::ValuKept, HazardKind::StaleVccz, HazardKind::SmemStored, HazardKind::SgprRead];
        !OWN.iter().any(|kind| *kind as u8 == p.kind)
    }

    /// The rule that something pending of this kind would break first.
    pub fn rule(p: &PendingEvent) -> Rule {
        let number = p.kind;
        const VMEM: [u8; 5] = [
            HazardKind::LoadUsed as u8,
            HazardKind::SampleUsed as u8,
            HazardKind::BvhUsed as u8,
            HazardKind::StoreUsed as u8,
            HazardKind::DsUsed as u8,
        ];
        const RULES: &[(HazardKind, Rule)] = &[
            (HazardKind::ValuSgpr, Rule::VmemReadValuSgpr),
            (HazardKind::ValuVcc, Rule::DivFmasVcc),
            (HazardKind::SaluSgpr, Rule::SbufferDescSalu),
            (HazardKind::ValuVgpr, Rule::DppReadVgpr),
            (HazardKind::ValuExec, Rule::DppExec),
            (HazardKind::InterpVgpr, Rule::VintrpReadlane),
            (HazardKind::SetReg, Rule::SetregSetreg),
            (HazardKind::Vskip, Rule::Vskip),
            (HazardKind::TrapSts, Rule::RfeTrapsts),
            (HazardKind::SaluM0, Rule::M0GdsMsg),
            (HazardKind::MfmaXdl, Rule::XdlUse),
            (HazardKind::MfmaSgemm, Rule::SgemmUse),
            (HazardKind::MfmaDgemm, Rule::DgemmValu),
            (HazardKind::MfmaAddend, Rule::XdlWar),
            (HazardKind::Dgemm, Rule::DgemmFma),
            (HazardKind::ValuLanes, Rule::MfmaValuVgpr),
            (HazardKind::AccWrite, Rule::AccWriteRead),
            (HazardKind::AccRead, Rule::AccReadMemory),
            (HazardKind::TransLanes, Rule::TransUse),
            (HazardKind::PartLanes, Rule::DstSelUse),
            (HazardKind::StoreData, Rule::VmemStoreData),
            (HazardKind::GroupReads, Rule::SmemClauseXnack),
            (HazardKind::GroupWrites, Rule::SmemClauseXnack),
            (HazardKind::GroupStore, Rule::SmemClauseStore),
            (HazardKind::StaleVccz, Rule::VcczSmem),
            (HazardKind::SmemStored, Rule::DcacheWb),
            (HazardKind::VmemReads, Rule::VmemToScalarWrite),
            (HazardKind::StoreReads, Rule::VmemToScalarWrite),
            (HazardKind::DsReads, Rule::VmemToScalarWrite),
            (HazardKind::SmemReads, Rule::SmemToVectorWrite),
            (HazardKind::Cmpx, Rule::VcmpxPermlane11),
            (HazardKind::Vopc, Rule::VopcPermlane),
            (HazardKind::ExecRead, Rule::VcmpxExecWar),
            (HazardKind::Vmem, Rule::LdsBranchVmemWar),
            (HazardKind::VmemBranch, Rule::LdsBranchVmemWar),
            (HazardKind::Ds, Rule::LdsBranchVmemWar),
            (HazardKind::DsBranch, Rule::LdsBranchVmemWar),
            (HazardKind::BigNsa, Rule::NsaToVmem),
            (HazardKind::Writelane, Rule::WritelaneToNsa),
            (HazardKind::FloatAtomic, Rule::FpAtomicDenorm),
            (HazardKind::ValuUsed, Rule::LdsDirectValu),
            (HazardKind::Trans, Rule::ValuTransUse),
            (HazardKind::MaskRead, Rule::ValuMaskWrite),
            (HazardKind::MaskSalu, Rule::ValuMaskWrite),
            (HazardKind::MaskValu, Rule::ValuMaskWrite),
            (HazardKind::Wmma, Rule::Wmma),
            (HazardKind::SgprRead, Rule::ValuReadSgpr),
            (HazardKind::SgprSalu, Rule::ValuReadSgpr),
            (HazardKind::SgprValu, Rule::ValuReadSgpr),
        ];
        if number == HazardKind::GroupStore as u8 && p.extra != 2 {
            return Rule::SmemClauseInv;
        }
        if number == HazardKind::ExecRead as u8 && p.extra == 1 {
            return Rule::VcmpxExecImplicit;
        }
        const SCALAR: [HazardKind; 4] =
            [HazardKind::MaskSalu, HazardKind::MaskValu, HazardKind::SgprSalu, HazardKind::SgprValu];
        if SCALAR.iter().any(|kind| *kind as u8 == number) && p.extra & PASSED_MEMORY != 0 {
            return Rule::MemorySgpr;
        }
        if number == HazardKind::SgprValu as u8 && p.extra == 1 {
            return Rule::ValuCarrySgpr;
        }
        if VMEM.contains(&number) {
            return Rule::LdsDirectVmem;
        }
        RULES.iter().find(|(kind, _)| *kind as u8 == number).map_or(Rule::OpenEnd, |(_, rule)| *rule)
    }
}

/// A bit of [`PendingEvent::extra`], for scalar registers that the ALUs wrote on gfx11 and gfx12: a memory instruction has come since.
const PASSED_MEMORY: u8 = 2;

/// A rule that is broken: the first instruction, and how much is missing of the distance.
pub(super) type BrokenHazard<'a> = &'a mut dyn FnMut(Rule, &PendingEvent, u8);

/// The rules of one GPU, and which of their second instructions a program has.
pub(super) struct Hazards {
    generation: Gfx,
    wave64: bool,
    xnack: bool,
    pub has_ldsdir: bool,
    has_permlane: bool,
    has_wmma: bool,
    has_nsa: bool,
    has_denorm: bool,
    has_vccz: bool,
    has_dpp: bool,
    has_div_fmas: bool,
    /// Whether the rules of CDNA about vector and accumulation registers hold.
    cdna: bool,
    /// What matrix instructions of CDNA write, by the number of the instruction.
    results: BTreeMap<u32, RegSet>,
    /// Scalar registers that instructions read which count wait states since the vector ALU wrote them.
    late_sgprs: RegSet,
    pub has_exec_writes: bool,
}

impl Hazards {
    /// `open`: code follows that is not seen.
    pub fn new(gpu: &Gpu, program: &CheckedProgram, open: bool) -> Hazards {
        let mut has = Hazards {
            generation: gpu.generation(),
            wave64: gpu.wave64(),
            xnack: gpu.xnack(),
            has_ldsdir: open,
            has_permlane: open,
            has_wmma: open,
            has_nsa: open,
            has_denorm: open,
            has_vccz: false,
            has_dpp: open,
            has_div_fmas: open,
            cdna: gpu.has_agprs(),
            results: BTreeMap::new(),
            late_sgprs: if open { EVERY } else { EMPTY },
            has_exec_writes: false,
        };
        for (number, op) in (0..).zip(&program.ops) {
            if op.mfma.is_some() {
                has.results.insert(number, set_of(program.regs(op), true, |r| r.writes));
            }
            has.has_dpp |= op.has(flag::DPP);
            has.has_div_fmas |= op.has(flag::DIV_FMAS);
            let late = op.is_vmem()
                || op.is_flat_like()
                || op.class == UnitClass::Smem
                || op.has(flag::READLANE | flag::WRITELANE)
                || op.is_valu() && has.cdna && has.generation >= Gfx::Gfx940;
            if late && has.generation < Gfx::Gfx10 {
                for r in program.regs(op).iter().filter(|r| r.reads && !r.is_vgpr()) {
                    add_regs(&mut has.late_sgprs, *r);
                }
            }
            has.has_ldsdir |= op.class == UnitClass::LdsDir;
            has.has_permlane |= op.has(flag::PERMLANE);
            has.has_wmma |= op.has(flag::WMMA);
            has.has_nsa |= op.has(flag::NSA);
            has.has_denorm |= op.opcode == Opcode::s_denorm_mode;
            has.has_vccz |= op.role == Role::CBranchVcc;
            has.has_exec_writes |= op.has(flag::WRITES_EXEC) && op.is_salu();
        }
        has
    }

    /// Takes one instruction: tells the rules it breaks, and what is pending behind it.
    pub fn step(
        &self,
        list: &mut PendingList,
        number: u32,
        op: &ProgramOp,
        regs: &[TouchedRegs],
        wait_values: Option<&WaitValues>,
        broken: BrokenHazard<'_>,
    ) {
        match self.generation {
            Gfx::Gfx6
            | Gfx::Gfx7
            | Gfx::Gfx8
            | Gfx::Gfx9
            | Gfx::Gfx906
            | Gfx::Gfx908
            | Gfx::Gfx90a
            | Gfx::Gfx940
            | Gfx::Gfx950 => self.gfx6(list, number, op, regs, wait_values, broken),
            Gfx::Gfx10 | Gfx::Gfx10_3 => self.gfx10(list, number, op, regs, wait_values, broken),
            Gfx::Gfx11 | Gfx::Gfx11_5 | Gfx::Gfx12 => self.gfx11(list, number, op, regs, wait_values, broken),
        }
        self.stored(list, number, op, broken);
    }

    /// Whether something pending is counted in wait states, or ended by any instruction.
    pub fn counts_states(p: &PendingEvent) -> bool {
        p.kind <= HazardKind::StoreData as u8
            || [
                HazardKind::GroupReads,
                HazardKind::GroupWrites,
                HazardKind::GroupStore,
                HazardKind::BigNsa,
                HazardKind::Writelane,
                HazardKind::FloatAtomic,
            ]
            .iter()
            .any(|kind| *kind as u8 == p.kind)
    }

    /// Scalar memory that was written must be written back before the end.
    fn stored(&self, list: &mut PendingList, number: u32, op: &ProgramOp, broken: BrokenHazard<'_>) {
        if op.class == UnitClass::Smem && op.has(flag::STORE | flag::ATOMIC) {
            list.push(pending(HazardKind::SmemStored, number));
        } else if op.opcode == Opcode::s_dcache_wb {
            list.forget(|p| p.kind == HazardKind::SmemStored as u8);
        } else if op.role == Role::End {
            for p in list.all.iter().filter(|p| p.kind == HazardKind::SmemStored as u8) {
                broken(Rule::DcacheWb, p, 0);
            }
        }
    }
}

/// Something pending without registers.
fn pending(kind: HazardKind, number: u32) -> PendingEvent {
    PendingEvent { kind: kind as u8, age: 0, extra: 0, flats: 0, vector: false, op: number, regs: EMPTY }
}

/// Something pending of some registers of one file; `None`: there are none.
fn pending_of(
    kind: HazardKind,
    number: u32,
    vector: bool,
    regs: &[TouchedRegs],
    of: impl Fn(&TouchedRegs) -> bool,
) -> Option<PendingEvent> {
    let mut new = PendingEvent { vector, ..pending(kind, number) };
    for r in regs.iter().filter(|r| r.is_vgpr() == vector && of(r)) {
        add_regs(&mut new.regs, *r);
    }
    (new.regs != EMPTY).then_some(new)
}

/// The registers of one file that an instruction touches.
fn set_of(regs: &[TouchedRegs], vector: bool, of: impl Fn(&TouchedRegs) -> bool) -> RegSet {
    pending_of(HazardKind::ValuSgpr, 0, vector, regs, of).map_or(EMPTY, |p| p.regs)
}

/// Whether a wait waits for all of a counter.
fn drained(wait_values: Option<&WaitValues>, counter: Counter) -> bool {
    wait_values.is_some_and(|wait_values| wait_values[counter as usize] == 0)
}
