//! Matrix products of a whole wave.
//!
//! Where elements stand and how they are multiplied is [`unwedge_isa::amdgcn::semantics::matrix`]'s. An element of the
//! result is not known if any that it depends on is not: C's, A's row, B's column, or a sparse index of the row.

use super::fault::{FaultKind, Missing};
use super::lanes::{bits, splat};
use super::machine::Machine;
use super::operand::{From, inline, number, vector};
use super::wave::Wave;
use unwedge_isa::amdgcn::model::{Mod, Type};
use unwedge_isa::amdgcn::opcode::MatrixOp;
use unwedge_isa::amdgcn::semantics::Lanes;
use unwedge_isa::amdgcn::semantics::matrix::{self, ElementType, MatrixLayout};
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Operand};

/// A matrix operation with its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct MatrixProduct {
    op: matrix::Matrix,
    a: u16,
    b: u16,
    c: From,
    /// The sparse indices, and which set of them.
    index: Option<(u16, u8)>,
    dst: u16,
    layouts: [MatrixLayout; 3],
    /// Elements of 16 bits of the result stand alone, in the lower or the upper half of registers.
    half: Option<bool>,
    neg_lo: u8,
    neg_hi: u8,
    clamp: bool,
}

/// Registers of an operand, and what is not known of them.
struct MatrixBlock<'w> {
    values: &'w [Lanes],
    unknown: &'w [Lanes],
}

/// A row of A.
struct Row {
    /// Its elements, widened, with their places in K.
    factors: [(u32, u8); 64],
    /// Some of it is not known.
    unsure: bool,
    /// Places in K of what is there.
    chosen: u64,
    /// A sparse index does not rise.
    falling: bool,
}

impl MatrixBlock<'_> {
    /// So many bits of a lane from a bit on, and whether some of them are not known.
    fn bits(&self, lane: usize, from: usize, bits: u8) -> (u32, bool) {
        let mask = u32::MAX >> (32 - u32::from(bits));
        let of = |all: &[Lanes]| all.get(from / 32).map_or(0, |lanes| lanes[lane] >> (from % 32) & mask);
        (of(self.values), of(self.unknown) != 0)
    }
}

impl MatrixProduct {
    pub(super) fn new(op: MatrixOp, inst: &Inst, gpu: &Gpu) -> Option<MatrixProduct> {
        let op = matrix::of(op);
        let (generation, wave64, mods) = (gpu.generation(), gpu.wave64(), &inst.mods);
        let stored = if op.sparse { op.depth / 2 } else { op.depth };
        let vgpr = |operand: Operand| match operand {
            Operand::Reg { reg, .. } => reg.lane_number(),
            _ => None,
        };
        let mut operands = inst.written().map(|(_, operand)| operand);
        let (dst, a, b) = (vgpr(operands.next()?)?, vgpr(operands.next()?)?, vgpr(operands.next()?)?);
        let third = operands.next()?;
        let ty = match op.result {
            ElementType::F16 => Type::F16,
            ElementType::Bf16 => Type::Bf16,
            ElementType::F32 => Type::F32,
            _ => Type::I32,
        };
        let (c, index) = match third {
            _ if op.sparse => (From::Vgpr(dst), Some((vgpr(third)?, mods.get(Mod::IndexKey) as u8 & 3))),
            Operand::Inline(code) => (From::Const(inline(code, ty)), None),
            other => (From::Vgpr(vgpr(other)?), None),
        };
        let apart = op.result.is_half() && generation < Gfx::Gfx12;
        Some(MatrixProduct {
            op,
            a,
            b,
            c,
            index,
            dst,
            layouts: [
                MatrixLayout::factor(op.a.bits(), stored, false, generation, wave64)?,
                MatrixLayout::factor(op.b.bits(), op.depth, op.sparse, generation, wave64)?,
                MatrixLayout::result(generation, wave64),
            ],
            half: apart.then(|| mods.get(Mod::OpSel) & 4 != 0),
            neg_lo: mods.get(Mod::NegLo) as u8,
            neg_hi: mods.get(Mod::NegHi) as u8,
            clamp: mods.has(Mod::Clamp),
        })
    }

    /// An element of A or B, widened.
    fn factor(&self, number: ElementType, source: u8, raw: u32, place: usize) -> u32 {
        let mut raw = raw;
        if number.is_half() {
            let negate = if place & 1 == 0 { self.neg_lo } else { self.neg_hi };
            if negate >> source & 1 != 0 {
                raw ^= number.sign();
            }
        }
        number.widen(raw, self.neg_lo >> source & 1 != 0)
    }

    /// Elements of a row of A that are there.
    fn stored(&self) -> u8 {
        if self.op.sparse { self.op.depth / 2 } else { self.op.depth }
    }

    /// Columns of B, widened once, and which of their elements are not known.
    fn columns(&self, b: &MatrixBlock<'_>) -> [([u32; 64], u64); 16] {
        let (op, layout) = (&self.op, &self.layouts[1]);
        let mut columns = [([0u32; 64], 0u64); 16];
        for (number, (column, unsure)) in columns.iter_mut().enumerate() {
            for (k, value) in column.iter_mut().enumerate().take(op.depth.into()) {
                let (lane, place) = layout.place(k as u8, number as u8);
                let (raw, missing) = b.bits(lane, place * usize::from(op.b.bits()), op.b.bits());
                *value = self.factor(op.b, 1, raw, place);
                *unsure |= u64::from(missing) << k;
            }
        }
        columns
    }

    /// A row of A.
    fn row(&self, row: u8, a: &MatrixBlock<'_>, indices: &MatrixBlock<'_>) -> Row {
        let (op, layout) = (&self.op, &self.layouts[0]);
        let mut made = Row { factors: [(0, 0); 64], unsure: false, chosen: 0, falling: false };
        let mut before = None;
        for (at, factor) in made.factors.iter_mut().enumerate().take(self.stored().into()) {
            let (lane, place) = layout.place(at as u8, row);
            let (raw, missing) = a.bits(lane, place * usize::from(op.a.bits()), op.a.bits());
            made.unsure |= missing;
            let mut k = at as u8;
            if let Some((_, key)) = self.index {
                let sets = (16 / layout.count()).max(1);
                let from = 2 * (place + layout.count() * (usize::from(key) % sets));
                let (index, missing) = indices.bits(lane, from, 2);
                made.unsure |= missing;
                k = 4 * (at as u8 / 2) + index as u8;
                made.falling |= at % 2 == 1 && before.is_some_and(|before| before >= k) && !missing;
                before = Some(k);
            }
            *factor = (self.factor(op.a, 0, raw, place), k);
            made.chosen |= 1 << k;
        }
        made
    }

    /// The first bit of an element of C or the result in its lane.
    fn bit(&self, place: usize) -> usize {
        match self.half {
            Some(high) => place * 32 + 16 * usize::from(high),
            None => place * usize::from(self.op.result.bits()),
        }
    }
}

pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, matrix: &MatrixProduct) {
    let all = Wave::all(&machine.gpu);
    if wave.exec(&machine.gpu) != all {
        // The manuals compute all lanes whatever exec is; others found only enabled ones written.
        machine.fault(wave, FaultKind::Undefined("a matrix operation while not all lanes are enabled"));
    }
    let op = &matrix.op;
    let dwords = |layout: &MatrixLayout, bits: usize| (layout.count() * bits).div_ceil(32);
    let [a_layout, b_layout, d_layout] = &matrix.layouts;
    let a_size = dwords(a_layout, op.a.bits().into());
    let b_size = dwords(b_layout, op.b.bits().into());
    let d_size = dwords(d_layout, if matrix.half.is_some() { 32 } else { op.result.bits().into() });
    let ranges = [(matrix.a, a_size), (matrix.b, b_size), (matrix.dst, d_size)];
    let c = if let From::Vgpr(n) = matrix.c { n } else { matrix.dst };
    let index = matrix.index.map_or(matrix.dst, |(n, _)| n);
    let there = |n: u16, size: usize| usize::from(n) + size <= wave.v.len();
    if !ranges.iter().chain(&[(c, d_size), (index, 1)]).all(|(n, size)| there(*n, *size)) {
        return machine.fault(wave, FaultKind::NoRegister);
    }
    let mut complaint = None;
    let mut result: Vec<Lanes> = wave.v[usize::from(matrix.dst)..][..d_size].to_vec();
    let mut unsure = vec![splat(0); d_size];
    let mut why = Missing::Undefined;
    {
        let block = |n: u16, size: usize| MatrixBlock {
            values: &wave.v[usize::from(n)..][..size],
            unknown: wave.unknown.as_ref().map_or(&[][..], |state| &state.v[usize::from(n)..][..size]),
        };
        let (a, b, c) = (block(matrix.a, a_size), block(matrix.b, b_size), block(c, d_size));
        let indices = block(index, 1);
        if let Some(state) = &wave.unknown {
            unsure.copy_from_slice(&state.v[usize::from(matrix.dst)..][..d_size]);
            let sources = [(matrix.a, a_size), (matrix.b, b_size), (index, matrix.index.iter().count())];
            why = sources
                .iter()
                .flat_map(|(n, size)| (0..*size).map(move |at| vector(n + at as u16)))
                .find(|reg| bits(all).any(|lane| state.v[usize::from(number(*reg))][lane] != 0))
                .map_or(wave.why(vector(matrix.dst)), |reg| wave.why(reg));
        }
        if machine.gpu.generation() < Gfx::Gfx12 && !copied(&a, all) | !copied(&b, all) {
            complaint = Some("copies of a matrix in groups of 16 lanes that differ");
        }
        let columns = matrix.columns(&b);
        for row in 0..16u8 {
            let Row { factors, unsure: row_unsure, chosen, falling } = matrix.row(row, &a, &indices);
            if falling {
                complaint = Some("sparse indices that do not rise");
            }
            for column in 0..16u8 {
                let (lane, place) = d_layout.place(row, column);
                let bit = matrix.bit(place);
                let (raw, mut missing) = match matrix.c {
                    From::Const(value) => (value as u32, false),
                    _ => c.bits(lane, bit, op.result.bits()),
                };
                missing |= row_unsure;
                let mut addend = raw;
                if op.result != ElementType::I32 && !op.sparse {
                    if matrix.neg_hi & 4 != 0 {
                        addend &= !op.result.sign();
                    }
                    if matrix.neg_lo & 4 != 0 {
                        addend ^= op.result.sign();
                    }
                }
                let (values, column_unsure) = &columns[usize::from(column)];
                let pairs = factors[..usize::from(matrix.stored())]
                    .iter()
                    .map(|(value, k)| (*value, values[usize::from(*k)]));
                missing |= chosen & column_unsure != 0;
                let addend = op.result.widen(addend, true);
                let sum = matrix::element(op, machine.gpu.generation(), addend, pairs, matrix.clamp);
                let mask = (u32::MAX >> (32 - u32::from(op.result.bits()))) << (bit % 32);
                let put = |place: &mut u32, value: u32| *place = *place & !mask | value << (bit % 32) & mask;
                put(&mut result[bit / 32][lane], op.result.narrow(sum));
                put(&mut unsure[bit / 32][lane], if missing { u32::MAX >> (bit % 32) } else { 0 });
            }
        }
    }
    if let Some(what) = complaint {
        machine.fault(wave, FaultKind::Undefined(what));
    }
    for (n, (values, unsure)) in (matrix.dst..=u16::MAX).zip(result.iter().zip(&unsure)) {
        wave.set_lanes(n, all, values);
        if wave.unknown.is_some() {
            wave.set_unknown_lanes(n, all, unsure, why);
        }
    }
}

/// Whether every group of 16 lanes holds what the first does, as far as it is known.
fn copied(block: &MatrixBlock<'_>, lanes: u64) -> bool {
    block.values.iter().enumerate().all(|(n, values)| {
        let known = |lane: usize| block.unknown.get(n).is_none_or(|unknown| unknown[lane] == 0);
        bits(lanes).all(|lane| values[lane] == values[lane & 15] || !known(lane) || !known(lane & 15))
    })
}
