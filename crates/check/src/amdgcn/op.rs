//! One instruction as the checker looks at it: small, told apart once, all names resolved to flags.
//!
//! Never: encodings; `isa` decodes and says which registers an instruction touches.

use super::facts::COUNTERS;
use std::sync::OnceLock;
use unwedge_isa::amdgcn::model::{Class as SlotClass, Field, Form, Format, Mod, Role, Trait};
use unwedge_isa::amdgcn::tables::{Row, Variant};
use unwedge_isa::amdgcn::{Gen, Gpu, Inst, Operand, Reg, tables};

/// The part of the GPU that runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
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

/// What it is, where rules name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Other,
    Nop,
    Wait,
    Depctr,
    WaitIdle,
    End,
    Branch,
    CBranch,
    CBranchVccz,
    Fork,
    SetPc,
    SwapPc,
    GetPc,
    Call,
    Rfe,
    Subvector,
    SetReg,
    GetReg,
    SendMsg,
    SendMsgRtn,
    TTraceData,
    Movrel,
    SetVskip,
    Version,
    VNop,
    Delay,
    Clause,
    Prefetch,
    CodeEnd,
    DenormMode,
    SetPrio,
    DcacheWb,
}

/// Flags of [`Op::flags`].
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
}

/// Registers touched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Regs {
    /// Number of a [`Reg`].
    pub reg: u16,
    pub dwords: u8,
    pub reads: bool,
    pub writes: bool,
    /// What they hold before does not matter: the result is the same whatever it is.
    pub any: bool,
    pub field: Field,
}

impl Regs {
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
pub(super) struct Op {
    /// First dword.
    pub at: u32,
    pub dwords: u8,
    pub class: Class,
    pub what: What,
    /// `wait_exp`, `wait_vdst`; of an export its target.
    pub wait: u8,
    /// `wait_vsrc`.
    pub wait_vsrc: u8,
    pub touch_count: u8,
    pub touch_first: u32,
    pub flags: u32,
    /// The immediate of scalar instructions, the offset of memory instructions.
    pub imm: i32,
    /// Row of the instruction table.
    pub row: u16,
    pub exec: ExecOp,
}

impl Op {
    pub fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    pub fn is_valu(&self) -> bool {
        self.class == Class::Valu
    }

    /// Of the scalar ALU, program flow and waits included.
    pub fn is_salu(&self) -> bool {
        matches!(self.class, Class::Salu | Class::Sopp)
    }

    /// Buffers and images.
    pub fn is_vmem(&self) -> bool {
        matches!(self.class, Class::Buffer | Class::Image)
    }

    pub fn is_flat_like(&self) -> bool {
        matches!(self.class, Class::Flat | Class::Global | Class::Scratch)
    }

    /// Whether it works on lanes.
    pub fn is_vector(&self) -> bool {
        !matches!(self.class, Class::Salu | Class::Sopp | Class::Smem)
    }

    /// Whether lanes that are not enabled neither read nor write vector registers.
    pub fn is_masked(&self) -> bool {
        self.is_vector()
            && !self.has(flag::READLANE | flag::READFIRST | flag::WRITELANE | flag::PERMLANE | flag::WMMA)
    }

    /// Whether control goes on somewhere else than behind it, or may.
    pub fn ends_block(&self) -> bool {
        matches!(
            self.what,
            What::End
                | What::Branch
                | What::CBranch
                | What::CBranchVccz
                | What::Fork
                | What::SetPc
                | What::SwapPc
                | What::Call
                | What::Rfe
                | What::Subvector
        )
    }

    /// Whether it calls: what is behind runs once what is called has come back.
    pub fn calls(&self) -> bool {
        matches!(self.what, What::SwapPc | What::Call)
    }

    /// The wait states it takes.
    pub fn states(&self) -> u8 {
        if self.what == What::Nop { (self.imm & 15) as u8 + 1 } else { 1 }
    }

    pub fn name(&self) -> &'static str {
        tables::rows().get(usize::from(self.row)).map_or("", |row| row.name)
    }
}

/// What name and table say of one way to write an instruction.
#[derive(Clone, Copy)]
struct Known {
    what: What,
    class: Class,
    flags: u32,
    made: Made,
}

/// What a scalar instruction makes of its sources, if it writes `exec`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    Other,
    Move,
    AndNot,
    OrXor,
}

/// By variant.
fn known() -> &'static [Known] {
    static KNOWN: OnceLock<Vec<Known>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let rows: Vec<Known> = tables::rows().iter().map(of_row).collect();
        tables::variants().iter().map(|variant| of_variant(variant, &rows)).collect()
    })
}

fn of_variant(variant: &Variant, rows: &[Known]) -> Known {
    const NONE: Known = Known { what: What::Other, class: Class::Valu, flags: 0, made: Made::Other };
    let row = |number: u16| rows.get(usize::from(number)).copied().unwrap_or(NONE);
    let mut known = row(variant.row);
    if let Some((second, ..)) = variant.second {
        known.flags |= row(second).flags;
    }
    if matches!(variant.form, Form::Dpp | Form::Dpp8 | Form::E64Dpp | Form::E64Dpp8) {
        known.flags |= flag::DPP;
    }
    if variant.slots.iter().any(|slot| slot.field == Field::Ssamp) {
        known.flags |= flag::SAMPLE;
    }
    known
}

fn of_row(row: &Row) -> Known {
    let name = row.name;
    let class = match row.format {
        Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk => Class::Salu,
        Format::Sopp => Class::Sopp,
        Format::Vintrp => Class::Vintrp,
        Format::Vop3 if row.role == Role::Interp => Class::Vintrp,
        Format::Ldsdir => Class::LdsDir,
        Format::Exp => Class::Exp,
        Format::Smem => Class::Smem,
        Format::Ds => Class::Ds,
        Format::Mubuf | Format::Mtbuf | Format::Vbuffer => Class::Buffer,
        Format::Mimg | Format::Vimage | Format::Vsample => Class::Image,
        Format::Flat => Class::Flat,
        Format::Global => Class::Global,
        Format::Scratch => Class::Scratch,
        _ => Class::Valu,
    };
    let what = match name {
        "s_nop" => What::Nop,
        "s_waitcnt_depctr" => What::Depctr,
        "s_wait_idle" => What::WaitIdle,
        "s_endpgm" | "s_endpgm_saved" | "s_endpgm_ordered_ps_done" => What::End,
        "s_branch" => What::Branch,
        "s_cbranch_vccz" | "s_cbranch_vccnz" => What::CBranchVccz,
        "s_cbranch_g_fork" | "s_cbranch_join" => What::Fork,
        "s_setpc_b64" => What::SetPc,
        "s_swappc_b64" => What::SwapPc,
        "s_getpc_b64" => What::GetPc,
        "s_call_b64" => What::Call,
        "s_rfe_b64" | "s_rfe_restore_b64" => What::Rfe,
        "s_subvector_loop_begin" | "s_subvector_loop_end" => What::Subvector,
        "s_setreg_b32" | "s_setreg_imm32_b32" => What::SetReg,
        "s_getreg_b32" => What::GetReg,
        "s_sendmsg" | "s_sendmsghalt" => What::SendMsg,
        "s_sendmsg_rtn_b32" | "s_sendmsg_rtn_b64" => What::SendMsgRtn,
        "s_ttracedata" => What::TTraceData,
        "s_setvskip" => What::SetVskip,
        "s_version" => What::Version,
        "v_nop" => What::VNop,
        "s_delay_alu" => What::Delay,
        "s_clause" => What::Clause,
        "s_inst_prefetch" => What::Prefetch,
        "s_code_end" => What::CodeEnd,
        "s_denorm_mode" => What::DenormMode,
        "s_setprio" => What::SetPrio,
        "s_dcache_wb" => What::DcacheWb,
        _ if name.starts_with("s_movrel") => What::Movrel,
        _ if name.starts_with("s_cbranch_") => What::CBranch,
        _ if COUNTERS.iter().any(|c| c.instruction == name) => What::Wait,
        _ => What::Other,
    };
    let traits = row.traits;
    let set = |condition: bool, flag: u32| if condition { flag } else { 0 };
    let masks = ["v_cndmask", "v_addc_", "v_subb_", "v_subbrev_", "v_div_fmas", "v_dual_cndmask"];
    let bitwise = ["s_xor_b", "s_xnor_b", "v_xor_b", "v_xnor_b"];
    let integer = ["u16", "i16", "u32", "i32", "u64"];
    let subtracts =
        (name.starts_with("v_sub") || name.starts_with("s_sub")) && integer.iter().any(|t| name.ends_with(t));
    let flags = set(row.unit.is_transcendental(), flag::TRANS)
        | set(subtracts || bitwise.iter().any(|b| name.starts_with(b)), flag::CANCELS)
        | set(row.format == Format::Vopc, flag::VOPC)
        | set(name.starts_with("v_cmpx"), flag::CMPX)
        | set(name.starts_with("v_permlane"), flag::PERMLANE)
        | set(name == "v_readlane_b32", flag::READLANE)
        | set(name == "v_readfirstlane_b32", flag::READFIRST)
        | set(name == "v_writelane_b32", flag::WRITELANE)
        | set(name.starts_with("v_div_fmas"), flag::DIV_FMAS)
        | set(masks.iter().any(|m| name.starts_with(m)), flag::MASK_READ)
        | set(row.role == Role::Matrix, flag::WMMA)
        | set(name.starts_with("v_swmmac"), flag::SWMMAC)
        | set(traits.has(Trait::Store), flag::STORE)
        | set(traits.has(Trait::Atomic), flag::ATOMIC)
        | set(name.contains("addtid"), flag::ADDTID)
        | set(traits.has(Trait::ToLds) || traits.has(Trait::LdsAlways), flag::LDS)
        | set(traits.has(Trait::GdsAlways), flag::GDS)
        | set(traits.has(Trait::Bvh) || traits.has(Trait::Bvh64), flag::BVH)
        | set(traits.has(Trait::Msaa), flag::MSAA)
        | set(row.format == Format::Vinterp, flag::VINTERP)
        | set(name.starts_with("s_buffer_"), flag::BUFFER);
    let made = match name {
        "s_mov_b32" | "s_mov_b64" => Made::Move,
        "s_andn2_b32" | "s_andn2_b64" => Made::AndNot,
        "s_or_b32" | "s_or_b64" | "s_xor_b32" | "s_xor_b64" => Made::OrXor,
        _ => Made::Other,
    };
    Known { what, class, flags, made }
}

/// An instruction at a dword; its registers are appended to `touches`.
pub(super) fn of(inst: &Inst, at: u32, dwords: u8, gpu: &Gpu, touches: &mut Vec<Regs>) -> Op {
    let variant = inst.variant();
    let Known { what, class, mut flags, made } = known()[usize::from(inst.number())];
    let first = touches.len();
    let (mut late, mut data) = (false, 0);
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
        touches.push(Regs { reg: t.reg.0, dwords: t.dwords, reads, writes, any: false, field: t.field });
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
            (_, Operand::Inline(128)) if made == Made::Move => flags |= flag::ZERO,
            (_, Operand::Literal(_)) => flags |= flag::LITERAL,
            (SlotClass::ExpTarget, Operand::Imm(target)) => wait = target as u8,
            (_, Operand::Imm(value)) if class == Class::Salu || class == Class::Sopp => imm = value,
            _ => {}
        }
    }
    if inst.returns(gpu) {
        flags |= flag::RETURNS;
    }
    let late = match class {
        Class::Buffer => !late,
        Class::Image => mods.has(Mod::R128),
        _ => true,
    };
    if flags & flag::STORE != 0 && data > 2 && late {
        flags |= flag::LATE_DATA;
    }
    match class {
        Class::LdsDir if gpu.generation() == Gen::Gfx12 => wait = mods.get(Mod::WaitVaVdst) as u8,
        Class::LdsDir => wait = mods.get(Mod::WaitVdst) as u8,
        Class::Valu => wait = mods.get(Mod::WaitExp) as u8,
        _ => {}
    }
    Op {
        at,
        dwords,
        class,
        what,
        wait,
        wait_vsrc: mods.get(Mod::WaitVmVsrc) as u8,
        touch_count: (touches.len() - first).min(255) as u8,
        touch_first: first as u32,
        flags,
        imm,
        row: variant.row,
        exec: if flags & flag::WRITES_EXEC != 0 { exec_op(inst, made) } else { ExecOp::Other },
    }
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
fn exec_op(inst: &Inst, made: Made) -> ExecOp {
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
        Made::Move => source(first).map(ExecOp::Copy),
        Made::AndNot if is_exec(second) => source(first).map(ExecOp::Without),
        Made::OrXor if is_exec(first) => source(second).map(ExecOp::With),
        Made::OrXor if is_exec(second) => source(first).map(ExecOp::With),
        _ => None,
    };
    op.unwrap_or(ExecOp::Other)
}
