//! Hazards: sequences of instructions that hardware does not keep apart by itself.
//!
//! Each rule looks back over what a wave did lately, along the path it took. Those of gfx6 to gfx9 are a number of wait
//! states (an instruction is one, `s_nop` as many as it says); later ones are open until something mitigates them. Facts:
//! Mesa's and LLVM's hazard recognizers and the notes of Mesa's compiler; where these differ, the one that asks less
//! decides here, because what is reported must be certain. What the notes say that others leave out is reported too. Names
//! are those of the rules that code is checked by without running it.

mod distance;
mod gfx10;
mod gfx11;
mod matrix;

use super::counters::WaitCounter;
use super::decoded::DecodedInst;
use unwedge_isa::amdgcn::effects::{Effects, Regs};
use unwedge_isa::amdgcn::model::{Encoding, Format, Mod, Role, Trait};
use unwedge_isa::amdgcn::waits::DepctrField;
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Opcode, Operand, Reg};

/// What kind of instruction it is to hazards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Valu,
    Salu,
    Smem,
    Vmem,
    Ds,
    Export,
    Interp,
    Other,
}

fn unit(inst: &Inst) -> Unit {
    match inst.row().format {
        Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk => Unit::Salu,
        Format::Sopp => Unit::Other,
        Format::Smem => Unit::Smem,
        Format::Ds => Unit::Ds,
        Format::Exp => Unit::Export,
        Format::Vintrp | Format::Vinterp | Format::Ldsdir => Unit::Interp,
        format if format.is_memory() => Unit::Vmem,
        _ => Unit::Valu,
    }
}

/// What an instruction is to hazards, whatever comes before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct HazardClass {
    unit: Unit,
    /// No rule of gfx6 to gfx9 is about it as the second one, but those about all of its unit.
    plain: bool,
}

impl HazardClass {
    pub(super) fn of(inst: &Inst) -> HazardClass {
        HazardClass { unit: unit(inst), plain: is_plain(inst) }
    }
}

/// Registers with the instruction that made them dangerous.
#[derive(Debug, Clone, Copy, Default)]
struct OpenHazard {
    regs: Regs,
    at: u32,
}

impl OpenHazard {
    fn add(&mut self, regs: &Regs, at: u32) {
        self.regs = self.regs.either(regs);
        self.at = at;
    }

    fn close(&mut self) {
        *self = OpenHazard::default();
    }
}

/// Rules that are broken, with the offset of the instruction they begin at.
type BrokenRules = Vec<(&'static str, u32)>;

/// What a wave did lately, as far as its generation's rules ask.
#[derive(Debug, Default)]
pub(super) struct Hazards {
    distances: distance::Distances,
    late: gfx10::Late,
    results: gfx11::Results,
}

impl Hazards {
    /// Takes an instruction into account: rules it breaks, with the offset of the instruction they begin at.
    pub(super) fn issue(&mut self, decoded: &DecodedInst, class: HazardClass, gpu: &Gpu) -> BrokenRules {
        let (unit, effects) = (class.unit, &decoded.effects);
        let mut found = Vec::new();
        match gpu.generation() {
            Gfx::Gfx6
            | Gfx::Gfx7
            | Gfx::Gfx8
            | Gfx::Gfx9
            | Gfx::Gfx906
            | Gfx::Gfx908
            | Gfx::Gfx90a
            | Gfx::Gfx940
            | Gfx::Gfx950 => self.distances.issue(decoded, class, gpu, &mut found),
            Gfx::Gfx10 => self.late.issue(decoded, unit, effects, &mut found),
            Gfx::Gfx10_3 => {}
            Gfx::Gfx11 | Gfx::Gfx11_5 | Gfx::Gfx12 => {
                self.results.issue(decoded, unit, effects, gpu, &mut found);
            }
        }
        found
    }
}

/// Whether no rule of gfx6 to gfx9 is about an instruction as the second one, but those about all of its unit.
fn is_plain(inst: &Inst) -> bool {
    let row = inst.row();
    let any = |traits: &[Trait]| traits.iter().any(|id| row.traits.has(*id));
    match unit(inst) {
        Unit::Valu => {
            !is_dpp(inst) && !any(&[Trait::Readlane, Trait::Readfirstlane, Trait::Writelane, Trait::DivFmas])
        }
        Unit::Salu => !matches!(row.role, Role::GetReg | Role::SetReg | Role::Movrel | Role::Return),
        _ => false,
    }
}

fn immediate(inst: &Inst) -> i32 {
    let found = inst.written().find_map(|(_, operand)| match operand {
        Operand::Imm(value) => Some(value),
        _ => None,
    });
    found.unwrap_or(0)
}

/// Whether an instruction is a `depctr` that waits for a field to be zero.
fn depctr(inst: &Inst, field: &DepctrField) -> bool {
    inst.row().role == Role::Depctr && immediate(inst) as u16 & field.field.mask() == 0
}

fn branches(role: Role) -> bool {
    role == Role::GetPc || role.ends_block() && !matches!(role, Role::End | Role::Return)
}

fn is_dpp(inst: &Inst) -> bool {
    use Encoding::{Vop1Dpp, Vop2Dpp, VopcDpp};
    matches!(inst.variant().encoding, Vop1Dpp | Vop2Dpp | VopcDpp)
}

fn one(reg: Reg) -> Regs {
    let mut regs = Regs::default();
    regs.insert(reg, 1);
    regs
}

fn pair(reg: Reg) -> Regs {
    let mut regs = Regs::default();
    regs.insert(reg, 2);
    regs
}
