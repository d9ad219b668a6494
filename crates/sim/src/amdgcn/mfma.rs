//! Matrix products of CDNA.
//!
//! [`unwedge_isa::amdgcn::semantics::mfma`] has where elements are and how they are multiplied. An element of the result is not
//! known if any that it depends on is not: C's, A's row, B's column, or a sparse index of the row. All lanes
//! take part, whatever `exec` says.

use super::fault::{FaultKind, Missing};
use super::lanes::splat;
use super::machine::Machine;
use super::operand::{From, inline, vector};
use super::wave::Wave;
use unwedge_isa::amdgcn::model::{Field, Mod, Type};
use unwedge_isa::amdgcn::semantics::Lanes;
use unwedge_isa::amdgcn::semantics::mfma::{self, Factor, Mfma, Number, Place, SumMode, Total};
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Operand};

/// The bit of MODE that clamps what is too great, and the one that keeps denormal sources of 32 bits.
const OVERFLOW: u32 = 1 << 23;
const DENORMALS_32: u32 = 1 << 4;

/// A matrix operation with its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct MfmaProduct {
    mfma: Mfma,
    a: u16,
    b: u16,
    c: From,
    /// Of a sparse product the register of indices.
    index: Option<u16>,
    dst: u16,
    cbsz: u8,
    abid: u8,
    blgp: u8,
    /// Which of A, B and C are negated.
    negated: u8,
    /// Registers of the scales of A and B, and which of their bytes.
    scales: [Option<u16>; 2],
    scale_bytes: [u8; 2],
}

/// Registers of an operand, and what is not known of them.
struct RegisterBlock<'w> {
    values: &'w [Lanes],
    unknown: &'w [Lanes],
}

impl RegisterBlock<'_> {
    /// Up to 64 bits of a lane from a bit on, and whether some of them are not known.
    fn bits(&self, lane: u8, from: usize, bits: u8) -> (u64, bool) {
        let of = |all: &[Lanes]| {
            let word = |n: usize| all.get(n).map_or(0, |lanes| u64::from(lanes[usize::from(lane & 63)]));
            let (at, shift) = (from / 32, from % 32);
            let wide = u128::from(word(at)) | u128::from(word(at + 1)) << 32;
            (wide >> shift) as u64 & (u64::MAX >> (64 - u32::from(bits.clamp(1, 64))))
        };
        (of(self.values), of(self.unknown) != 0)
    }

    fn item(&self, place: Place, bits: u8) -> (u64, bool) {
        self.bits(place.lane, usize::from(place.item) * usize::from(bits), bits)
    }
}

/// A row of A or a column of B by rising K.
#[derive(Debug, Clone, Default)]
struct Vector {
    /// Bits as they are, and K.
    raw: Vec<(u64, u8)>,
    /// The same taken apart.
    numbers: Vec<Number>,
    unsure: bool,
    /// Powers of two of each 32 elements; `None`: not a number.
    scales: Vec<Option<i32>>,
}

impl Vector {
    fn new(factor: Factor, mut raw: Vec<(u64, u8)>, unsure: bool, negate: bool) -> Vector {
        raw.sort_by_key(|(_, k)| *k);
        let number = |bits: u64| {
            let number = factor.unpack(bits);
            Number { negative: number.negative != negate, ..number }
        };
        let numbers = raw.iter().map(|(bits, _)| number(*bits)).collect();
        Vector { raw, numbers, unsure, scales: Vec::new() }
    }
}

impl MfmaProduct {
    pub(super) fn new(inst: &Inst, gpu: &Gpu) -> Option<MfmaProduct> {
        let mfma = Mfma::of_inst(inst, gpu.generation())?;
        let mods = &inst.mods;
        let operand = |field: Field| {
            inst.written().find(|(slot, _)| slot.field == field).map(|(slot, operand)| (slot.ty, operand))
        };
        let lanes = |field: Field| match operand(field)?.1 {
            Operand::Reg { reg, .. } => reg.lane_number(),
            _ => None,
        };
        let dst = lanes(Field::Vdst)?;
        let (c, index) = match operand(Field::Src2)? {
            _ if mfma.sparse => (From::Vgpr(dst), Some(lanes(Field::Src2)?)),
            (_, Operand::Inline(code)) => (From::Const(inline(code, constant(mfma.total))), None),
            _ => (From::Vgpr(lanes(Field::Src2)?), None),
        };
        let dgemm = mfma.is_dgemm();
        let blgp = mods.get(Mod::Blgp) as u8;
        let negated = if dgemm { blgp | mods.get(Mod::NegMatrix) as u8 } else { 0 };
        let shares = mfma.blocks > 1 && !dgemm;
        Some(MfmaProduct {
            mfma,
            a: lanes(Field::Src0)?,
            b: lanes(Field::Src1)?,
            c,
            index,
            dst,
            cbsz: if shares || mfma.sparse { mods.get(Mod::Cbsz) as u8 } else { 0 },
            abid: if shares || mfma.sparse { mods.get(Mod::Abid) as u8 } else { 0 },
            blgp: if dgemm || mfma.chooses_formats() { 0 } else { blgp },
            negated,
            scales: [lanes(Field::Scale0), lanes(Field::Scale1)],
            scale_bytes: [0, 1].map(|at| {
                let bit = |id: Mod| (mods.get(id) >> at & 1) as u8;
                bit(Mod::OpSel) | bit(Mod::OpSelHi) << 1
            }),
        })
    }

    fn row(&self, block: u8, row: u8, a: &RegisterBlock<'_>) -> Vector {
        let block = if self.mfma.sparse { block } else { mfma::broadcast(block, self.cbsz, self.abid) };
        let mut unsure = false;
        let items = self.mfma.row(block, row).map(|(place, k)| {
            let (bits, missing) = a.item(place, self.mfma.a.bits());
            unsure |= missing;
            (bits, k)
        });
        let raw = items.collect();
        Vector::new(self.mfma.a, raw, unsure, self.negated & 1 != 0)
    }

    /// A row of sparse A, and whether an index does not rise.
    fn sparse_row(&self, row: u8, a: &RegisterBlock<'_>, indices: &RegisterBlock<'_>) -> (Vector, bool) {
        let (mut unsure, mut falling, mut before) = (false, false, 0);
        let items = self.mfma.sparse_row(row).map(|(place, ks)| {
            let (bits, missing) = a.item(place, self.mfma.a.bits());
            let bit = self.mfma.index_bit(place.item, self.cbsz, self.abid);
            let (index, unknown) = indices.bits(place.lane, bit.into(), 2);
            unsure |= missing | unknown;
            falling |= place.item % 2 == 1 && index <= before && !unknown;
            before = index;
            (bits, ks[index as usize & 3])
        });
        let raw = items.collect();
        (Vector::new(self.mfma.a, raw, unsure, false), falling)
    }

    fn column(&self, block: u8, column: u8, b: &RegisterBlock<'_>) -> Vector {
        let mut unsure = false;
        let items = self.mfma.column(block, column).map(|(place, k)| {
            let place = Place { lane: mfma::permuted(place.lane, self.blgp), ..place };
            let (bits, missing) = b.item(place, self.mfma.b.bits());
            unsure |= missing;
            (bits, k)
        });
        let raw = items.collect();
        Vector::new(self.mfma.b, raw, unsure, self.negated & 2 != 0)
    }

    /// The scales of a row of A or a column of B: of each 32 elements along K in a group of lanes.
    fn scaled(&self, which: usize, across: u8, wave: &Wave, vector: &mut Vector) {
        let Some(register) = self.scales[which] else { return };
        let groups = self.mfma.depth / mfma::SCALED as u8;
        for group in 0..groups {
            let lane = usize::from(across + self.mfma.size * group) & 63;
            let of = |all: &[Lanes]| all.get(usize::from(register)).map_or(0, |lanes| lanes[lane]);
            let byte = 8 * u32::from(self.scale_bytes[which]);
            let unknown = wave.unknown.as_ref().map_or(0, |state| of(&state.v));
            vector.unsure |= unknown >> byte & 0xff != 0;
            let biased = of(&wave.v) >> byte & 0xff;
            vector.scales.push((biased != 0xff).then_some(biased as i32 - 127));
        }
    }

    /// An element of the result.
    fn element(&self, generation: Gfx, mode: u32, c: u64, row: &Vector, column: &Vector) -> u64 {
        let of = |k: u8| usize::from(k);
        let newer = generation >= Gfx::Gfx940;
        let saturate = newer && mode & OVERFLOW != 0;
        if self.mfma.total == Total::I32 {
            let products =
                row.raw.iter().map(|(a, k)| (*a as u8, column.raw.get(of(*k)).map_or(0, |(b, _)| *b as u8)));
            let products: Vec<(u8, u8)> = products.collect();
            return self.mfma.element_i32(c as u32, &products, saturate).into();
        }
        let pairs: Vec<(Number, Number)> = row
            .raw
            .iter()
            .zip(&row.numbers)
            .map(|((_, k), a)| (*a, column.numbers.get(of(*k)).copied().unwrap_or(Number::ZERO)))
            .collect();
        if self.mfma.is_dgemm() {
            return self.mfma.element_f64(c, &pairs);
        }
        let scales: Vec<Option<i32>> =
            row.scales.iter().zip(&column.scales).map(|(a, b)| Some((*a)? + (*b)?)).collect();
        if scales.contains(&None) {
            return f32::NAN.to_bits().into();
        }
        let scales: Vec<i32> = scales.into_iter().flatten().collect();
        let flush_in = self.mfma.a == Factor::F32 && mode & DENORMALS_32 == 0;
        self.mfma.element(generation, c as u32, &pairs, &scales, SumMode { flush_in, saturate }).into()
    }
}

/// The type that a constant has as C.
fn constant(total: Total) -> Type {
    match total {
        Total::F32 => Type::F32,
        Total::F64 => Type::F64,
        Total::I32 => Type::I32,
    }
}

pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, product: &MfmaProduct) {
    let mfma = &product.mfma;
    let dwords = |items: u8, bits: u8| (usize::from(items) * usize::from(bits)).div_ceil(32);
    let width: u8 = if mfma.is_dgemm() { 64 } else { 32 };
    let a_size = dwords(mfma.a_items(), mfma.a.bits());
    let b_size = dwords(mfma.b_items(), mfma.b.bits());
    let size = dwords(mfma.total_items(), width);
    let c = if let From::Vgpr(n) = product.c { n } else { product.dst };
    let index = product.index.unwrap_or(product.dst);
    let there = |n: u16, size: usize| usize::from(n) + size <= wave.v.len();
    let ranges = [(product.a, a_size), (product.b, b_size), (product.dst, size), (c, size), (index, 1)];
    if !ranges.iter().all(|(n, size)| there(*n, *size)) {
        return machine.fault(wave, FaultKind::NoRegister);
    }
    let (generation, mode) = (machine.gpu.generation(), wave.mode);
    let mut result = vec![splat(0); size];
    let mut unsure = vec![splat(0); size];
    let mut falling = false;
    let block = |n: u16, size: usize| RegisterBlock {
        values: &wave.v[usize::from(n)..][..size],
        unknown: wave.unknown.as_ref().map_or(&[][..], |state| &state.v[usize::from(n)..][..size]),
    };
    let (a, b, addend, indices) =
        (block(product.a, a_size), block(product.b, b_size), block(c, size), block(index, 1));
    for number in 0..mfma.blocks {
        let column = |at: u8| {
            let mut column = product.column(number, at, &b);
            product.scaled(1, at, wave, &mut column);
            column
        };
        let columns: Vec<Vector> = (0..mfma.size).map(column).collect();
        for row_number in 0..mfma.size {
            let mut row = if mfma.sparse {
                let (row, falls) = product.sparse_row(row_number, &a, &indices);
                falling |= falls;
                row
            } else {
                product.row(number, row_number, &a)
            };
            product.scaled(0, row_number, wave, &mut row);
            for (column_number, column) in (0..mfma.size).zip(&columns) {
                let place = mfma.total_place(number, row_number, column_number);
                let (mut value, mut missing) = match product.c {
                    From::Const(value) => (value, false),
                    _ => addend.item(place, width),
                };
                if product.negated & 4 != 0 {
                    value ^= 1 << 63;
                }
                missing |= row.unsure | column.unsure;
                let sum = product.element(generation, mode, value, &row, column);
                for dword in 0..usize::from(width / 32) {
                    let at = usize::from(place.item) * usize::from(width / 32) + dword;
                    result[at][usize::from(place.lane)] = (sum >> (32 * dword)) as u32;
                    unsure[at][usize::from(place.lane)] = if missing { u32::MAX } else { 0 };
                }
            }
        }
    }
    let why = why(wave, &[(product.a, a_size), (product.b, b_size), (c, size), (index, 1)]);
    if falling {
        machine.fault(wave, FaultKind::Undefined("sparse indices that do not rise"));
    }
    for (n, (values, unsure)) in (product.dst..).zip(result.iter().zip(&unsure)) {
        wave.set_lanes(n, u64::MAX, values);
        if wave.unknown.is_some() {
            wave.set_unknown_lanes(n, u64::MAX, unsure, why);
        }
    }
}

/// Why sources are not known: the first of which something is not.
fn why(wave: &Wave, ranges: &[(u16, usize)]) -> Missing {
    let all = ranges.iter().flat_map(|(n, size)| (*n..).take(*size));
    all.into_iter().find(|n| wave.unknown_in(*n, 0) != 0).map_or(Missing::Undefined, |n| wave.why(vector(n)))
}
