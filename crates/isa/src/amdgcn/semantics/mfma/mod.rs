//! Products of matrices of CDNA, spread over the 64 lanes of a wave: where an element is, and what an element of the result is.
//!
//! Registers of a wave are not known here: places are lanes and items in a lane, counted from the first bit of its registers on. Facts: "General
//! input and output layout", "Broadcasting values" and "Sparse Matrices" of AMD's CDNA 3 and CDNA 4 manuals, and AMD's matrix
//! instruction calculator. These two differ twice, and here the calculator is followed, which knows every generation: CBSZ
//! broadcasts within groups of blocks (the manual: one block to all lanes), and the result of `v_mfma_f64_4x4x4` has its
//! rows 16 lanes apart (the manual's general formula: its blocks).

mod number;
mod shape;
mod sum;

pub(super) use number::Special;
pub use number::{Factor, Number, NumberClass};
pub use sum::{Order, SCALED, SumMode};

use super::soft;
use crate::amdgcn::model::Gfx;

/// How many lanes a wave has.
const WAVE: u8 = 64;

/// What elements of C and the result are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Total {
    /// IEEE 754, 32 bits.
    F32,
    /// IEEE 754, 64 bits.
    F64,
    /// Signed, 32 bits.
    I32,
}

/// What a matrix instruction multiplies: for each block a square result of A's rows by B's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mfma {
    /// Rows of A and columns of B in a block.
    pub size: u8,
    /// Elements of a row of A, of sparse ones those that are left out, too.
    pub depth: u8,
    /// How many products of matrices it is.
    pub blocks: u8,
    /// Elements of A.
    pub a: Factor,
    /// Elements of B.
    pub b: Factor,
    /// Elements of C and the result.
    pub total: Total,
    /// Whether only two of each four elements of A are stored.
    pub sparse: bool,
}

/// A place in the registers of a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The lane.
    pub lane: u8,
    /// The item in the lane: elements lie one after the other, without gaps.
    pub item: u8,
}

impl Mfma {
    /// How many groups of lanes share the elements along K.
    fn groups(&self) -> u8 {
        (WAVE / (self.size * self.blocks).max(1)).max(1)
    }

    /// How many elements of A a lane holds.
    pub fn a_items(&self) -> u8 {
        self.b_items() / if self.sparse { 2 } else { 1 }
    }

    /// How many elements of B a lane holds.
    pub fn b_items(&self) -> u8 {
        self.depth / self.groups()
    }

    /// How many elements of C and the result a lane holds.
    pub fn total_items(&self) -> u8 {
        (u16::from(self.size) * u16::from(self.size) * u16::from(self.blocks) / u16::from(WAVE)) as u8
    }

    /// Whether a lane holds elements of both halves of K: where it holds 32 bytes, which are two accesses of registers.
    fn is_halved(&self, factor: Factor) -> bool {
        usize::from(self.b_items()) * usize::from(factor.bits()) == 256
    }

    /// Which K an item of B is in a group of lanes, and of A, if it is not sparse.
    fn k_of(&self, group: u8, item: u8, factor: Factor) -> u8 {
        let items = self.b_items();
        if self.is_halved(factor) {
            let half = items / 2;
            return self.depth / 2 * (item / half) + half * group + item % half;
        }
        items * group + item
    }

    /// Where the elements of a row of A or a column of B are, `across` its number, each with its K. Of sparse A: where they are
    /// stored.
    fn along(
        &self,
        block: u8,
        across: u8,
        factor: Factor,
        items: u8,
    ) -> impl Iterator<Item = (Place, u8, u8)> {
        let (size, blocks, own) = (self.size, self.blocks, *self);
        (0..self.groups()).flat_map(move |group| {
            let lane = across + size * (block + blocks * group);
            (0..items).map(move |item| (Place { lane, item }, group, own.k_of(group, item, factor)))
        })
    }

    /// Where a row of A that is not sparse is, with the K of each element.
    pub fn row(&self, block: u8, row: u8) -> impl Iterator<Item = (Place, u8)> {
        self.along(block, row, self.a, self.a_items()).map(|(place, _, k)| (place, k))
    }

    /// Where a column of B is, with the K of each element.
    pub fn column(&self, block: u8, column: u8) -> impl Iterator<Item = (Place, u8)> {
        self.along(block, column, self.b, self.b_items()).map(|(place, _, k)| (place, k))
    }

    /// Where a row of sparse A is stored: with each element the K that an index from 0 to 3 chooses for it.
    pub fn sparse_row(&self, row: u8) -> impl Iterator<Item = (Place, [u8; 4])> {
        let own = *self;
        self.along(0, row, self.a, self.a_items()).map(move |(place, group, _)| {
            (place, [0, 1, 2, 3].map(|index| own.k_of(group, 4 * (place.item / 2) + index, own.b)))
        })
    }

    /// The first bit of the index of an element of sparse A in the register of its lane.
    pub fn index_bit(&self, item: u8, cbsz: u8, abid: u8) -> u8 {
        let sets = (16 / self.a_items().max(1)).max(1);
        let set = if cbsz & 3 == 0 { abid % sets } else { 0 };
        (2 * (item + self.a_items() * set)) & 31
    }

    /// Where an element of C and the result is.
    pub fn total_place(&self, block: u8, row: u8, column: u8) -> Place {
        let size = self.size;
        if self.total == Total::F64 {
            let step = WAVE / 4 / size;
            return Place { lane: column + size * (block + step * (row % 4)), item: row / 4 };
        }
        // Four rows follow each other in a lane, then in groups of lanes, then in further items.
        let wide = u16::from(size) * u16::from(size) / 4;
        let together = u16::from(WAVE).div_ceil(wide) as u8;
        let rows = WAVE / together / size;
        let groups = size / (4 * rows);
        Place {
            lane: column + size * (row / 4 % rows + rows * (block % together)),
            item: row % 4 + 4 * (row / (4 * rows) + groups * (block / together)),
        }
    }

    /// How its products are added.
    pub fn order(&self, generation: Gfx) -> Order {
        let pairs = if self.a == Factor::Bf16 && self.a_items() == 2 { 2 } else { 4 };
        match self.a {
            Factor::F64 | Factor::F32 | Factor::I8 => Order::Fused,
            Factor::Xf32 => Order::Aligned(4),
            Factor::F16 | Factor::Bf16 => match generation {
                Gfx::Gfx908 => Order::Exact(if self.a == Factor::F16 { 4 } else { 2 }),
                Gfx::Gfx90a => Order::Flushed(pairs),
                _ => Order::Aligned(8),
            },
            _ => Order::AlignedPairs(16),
        }
    }

    /// An element of a result of 32 bits: C, and pairs of elements of A and B by rising K. `scales`: powers of two of each
    /// [`SCALED`] elements along K.
    pub fn element(
        &self,
        generation: Gfx,
        c: u32,
        pairs: &[(Number, Number)],
        scales: &[i32],
        mode: SumMode,
    ) -> u32 {
        sum::add(self.order(generation), c, pairs, scales, mode)
    }

    /// An element of a result of 64 bits.
    pub fn element_f64(&self, c: u64, pairs: &[(Number, Number)]) -> u64 {
        sum::fused(soft::F64, c, pairs, SumMode::default())
    }

    /// An element of a result of integers: exact, and cut to 32 bits or clamped at the end.
    pub fn element_i32(&self, c: u32, pairs: &[(u8, u8)], saturate: bool) -> u32 {
        let products = pairs.iter().map(|(a, b)| i64::from(*a as i8) * i64::from(*b as i8));
        let sum = i64::from(c as i32) + products.sum::<i64>();
        if saturate { sum.clamp(i32::MIN.into(), i32::MAX.into()) as u32 } else { sum as u32 }
    }
}

/// The block of A that is multiplied in place of one: `2^cbsz` blocks share one of them, the one with the number `abid`.
pub fn broadcast(block: u8, cbsz: u8, abid: u8) -> u8 {
    let size = 1u8 << cbsz.min(4);
    (block & !(size - 1)) + abid % size
}

/// The lane that B is taken from in place of one.
pub fn permuted(lane: u8, blgp: u8) -> u8 {
    match blgp {
        1 => lane % 32,
        2 => lane % 32 + 32,
        3 => (lane + 16) % WAVE,
        4..=7 => lane % 16 + 16 * (blgp - 4),
        _ => lane,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn mfma(size: u8, depth: u8, blocks: u8, factor: Factor, sparse: bool) -> Mfma {
        let total = match factor {
            Factor::F64 => Total::F64,
            Factor::I8 => Total::I32,
            _ => Total::F32,
        };
        Mfma { size, depth, blocks, a: factor, b: factor, total, sparse }
    }

    fn shapes() -> Vec<Mfma> {
        vec![
            mfma(32, 1, 2, Factor::F32, false),
            mfma(16, 1, 4, Factor::F32, false),
            mfma(4, 1, 16, Factor::F32, false),
            mfma(32, 8, 1, Factor::F16, false),
            mfma(16, 32, 1, Factor::Bf16, false),
            mfma(16, 4, 1, Factor::F64, false),
            mfma(4, 4, 4, Factor::F64, false),
            mfma(16, 64, 1, Factor::I8, false),
            mfma(16, 128, 1, Factor::Fp8, false),
            mfma(32, 64, 1, Factor::Fp6, false),
            mfma(32, 64, 1, Factor::Fp4, false),
            mfma(16, 64, 1, Factor::F16, true),
            mfma(32, 64, 1, Factor::I8, true),
            mfma(32, 16, 1, Factor::Bf16, true),
        ]
    }

    /// Every place is taken once, and every K.
    #[test]
    fn layouts_are_one_to_one() {
        for shape in shapes() {
            let (mut a, mut b, mut total) = (HashSet::new(), HashSet::new(), HashSet::new());
            for block in 0..shape.blocks {
                for across in 0..shape.size {
                    let column: Vec<_> = shape.column(block, across).collect();
                    let ks: HashSet<u8> = column.iter().map(|(_, k)| *k).collect();
                    assert_eq!(
                        (ks.len(), column.len()),
                        (shape.depth.into(), shape.depth.into()),
                        "{shape:?}"
                    );
                    assert!(ks.iter().all(|k| *k < shape.depth));
                    assert!(column.iter().all(|(place, _)| place.lane < 64 && b.insert(*place)), "{shape:?}");
                    if shape.sparse {
                        let row: Vec<_> = shape.sparse_row(across).collect();
                        let ks: HashSet<u8> = row.iter().flat_map(|(_, ks)| *ks).collect();
                        assert_eq!((ks.len(), row.len()), (shape.depth.into(), usize::from(shape.depth) / 2));
                        assert!(row.iter().all(|(place, _)| place.lane < 64 && a.insert(*place)));
                    } else {
                        assert!(shape.row(block, across).all(|(place, _)| a.insert(place)), "{shape:?}");
                    }
                    for column in 0..shape.size {
                        let place = shape.total_place(block, across, column);
                        assert!(place.lane < 64 && total.insert(place), "{shape:?} {place:?}");
                        assert!(place.item < shape.total_items());
                    }
                }
            }
        }
    }

    /// Places that the manual's examples give.
    #[test]
    fn places_of_the_manual() {
        let place = |lane, item| Place { lane, item };
        let blocks = mfma(32, 1, 2, Factor::F32, false);
        assert_eq!(blocks.total_place(1, 27, 3), place(3, 31));
        assert_eq!(blocks.total_place(0, 12, 31), place(63, 4));
        let halves = mfma(4, 4, 16, Factor::F16, false);
        assert_eq!(halves.row(15, 3).collect::<Vec<_>>()[2], (place(63, 2), 2));
        assert_eq!(halves.total_place(15, 3, 0), place(60, 3));
        let doubles = mfma(16, 4, 1, Factor::F64, false);
        assert_eq!(doubles.row(0, 15).collect::<Vec<_>>()[3], (place(63, 0), 3));
        assert_eq!(doubles.total_place(0, 13, 2), place(18, 3));
        let bytes = mfma(16, 128, 1, Factor::Fp8, false);
        assert!(bytes.row(0, 1).any(|found| found == (place(33, 17), 97)));
        let nibbles = mfma(16, 128, 1, Factor::Fp4, false);
        assert!(nibbles.row(0, 1).any(|found| found == (place(33, 17), 81)));
        // Row 1 of a sparse matrix of 16 bits on gfx950: K from 32 on is in the second half of registers.
        let sparse = mfma(16, 64, 1, Factor::F16, true);
        assert!(sparse.sparse_row(1).any(|found| found == (place(17, 4), [40, 41, 42, 43])));
    }

    #[test]
    fn broadcasts() {
        assert_eq!([0, 1, 2, 3].map(|block| broadcast(block, 1, 1)), [1, 1, 3, 3]);
        assert_eq!([0, 5, 15].map(|block| broadcast(block, 4, 9)), [9, 9, 9]);
        assert_eq!([permuted(5, 2), permuted(50, 3), permuted(5, 7), permuted(5, 0)], [37, 2, 53, 5]);
        let sparse = mfma(16, 32, 1, Factor::F16, true);
        assert_eq!([sparse.index_bit(3, 0, 2), sparse.index_bit(3, 1, 2)], [22, 6]);
        let wide = mfma(16, 128, 1, Factor::I8, true);
        assert_eq!(wide.index_bit(15, 0, 3), 30);
    }

    #[test]
    fn integers_wrap_or_are_clamped() {
        let shape = mfma(16, 64, 1, Factor::I8, false);
        let pairs = [(0x80, 0x80), (0x7f, 0x7f)];
        assert_eq!(shape.element_i32(i32::MAX as u32, &pairs, true), i32::MAX as u32);
        assert_eq!(shape.element_i32(i32::MAX as u32, &pairs, false) as i32, i32::MIN + 32512);
        assert_eq!(shape.element_i32(0, &[(0xff, 2)], true) as i32, -2);
    }
}
