//! What the tests of AMD's instruction set share: numbers that are the same in every run, GPUs of every generation and mode,
//! and words of every row of the table.

#![allow(dead_code, reason = "each test uses what it needs")]

use unwedge_isa::amdgcn::codec::SizedInst;
use unwedge_isa::amdgcn::model::{Class, EncodingLayout, Field};
use unwedge_isa::amdgcn::tables::Variant;
use unwedge_isa::amdgcn::{Gpu, codec, tables, text};

/// Numbers that are the same in every run.
pub struct Numbers(pub u64);

impl Numbers {
    /// The next, below a bound.
    pub fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    /// One of several.
    pub fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.next(all.len() as u64) as usize]
    }
}

/// GPUs and features such that every column of the table is there, and every need of a row met by one.
pub const GPUS: &[(&str, &str)] = &[
    ("gfx600", ""),
    ("gfx700", ""),
    ("gfx802", ""),
    ("gfx810", ""),
    ("gfx900", ""),
    ("gfx906", ""),
    ("gfx908", ""),
    ("gfx90a", ""),
    ("gfx942", ""),
    ("gfx950", ""),
    ("gfx1010", ""),
    ("gfx1011", "+wavefrontsize64"),
    ("gfx1013", ""),
    ("gfx1030", ""),
    ("gfx1030", "+wavefrontsize64"),
    ("gfx1100", ""),
    ("gfx1100", "+wavefrontsize64"),
    ("gfx1100", "+real-true16"),
    ("gfx1150", ""),
    ("gfx1150", "+real-true16"),
    ("gfx1200", ""),
    ("gfx1200", "+real-true16"),
    ("gfx1030", "+llvm23"),
    ("gfx1100", "+llvm23"),
    ("gfx1150", "+llvm23"),
    ("gfx1200", "+llvm23,+wavefrontsize64"),
    ("gfx1201", "+wavefrontsize64"),
];

/// A GPU in a mode.
pub fn gpu(name: &str, features: &str) -> Gpu {
    Gpu::new(name).and_then(|gpu| gpu.with_features(features)).expect("a GPU")
}

/// The words of a line, or what is wrong with it.
pub fn assemble(text: &str, gpu: &Gpu) -> Result<Vec<u32>, String> {
    let inst = text::parse_line(text, gpu, &()).map_err(|e| e.to_string())?;
    codec::encode(&inst, gpu).map(|words| words.as_slice().to_vec()).map_err(|e| e.to_string())
}

/// The text of words that are one instruction and no more.
pub fn disassemble(words: &[u32], gpu: &Gpu) -> Option<String> {
    let decoded = codec::decode(words, gpu).filter(|decoded| usize::from(decoded.dwords) == words.len())?;
    let mut out = String::new();
    text::write(&decoded.inst, gpu, &mut out);
    Some(out)
}

/// The numbers of the variants a GPU has.
pub fn variants(gpu: &Gpu) -> impl Iterator<Item = (u16, &'static Variant)> {
    let gpu = *gpu;
    (0u16..).zip(tables::variants()).filter(move |(_, variant)| tables::has(variant, &gpu))
}

/// A value for a field that is likely to mean something there.
fn likely(field: Field, width: u8, numbers: &mut Numbers) -> u64 {
    let all = 1u64 << width.min(32);
    let value = match (field, numbers.next(4)) {
        (Field::Nsa, _) => numbers.next(all),
        (Field::Scale0 | Field::Scale1, _) => 256 + numbers.next(256),
        (Field::Saddr | Field::Soffset, 0) => 0x7c + numbers.next(4),
        (Field::Srsrc | Field::Ssamp | Field::Sbase, _) => numbers.next(24) & !1,
        (Field::Sdst, 0) => 102 + numbers.next(26),
        (Field::Sdst, _) => numbers.next(6) * 16,
        (Field::Dmask, 0) => 15,
        (Field::Dmask, _) => 1 << numbers.next(4),
        (Field::BufFormat, 0 | 1) => 1,
        (Field::Saddr | Field::Soffset, _) => numbers.next(50) * 2,
        (Field::Src0 | Field::Src1 | Field::Src2 | Field::Ssrc0 | Field::Ssrc1, 0) => numbers.next(26) * 4,
        (Field::Src0 | Field::Src1 | Field::Src2, 1) => 256 + numbers.next(256),
        (Field::Src0 | Field::Src1 | Field::Src2, 2) => 128 + numbers.next(128),
        (Field::Ssrc0 | Field::Ssrc1, 1 | 2) => 128 + numbers.next(128),
        (Field::DppCtrl, 0 | 1) => numbers.next(256),
        (Field::DppCtrl, 2) => 256 + numbers.next(128),
        (Field::Src0 | Field::Src1 | Field::Src2 | Field::Ssrc0 | Field::Ssrc1, _) => numbers.next(all),
        (Field::LaneSel | Field::SrcX0 | Field::SrcY0, _) => numbers.next(all),
        (_, 0 | 1) => 0,
        _ if width == 1 => numbers.next(4) / 3,
        _ => numbers.next(all),
    };
    value % all
}

/// Words that may be of a variant: its opcode, values in the fields it has.
fn guess(
    variant: &Variant,
    layout: &EncodingLayout,
    opcode: u64,
    numbers: &mut Numbers,
    gpu: &Gpu,
) -> Vec<u32> {
    let op = layout.fields[Field::Op as usize];
    let mut bits = u128::from(layout.high_value) << 64 | u128::from(layout.value);
    let quiet = numbers.next(2) == 0;
    for (at, place) in layout.fields.iter().enumerate().filter(|(_, place)| place.width > 0) {
        let field = Field::ALL[at];
        let slot = variant.slots.iter().find(|slot| slot.field == field);
        let modifier = variant.mods.iter().find(|slot| slot.field == field);
        let named = slot.is_some() || modifier.is_some();
        let value = match field {
            Field::Op => opcode % (1 << op.width),
            Field::OpHi => opcode >> op.width,
            // Rays have these set; what has them among its modifiers may have any.
            Field::Dmask | Field::Unorm | Field::R128 if !named => (1 << place.width) - 1,
            Field::BufFormat if !named => 1,
            Field::Sve | Field::Soe | Field::Imm => numbers.next(2),
            Field::Saddr if !named => [0, 0x7c, 0x7d][numbers.next(3) as usize],
            Field::Nsa | Field::Vaddr0 | Field::Vaddr1 | Field::Vaddr2 => likely(field, place.width, numbers),
            Field::Vaddr3 | Field::Vaddr4 if quiet => likely(field, place.width, numbers),
            Field::S0 | Field::S1 | Field::Sd | Field::Chan => numbers.next(1 << place.width),
            Field::FiCode => 1 + numbers.next(2),
            // A register read or written without being named still has its code there.
            Field::Vdst | Field::Sdst if slot.is_some_and(|slot| slot.class == Class::Implicit) => 0x7e,
            Field::OpSelHi | Field::OpSelHi2 if quiet => (1 << place.width) - 1,
            _ if modifier.is_some() && quiet => 0,
            field if named => likely(field, place.width, numbers),
            // What LLVM 23 makes of sources that are not there.
            Field::Src0 | Field::Src1 | Field::Src2 if gpu.llvm23() => 128 * numbers.next(2),
            _ => 0,
        };
        bits |= u128::from(value) << place.lsb;
    }
    (0..layout.dwords).map(|at| (bits >> (32 * u32::from(at))) as u32).collect()
}

/// Up to `most` different instructions of a variant with their words, found among `tries` guesses.
pub fn instructions(
    number: u16,
    gpu: &Gpu,
    numbers: &mut Numbers,
    tries: usize,
    most: usize,
) -> Vec<(SizedInst, Vec<u32>)> {
    let variant = &tables::variants()[usize::from(number)];
    let layout = tables::layout(variant.encoding, gpu).expect("a layout of every encoding in use");
    let opcode = u64::from(variant.opcodes[gpu.generation() as usize]);
    let mut out: Vec<(SizedInst, Vec<u32>)> = Vec::new();
    for _ in 0..tries {
        let mut words = guess(variant, layout, opcode, numbers, gpu);
        // What follows may be a literal, of 16 bits for some.
        let mask = if numbers.next(2) == 0 { 0xffff } else { u32::MAX };
        words.extend((0..3).map(|_| numbers.next(1 << 31) as u32 & mask));
        let Some(decoded) = codec::decode(&words, gpu).filter(|d| d.inst.number() == number) else {
            continue;
        };
        words.truncate(decoded.dwords.into());
        if out.iter().all(|(_, have)| *have != words) {
            out.push((decoded, words));
        }
        if out.len() == most {
            break;
        }
    }
    out
}
