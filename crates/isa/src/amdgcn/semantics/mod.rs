//! What instructions compute: one function per operation, bits in, bits out.
//!
//! A function knows the values of one lane and the [`Mode`]; it never knows registers, memory, or other lanes. Emulators
//! run it over the lanes of a wave, compilers fold constants with it. Modifiers of sources (`neg`, `abs`, `op_sel`, SDWA,
//! DPP) have been applied before, [`Mode::output`] applies those of the result. Facts: AMD's ISA manuals from
//! Southern Islands to RDNA 4, and where those err the notes of Mesa's compiler and LLVM's constant folder.

pub mod atomic;
mod compare;
mod convert;
mod div;
mod float;
mod integer;
pub mod interp;
mod lane;
pub mod matrix;
pub mod mfma;
mod minmax;
pub mod narrow;
mod packed;
mod scalar;
mod scalar_float;
pub mod scaled;
pub mod soft;
mod trans;
mod vector;
mod vector_float;

use super::inst::Inst;
use super::model::{Form, Format, Gfx, Mod, Trait, Type};
use super::opcode::{DualOp, Opcode, Operation};
use soft::Round;

pub use compare::is_class;
pub use lane::{LANES, Lane, Lanes, Spread};

/// The state that arithmetic depends on: rounding, denormals, and what the instruction says of its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// How values of 32 bits are rounded.
    pub round_32: Round,
    /// How values of 16 and 64 bits are rounded.
    pub round_16_64: Round,
    /// Denormal sources of 32 bits count.
    pub denorm_in_32: bool,
    /// Denormal results of 32 bits are kept.
    pub denorm_out_32: bool,
    /// Denormal sources of 16 and 64 bits count.
    pub denorm_in_16_64: bool,
    /// Denormal results of 16 and 64 bits are kept.
    pub denorm_out_16_64: bool,
    /// Signalling NaNs are made quiet, also by minimum and maximum.
    pub ieee: bool,
    /// Results of 16 bits that are too great become the greatest number; of infinite sources they stay infinite.
    pub saturate_16: bool,
    /// Clamping makes NaN zero.
    pub clamp_nan: bool,
    /// The instruction's `clamp`.
    pub clamp: bool,
    /// The instruction's `omod`: 1 doubles, 2 quadruples, 3 halves.
    pub omod: u8,
    /// The instruction's `neg_lo` where it says which integer sources are signed.
    pub signs: u8,
    /// The instruction's `bitop3`: a truth table of a bit of three sources.
    pub truth_table: u8,
    /// Whose arithmetic it is.
    pub generation: Gfx,
}

impl Mode {
    /// From the MODE register: 0-3 rounding, 4-7 denormals, 8 `DX10_CLAMP`, 9 `IEEE`,
    /// and from gfx9 on 23 `FP16_OVFL`.
    pub fn from_bits(bits: u32, generation: Gfx) -> Mode {
        let twelve = generation >= Gfx::Gfx12;
        Mode {
            round_32: Round::from_code(bits),
            round_16_64: Round::from_code(bits >> 2),
            denorm_in_32: bits & 0x10 != 0,
            denorm_out_32: bits & 0x20 != 0,
            denorm_in_16_64: bits & 0x40 != 0,
            denorm_out_16_64: bits & 0x80 != 0,
            // gfx12 has neither bit: it clamps NaN to zero and is never in IEEE mode.
            ieee: !twelve && bits & 0x200 != 0,
            clamp_nan: twelve || bits & 0x100 != 0,
            saturate_16: generation >= Gfx::Gfx9 && bits & 1 << 23 != 0,
            clamp: false,
            omod: 0,
            signs: 0,
            truth_table: 0,
            generation,
        }
    }

    /// How a graphics driver starts waves: nearest even, denormals of 32 bits flushed, NaN clamped to zero, not IEEE.
    pub fn graphics(generation: Gfx) -> Mode {
        Mode::from_bits(0x1c0, generation)
    }

    /// With the result's modifiers of an instruction.
    pub fn of(self, inst: &Inst) -> Mode {
        Mode {
            clamp: inst.mods.has(Mod::Clamp),
            omod: inst.mods.get(Mod::Omod) as u8,
            signs: inst.mods.get(Mod::NegLo) as u8,
            truth_table: inst.mods.get(Mod::Bitop3) as u8,
            ..self
        }
    }

    /// Applies `omod` and `clamp` to a floating-point result of a type. Output modifiers do nothing in IEEE mode, or where
    /// denormal results are kept.
    pub fn output(&self, ty: Type, bits: u64) -> u64 {
        match ty {
            Type::F32 => float::output_f32(self, bits as u32).into(),
            Type::F16 => float::output(&float::Width::F16, self, bits),
            Type::PkF32 => {
                let half = |bits: u32| u64::from(float::output_f32(self, bits));
                half(bits as u32) | half((bits >> 32) as u32) << 32
            }
            Type::F64 => float::output(&float::Width::F64, self, bits),
            Type::PkF16 => {
                let half = |bits: u64| float::output(&float::Width::F16, self, bits & 0xffff);
                half(bits) | half(bits >> 16) << 16
            }
            _ => bits,
        }
    }
}

/// What a scalar operation is given.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScalarIn {
    /// First source.
    pub a: u64,
    /// Second source.
    pub b: u64,
    /// Third source, or what the destination held.
    pub d: u64,
    /// The condition code.
    pub scc: bool,
}

/// Result and condition code. Whether an instruction writes the code is said by its row.
pub type ScalarOut = (u64, bool);

/// How an operation is computed.
#[derive(Debug, Clone, Copy)]
pub enum Op {
    /// Lane by lane, sources and result in 32 bits.
    Lane(Lane),
    /// Lane by lane with values of up to 64 bits.
    Wide(fn(&Mode, u64, u64, u64) -> u64),
    /// As [`Op::Wide`]: a shift of one of the first two sources.
    Shift {
        /// Which of them says how far.
        amount: u8,
        /// The operation.
        f: fn(&Mode, u64, u64, u64) -> u64,
    },
    /// Sources, and a bit per lane: result and a bit per lane.
    Carry(fn(&Mode, u32, u32, bool) -> (u32, bool)),
    /// As [`Op::Carry`], with three sources of up to 64 bits.
    WideCarry(fn(&Mode, u64, u64, u64) -> (u64, bool)),
    /// A bit per lane.
    Compare(fn(&Mode, u64, u64) -> bool),
    /// The second source where the lane's bit is set, else the first.
    Select,
    /// `v_div_fmas`: the lane's bit asks for a scaled result.
    DivFmas(fn(&Mode, u64, u64, u64, bool) -> u64),
    /// Result of 128 bits: sums of absolute differences.
    Quad(fn(&Mode, u64, u32, [u32; 4]) -> [u32; 4]),
    /// A scalar operation.
    Scalar(fn(&Mode, ScalarIn) -> ScalarOut),
    /// As [`Op::Scalar`], on `exec`: `(source, exec)` to the new `exec`; the destination gets the old one.
    SaveExec(fn(u64, u64) -> u64),
    /// As [`Op::SaveExec`], but the destination gets the new one.
    WriteExec(fn(u64, u64) -> u64),
}

/// The operation of an instruction that computes; `None`: it moves data between lanes, accesses memory or steers the
/// program, or no semantics are known. For the halves of a dual instruction ask [`of_opcode`].
pub fn of(inst: &Inst) -> Option<Op> {
    of_operation(inst.row().operation)
}

/// The operation of an opcode.
pub fn of_opcode(opcode: Opcode) -> Option<Op> {
    of_operation(opcode.row().operation)
}

/// As [`of`]. A row without its arm in the table of its kind does not compile.
fn of_operation(operation: Operation) -> Option<Op> {
    Some(match operation {
        Operation::Scalar(op) => scalar::of(op),
        Operation::ScalarFloat(op) => scalar_float::of(op),
        Operation::Integer(op) => vector::of(op),
        Operation::Float(op) => vector_float::float(op),
        Operation::Minmax(op) => vector_float::minmax(op),
        Operation::Convert(op) => vector_float::convert(op),
        Operation::Transcendental(op) => vector_float::transcendental(op),
        Operation::Packed(op) => packed::of(op),
        Operation::Compare(relation, ty) => return compare::of(relation, ty),
        Operation::Dual(op) => return of_opcode(dual(op)),
        Operation::Lanes(_)
        | Operation::Matrix(_)
        | Operation::Mfma(_)
        | Operation::Scaled(_)
        | Operation::Interp(_)
        | Operation::Control(_)
        | Operation::Atomic(_)
        | Operation::Memory
        | Operation::Export
        | Operation::Idle
        | Operation::Unknown => return None,
    })
}

/// The row that half of a dual instruction does the same as.
pub fn dual(op: DualOp) -> Opcode {
    match op {
        DualOp::v_dual_fmac_f32 => Opcode::v_fmac_f32,
        DualOp::v_dual_fmaak_f32 => Opcode::v_fmaak_f32,
        DualOp::v_dual_fmamk_f32 => Opcode::v_fmamk_f32,
        DualOp::v_dual_mul_f32 => Opcode::v_mul_f32,
        DualOp::v_dual_add_f32 => Opcode::v_add_f32,
        DualOp::v_dual_sub_f32 => Opcode::v_sub_f32,
        DualOp::v_dual_subrev_f32 => Opcode::v_subrev_f32,
        DualOp::v_dual_mul_dx9_zero_f32 => Opcode::v_mul_legacy_f32,
        DualOp::v_dual_mov_b32 => Opcode::v_mov_b32,
        DualOp::v_dual_cndmask_b32 => Opcode::v_cndmask_b32,
        DualOp::v_dual_max_f32 => Opcode::v_max_f32,
        DualOp::v_dual_min_f32 => Opcode::v_min_f32,
        DualOp::v_dual_dot2acc_f32_f16 => Opcode::v_dot2c_f32_f16,
        DualOp::v_dual_dot2acc_f32_bf16 => Opcode::v_dot2c_f32_bf16,
        DualOp::v_dual_add_nc_u32 => Opcode::v_add_u32,
        DualOp::v_dual_lshlrev_b32 => Opcode::v_lshlrev_b32,
        DualOp::v_dual_and_b32 => Opcode::v_and_b32,
    }
}

/// Computes one lane: sources after their modifiers, in the order they are written, an added destination last. `bit` is
/// the lane's bit of a mask that is read (a carry, a selection, `scc`). Gives the result with output modifiers, and the
/// bit that is written.
pub fn fold(inst: &Inst, mode: &Mode, sources: [u64; 3], bit: bool) -> Option<(u64, bool)> {
    let mode = mode.of(inst);
    let [a, b, c] = sources;
    let ty = inst.written().find(|(slot, _)| slot.access.writes()).map_or(Type::None, |(slot, _)| slot.ty);
    let out = |value: u64| if scalar_result(inst) { value } else { mode.output(ty, value) };
    Some(match of(inst)? {
        Op::Lane(lane) => (out((lane.one)(&mode, a as u32, b as u32, c as u32).into()), bit),
        Op::Wide(f) | Op::Shift { f, .. } => (out(f(&mode, a, b, c)), bit),
        Op::Carry(f) => {
            let (value, bit) = f(&mode, a as u32, b as u32, bit);
            (value.into(), bit)
        }
        Op::WideCarry(f) => f(&mode, a, b, c),
        Op::Compare(f) => (0, f(&mode, a, b)),
        Op::Select => (if bit { b } else { a }, bit),
        Op::DivFmas(f) => (out(f(&mode, a, b, c, bit)), bit),
        Op::Scalar(f) => f(&mode, ScalarIn { a, b, d: c, scc: bit }),
        Op::SaveExec(f) | Op::WriteExec(f) => {
            let value = f(a, b);
            (value, value != 0)
        }
        Op::Quad(_) => return None,
    })
}

/// Scalar operations have no modifiers.
fn scalar_result(inst: &Inst) -> bool {
    matches!(inst.row().format, Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk)
}

/// Whether a result of 16 bits leaves the upper half of its register as it was; else that becomes zero. Without a choice
/// of halves this is so from gfx10 on; gfx9 keeps it for the instructions it added.
pub fn keeps_upper_half(inst: &Inst, generation: Gfx) -> bool {
    match generation {
        _ if generation >= Gfx::Gfx10 => true,
        _ if generation.is_gfx9() => {
            let row = inst.row();
            row.format == Format::Vop3p
                || (row.format == Format::Vop3
                    && !row.traits.has(Trait::ZeroesHigh)
                    && inst.form() == Form::Native)
        }
        _ => false,
    }
}
