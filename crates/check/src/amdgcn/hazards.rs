//! Hazards: what one instruction does that another must not follow too closely.
//!
//! Each rule keeps what its first instruction did as something pending, until enough has happened since or what cures it; the
//! second instruction then finds it. One function per group of generations: they share no hazard. Where a rule is
//! broken its cure is assumed from there on, so that one mistake is told once.
//!
//! Facts: `data/amd/check/rules.txt`.

mod gfx10;
mod gfx11;
mod gfx6;

use super::facts::Rule;
use super::op::{Class, Op, Regs, flag};
use super::program::Program;
use super::state::{EMPTY, List, Pending, Set};
use super::waits::{WaitValues, add_regs};
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::waits::Counter;
use unwedge_isa::amdgcn::{Gfx, Gpu};

/// What is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
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

impl Kind {
    /// Whether something pending matters where code goes on that is not known.
    pub fn stays_open(p: &Pending) -> bool {
        const OWN: [Kind; 4] = [Kind::ValuKept, Kind::StaleVccz, Kind::SmemStored, Kind::SgprRead];
        !OWN.iter().any(|kind| *kind as u8 == p.kind)
    }

    /// The rule that something pending of this kind would break first.
    pub fn rule(p: &Pending) -> Rule {
        let number = p.kind;
        const VMEM: [u8; 5] = [
            Kind::LoadUsed as u8,
            Kind::SampleUsed as u8,
            Kind::BvhUsed as u8,
            Kind::StoreUsed as u8,
            Kind::DsUsed as u8,
        ];
        const RULES: &[(Kind, Rule)] = &[
            (Kind::ValuSgpr, Rule::VmemReadValuSgpr),
            (Kind::ValuVcc, Rule::DivFmasVcc),
            (Kind::SaluSgpr, Rule::SbufferDescSalu),
            (Kind::ValuVgpr, Rule::DppReadVgpr),
            (Kind::ValuExec, Rule::DppExec),
            (Kind::InterpVgpr, Rule::VintrpReadlane),
            (Kind::SetReg, Rule::SetregSetreg),
            (Kind::Vskip, Rule::Vskip),
            (Kind::TrapSts, Rule::RfeTrapsts),
            (Kind::SaluM0, Rule::M0GdsMsg),
            (Kind::StoreData, Rule::VmemStoreData),
            (Kind::GroupReads, Rule::SmemClauseXnack),
            (Kind::GroupWrites, Rule::SmemClauseXnack),
            (Kind::GroupStore, Rule::SmemClauseStore),
            (Kind::StaleVccz, Rule::VcczSmem),
            (Kind::SmemStored, Rule::DcacheWb),
            (Kind::VmemReads, Rule::VmemToScalarWrite),
            (Kind::StoreReads, Rule::VmemToScalarWrite),
            (Kind::DsReads, Rule::VmemToScalarWrite),
            (Kind::SmemReads, Rule::SmemToVectorWrite),
            (Kind::Cmpx, Rule::VcmpxPermlane11),
            (Kind::Vopc, Rule::VopcPermlane),
            (Kind::ExecRead, Rule::VcmpxExecWar),
            (Kind::Vmem, Rule::LdsBranchVmemWar),
            (Kind::VmemBranch, Rule::LdsBranchVmemWar),
            (Kind::Ds, Rule::LdsBranchVmemWar),
            (Kind::DsBranch, Rule::LdsBranchVmemWar),
            (Kind::BigNsa, Rule::NsaToVmem),
            (Kind::Writelane, Rule::WritelaneToNsa),
            (Kind::FloatAtomic, Rule::FpAtomicDenorm),
            (Kind::ValuUsed, Rule::LdsDirectValu),
            (Kind::Trans, Rule::ValuTransUse),
            (Kind::MaskRead, Rule::ValuMaskWrite),
            (Kind::MaskSalu, Rule::ValuMaskWrite),
            (Kind::MaskValu, Rule::ValuMaskWrite),
            (Kind::Wmma, Rule::Wmma),
            (Kind::SgprRead, Rule::ValuReadSgpr),
            (Kind::SgprSalu, Rule::ValuReadSgpr),
            (Kind::SgprValu, Rule::ValuReadSgpr),
        ];
        if number == Kind::GroupStore as u8 && p.extra != 2 {
            return Rule::SmemClauseInv;
        }
        if number == Kind::ExecRead as u8 && p.extra == 1 {
            return Rule::VcmpxExecImplicit;
        }
        if number == Kind::SgprValu as u8 && p.extra == 1 {
            return Rule::ValuCarrySgpr;
        }
        if VMEM.contains(&number) {
            return Rule::LdsDirectVmem;
        }
        RULES.iter().find(|(kind, _)| *kind as u8 == number).map_or(Rule::OpenEnd, |(_, rule)| *rule)
    }
}

/// A rule that is broken: the first instruction, and how much is missing of the distance.
pub(super) type Broken<'a> = &'a mut dyn FnMut(Rule, &Pending, u8);

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
    /// Scalar registers that instructions read which count wait states since the vector ALU wrote them.
    late_sgprs: Set,
    pub has_exec_writes: bool,
}

impl Hazards {
    /// `open`: code follows that is not seen.
    pub fn new(gpu: &Gpu, program: &Program, open: bool) -> Hazards {
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
            late_sgprs: if open { [u64::MAX; 4] } else { EMPTY },
            has_exec_writes: false,
        };
        for op in &program.ops {
            has.has_dpp |= op.has(flag::DPP);
            has.has_div_fmas |= op.has(flag::DIV_FMAS);
            let late = op.is_vmem()
                || op.is_flat_like()
                || op.class == Class::Smem
                || op.has(flag::READLANE | flag::WRITELANE);
            if late && has.generation < Gfx::Gfx10 {
                for r in program.regs(op).iter().filter(|r| r.reads && !r.is_vgpr()) {
                    add_regs(&mut has.late_sgprs, *r);
                }
            }
            has.has_ldsdir |= op.class == Class::LdsDir;
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
        list: &mut List,
        number: u32,
        op: &Op,
        regs: &[Regs],
        said: Option<&WaitValues>,
        broken: Broken<'_>,
    ) {
        match self.generation {
            Gfx::Gfx6 | Gfx::Gfx7 | Gfx::Gfx8 | Gfx::Gfx9 | Gfx::Gfx906 | Gfx::Gfx940 => {
                self.gfx6(list, number, op, regs, said, broken);
            }
            Gfx::Gfx10 | Gfx::Gfx10_3 => self.gfx10(list, number, op, regs, said, broken),
            Gfx::Gfx11 | Gfx::Gfx11_5 | Gfx::Gfx12 => self.gfx11(list, number, op, regs, said, broken),
        }
        self.stored(list, number, op, broken);
    }

    /// Whether something pending is counted in wait states, or ended by any instruction.
    pub fn counts_states(p: &Pending) -> bool {
        p.kind <= Kind::StoreData as u8
            || [
                Kind::GroupReads,
                Kind::GroupWrites,
                Kind::GroupStore,
                Kind::BigNsa,
                Kind::Writelane,
                Kind::FloatAtomic,
            ]
            .iter()
            .any(|kind| *kind as u8 == p.kind)
    }

    /// Scalar memory that was written must be written back before the end.
    fn stored(&self, list: &mut List, number: u32, op: &Op, broken: Broken<'_>) {
        if op.class == Class::Smem && op.has(flag::STORE | flag::ATOMIC) {
            list.push(pending(Kind::SmemStored, number));
        } else if op.opcode == Opcode::s_dcache_wb {
            list.forget(|p| p.kind == Kind::SmemStored as u8);
        } else if op.role == Role::End {
            for p in list.all.iter().filter(|p| p.kind == Kind::SmemStored as u8) {
                broken(Rule::DcacheWb, p, 0);
            }
        }
    }
}

/// Something pending without registers.
fn pending(kind: Kind, number: u32) -> Pending {
    Pending { kind: kind as u8, age: 0, extra: 0, vector: false, op: number, regs: EMPTY }
}

/// Something pending of some registers of one file; `None`: there are none.
fn pending_of(
    kind: Kind,
    number: u32,
    vector: bool,
    regs: &[Regs],
    of: impl Fn(&Regs) -> bool,
) -> Option<Pending> {
    let mut new = Pending { vector, ..pending(kind, number) };
    for r in regs.iter().filter(|r| r.is_vgpr() == vector && of(r)) {
        add_regs(&mut new.regs, *r);
    }
    (new.regs != EMPTY).then_some(new)
}

/// The registers of one file that an instruction touches.
fn set_of(regs: &[Regs], vector: bool, of: impl Fn(&Regs) -> bool) -> Set {
    pending_of(Kind::ValuSgpr, 0, vector, regs, of).map_or(EMPTY, |p| p.regs)
}

/// Whether a wait waits for all of a counter.
fn drained(said: Option<&WaitValues>, counter: Counter) -> bool {
    said.is_some_and(|said| said[counter as usize] == 0)
}
