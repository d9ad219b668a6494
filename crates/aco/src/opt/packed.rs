//! Products and sums of pairs of 16 bits that become one instruction. Each lane of the sum may read either lane of the product.

use super::combine::Combiner;
use crate::ir::{Inst, Op};
use unwedge_isa::amdgcn::model::Mod;
use unwedge_isa::amdgcn::{Mods, Opcode};

/// A sum, the product that it reads, and one instruction for both; whether that rounds less often.
const ROWS: [(Opcode, Opcode, Opcode, bool); 2] = [
    (Opcode::v_pk_add_f16, Opcode::v_pk_mul_f16, Opcode::v_pk_fma_f16, true),
    (Opcode::v_pk_add_u16, Opcode::v_pk_mul_lo_u16, Opcode::v_pk_mad_u16, false),
];

/// Modifiers of both lanes: which half they read, and whether its sign changes.
const LANES: [[Mod; 2]; 2] = [[Mod::OpSel, Mod::OpSelHi], [Mod::NegLo, Mod::NegHi]];

/// What a modifier says of a source, for both lanes.
fn of_source(mods: &Mods, ids: [Mod; 2], at: usize) -> [bool; 2] {
    ids.map(|id| mods.get(id) >> at & 1 != 0)
}

/// Whether modifiers are those of lanes only.
fn only_lanes(mods: &Mods) -> bool {
    let mut rest = *mods;
    LANES.iter().flatten().for_each(|id| rest.set(*id, 0));
    rest == Mods::default()
}

impl Combiner<'_> {
    /// A product of pairs that is added.
    pub(super) fn packed_multiply_add(&mut self, inst: Inst) -> bool {
        let Op::Hw(outer) = self.program.op(inst) else { return false };
        let Some(&(_, multiply, both, rounds)) = ROWS.iter().find(|row| row.0 == outer) else { return false };
        let data = self.program[inst];
        if !only_lanes(&data.mods) || rounds && (!self.program.contract || data.exact) {
            return false;
        }
        let &[first, second] = self.program.operands(inst) else { return false };
        let operands = [first, second];
        // Of two products the later one is folded, because its operands are available last.
        let mut products = [0, 1].map(|at| (self.only_maker(operands[at]), at));
        products.sort_unstable_by_key(|(inner, _)| std::cmp::Reverse(*inner));
        for (inner, at) in products {
            let Some(inner) = inner else { continue };
            let product = self.program[inner];
            if product.op != Op::Hw(multiply) || !only_lanes(&product.mods) || rounds && product.exact {
                continue;
            }
            let &[a, b] = self.program.operands(inner) else { continue };
            let new = [a, b, operands[1 - at]];
            let Some(new) = self.legalized(both, &new, true) else { continue };
            let read = of_source(&data.mods, LANES[0], at).map(usize::from);
            let mut mods = Mods::default();
            for ids in LANES {
                let own = [0, 1].map(|source| {
                    let lanes = of_source(&product.mods, ids, source);
                    read.map(|lane| lanes[lane])
                });
                let sources = [own[0], own[1], of_source(&data.mods, ids, 1 - at)];
                for (lane, id) in ids.into_iter().enumerate() {
                    let bits =
                        sources.iter().enumerate().map(|(source, lanes)| i32::from(lanes[lane]) << source);
                    mods.set(id, bits.sum());
                }
            }
            // The sign of a product is that of a factor.
            for (lane, id) in LANES[1].into_iter().enumerate() {
                mods.set(id, mods.get(id) ^ i32::from(of_source(&data.mods, LANES[1], at)[lane]));
            }
            let freedom = data.freedom.and(product.freedom);
            self.become_op(inst, both, &new);
            let made = &mut self.program[inst];
            (made.mods, made.freedom, made.exact) = (mods, freedom, data.exact || product.exact);
            return true;
        }
        false
    }
}
