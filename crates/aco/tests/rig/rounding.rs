//! The results that contraction allows: the same program with its products and sums fused, or its fused operations split. It handles only the instructions of
//! recorded cases, and does not use the optimizer.

use std::collections::HashMap;
use unwedge_aco::ir::{Definition, Inst, NewInst, Op, Operand, Program, Temp};
use unwedge_isa::amdgcn::model::{Form, Mod};
use unwedge_isa::amdgcn::{Mods, Opcode};

/// The instructions of a width of floats, and its 1.0.
struct Width {
    multiply: Opcode,
    add: Opcode,
    fuse: Opcode,
    one: u64,
    sign: u64,
}

const WIDTHS: [Width; 2] = [
    Width {
        multiply: Opcode::v_mul_f32,
        add: Opcode::v_add_f32,
        fuse: Opcode::v_fma_f32,
        one: 0x3f80_0000,
        sign: 1 << 31,
    },
    Width {
        multiply: Opcode::v_mul_f16,
        add: Opcode::v_add_f16,
        fuse: Opcode::v_fma_f16,
        one: 0x3c00,
        sign: 1 << 15,
    },
];

/// A product as another instruction reads it: `-|product|` where both are set.
struct SignedProduct {
    inst: Inst,
    negated: bool,
    absolute: bool,
}

/// The definitions of temporaries, and the numbers of their reads.
struct Uses {
    makers: HashMap<Temp, Inst>,
    reads: HashMap<Temp, usize>,
}

impl Uses {
    fn of(program: &Program) -> Uses {
        let mut uses = Uses { makers: HashMap::new(), reads: HashMap::new() };
        for &inst in program.blocks.values().flat_map(|block| &block.insts) {
            for temp in program.definitions(inst).iter().filter_map(|definition| definition.temp) {
                uses.makers.insert(temp, inst);
            }
            for temp in program.operands(inst).iter().filter_map(Operand::as_temp) {
                *uses.reads.entry(temp).or_default() += 1;
            }
        }
        uses
    }

    /// The inexact product that an operand is, after changes of its sign, if nothing else reads it.
    fn product(&self, program: &Program, width: &Width, operand: Operand) -> Option<SignedProduct> {
        let inst = self.inexact_product(program, width, operand)?;
        let mut found = SignedProduct { inst, negated: false, absolute: false };
        loop {
            let &[a, b] = program.operands(found.inst) else { return None };
            let ones = |operand: &Operand| operand.as_const().filter(|bits| bits & !width.sign == width.one);
            let (one, other, at) = match (ones(&a), ones(&b)) {
                (Some(one), _) => (one, b, 1),
                (_, Some(one)) => (one, a, 0),
                _ => return Some(found),
            };
            let mods = program[found.inst].mods;
            if !found.absolute {
                found.negated ^= (one & width.sign != 0) ^ (mods.get(Mod::Neg) >> at & 1 != 0);
                found.absolute = mods.get(Mod::Abs) >> at & 1 != 0;
            }
            found.inst = self.inexact_product(program, width, other)?;
        }
    }

    fn inexact_product(&self, program: &Program, width: &Width, operand: Operand) -> Option<Inst> {
        let temp = operand.as_temp().filter(|temp| self.reads.get(temp) == Some(&1))?;
        let inst = *self.makers.get(&temp)?;
        (program.op(inst) == Op::Hw(width.multiply) && !program[inst].exact).then_some(inst)
    }
}

/// All instructions of a program.
fn insts(program: &Program) -> Vec<Inst> {
    program.blocks.values().flat_map(|block| block.insts.iter().copied()).collect()
}

/// Replaces an instruction by another one with signs and the same result.
fn become_op(program: &mut Program, inst: Inst, opcode: Opcode, operands: &[Operand], [neg, abs]: [i32; 2]) {
    program.set_operands(inst, operands);
    let mut mods = Mods::default();
    mods.set(Mod::Neg, neg);
    mods.set(Mod::Abs, abs);
    let data = &mut program[inst];
    (data.op, data.mods) = (Op::Hw(opcode), mods);
    data.form = match opcode {
        Opcode::v_fma_f32 | Opcode::v_fma_f16 => Form::Native,
        _ if mods == Mods::default() => Form::Native,
        _ => Form::E64,
    };
}

/// Fuses products with the sums that add them.
fn contract(program: &mut Program) {
    let uses = Uses::of(program);
    for inst in insts(program) {
        let &[a, b] = program.operands(inst) else { continue };
        let Some(width) = WIDTHS.iter().find(|width| program.op(inst) == Op::Hw(width.add)) else { continue };
        if program[inst].exact {
            continue;
        }
        let [outer_neg, outer_abs] = [Mod::Neg, Mod::Abs].map(|id| program[inst].mods.get(id));
        for (at, product, other) in [(0, a, b), (1, b, a)] {
            let Some(product) = uses.product(program, width, product).filter(|_| outer_abs >> at & 1 == 0)
            else {
                continue;
            };
            let &[left, right] = program.operands(product.inst) else { continue };
            let [mut neg, mut abs] = [Mod::Neg, Mod::Abs].map(|id| program[product.inst].mods.get(id));
            if product.absolute {
                (neg, abs) = (0, 3);
            }
            neg ^= i32::from(product.negated) << 1 ^ (outer_neg >> at & 1) << 1;
            neg |= (outer_neg >> (1 - at) & 1) << 2;
            abs |= (outer_abs >> (1 - at) & 1) << 2;
            become_op(program, inst, width.fuse, &[left, right, other], [neg, abs]);
            break;
        }
    }
}

/// Splits fused operations into a product and a sum.
fn split(program: &mut Program) {
    let blocks: Vec<_> = program.blocks.keys().collect();
    for block in blocks {
        for inst in program.blocks[block].insts.clone() {
            let &[a, b, c] = program.operands(inst) else { continue };
            let Some(width) = WIDTHS.iter().find(|width| program.op(inst) == Op::Hw(width.fuse)) else {
                continue;
            };
            if program[inst].exact {
                continue;
            }
            let [neg, abs] = [Mod::Neg, Mod::Abs].map(|id| program[inst].mods.get(id));
            let class = program.definitions(inst)[0].class;
            let temp = program.make_temp(class);
            let to = [Definition::temp(temp, class)];
            let at = program.blocks[block].insts.iter().position(|own| *own == inst).expect("in its block");
            let product = program.insert(block, at, &NewInst::hw(width.multiply, &to, &[a, b]));
            become_op(program, product, width.multiply, &[a, b], [neg & 3, abs & 3]);
            let sum = [Operand::temp(temp, class), c];
            become_op(program, inst, width.add, &sum, [neg >> 1 & 2, abs >> 1 & 2]);
        }
    }
}

/// A program, and the alternatives that contraction allows.
pub fn roundings(program: &Program) -> [Program; 3] {
    let [mut contracted, mut parted] = [program.clone(), program.clone()];
    contract(&mut contracted);
    split(&mut parted);
    [program.clone(), contracted, parted]
}
