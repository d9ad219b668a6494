//! One instruction as the checker looks at it: small, classified once, all names resolved to flags.
//!
//! Never: encodings; `isa` decodes and says which registers an instruction touches.

use std::sync::OnceLock;
use unwedge_isa::amdgcn::model::{Access, Class as SlotClass, Field, Form, Format, Mod, Role, Trait};
use unwedge_isa::amdgcn::semantics::mfma::Mfma;
use unwedge_isa::amdgcn::tables::{InstRow, Variant};
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Opcode, Operand, Reg, nop_states, tables};

/// The part of the GPU that runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitClass {
    Salu,
    Sopp,
    Valu,
    /// Interpolation that reads LDS.
    Vintrp,
    LdsDir,
    Exp,
    Smem,
    Ds,
    Buffer,
    Image,
    Flat,
    Global,
    Scratch,
}

/// Flags of [`ProgramOp::flags`].
pub(super) mod flag {
    pub const TRANS: u32 = 1 << 0;
    pub const VOPC: u32 = 1 << 1;
    pub const CMPX: u32 = 1 << 2;
    pub const PERMLANE: u32 = 1 << 3;
    pub const READLANE: u32 = 1 << 4;
    pub const READFIRST: u32 = 1 << 5;
    pub const WRITELANE: u32 = 1 << 6;
    pub const DIV_FMAS: u32 = 1 << 7;
    pub const MASK_READ: u32 = 1 << 8;
    pub const WMMA: u32 = 1 << 9;
    pub const SWMMAC: u32 = 1 << 10;
    pub const STORE: u32 = 1 << 11;
    pub const ATOMIC: u32 = 1 << 12;
    pub const FLOAT_ATOMIC: u32 = 1 << 13;
    pub const ADDTID: u32 = 1 << 14;
    pub const NSA: u32 = 1 << 15;
    pub const DPP: u32 = 1 << 16;
    pub const GDS: u32 = 1 << 17;
    pub const LDS: u32 = 1 << 18;
    pub const SAMPLE: u32 = 1 << 19;
    pub const BVH: u32 = 1 << 20;
    pub const RETURNS: u32 = 1 << 21;
    pub const VINTERP: u32 = 1 << 22;
    pub const READS_EXEC: u32 = 1 << 23;
    pub const WRITES_EXEC: u32 = 1 << 24;
    pub const BUFFER: u32 = 1 << 25;
    /// It stores more than 64 bits in a form that reads the data late.
    pub const LATE_DATA: u32 = 1 << 26;
    /// It reads a literal, or a constant as an operand.
    pub const LITERAL: u32 = 1 << 27;
    pub const MSAA: u32 = 1 << 28;
    /// It moves the constant 0.
    pub const ZERO: u32 = 1 << 29;
    /// Of two sources that are the same register its result depends on neither.
    pub const CANCELS: u32 = 1 << 30;
    /// It writes a part of a vector register by SDWA or `op_sel`.
    pub const PART: u32 = 1 << 31;
}

/// Registers touched.
#[derive(Debug, Clone, Copy)]
pub(super) struct TouchedRegs {
    /// Number of a [`Reg`].
    pub reg: u16,
    pub dwords: u8,
    pub reads: bool,
    pub writes: bool,
    /// What they hold before does not matter: the result is the same whatever it is.
    pub any: bool,
    /// It is read only because a load writes one half of it, from gfx11 on.
    pub tied: bool,
    pub field: Field,
}

impl TouchedRegs {
    pub fn is_vgpr(self) -> bool {
        self.reg >= Reg::VGPR0.0
    }
}

/// What a scalar instruction makes of `exec`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExecOp {
    /// Something else.
    Other,
    /// This pair of registers.
    Copy(u16),
    /// This pair without `exec`.
    Without(u16),
    /// This pair with or xor `exec`.
    With(u16),
}

impl ExecOp {
    /// In place of a pair: all bits.
    pub const ONES: u16 = u16::MAX;
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ProgramOp {
    /// First dword.
    pub at: u32,
    pub dwords: u8,
    pub class: UnitClass,
    pub opcode: Opcode,
    pub role: Role,
    /// `wait_exp`, `wait_vdst`; of an export its target.
    pub wait: u8,
    /// `wait_vsrc`.
    pub wait_vsrc: u8,
    pub touch_count: u8,
    pub touch_first: u32,
    pub flags: u32,
    /// The immediate of scalar instructions, the offset of memory instructions.
    pub imm: i32,
    pub exec: ExecOp,
    /// What it is as a matrix instruction of CDNA.
    pub mfma: Option<MfmaClass>,
}

/// A matrix instruction of CDNA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MfmaClass {
    pub kind: MfmaKind,
    /// 0 to 3: 2, 4, 8 or 16 passes.
    pub passes: u8,
    /// The destination is what it adds to, and the third source has indices.
    pub sparse: bool,
}

/// Which matrix hardware an instruction runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MfmaKind {
    Xdl,
    Sgemm,
    Dgemm,
}

impl MfmaClass {
    fn of(inst: &Inst, gpu: &Gpu) -> Option<MfmaClass> {
        let generation = gpu.generation();
        let mfma = Mfma::of_inst(inst, generation)?;
        let kind = match () {
            () if mfma.is_dgemm() => MfmaKind::Dgemm,
            () if mfma.is_xdl(generation) => MfmaKind::Xdl,
            () => MfmaKind::Sgemm,
        };
        let passes = (mfma.passes(generation).max(2).ilog2() - 1).min(3) as u8;
        Some(MfmaClass { kind, passes, sparse: mfma.sparse })
    }
}

impl ProgramOp {
    pub fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    pub fn is_valu(&self) -> bool {
        self.class == UnitClass::Valu
    }

    /// Of the scalar ALU, program flow and waits included.
    pub fn is_salu(&self) -> bool {
        matches!(self.class, UnitClass::Salu | UnitClass::Sopp)
    }

    /// Buffers and images.
    pub fn is_vmem(&self) -> bool {
        matches!(self.class, UnitClass::Buffer | UnitClass::Image)
    }

    pub fn is_flat_like(&self) -> bool {
        matches!(self.class, UnitClass::Flat | UnitClass::Global | UnitClass::Scratch)
    }

    /// gfx11 and gfx12: whether it waits for scalar results of both ALUs before it is issued.
    pub fn awaits_scalars(&self) -> bool {
        self.class == UnitClass::Smem || self.is_vmem() || self.is_flat_like()
    }

    /// Whether it works on lanes.
    pub fn is_vector(&self) -> bool {
        !matches!(self.class, UnitClass::Salu | UnitClass::Sopp | UnitClass::Smem)
    }

    /// Whether lanes that are not enabled neither read nor write vector registers.
    pub fn is_masked(&self) -> bool {
        self.is_vector()
            && self.mfma.is_none()
            && !self.has(flag::READLANE | flag::READFIRST | flag::WRITELANE | flag::PERMLANE | flag::WMMA)
    }

    /// Whether control goes on somewhere else than after it, or may.
    pub fn ends_block(&self) -> bool {
        self.role.ends_block()
    }

    /// Whether it calls: what follows runs once what is called has come back.
    pub fn calls(&self) -> bool {
        self.role.calls()
    }

    /// The wait states it takes.
    pub fn states(&self, generation: Gfx) -> u8 {
        if self.role == Role::Nop { nop_states(self.imm, generation) } else { 1 }
    }
}

/// What the table says of one way to write an instruction.
#[derive(Clone, Copy)]
struct VariantFacts {
    class: UnitClass,
    flags: u32,
}

/// What a scalar instruction makes of its sources, if it writes `exec`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExecSource {
    Other,
    Move,
    AndNot,
    OrXor,
}

impl ExecSource {
    fn by(opcode: Opcode) -> ExecSource {
        match opcode {
            Opcode::s_mov_b32 | Opcode::s_mov_b64 => ExecSource::Move,
            Opcode::s_andn2_b32 | Opcode::s_andn2_b64 => ExecSource::AndNot,
            Opcode::s_or_b32 | Opcode::s_or_b64 | Opcode::s_xor_b32 | Opcode::s_xor_b64 => ExecSource::OrXor,
            _ => ExecSource::Other,
        }
    }
}

/// By variant.
fn facts() -> &'static [VariantFacts] {
    static FACTS: OnceLock<Vec<VariantFacts>> = OnceLock::new();
    FACTS.get_or_init(|| {
        let rows: Vec<VariantFacts> = tables::rows().iter().map(of_row).collect();
        tables::variants().iter().map(|variant| of_variant(variant, &rows)).collect()
    })
}

fn of_variant(variant: &Variant, rows: &[VariantFacts]) -> VariantFacts {
    const NONE: VariantFacts = VariantFacts { class: UnitClass::Valu, flags: 0 };
    let row = |number: u16| rows.get(usize::from(number)).copied().unwrap_or(NONE);
    let mut facts = row(variant.row);
    if let Some((second, ..)) = variant.second {
        facts.flags |= row(second).flags;
    }
    if matches!(variant.form, Form::Dpp | Form::Dpp8 | Form::E64Dpp | Form::E64Dpp8) {
        facts.flags |= flag::DPP;
    }
    if variant.slots.iter().any(|slot| slot.field == Field::Ssamp) {
        facts.flags |= flag::SAMPLE;
    }
    facts
}

/// Traits of the table, with the flag each is here.
const TRAITS: [(Trait, u32); 19] = [
    (Trait::Cancels, flag::CANCELS),
    (Trait::Cmpx, flag::CMPX),
    (Trait::Permlane, flag::PERMLANE),
    (Trait::Readlane, flag::READLANE),
    (Trait::Readfirstlane, flag::READFIRST),
    (Trait::Writelane, flag::WRITELANE),
    (Trait::DivFmas, flag::DIV_FMAS),
    (Trait::ReadsMask, flag::MASK_READ),
    (Trait::Sparse, flag::SWMMAC),
    (Trait::Store, flag::STORE),
    (Trait::Atomic, flag::ATOMIC),
    (Trait::Addtid, flag::ADDTID),
    (Trait::ToLds, flag::LDS),
    (Trait::LdsAlways, flag::LDS),
    (Trait::GdsAlways, flag::GDS),
    (Trait::Bvh, flag::BVH),
    (Trait::Bvh64, flag::BVH),
    (Trait::Msaa, flag::MSAA),
    (Trait::Buffer, flag::BUFFER),
];

fn of_row(row: &InstRow) -> VariantFacts {
    let class = match row.format {
        Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk => UnitClass::Salu,
        Format::Sopp => UnitClass::Sopp,
        Format::Vintrp => UnitClass::Vintrp,
        Format::Vop3 if row.role == Role::Interp => UnitClass::Vintrp,
        Format::Ldsdir => UnitClass::LdsDir,
        Format::Exp => UnitClass::Exp,
        Format::Smem => UnitClass::Smem,
        Format::Ds => UnitClass::Ds,
        Format::Mubuf | Format::Mtbuf | Format::Vbuffer => UnitClass::Buffer,
        Format::Mimg | Format::Vimage | Format::Vsample => UnitClass::Image,
        Format::Flat => UnitClass::Flat,
        Format::Global => UnitClass::Global,
        Format::Scratch => UnitClass::Scratch,
        Format::Vop1
        | Format::Vop2
        | Format::Vopc
        | Format::Vop3
        | Format::Vop3p
        | Format::Mai
        | Format::MaiScaled
        | Format::Vopd
        | Format::Vinterp => UnitClass::Valu,
    };
    let set = |condition: bool, flag: u32| if condition { flag } else { 0 };
    let traits = TRAITS.iter().filter(|(id, _)| row.traits.has(*id)).fold(0, |all, (_, flag)| all | flag);
    let flags = traits
        | set(row.unit.is_transcendental(), flag::TRANS)
        | set(row.format == Format::Vopc, flag::VOPC)
        | set(row.role == Role::Matrix, flag::WMMA)
        | set(row.format == Format::Vinterp, flag::VINTERP);
    VariantFacts { class, flags }
}

/// The value of `dst_sel` of SDWA for a whole register.
const WHOLE: i32 = 6;

/// An instruction at a dword; its registers are appended to `touches`.
pub(super) fn of(inst: &Inst, at: u32, dwords: u8, gpu: &Gpu, touches: &mut Vec<TouchedRegs>) -> ProgramOp {
    let VariantFacts { class, mut flags } = facts()[usize::from(inst.number())];
    let (opcode, role) = (inst.opcode(), inst.row().role);
    let made = ExecSource::by(opcode);
    let first = touches.len();
    let (mut late, mut data) = (false, 0);
    let tied = gpu.generation() >= Gfx::Gfx11 && inst.row().access.is_some_and(loads_half);
    inst.touches(gpu, &mut |t| {
        let (reads, writes) = (t.access.reads(), t.access.writes());
        if t.reg == Reg::EXEC || t.reg == Reg::EXEC_HI {
            flags |= if reads { flag::READS_EXEC } else { 0 } | if writes { flag::WRITES_EXEC } else { 0 };
        }
        if matches!(t.field, Field::Vdata | Field::Data) && reads {
            data = t.dwords;
            if flags & flag::ATOMIC != 0 && t.ty.is_float() {
                flags |= flag::FLOAT_ATOMIC;
            }
        }
        late |= t.field == Field::Soffset;
        touches.push(TouchedRegs {
            reg: t.reg.0,
            dwords: t.dwords,
            reads,
            writes,
            any: tied && reads && writes,
            tied: tied && reads && writes,
            field: t.field,
        });
    });
    if flags & flag::WRITELANE != 0 {
        // The other lanes stay as they are.
        touches[first..].iter_mut().for_each(|r| r.any = r.writes);
    } else if flags & flag::CANCELS != 0
        && let Some(same) = same_sources(inst)
    {
        touches[first..].iter_mut().for_each(|r| r.any = r.reads && r.reg == same.0);
    }
    if flags & flag::VOPC != 0 && flags & flag::WRITES_EXEC != 0 {
        flags |= flag::CMPX;
    }
    let mods = &inst.mods;
    if mods.has(Mod::Gds) {
        flags |= flag::GDS;
    }
    if mods.has(Mod::Lds) {
        flags |= flag::LDS;
    }
    let mut imm = mods.get(Mod::Offset);
    let mut wait = 0;
    for (slot, operand) in inst.written() {
        match (slot.class, operand) {
            (_, Operand::List(_)) => flags |= flag::NSA,
            (_, Operand::Inline(128)) if made == ExecSource::Move => flags |= flag::ZERO,
            (_, Operand::Literal(_)) => flags |= flag::LITERAL,
            (SlotClass::ExpTarget, Operand::Imm(target)) => wait = target as u8,
            (_, Operand::Imm(value)) if class == UnitClass::Salu || class == UnitClass::Sopp => imm = value,
            _ => {}
        }
    }
    let part = inst.form() == Form::Sdwa && mods.get(Mod::DstSel) != WHOLE;
    if class == UnitClass::Valu && (part || mods.get(Mod::OpSel) & 8 != 0) {
        flags |= flag::PART;
    }
    if inst.returns(gpu) {
        flags |= flag::RETURNS;
    }
    let late = match class {
        UnitClass::Buffer => !late,
        UnitClass::Image => mods.has(Mod::R128),
        _ => true,
    };
    if flags & flag::STORE != 0 && data > 2 && late {
        flags |= flag::LATE_DATA;
    }
    match class {
        UnitClass::LdsDir if gpu.generation() == Gfx::Gfx12 => wait = mods.get(Mod::WaitVaVdst) as u8,
        UnitClass::LdsDir => wait = mods.get(Mod::WaitVdst) as u8,
        UnitClass::Valu => wait = mods.get(Mod::WaitExp) as u8,
        _ => {}
    }
    ProgramOp {
        at,
        dwords,
        class,
        opcode,
        role,
        wait,
        wait_vsrc: mods.get(Mod::WaitVmVsrc) as u8,
        touch_count: (touches.len() - first).min(255) as u8,
        touch_first: first as u32,
        flags,
        imm,
        exec: if flags & flag::WRITES_EXEC != 0 { exec_op(inst, made) } else { ExecOp::Other },
        mfma: MfmaClass::of(inst, gpu),
    }
}

/// Whether it loads into one half of a register.
fn loads_half(access: Access) -> bool {
    matches!(access, Access::Value(_, element, _) if element.high_half().is_some())
}

/// The register that is both sources of an instruction, of the same lanes and bits.
fn same_sources(inst: &Inst) -> Option<Reg> {
    let plain = matches!(inst.variant().form, Form::Native | Form::E32 | Form::E64);
    let mut sources = inst.written().filter(|(slot, _)| slot.access.reads()).map(|(_, operand)| operand);
    match (sources.next()?, sources.next()?) {
        (one @ Operand::Reg { reg, .. }, other) if one == other && plain && !inst.mods.has(Mod::OpSel) => {
            Some(reg)
        }
        _ => None,
    }
}

/// What an instruction makes of `exec`.
fn exec_op(inst: &Inst, made: ExecSource) -> ExecOp {
    let [Operand::Reg { reg: Reg::EXEC, .. }, first, second, ..] = inst.operands else {
        return ExecOp::Other;
    };
    let source = |operand: Operand| match operand {
        Operand::Reg { reg, .. } if reg != Reg::EXEC => Some(reg.0),
        Operand::Inline(193) => Some(ExecOp::ONES),
        _ => None,
    };
    let is_exec = |operand: Operand| matches!(operand, Operand::Reg { reg: Reg::EXEC, .. });
    let op = match made {
        ExecSource::Move => source(first).map(ExecOp::Copy),
        ExecSource::AndNot if is_exec(second) => source(first).map(ExecOp::Without),
        ExecSource::OrXor if is_exec(first) => source(second).map(ExecOp::With),
        ExecSource::OrXor if is_exec(second) => source(first).map(ExecOp::With),
        _ => None,
    };
    op.unwrap_or(ExecOp::Other)
}
