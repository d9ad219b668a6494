//! Operations on pairs of 16 bits, which are in one register. An operand is a word of which either lane reads either half, so lanes are swapped without
//! instructions, and floats are negated without them, too. Pairs that are put together from two registers need one instruction.

use super::{Selected, Selector};
use crate::ir::{Operand, RegClass, Source};
use crate::lower::pairs::PAIR;
use crate::machine;
use unwedge_base::entity::SecondaryMap;
use unwedge_isa::amdgcn::model::{Gfx, Mod, Type};
use unwedge_isa::amdgcn::{Mods, Opcode};
use unwedge_shader::ir::{Base, Function, Inst, Op, Payload, Traits, Type as ShaderType, Value};

const V1: RegClass = RegClass::V1;
/// The bits of both signs.
const SIGNS: u32 = 0x8000_8000;
/// What `v_perm_b32` takes as the halves of its second source, and of its first.
const PERM_SECOND: [u32; 2] = [0x0100, 0x0302];
const PERM_FIRST: [u32; 2] = [0x0504, 0x0706];

/// A value of 16 bits: a half of a word.
#[derive(Debug, Clone, Copy)]
struct HalfRead {
    word: Operand,
    upper: bool,
    negated: bool,
}

/// A source of an instruction on pairs: which half of a word each lane reads, and whether its sign changes.
#[derive(Debug, Clone, Copy)]
struct PairRead {
    word: Operand,
    upper: [bool; 2],
    negated: [bool; 2],
}

impl PairRead {
    fn whole(word: Operand) -> PairRead {
        PairRead { word, upper: [false, true], negated: [false; 2] }
    }
}

/// The instruction that computes an operation on both lanes of a pair.
pub(crate) fn packed_opcode(op: Op) -> Option<Opcode> {
    use Opcode as O;
    Some(match op {
        Op::IAdd => O::v_pk_add_u16,
        Op::ISub | Op::INeg => O::v_pk_sub_u16,
        Op::IMul => O::v_pk_mul_lo_u16,
        Op::IMin => O::v_pk_min_i16,
        Op::IMax => O::v_pk_max_i16,
        Op::UMin => O::v_pk_min_u16,
        Op::UMax => O::v_pk_max_u16,
        Op::IShl => O::v_pk_lshlrev_b16,
        Op::IShr => O::v_pk_ashrrev_i16,
        Op::UShr => O::v_pk_lshrrev_b16,
        // The sign of the second source changes.
        Op::FAdd | Op::FSub => O::v_pk_add_f16,
        Op::FMul => O::v_pk_mul_f16,
        Op::FFma => O::v_pk_fma_f16,
        Op::FMin => O::v_pk_min_f16,
        Op::FMax => O::v_pk_max_f16,
        _ => return None,
    })
}

impl Selector<'_> {
    /// Selects an operation on pairs.
    pub(super) fn pair_alu(&mut self, inst: Inst) -> Selected<()> {
        let func = self.func;
        let (op, result) = (func.op(inst), func.result(inst));
        let args = func.args(inst);
        let word = if let Some(opcode) = packed_opcode(op).filter(|opcode| self.has(*opcode)) {
            let ty = if op.has(Traits::FLOAT) { Type::PkF16 } else { Type::PkU16 };
            let mut sources: Vec<PairRead> = args.iter().map(|arg| self.pair_read(*arg, ty)).collect();
            match op {
                Op::INeg => {
                    sources.insert(0, PairRead { upper: [false; 2], ..PairRead::whole(Operand::c32(0)) })
                }
                Op::IShl | Op::IShr | Op::UShr => sources.swap(0, 1),
                Op::FSub => sources[1].negated = sources[1].negated.map(|negated| !negated),
                _ => {}
            }
            self.packed_inst(opcode, &sources)
        } else {
            match (op, args) {
                (Op::FNeg, [a]) => self.word_op(Opcode::v_xor_b32, Operand::c32(SIGNS), *a),
                (Op::FAbs, [a]) => self.word_op(Opcode::v_and_b32, Operand::c32(!SIGNS), *a),
                (Op::INot, [a]) => self.word_op(Opcode::v_xor_b32, Operand::c32(u32::MAX), *a),
                (Op::IAnd | Op::IOr | Op::IXor, [a, b]) => {
                    let opcode = match op {
                        Op::IAnd => Opcode::v_and_b32,
                        Op::IOr => Opcode::v_or_b32,
                        _ => Opcode::v_xor_b32,
                    };
                    let a = self.pair_word(*a);
                    self.word_op(opcode, a, *b)
                }
                _ => return Err(self.unsupported(inst, Some("of pairs"))),
            }
        };
        self.define_pair(result, word);
        Ok(())
    }

    fn word_op(&mut self, opcode: Opcode, first: Operand, second: Value) -> Operand {
        let second = self.pair_word(second);
        self.valu(opcode, V1, &[first, second])
    }

    /// A pair that is in a word.
    fn define_pair(&mut self, value: Value, word: Operand) {
        let upper = if self.split_pairs[value] { self.upper_half(word) } else { Operand::undef(V1) };
        self.pairs[value] = Some(word);
        self.define(value, &[word, upper]);
    }

    fn packed_inst(&mut self, opcode: Opcode, sources: &[PairRead]) -> Operand {
        let mut mods = Mods::default();
        let mut operands = Vec::new();
        for (at, source) in sources.iter().enumerate() {
            let flags = [
                (Mod::OpSel, source.upper[0]),
                (Mod::OpSelHi, source.upper[1]),
                (Mod::NegLo, source.negated[0]),
                (Mod::NegHi, source.negated[1]),
            ];
            for (id, set) in flags {
                mods.set(id, mods.get(id) | i32::from(set) << at);
            }
            operands.push(source.word);
        }
        self.valu_with(opcode, V1, &operands, mods)
    }

    /// The half of a word that is a lane of 16 bits, or the low bits of a shift count.
    fn half_read(&self, value: Value, float: bool) -> HalfRead {
        let func = self.func;
        let plain = HalfRead { word: self.scalar(value), upper: false, negated: false };
        let Some(inst) = func.def_inst(value) else { return plain };
        let arg = || func.args(inst).first().copied();
        match (func.op(inst), func.payload(inst), arg()) {
            (Op::Extract, Payload::Lane(lane @ 0..=1), Some(vector)) => match self.pairs[vector] {
                Some(word) => HalfRead { word, upper: lane == 1, negated: false },
                None => plain,
            },
            (Op::FNeg, _, Some(arg)) if float => {
                let half = self.half_read(arg, float);
                HalfRead { negated: !half.negated, ..half }
            }
            // The low bits are the same.
            (Op::U2U | Op::I2I, _, Some(arg)) if func.ty(arg).base == Base::B16 => self.half_read(arg, false),
            _ => plain,
        }
    }

    /// A pair as a source. Shift counts have 32 bits, of which 16 are read.
    fn pair_read(&mut self, value: Value, ty: Type) -> PairRead {
        let func = self.func;
        let float = ty.is_float();
        if let Some(inst) = func.def_inst(value) {
            match (func.op(inst), func.args(inst)) {
                (Op::FNeg, &[arg]) if float => {
                    let read = self.pair_read(arg, ty);
                    return PairRead { negated: read.negated.map(|negated| !negated), ..read };
                }
                (Op::Vec, &[low, high]) => {
                    let halves = [low, high].map(|lane| self.half_read(lane, float));
                    return self.joined_read(halves, ty);
                }
                _ => {}
            }
        }
        if let Some(word) = self.pairs[value] {
            return PairRead::whole(word);
        }
        let lanes = self.value(value).to_vec();
        let lane = |at: usize| HalfRead {
            word: lanes.get(at).copied().unwrap_or(Operand::undef(V1)),
            upper: false,
            negated: false,
        };
        self.joined_read([lane(0), lane(1)], ty)
    }

    fn joined_read(&mut self, halves: [HalfRead; 2], ty: Type) -> PairRead {
        let [low, high] = halves;
        let negated = halves.map(|half| half.negated);
        let upper = halves.map(|half| half.upper);
        if low.word.is_undef() {
            return PairRead { word: high.word, upper: [high.upper; 2], negated };
        }
        if high.word.is_undef() {
            return PairRead { word: low.word, upper: [low.upper; 2], negated };
        }
        match halves.map(|half| constant_half(&half)) {
            [Some(low), Some(high)] => PairRead { negated, ..self.constant_pair(low, high, ty) },
            [None, None] if low.word.source == high.word.source => {
                PairRead { word: low.word, upper, negated }
            }
            [None, None] => {
                let word = self.join_halves([(low.word, low.upper), (high.word, high.upper)]);
                PairRead { negated, ..PairRead::whole(word) }
            }
            constants => {
                let lanes = [0, 1].map(|at| match (constants[at], halves[at]) {
                    (Some(bits), _) => Operand::c32(bits),
                    (None, HalfRead { word, upper: true, .. }) => self.upper_half(word),
                    (None, HalfRead { word, .. }) => word,
                });
                PairRead { negated, ..PairRead::whole(self.join(&lanes, 16, true)) }
            }
        }
    }

    /// A pair of constants, without a literal where possible.
    fn constant_pair(&mut self, low: u32, high: u32, ty: Type) -> PairRead {
        let both = low | high << 16;
        let inline = |bits: u32, upper: [bool; 2]| {
            let fits = machine::inline(&self.program.gpu, ty, bits.into()).is_some();
            fits.then_some(PairRead { word: Operand::c32(bits), upper, negated: [false; 2] })
        };
        let same = (low == high)
            .then(|| inline(low, [false; 2]).or(inline(low as u16 as i16 as i32 as u32, [false; 2])));
        let read =
            same.flatten().or(inline(both, [false, true])).or(inline(both.rotate_left(16), [true, false]));
        read.unwrap_or_else(|| {
            let literal = Operand::c32(both);
            // Long encodings have literals from gfx10 on.
            let word = if self.since(Gfx::Gfx10) { literal } else { self.copy(RegClass::S1, literal) };
            PairRead::whole(word)
        })
    }

    /// A word of two halves, given by a word each and whether it is the upper half.
    pub(super) fn join_halves(&mut self, [low, high]: [(Operand, bool); 2]) -> Operand {
        let words = [low.0, high.0];
        let registers = words.iter().all(|word| word.as_const().is_none());
        let upper = [low.1, high.1];
        // It flushes denormals as the float mode says, and makes NaNs quiet from gfx12 on.
        if registers && self.keeps_halves && self.gfx < Gfx::Gfx12 {
            let mut mods = Mods::default();
            mods.set(Mod::OpSel, i32::from(upper[0]) | i32::from(upper[1]) << 1);
            return self.valu_with(Opcode::v_pack_b32_f16, V1, &words, mods);
        }
        let selector = PERM_SECOND[usize::from(upper[0])] | PERM_FIRST[usize::from(upper[1])] << 16;
        let selector = Operand::c32(selector);
        let selector =
            if self.since(Gfx::Gfx10) && registers { selector } else { self.copy(RegClass::S1, selector) };
        self.valu(Opcode::v_perm_b32, V1, &[words[1], words[0], selector])
    }

    /// The word of a pair.
    pub(super) fn pair_word(&mut self, value: Value) -> Operand {
        let read = self.pair_read(value, Type::B32);
        match (read.word.as_const(), read.upper) {
            (_, [false, true]) => read.word,
            (Some(bits), upper) => {
                let half = |upper: bool| if upper { bits as u32 >> 16 } else { bits as u32 & 0xffff };
                Operand::c32(half(upper[0]) | half(upper[1]) << 16)
            }
            (None, [low, high]) => self.join_halves([(read.word, low), (read.word, high)]),
        }
    }

    /// The upper half of a word; the upper bits of the result are undefined.
    fn upper_half(&mut self, word: Operand) -> Operand {
        match word.source {
            Source::Undef => word,
            Source::Const(bits) => Operand::c32(bits as u32 >> 16),
            _ => self.valu(Opcode::v_lshrrev_b32, V1, &[Operand::c32(16), word]),
        }
    }
}

/// Pairs whose upper lane is read alone, or as something other than a pair or a word.
pub(super) fn split_pairs(func: &Function) -> SecondaryMap<Value, bool> {
    let mut split = SecondaryMap::default();
    for inst in func.walk() {
        let results = func.results(inst);
        let whole = match (func.op(inst), func.payload(inst)) {
            (Op::Extract, Payload::Lane(lane)) => lane == 0,
            (Op::Bitcast, _) => func.ty(results[0]) == ShaderType::B32,
            (op, _) => op.has(Traits::ELEMENTWISE) && func.ty(results[0]) == PAIR,
        };
        for &arg in func.args(inst) {
            if !whole && func.ty(arg) == PAIR {
                split[arg] = true;
            }
        }
    }
    split
}

/// The bits of a half that is a constant.
fn constant_half(half: &HalfRead) -> Option<u32> {
    let bits = half.word.as_const()? as u32;
    Some(if half.upper { bits >> 16 } else { bits & 0xffff })
}
