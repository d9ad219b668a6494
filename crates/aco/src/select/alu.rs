//! Elementwise operations on integers and booleans.

use super::{Selected, Selector};
use crate::ir::{Operand, OperandList, RegClass};
use crate::lower::pairs::PAIR;
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::Gfx;
use unwedge_shader::ir::{Base, Inst, Op, Payload, Space, Traits, Value, ValueDef};

/// An operation that one instruction does, scalar or vector. The vector one may take its first two operands in reverse order.
struct Direct {
    scalar: Opcode,
    vector: Opcode,
    reversed: bool,
}

fn direct(op: Op) -> Option<Direct> {
    use Opcode as O;
    let (scalar, vector, reversed) = match op {
        Op::IMul => (O::s_mul_i32, O::v_mul_lo_u32, false),
        Op::IMulHigh => (O::s_mul_hi_i32, O::v_mul_hi_i32, false),
        Op::UMulHigh => (O::s_mul_hi_u32, O::v_mul_hi_u32, false),
        Op::IMin => (O::s_min_i32, O::v_min_i32, false),
        Op::IMax => (O::s_max_i32, O::v_max_i32, false),
        Op::UMin => (O::s_min_u32, O::v_min_u32, false),
        Op::UMax => (O::s_max_u32, O::v_max_u32, false),
        Op::IAnd => (O::s_and_b32, O::v_and_b32, false),
        Op::IOr => (O::s_or_b32, O::v_or_b32, false),
        Op::IXor => (O::s_xor_b32, O::v_xor_b32, false),
        Op::INot => (O::s_not_b32, O::v_not_b32, false),
        Op::IShl => (O::s_lshl_b32, O::v_lshlrev_b32, true),
        Op::IShr => (O::s_ashr_i32, O::v_ashrrev_i32, true),
        Op::UShr => (O::s_lshr_b32, O::v_lshrrev_b32, true),
        Op::BitReverse => (O::s_brev_b32, O::v_bfrev_b32, false),
        Op::FindLsb => (O::s_ff1_i32_b32, O::v_ffbl_b32, false),
        _ => return None,
    };
    Some(Direct { scalar, vector, reversed })
}

fn compare(op: Op) -> Option<(Opcode, Opcode)> {
    use Opcode as O;
    Some(match op {
        Op::IEq => (O::s_cmp_eq_u32, O::v_cmp_eq_u32),
        Op::INe => (O::s_cmp_lg_u32, O::v_cmp_lg_u32),
        Op::ILt => (O::s_cmp_lt_i32, O::v_cmp_lt_i32),
        Op::IGe => (O::s_cmp_ge_i32, O::v_cmp_ge_i32),
        Op::ULt => (O::s_cmp_lt_u32, O::v_cmp_lt_u32),
        Op::UGe => (O::s_cmp_ge_u32, O::v_cmp_ge_u32),
        _ => return None,
    })
}

/// The comparison of numbers of 64 bits: scalar ones only test equality.
fn compare64(op: Op) -> Option<(Option<Opcode>, Opcode)> {
    use Opcode as O;
    Some(match op {
        Op::IEq => (Some(O::s_cmp_eq_u64), O::v_cmp_eq_u64),
        Op::INe => (Some(O::s_cmp_lg_u64), O::v_cmp_lg_u64),
        Op::ILt => (None, O::v_cmp_lt_i64),
        Op::IGe => (None, O::v_cmp_ge_i64),
        Op::ULt => (None, O::v_cmp_lt_u64),
        Op::UGe => (None, O::v_cmp_ge_u64),
        _ => return None,
    })
}

/// Whether a GPU compares numbers of 64 bits with a scalar instruction.
pub(super) fn compares_scalar64(op: Op, gfx: Gfx) -> bool {
    gfx >= Gfx::Gfx8 && compare64(op).is_some_and(|(scalar, _)| scalar.is_some())
}

impl Selector<'_> {
    /// Selects an elementwise operation on scalars.
    pub(super) fn alu(&mut self, inst: Inst) -> Selected<()> {
        let func = self.func;
        let (op, result) = (func.op(inst), func.result(inst));
        if func.ty(result) == PAIR {
            return self.pair_alu(inst);
        }
        if func.ty(result).lanes != 1 {
            return Err(self.unsupported(inst, Some("vectors")));
        }
        if op == Op::Select {
            return self.select_value(inst);
        }
        if op.has(Traits::FLOAT) || matches!(op, Op::FNeg | Op::FAbs) {
            return self.float(inst);
        }
        let operands = func.args(inst).first().map_or(Base::B32, |arg| func.ty(*arg).base);
        let value = match (func.ty(result).base, operands) {
            (Base::B1, Base::B1) => self.boolean(inst)?,
            (Base::B1, Base::B32 | Base::B64) => self.comparison(inst)?,
            (_, Base::B32) if !matches!(op, Op::U2U | Op::I2I) => {
                if self.banks.is_vector(result) {
                    self.vector_alu(inst)?
                } else {
                    self.scalar_alu(inst)?
                }
            }
            _ if matches!(op, Op::U2U | Op::I2I) => self.resize(inst)?,
            (Base::B64, _) if matches!(op, Op::IShl | Op::IShr | Op::UShr) => self.wide_shift(inst),
            _ => return Err(self.unsupported(inst, None)),
        };
        self.define(result, &[value]);
        Ok(())
    }

    /// A shift of 64 bits.
    fn wide_shift(&mut self, inst: Inst) -> Operand {
        use Opcode as O;
        let [value, count] = self.scalars(inst);
        let (scalar, older, vector) = match self.func.op(inst) {
            Op::IShl => (O::s_lshl_b64, O::v_lshl_b64, O::v_lshlrev_b64),
            Op::IShr => (O::s_ashr_i64, O::v_ashr_i64, O::v_ashrrev_i64),
            _ => (O::s_lshr_b64, O::v_lshr_b64, O::v_lshrrev_b64),
        };
        if !self.banks.is_vector(self.func.result(inst)) {
            return self.salu(scalar, RegClass::S2, &[value, count]);
        }
        match self.has(vector) {
            true => self.valu(vector, RegClass::V2, &[count, value]),
            false => self.valu(older, RegClass::V2, &[value, count]),
        }
    }

    /// Logic of booleans.
    fn boolean(&mut self, inst: Inst) -> Selected<Operand> {
        use Opcode as O;
        let func = self.func;
        let op = func.op(inst);
        let result = func.result(inst);
        let args = func.args(inst);
        if !self.banks.is_vector(result) {
            let bits: OperandList = args.iter().map(|arg| self.bit_of(*arg)).collect();
            return Ok(match op {
                Op::IAnd => self.salu(O::s_and_b32, RegClass::S1, &bits),
                Op::IOr => self.salu(O::s_or_b32, RegClass::S1, &bits),
                Op::IXor | Op::INe => self.salu(O::s_xor_b32, RegClass::S1, &bits),
                Op::INot => self.salu(O::s_xor_b32, RegClass::S1, &[bits[0], Operand::c32(1)]),
                Op::IEq => self.salu_compare(O::s_cmp_eq_u32, &bits),
                _ => return Err(self.unsupported(inst, None)),
            });
        }
        let masks: OperandList = args.iter().map(|arg| self.mask_of(*arg)).collect();
        let opcode = match op {
            Op::IAnd => self.sized(O::s_and_b32, O::s_and_b64),
            Op::IOr => self.sized(O::s_or_b32, O::s_or_b64),
            Op::IXor | Op::INe => self.sized(O::s_xor_b32, O::s_xor_b64),
            Op::IEq => self.sized(O::s_xnor_b32, O::s_xnor_b64),
            Op::INot => self.sized(O::s_not_b32, O::s_not_b64),
            _ => return Err(self.unsupported(inst, None)),
        };
        Ok(self.salu(opcode, self.program.lane_mask(), &masks))
    }

    fn comparison(&mut self, inst: Inst) -> Selected<Operand> {
        let func = self.func;
        let op = func.op(inst);
        let opcodes = match func.ty(func.args(inst)[0]).base {
            Base::B64 => compare64(op),
            _ => compare(op).map(|(scalar, vector)| (Some(scalar), vector)),
        };
        let Some((scalar, vector)) = opcodes else { return Err(self.unsupported(inst, None)) };
        let operands: [Operand; 2] = self.scalars(inst);
        Ok(match scalar.filter(|_| !self.banks.is_vector(func.result(inst))) {
            None => self.valu_compare(vector, &operands),
            Some(scalar) => self.salu_compare(scalar, &operands),
        })
    }

    fn scalar_alu(&mut self, inst: Inst) -> Selected<Operand> {
        use Opcode as O;
        let op = self.func.op(inst);
        let s1 = RegClass::S1;
        if let Some(direct) = direct(op) {
            let operands: OperandList = self.func.args(inst).iter().map(|arg| self.scalar(*arg)).collect();
            return Ok(self.salu(direct.scalar, s1, &operands));
        }
        let args: OperandList = self.func.args(inst).iter().map(|arg| self.scalar(*arg)).collect();
        let zero = Operand::c32(0);
        Ok(match (op, &args[..]) {
            (Op::IAdd, _) => self.salu(O::s_add_u32, s1, &args),
            (Op::ISub, _) => self.salu(O::s_sub_u32, s1, &args),
            (Op::UAddCarry, _) => self.salu_scc(O::s_add_u32, s1, &args)[1],
            (Op::USubBorrow, _) => self.salu_scc(O::s_sub_u32, s1, &args)[1],
            (Op::INeg, [a]) => self.salu(O::s_sub_u32, s1, &[zero, *a]),
            (Op::IAbs, _) => self.salu(O::s_abs_i32, s1, &args),
            (Op::BitCount, _) => self.salu(O::s_bcnt1_i32_b32, s1, &args),
            (Op::FindUMsb | Op::FindIMsb, [a]) => {
                let opcode = if op == Op::FindUMsb { O::s_flbit_i32_b32 } else { O::s_flbit_i32 };
                let leading = self.salu(opcode, s1, &[*a]);
                // No bit is found as -1, which becomes 32.
                let leading = self.salu(O::s_min_u32, s1, &[leading, Operand::c32(32)]);
                self.salu(O::s_sub_u32, s1, &[Operand::c32(31), leading])
            }
            (Op::BitfieldInsert, [base, insert, offset, count]) => {
                let mask = self.scalar_field_mask(*offset, *count);
                let insert = self.salu(O::s_lshl_b32, s1, &[*insert, *offset]);
                let insert = self.salu(O::s_and_b32, s1, &[insert, mask]);
                let base = self.salu(O::s_andn2_b32, s1, &[*base, mask]);
                self.salu(O::s_or_b32, s1, &[base, insert])
            }
            (Op::UBitfieldExtract | Op::IBitfieldExtract, [base, offset, count]) => {
                let opcode = if op == Op::UBitfieldExtract { O::s_bfe_u32 } else { O::s_bfe_i32 };
                let field = match (offset.as_const(), count.as_const()) {
                    (Some(offset), Some(count)) => {
                        Operand::c32((offset as u32 & 31) | (count as u32 & 63) << 16)
                    }
                    _ => {
                        // An offset of 32 goes with a count of 0, which gives 0 whatever the offset.
                        let offset = self.salu(O::s_and_b32, s1, &[*offset, Operand::c32(31)]);
                        let count = self.salu(O::s_lshl_b32, s1, &[*count, Operand::c32(16)]);
                        self.salu(O::s_or_b32, s1, &[offset, count])
                    }
                };
                self.salu(opcode, s1, &[*base, field])
            }
            _ => return Err(self.unsupported(inst, None)),
        })
    }

    /// A mask with ones in the bits of a field.
    fn scalar_field_mask(&mut self, offset: Operand, count: Operand) -> Operand {
        use Opcode as O;
        let s1 = RegClass::S1;
        if let (Some(offset), Some(count)) = (offset.as_const(), count.as_const()) {
            return Operand::c32((((1u64 << count.min(32)) - 1) << (offset & 31)) as u32);
        }
        let mask = self.salu(O::s_bfm_b32, s1, &[count, offset]);
        if count.as_const().is_some_and(|count| count < 32) {
            return mask;
        }
        // The instruction takes counts modulo 32.
        let whole = self.salu_compare(O::s_cmp_eq_u32, &[count, Operand::c32(32)]);
        self.hw(O::s_cselect_b32, s1, &[Operand::c32(u32::MAX), mask, whole])
    }

    fn vector_alu(&mut self, inst: Inst) -> Selected<Operand> {
        use Opcode as O;
        let op = self.func.op(inst);
        let v1 = RegClass::V1;
        let args: OperandList = self.func.args(inst).iter().map(|arg| self.scalar(*arg)).collect();
        if let Some(direct) = direct(op) {
            let mut operands = args;
            if direct.reversed {
                operands.swap(0, 1);
            } else if operands.len() == 2 {
                self.order(&mut operands);
            }
            return Ok(self.valu(direct.vector, v1, &operands));
        }
        let zero = Operand::c32(0);
        let one = Operand::c32(1);
        Ok(match (op, &args[..]) {
            (Op::IAdd, [a, b]) => self.vector_add(*a, *b),
            (Op::ISub, [a, b]) => self.vector_sub(*a, *b),
            (Op::UAddCarry | Op::USubBorrow, _) => {
                let opcode = if op == Op::UAddCarry { O::v_add_co_u32 } else { O::v_sub_co_u32 };
                let mut operands = args.clone();
                if op == Op::UAddCarry {
                    // As in the sum, which the same instruction makes.
                    self.order(&mut operands);
                }
                let [_, carry] = self.valu_carry(opcode, &operands);
                self.valu(O::v_cndmask_b32, v1, &[zero, one, carry])
            }
            (Op::INeg, [a]) => self.vector_sub(zero, *a),
            (Op::IAbs, [a]) => {
                let negated = self.vector_sub(zero, *a);
                self.valu(O::v_max_i32, v1, &[*a, negated])
            }
            (Op::BitCount, [a]) => self.valu(O::v_bcnt_u32_b32, v1, &[*a, zero]),
            (Op::FindUMsb | Op::FindIMsb, [a]) => {
                let opcode = if op == Op::FindUMsb { O::v_ffbh_u32 } else { O::v_ffbh_i32 };
                let leading = self.valu(opcode, v1, &[*a]);
                // No bit is found as -1, which becomes 32.
                let leading = self.valu(O::v_min_u32, v1, &[Operand::c32(32), leading]);
                self.vector_sub(Operand::c32(31), leading)
            }
            (Op::BitfieldInsert, [base, insert, offset, count]) => {
                let mask = self.vector_field_mask(*offset, *count);
                let insert = self.valu(O::v_lshlrev_b32, v1, &[*offset, *insert]);
                self.valu(O::v_bfi_b32, v1, &[mask, insert, *base])
            }
            (Op::UBitfieldExtract | Op::IBitfieldExtract, [base, offset, count]) => {
                let opcode = if op == Op::UBitfieldExtract { O::v_bfe_u32 } else { O::v_bfe_i32 };
                let field = self.valu(opcode, v1, &[*base, *offset, *count]);
                match count.as_const() {
                    Some(32) => *base,
                    Some(_) => field,
                    // The instruction takes counts modulo 32.
                    None => {
                        let whole = self.valu_compare(O::v_cmp_eq_u32, &[Operand::c32(32), *count]);
                        self.valu(O::v_cndmask_b32, v1, &[field, *base, whole])
                    }
                }
            }
            _ => return Err(self.unsupported(inst, None)),
        })
    }

    fn vector_field_mask(&mut self, offset: Operand, count: Operand) -> Operand {
        use Opcode as O;
        if let (Some(offset), Some(count)) = (offset.as_const(), count.as_const()) {
            return Operand::c32((((1u64 << count.min(32)) - 1) << (offset & 31)) as u32);
        }
        let mask = self.valu(O::v_bfm_b32, RegClass::V1, &[count, offset]);
        if count.as_const().is_some_and(|count| count < 32) {
            return mask;
        }
        let whole = self.valu_compare(O::v_cmp_eq_u32, &[Operand::c32(32), count]);
        self.valu(O::v_cndmask_b32, RegClass::V1, &[mask, Operand::c32(u32::MAX), whole])
    }

    /// Puts an operand that is not in a vector register first, as short encodings require.
    pub(super) fn order(&self, operands: &mut [Operand]) {
        if let [first, second, ..] = operands
            && first.class.is_vgpr()
            && !second.class.is_vgpr()
        {
            std::mem::swap(first, second);
        }
    }

    /// A sum of 32 bits in vector registers.
    pub(super) fn vector_add(&mut self, a: Operand, b: Operand) -> Operand {
        let mut operands = [a, b];
        self.order(&mut operands);
        if self.has(Opcode::v_add_u32) {
            self.valu(Opcode::v_add_u32, RegClass::V1, &operands)
        } else {
            self.valu_carry(Opcode::v_add_co_u32, &operands)[0]
        }
    }

    /// A difference of 32 bits in vector registers.
    pub(super) fn vector_sub(&mut self, a: Operand, b: Operand) -> Operand {
        if self.has(Opcode::v_sub_u32) {
            self.valu(Opcode::v_sub_u32, RegClass::V1, &[a, b])
        } else {
            self.valu_carry(Opcode::v_sub_co_u32, &[a, b])[0]
        }
    }

    /// Selects one of two values by a boolean.
    fn select_value(&mut self, inst: Inst) -> Selected<()> {
        use Opcode as O;
        let func = self.func;
        let (result, args) = (func.result(inst), func.args(inst));
        let (condition, yes, no) = (args[0], args[1], args[2]);
        let ty = func.ty(result);
        let class = self.class(result);
        if ty.lanes != 1 {
            return Err(self.unsupported(inst, Some("vectors")));
        }
        if ty.base == Base::B1 && self.banks.is_vector(result) {
            let (condition, yes, no) = (self.mask_of(condition), self.mask_of(yes), self.mask_of(no));
            let taken = self.salu(self.sized(O::s_and_b32, O::s_and_b64), class, &[yes, condition]);
            let other = self.salu(self.sized(O::s_andn2_b32, O::s_andn2_b64), class, &[no, condition]);
            let value = self.salu(self.sized(O::s_or_b32, O::s_or_b64), class, &[taken, other]);
            self.define(result, &[value]);
            return Ok(());
        }
        let (yes, no) = if ty.base == Base::B1 {
            (self.bit_of(yes), self.bit_of(no))
        } else {
            (self.scalar(yes), self.scalar(no))
        };
        let value = if class.is_sgpr() {
            let bit = self.bit_of(condition);
            match class.dwords() {
                1 | 2 => {
                    let opcode = if class.dwords() == 1 { O::s_cselect_b32 } else { O::s_cselect_b64 };
                    self.salu(opcode, class, &[yes, no, bit])
                }
                _ => {
                    let (yes, no) = (self.in_sgpr(yes), self.in_sgpr(no));
                    let (yes, no) = (self.split(yes, 2), self.split(no, 2));
                    let parts: Vec<Operand> = yes
                        .into_iter()
                        .zip(no)
                        .map(|(yes, no)| self.salu(O::s_cselect_b64, RegClass::S2, &[yes, no, bit]))
                        .collect();
                    self.create(class, &parts)
                }
            }
        } else {
            let mask = self.mask_of(condition);
            if class.dwords() == 2 {
                let (yes, no) = (self.words(yes), self.words(no));
                let parts = [0, 1].map(|at| self.choose(mask, yes[at], no[at]));
                self.create(class, &parts)
            } else {
                self.choose(mask, yes, no)
            }
        };
        self.define(result, &[value]);
        Ok(())
    }

    /// A lane of a vector by number: a tree of selects by the bits of the number, the lowest first.
    pub(super) fn extract_dyn(&mut self, inst: Inst) -> Selected<()> {
        use Opcode as O;
        let func = self.func;
        let (result, args) = (func.result(inst), func.args(inst));
        let class = self.class(result);
        if func.ty(result).base == Base::B1 || class.dwords() != 1 {
            return Err(self.unsupported(inst, Some("of this type")));
        }
        let (mut lanes, number) = (self.value(args[0]).to_vec(), self.scalar(args[1]));
        let mut bit = 1u32;
        while lanes.len() > 1 {
            let pairs: Vec<[Operand; 2]> =
                lanes.chunks(2).map(|pair| [pair[0], pair.get(1).copied().unwrap_or(pair[0])]).collect();
            let zero = Operand::c32(0);
            lanes = if class.is_sgpr() {
                let [_, odd] = self.salu_scc(O::s_and_b32, RegClass::S1, &[number, Operand::c32(bit)]);
                let choose =
                    |[even, other]: [Operand; 2]| self.salu(O::s_cselect_b32, class, &[other, even, odd]);
                pairs.into_iter().map(choose).collect()
            } else {
                let number = self.in_vgpr(number);
                let masked = self.valu(O::v_and_b32, RegClass::V1, &[Operand::c32(bit), number]);
                let odd = self.valu_compare(O::v_cmp_lg_u32, &[zero, masked]);
                let choose = |[even, other]: [Operand; 2]| self.choose(odd, other, even);
                pairs.into_iter().map(choose).collect()
            };
            bit <<= 1;
        }
        self.define(result, &lanes);
        Ok(())
    }

    /// Selects one of two words by a lane mask.
    pub(super) fn choose(&mut self, mask: Operand, yes: Operand, no: Operand) -> Operand {
        if mask.as_const().is_some() || mask.is_undef() {
            let yes_always = mask.as_const().is_some_and(|bits| bits != 0);
            return if yes_always { yes } else { no };
        }
        self.valu(Opcode::v_cndmask_b32, RegClass::V1, &[no, yes, mask])
    }

    /// Whether the upper bits of a register with a narrow value are zero: vector loads extend what they load.
    fn is_extended(&self, value: Value) -> bool {
        let func = self.func;
        let ValueDef::Result(inst, _) = func.def(value) else { return false };
        let inst = match func.op(inst) {
            Op::Extract => match func.def(func.args(inst)[0]) {
                ValueDef::Result(vector, _) => vector,
                _ => return false,
            },
            _ => inst,
        };
        let loads = matches!(
            func.payload(inst),
            Payload::Mem(mem) if matches!(mem.space, Space::Shared | Space::Storage | Space::Uniform)
        );
        func.op(inst) == Op::Load && loads
    }

    /// An integer in another width.
    fn resize(&mut self, inst: Inst) -> Selected<Operand> {
        use Opcode as O;
        let func = self.func;
        let (from, result) = (func.args(inst)[0], func.result(inst));
        let (bits, to) = (func.ty(from).base.bits(), func.ty(result).base.bits());
        let signed = func.op(inst) == Op::I2I;
        let vector = self.banks.is_vector(result);
        let operand = self.scalar(from);
        if bits == 64 {
            let [low, _] = self.words(operand);
            return if to <= 32 { Ok(low) } else { Ok(operand) };
        }
        let narrow = if bits < to.min(32) && (signed || !self.is_extended(from)) {
            let count = Operand::c32(bits);
            let zero = Operand::c32(0);
            match (vector, signed) {
                (true, true) => self.valu(O::v_bfe_i32, RegClass::V1, &[operand, zero, count]),
                (true, false) => self.valu(O::v_bfe_u32, RegClass::V1, &[operand, zero, count]),
                (false, true) => self.salu(O::s_bfe_i32, RegClass::S1, &[operand, Operand::c32(bits << 16)]),
                (false, false) => self.salu(O::s_bfe_u32, RegClass::S1, &[operand, Operand::c32(bits << 16)]),
            }
        } else {
            operand
        };
        if to < 64 {
            return Ok(narrow);
        }
        let high = match (signed, vector) {
            (false, _) => Operand::c32(0),
            (true, true) => self.valu(O::v_ashrrev_i32, RegClass::V1, &[Operand::c32(31), narrow]),
            (true, false) => self.salu(O::s_ashr_i32, RegClass::S1, &[narrow, Operand::c32(31)]),
        };
        Ok(self.create(self.class(result), &[narrow, high]))
    }

    /// Whether the GPU is at least of a generation.
    pub(super) fn since(&self, gfx: Gfx) -> bool {
        self.gfx >= gfx
    }
}
