//! Texels between memory and registers: a format, what is chosen of its components, and how registers hold them.
//!
//! Never: addresses. A lane that is out of bounds gets zeros in all components.

use unwedge_isa::amdgcn::Gfx;
use unwedge_isa::amdgcn::semantics::soft::{self, Env};
use unwedge_isa::amdgcn::texel::TexelFormat;

/// How registers hold components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halves {
    /// Each has a register.
    Whole,
    /// 16 bits each, two in a register.
    Packed,
    /// 16 bits each, in a register of its own: the first GPUs of gfx8.
    Spread,
    /// One, in the upper half of a register whose lower half is kept.
    High,
}

/// A texel and its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Texel {
    pub(super) format: TexelFormat,
    /// For R, G, B and A: 0, 1, or 4 to 7 for X to W of the format, as descriptors say it.
    pub(super) select: [u8; 4],
    /// Which of R, G, B and A are in registers.
    pub(super) mask: u8,
    pub(super) halves: Halves,
    /// A register follows that says whether the memory was there: zero.
    pub(super) status: bool,
    /// What is not in registers is stored as zero; else as the first component.
    pub(super) zero_fill: bool,
}

/// R, G, B and A are X, Y, Z and W.
pub(super) const IDENTITY: [u8; 4] = [4, 5, 6, 7];

/// The choice of components that descriptors have in the low bits of their fourth word.
pub(super) fn selected(word: u32) -> [u8; 4] {
    [0, 3, 6, 9].map(|lsb| (word >> lsb & 7) as u8)
}

/// A float of 32 bits, or an integer, in 16 bits.
fn half(format: &TexelFormat, value: u32) -> u32 {
    if format.number().is_integer() {
        return value & 0xffff;
    }
    soft::convert(soft::F32, soft::F16, value.into(), Env::IEEE) as u32
}

fn whole(format: &TexelFormat, half: u32) -> u32 {
    use unwedge_isa::amdgcn::texel::NumberFormat;
    match format.number() {
        NumberFormat::Uint => half & 0xffff,
        NumberFormat::Sint => half as u16 as i16 as u32,
        _ => soft::convert(soft::F16, soft::F32, (half & 0xffff).into(), Env::IEEE) as u32,
    }
}

impl Texel {
    pub(super) fn zero_fill(generation: Gfx) -> bool {
        generation >= Gfx::Gfx12
    }

    fn components(&self) -> u8 {
        self.mask.count_ones() as u8
    }

    /// How many registers hold components.
    pub(super) fn data_registers(&self) -> u8 {
        match self.halves {
            Halves::Packed => self.components().div_ceil(2),
            _ => self.components(),
        }
    }

    /// How many registers a load writes.
    pub(super) fn registers(&self) -> u8 {
        self.data_registers() + u8::from(self.status)
    }

    /// R, G, B and A of components X to W.
    pub(super) fn choose(&self, values: [u32; 4]) -> [u32; 4] {
        self.select.map(|select| match select {
            1 => self.format.one(),
            4..=7 => values[usize::from(select) - 4],
            _ => 0,
        })
    }

    /// Puts R, G, B and A into registers.
    pub(super) fn registers_of(&self, values: [u32; 4], out: &mut [u32; 5]) {
        let mut count = 0;
        for (at, value) in values.into_iter().enumerate() {
            if self.mask >> at & 1 == 0 {
                continue;
            }
            match self.halves {
                Halves::Whole => out[count] = value,
                Halves::Spread => out[count] = half(&self.format, value),
                Halves::High => out[count] = out[count] & 0xffff | half(&self.format, value) << 16,
                Halves::Packed => {
                    let shift = 16 * (count as u32 & 1);
                    let kept = if shift == 0 { 0 } else { out[count / 2] & 0xffff };
                    out[count / 2] = kept | half(&self.format, value) << shift;
                }
            }
            count += 1;
        }
        if self.status {
            out[usize::from(self.data_registers())] = 0;
        }
    }

    /// What a load of these words of memory puts into registers; `old` is what they held.
    pub(super) fn load(&self, words: Option<[u32; 4]>, old: [u32; 5]) -> [u32; 5] {
        let values = words.map_or([0; 4], |words| self.choose(self.format.load(words)));
        let mut out = old;
        self.registers_of(values, &mut out);
        out
    }

    /// The words of memory that registers are stored as.
    pub(super) fn store(&self, registers: [u32; 4]) -> [u32; 4] {
        let mut given = [None; 4];
        let mut count = 0;
        for (at, place) in given.iter_mut().enumerate() {
            if self.mask >> at & 1 == 0 {
                continue;
            }
            *place = Some(match self.halves {
                Halves::Whole => registers[count],
                Halves::Spread => whole(&self.format, registers[count]),
                Halves::High => whole(&self.format, registers[count] >> 16),
                Halves::Packed => whole(&self.format, registers[count / 2] >> (16 * (count & 1))),
            });
            count += 1;
        }
        let first = given.iter().flatten().next().copied().unwrap_or(0);
        let fill = if self.zero_fill { 0 } else { first };
        let mut values = [0; 4];
        for (component, place) in values.iter_mut().enumerate() {
            let from = self.select.iter().position(|select| usize::from(*select) == 4 + component);
            *place = from.map_or(fill, |at| given[at].unwrap_or(fill));
        }
        self.format.store(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texel(name: &str, select: [u8; 4], mask: u8, halves: Halves) -> Texel {
        let format = TexelFormat::of_name(name).unwrap_or_else(|| panic!("{name}"));
        Texel { format, select, mask, halves, status: false, zero_fill: true }
    }

    #[test]
    fn components_are_chosen_and_masked() {
        // BGRA: R is Z.
        let bgra = texel("8_8_8_8_UINT", [6, 5, 4, 7], 0b1001, Halves::Whole);
        assert_eq!(bgra.load(Some([0x4433_2211, 0, 0, 0]), [9; 5]), [0x33, 0x44, 9, 9, 9]);
        assert_eq!(bgra.store([0x33, 0x44, 0, 0])[0], 0x4433_0000);
        let fixed = texel("8_UINT", [1, 0, 4, 5], 15, Halves::Whole);
        assert_eq!(fixed.load(Some([7, 0, 0, 0]), [9; 5]), [1, 0, 7, 0, 9]);
        // Nothing is there.
        assert_eq!(fixed.load(None, [9; 5]), [0, 0, 0, 0, 9]);
    }

    #[test]
    fn halves_of_registers() {
        let packed = texel("8_8_8_8_UINT", IDENTITY, 7, Halves::Packed);
        assert_eq!(packed.registers(), 2);
        assert_eq!(packed.load(Some([0x4433_2211, 0, 0, 0]), [9; 5])[..2], [0x22_0011, 0x33]);
        assert_eq!(packed.store([0x22_0011, 0x33, 0, 0])[0], 0x33_2211);
        let high = texel("8_UNORM", IDENTITY, 1, Halves::High);
        assert_eq!(high.load(Some([255, 0, 0, 0]), [0x1111_2222; 5])[0], 0x3c00_2222);
        assert_eq!(high.store([0x3c00_0000, 0, 0, 0])[0], 255);
    }
}
