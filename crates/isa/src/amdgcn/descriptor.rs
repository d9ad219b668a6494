//! Kernel descriptors: the 64 bytes that tell HSA how to start a kernel, as the `.amdhsa_` directives write them.
//!
//! One table has every directive with its bits; descriptors are made from it and told by it. Facts: the AMDGPU chapter of
//! LLVM's documentation, checked against the bytes that LLVM 19 makes for each directive and generation. Never: text of
//! a file ([`super::source`] reads that), ELF.

use super::Gpu;
use super::model::Gfx;

/// Bytes of a descriptor.
pub const SIZE: usize = 64;
/// Where the distance from the descriptor to the code stands: eight bytes.
pub const ENTRY: usize = 16;

/// Bits of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorBits {
    /// First byte of the word.
    pub byte: u8,
    /// Lowest bit in it.
    pub lsb: u8,
    /// How many.
    pub width: u8,
}

const fn at(byte: u8, lsb: u8, width: u8) -> DescriptorBits {
    DescriptorBits { byte, lsb, width }
}

/// Where a descriptor has the values of `COMPUTE_PGM_RSRC1` to `3`, whose bits `unwedge_hw` knows; a test compares.
pub const RSRC3: u8 = 44;
/// Where accumulation registers begin: fours, less one.
pub const ACCUM_OFFSET: DescriptorBits = at(RSRC3, 0, 6);
/// See [`RSRC3`].
pub const RSRC1: u8 = 48;
/// See [`RSRC3`].
pub const RSRC2: u8 = 52;
const PROPERTIES: u8 = 56;

/// Number of vector registers, in granules less one.
pub const VGPR_GRANULES: DescriptorBits = at(RSRC1, 0, 6);
/// Number of scalar registers, in granules less one; 0 from gfx10 on.
pub const SGPR_GRANULES: DescriptorBits = at(RSRC1, 6, 4);
/// Rounding and denormals, as MODE has them: the four fields that directives set.
pub const FLOAT_MODE: DescriptorBits = at(RSRC1, 12, 8);
/// Up to gfx10.3 the wave's offset to its scratch is in a scalar register; from gfx11 on there is scratch at all.
pub(super) const SCRATCH: DescriptorBits = at(RSRC2, 0, 1);
/// How many scalar registers are set before the kernel starts.
pub(super) const USER_SGPR_COUNT: DescriptorBits = at(RSRC2, 1, 5);
/// Which of the workgroup's x, y, z and where the wave is in it scalar registers have.
pub(super) const GROUP_SGPRS: [DescriptorBits; 4] =
    [at(RSRC2, 7, 1), at(RSRC2, 8, 1), at(RSRC2, 9, 1), at(RSRC2, 10, 1)];
/// How many axes of a thread's place vector registers have beyond x.
pub(super) const WORKITEM_ID: DescriptorBits = at(RSRC2, 11, 2);
/// Lanes: 32 if set.
pub const WAVE32: DescriptorBits = at(PROPERTIES, 10, 1);

/// What a directive sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectiveEffect {
    /// These bits.
    Bits(DescriptorBits),
    /// These bits, and so many user SGPRs are needed for what they ask for.
    User(DescriptorBits, u8),
    /// Registers the code uses; the granules follow.
    NextFreeVgpr,
    /// See [`DirectiveEffect::NextFreeVgpr`].
    NextFreeSgpr,
    /// Where accumulation registers begin, in fours.
    AccumOffset,
    /// Whether scalar registers are counted for these.
    ReserveVcc,
    /// See [`DirectiveEffect::ReserveVcc`].
    ReserveFlatScratch,
    /// See [`DirectiveEffect::ReserveVcc`].
    ReserveXnackMask,
}

/// What the GPU must be for a directive to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectiveCondition {
    /// Always.
    Always,
    /// From this generation on.
    From(Gfx),
    /// Up to this generation.
    Until(Gfx),
    /// From one generation to another.
    Between(Gfx, Gfx),
    /// Generations on which code sets up its scratch.
    ScratchByCode,
    /// Generations on which the hardware does.
    ScratchByHardware,
}

impl DirectiveCondition {
    fn holds(self, generation: Gfx) -> bool {
        match self {
            Always => true,
            From(first) => generation >= first,
            Until(last) => generation <= last,
            Between(first, last) => generation >= first && generation <= last,
            ScratchByCode => !scratch_by_hardware(generation),
            ScratchByHardware => scratch_by_hardware(generation),
        }
    }
}

/// Whether the hardware sets up scratch: on MI300 and from gfx11 on.
fn scratch_by_hardware(generation: Gfx) -> bool {
    generation.is_mi300() || generation >= Gfx::Gfx11
}

/// A directive between `.amdhsa_kernel` and `.end_amdhsa_kernel`.
#[derive(Clone, Copy, Debug)]
pub struct KernelDirective {
    /// Without its `.amdhsa_`.
    pub name: &'static str,
    /// What it sets.
    pub sets: DirectiveEffect,
    /// The largest value it takes.
    pub max: u32,
    /// The value where it is left out.
    pub default: u32,
    /// Where it exists.
    pub when: DirectiveCondition,
}

impl KernelDirective {
    /// Whether it exists for a target.
    pub fn exists(&self, target: DescriptorTarget) -> bool {
        let flat = self.sets == DirectiveEffect::ReserveFlatScratch;
        self.when.holds(target.generation) && !(flat && scratch_by_hardware(target.generation))
    }
}

const fn bits(
    name: &'static str,
    place: DescriptorBits,
    default: u32,
    when: DirectiveCondition,
) -> KernelDirective {
    let max = if place.width >= 32 { u32::MAX } else { (1 << place.width) - 1 };
    KernelDirective { name, sets: DirectiveEffect::Bits(place), max, default, when }
}

const fn user(name: &'static str, bit: u8, sgprs: u8, when: DirectiveCondition) -> KernelDirective {
    KernelDirective {
        name,
        sets: DirectiveEffect::User(at(PROPERTIES, bit, 1), sgprs),
        max: 1,
        default: 0,
        when,
    }
}

const fn count(
    name: &'static str,
    sets: DirectiveEffect,
    max: u32,
    default: u32,
    when: DirectiveCondition,
) -> KernelDirective {
    KernelDirective { name, sets, max, default, when }
}

use DirectiveCondition::{Always, Between, From, ScratchByCode, ScratchByHardware, Until};

/// Where vector and accumulation registers are one file.
const UNIFIED: DirectiveCondition = Between(Gfx::Gfx90a, Gfx::Gfx950);
const NEXT_FREE_VGPR: &str = "next_free_vgpr";
const ACCUM_OFFSET_NAME: &str = "accum_offset";
const NEXT_FREE_SGPR: &str = "next_free_sgpr";

/// Every directive.
pub static DIRECTIVES: [KernelDirective; 52] = [
    bits("group_segment_fixed_size", at(0, 0, 32), 0, Always),
    bits("private_segment_fixed_size", at(4, 0, 32), 0, Always),
    bits("kernarg_size", at(8, 0, 32), 0, Always),
    bits("user_sgpr_count", USER_SGPR_COUNT, 0, Always),
    user("user_sgpr_private_segment_buffer", 0, 4, ScratchByCode),
    user("user_sgpr_dispatch_ptr", 1, 2, Always),
    user("user_sgpr_queue_ptr", 2, 2, Always),
    user("user_sgpr_kernarg_segment_ptr", 3, 2, Always),
    user("user_sgpr_dispatch_id", 4, 2, Always),
    user("user_sgpr_flat_scratch_init", 5, 2, ScratchByCode),
    user("user_sgpr_private_segment_size", 6, 1, Always),
    KernelDirective {
        name: "user_sgpr_kernarg_preload_length",
        sets: DirectiveEffect::User(at(PROPERTIES, 16, 7), 1),
        max: 127,
        default: 0,
        when: UNIFIED,
    },
    bits("user_sgpr_kernarg_preload_offset", at(PROPERTIES, 23, 9), 0, UNIFIED),
    bits("wavefront_size32", WAVE32, 1, From(Gfx::Gfx10)),
    bits("uses_dynamic_stack", at(PROPERTIES, 11, 1), 0, Always),
    bits("system_sgpr_private_segment_wavefront_offset", SCRATCH, 0, ScratchByCode),
    bits("enable_private_segment", SCRATCH, 0, ScratchByHardware),
    bits("system_sgpr_workgroup_id_x", GROUP_SGPRS[0], 1, Always),
    bits("system_sgpr_workgroup_id_y", GROUP_SGPRS[1], 0, Always),
    bits("system_sgpr_workgroup_id_z", GROUP_SGPRS[2], 0, Always),
    bits("system_sgpr_workgroup_info", GROUP_SGPRS[3], 0, Always),
    bits("system_vgpr_workitem_id", WORKITEM_ID, 0, Always),
    count(NEXT_FREE_VGPR, DirectiveEffect::NextFreeVgpr, 256, 0, Until(Gfx::Gfx908)),
    count(NEXT_FREE_VGPR, DirectiveEffect::NextFreeVgpr, 512, 0, UNIFIED),
    count(NEXT_FREE_VGPR, DirectiveEffect::NextFreeVgpr, 256, 0, From(Gfx::Gfx10)),
    count(ACCUM_OFFSET_NAME, DirectiveEffect::AccumOffset, 256, 0, UNIFIED),
    bits("tg_split", at(RSRC3, 16, 1), 0, UNIFIED),
    count(NEXT_FREE_SGPR, DirectiveEffect::NextFreeSgpr, 106, 0, Always),
    count("reserve_vcc", DirectiveEffect::ReserveVcc, 1, 1, Always),
    count(
        "reserve_flat_scratch",
        DirectiveEffect::ReserveFlatScratch,
        1,
        1,
        Between(Gfx::Gfx7, Gfx::Gfx10_3),
    ),
    count("reserve_xnack_mask", DirectiveEffect::ReserveXnackMask, 1, 0, From(Gfx::Gfx8)),
    bits("float_round_mode_32", at(RSRC1, 12, 2), 0, Always),
    bits("float_round_mode_16_64", at(RSRC1, 14, 2), 0, Always),
    bits("float_denorm_mode_32", at(RSRC1, 16, 2), 0, Always),
    bits("float_denorm_mode_16_64", at(RSRC1, 18, 2), 3, Always),
    bits("dx10_clamp", at(RSRC1, 21, 1), 1, Until(Gfx::Gfx11_5)),
    bits("ieee_mode", at(RSRC1, 23, 1), 1, Until(Gfx::Gfx11_5)),
    bits("fp16_overflow", at(RSRC1, 26, 1), 0, From(Gfx::Gfx9)),
    bits("workgroup_processor_mode", at(RSRC1, 29, 1), 1, From(Gfx::Gfx10)),
    bits("memory_ordered", at(RSRC1, 30, 1), 1, From(Gfx::Gfx10)),
    bits("forward_progress", at(RSRC1, 31, 1), 0, From(Gfx::Gfx10)),
    bits("shared_vgpr_count", at(RSRC3, 0, 4), 0, Between(Gfx::Gfx10, Gfx::Gfx11_5)),
    bits("inst_pref_size", at(RSRC3, 4, 6), 0, Between(Gfx::Gfx11, Gfx::Gfx11_5)),
    bits("inst_pref_size", at(RSRC3, 4, 8), 0, From(Gfx::Gfx12)),
    bits("round_robin_scheduling", at(RSRC1, 21, 1), 0, From(Gfx::Gfx12)),
    bits("exception_fp_ieee_invalid_op", at(RSRC2, 24, 1), 0, Always),
    bits("exception_fp_denorm_src", at(RSRC2, 25, 1), 0, Always),
    bits("exception_fp_ieee_div_zero", at(RSRC2, 26, 1), 0, Always),
    bits("exception_fp_ieee_overflow", at(RSRC2, 27, 1), 0, Always),
    bits("exception_fp_ieee_underflow", at(RSRC2, 28, 1), 0, Always),
    bits("exception_fp_ieee_inexact", at(RSRC2, 29, 1), 0, Always),
    bits("exception_int_div_zero", at(RSRC2, 30, 1), 0, Always),
];

/// The GPU a descriptor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorTarget {
    /// Its generation.
    pub generation: Gfx,
    /// Whether waves have 32 lanes where a kernel does not say otherwise.
    pub wave32: bool,
    /// Whether page faults can be retried, which costs scalar registers before gfx10.
    pub xnack: bool,
    /// Whether a chip starts wrongly with any other number of scalar registers than 96.
    pub fixed_sgprs: bool,
}

impl DescriptorTarget {
    /// That of a GPU.
    pub fn of(gpu: &Gpu) -> DescriptorTarget {
        DescriptorTarget {
            generation: gpu.generation(),
            wave32: !gpu.wave64(),
            xnack: gpu.xnack(),
            fixed_sgprs: gpu.version() == [8, 0, 2],
        }
    }
}

/// Why a directive does not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorError {
    /// No such directive.
    #[error("no such directive in a kernel descriptor")]
    Unknown,
    /// Not on this GPU.
    #[error("this GPU's kernel descriptors do not have that")]
    NotHere,
    /// Said a second time.
    #[error("given before")]
    Twice,
    /// Too large or negative.
    #[error("{0} is out of range, it may be 0 to {1}")]
    Range(i64, u32),
    /// Otherwise than the GPU's features say.
    #[error("the target's xnack makes this {0}; name it with --features +xnack or -xnack")]
    Xnack(i64),
    /// A directive every kernel needs was left out.
    #[error(".amdhsa_{0} is missing")]
    Missing(&'static str),
    /// Accumulation registers begin where they may not.
    #[error("accumulation registers cannot begin at {0}, only at multiples of 4 from 4 to {1}")]
    AccumOffset(u32, u32),
    /// More registers than the GPU has.
    #[error("{0} scalar registers are more than a wave can have: {1}")]
    TooManySgprs(u32, u32),
    /// A count that is less than what is asked for needs.
    #[error("{0} user SGPRs are fewer than the {1} that are asked for")]
    UserSgprs(u32, u32),
}

/// A descriptor as it is being written, directive by directive.
#[derive(Clone, Debug)]
pub struct DescriptorBuilder {
    target: DescriptorTarget,
    values: [Option<u32>; DIRECTIVES.len()],
}

impl DescriptorBuilder {
    /// A descriptor with nothing said.
    pub fn new(target: DescriptorTarget) -> DescriptorBuilder {
        DescriptorBuilder { target, values: [None; DIRECTIVES.len()] }
    }

    /// A directive, without its `.amdhsa_`.
    ///
    /// # Errors
    /// When there is none of that name here, its value does not fit, or it was there before.
    pub fn set(&mut self, name: &str, value: i64) -> Result<(), DescriptorError> {
        let mut known = false;
        for (directive, slot) in DIRECTIVES.iter().zip(&mut self.values) {
            if directive.name != name {
                continue;
            }
            known = true;
            if !directive.exists(self.target) {
                continue;
            }
            if slot.is_some() {
                return Err(DescriptorError::Twice);
            }
            let said_by_target = i64::from(self.target.xnack);
            if directive.sets == DirectiveEffect::ReserveXnackMask
                && value >> 1 == 0
                && value != said_by_target
            {
                return Err(DescriptorError::Xnack(said_by_target));
            }
            let fits = u32::try_from(value).ok().filter(|&v| v <= directive.max);
            *slot = Some(fits.ok_or(DescriptorError::Range(value, directive.max))?);
            return Ok(());
        }
        Err(if known { DescriptorError::NotHere } else { DescriptorError::Unknown })
    }

    /// The descriptor, with nothing yet where the distance to the code stands.
    ///
    /// # Errors
    /// When a directive is missing, or the registers do not fit the GPU.
    pub fn finish(&self) -> Result<[u8; SIZE], DescriptorError> {
        let mut bytes = [0; SIZE];
        let (mut needed, mut vgprs, mut sgprs, mut claimed) = (0, None, None, None);
        let mut accumulation = None;
        let (mut vcc, mut flat, mut xnack) = (false, false, self.target.xnack);
        for (directive, &given) in DIRECTIVES.iter().zip(&self.values) {
            if !directive.exists(self.target) {
                // Counted all the same on gfx6 and where the hardware sets it up, as LLVM does.
                flat |= directive.sets == DirectiveEffect::ReserveFlatScratch
                    && (self.target.generation == Gfx::Gfx6 || scratch_by_hardware(self.target.generation));
                continue;
            }
            let default = match directive.sets {
                DirectiveEffect::Bits(place) if place == WAVE32 => u32::from(self.target.wave32),
                _ => directive.default,
            };
            let value = given.unwrap_or(default);
            match directive.sets {
                DirectiveEffect::Bits(place) if place == USER_SGPR_COUNT => claimed = given,
                DirectiveEffect::Bits(place) => put(&mut bytes, place, value),
                DirectiveEffect::User(place, count) => {
                    put(&mut bytes, place, value);
                    needed += value * u32::from(count);
                }
                DirectiveEffect::NextFreeVgpr => vgprs = given,
                DirectiveEffect::NextFreeSgpr => sgprs = given,
                DirectiveEffect::AccumOffset => accumulation = Some(given),
                DirectiveEffect::ReserveVcc => vcc = value != 0,
                DirectiveEffect::ReserveFlatScratch => flat = value != 0,
                DirectiveEffect::ReserveXnackMask => xnack = given.map_or(xnack, |v| v != 0),
            }
        }
        let vgprs = vgprs.ok_or(DescriptorError::Missing(NEXT_FREE_VGPR))?;
        let sgprs = sgprs.ok_or(DescriptorError::Missing(NEXT_FREE_SGPR))?;
        if let Some(claimed) = claimed.filter(|&claimed| claimed < needed) {
            return Err(DescriptorError::UserSgprs(claimed, needed));
        }
        put(&mut bytes, USER_SGPR_COUNT, claimed.unwrap_or(needed));
        if let Some(offset) = accumulation {
            let offset = offset.ok_or(DescriptorError::Missing(ACCUM_OFFSET_NAME))?;
            let total = vgprs.max(1).next_multiple_of(4);
            if offset == 0 || offset % 4 != 0 || offset > total {
                return Err(DescriptorError::AccumOffset(offset, total.min(256)));
            }
            put(&mut bytes, ACCUM_OFFSET, offset / 4 - 1);
        }
        let granule = vgpr_granule(&bytes, self.target.generation);
        put(&mut bytes, VGPR_GRANULES, vgprs.max(1).div_ceil(granule) - 1);
        put(&mut bytes, SGPR_GRANULES, self.sgpr_granules(sgprs, vcc, flat, xnack)?);
        Ok(bytes)
    }

    fn sgpr_granules(&self, used: u32, vcc: bool, flat: bool, xnack: bool) -> Result<u32, DescriptorError> {
        let generation = self.target.generation;
        if generation >= Gfx::Gfx10 {
            return Ok(0);
        }
        let extra = match generation {
            Gfx::Gfx6 | Gfx::Gfx7 if flat => 4,
            _ if generation >= Gfx::Gfx8 && flat => 6,
            _ if generation >= Gfx::Gfx8 && xnack => 4,
            _ if vcc => 2,
            _ => 0,
        };
        // Up to gfx7 what is reserved lies among the registers a wave can name, from gfx8 on behind them.
        let (limit, counted) = if generation <= Gfx::Gfx7 { (104, used + extra) } else { (102, used) };
        if counted > limit {
            return Err(DescriptorError::TooManySgprs(counted, limit));
        }
        let total = if self.target.fixed_sgprs { 96 } else { (used + extra).max(1) };
        Ok(total.div_ceil(8) - 1)
    }
}

/// How many vector registers are one unit of their count.
fn vgpr_granule(bytes: &[u8; SIZE], generation: Gfx) -> u32 {
    if get(bytes, WAVE32) == 1 || UNIFIED.holds(generation) { 8 } else { 4 }
}

/// Puts a value into bits.
pub fn put(bytes: &mut [u8; SIZE], place: DescriptorBits, value: u32) {
    let (byte, mask) = (usize::from(place.byte), mask(place));
    let mut word = [bytes[byte], bytes[byte + 1], bytes[byte + 2], bytes[byte + 3]];
    let old = u32::from_le_bytes(word);
    word = (old & !(mask << place.lsb) | (value & mask) << place.lsb).to_le_bytes();
    bytes[byte..byte + 4].copy_from_slice(&word);
}

/// The value of bits.
pub fn get(bytes: &[u8; SIZE], place: DescriptorBits) -> u32 {
    let byte = usize::from(place.byte);
    let word = u32::from_le_bytes([bytes[byte], bytes[byte + 1], bytes[byte + 2], bytes[byte + 3]]);
    place.of_word(word)
}

impl DescriptorBits {
    /// The value of the bits in the word that holds them.
    pub const fn of_word(self, word: u32) -> u32 {
        word >> self.lsb & mask(self)
    }
}

const fn mask(place: DescriptorBits) -> u32 {
    if place.width >= 32 { u32::MAX } else { (1 << place.width) - 1 }
}

/// The directives that make a descriptor, with their values: all that are not at their default, and the two that every
/// kernel needs. The register counts are the largest that give the same granules, with all registers reserved that a kernel
/// reserves if it does not say otherwise.
pub fn directives(bytes: &[u8; SIZE], target: DescriptorTarget) -> Vec<(&'static str, u32)> {
    let mut all = Vec::new();
    let needed: u32 = DIRECTIVES
        .iter()
        .filter(|d| d.exists(target))
        .map(|d| match d.sets {
            DirectiveEffect::User(place, count) => get(bytes, place) * u32::from(count),
            _ => 0,
        })
        .sum();
    for directive in DIRECTIVES.iter().filter(|d| d.exists(target)) {
        let (value, usual) = match directive.sets {
            DirectiveEffect::Bits(place) if place == USER_SGPR_COUNT => (get(bytes, place), needed),
            DirectiveEffect::Bits(place) if place == WAVE32 => (get(bytes, place), u32::from(target.wave32)),
            DirectiveEffect::Bits(place) | DirectiveEffect::User(place, _) => {
                (get(bytes, place), directive.default)
            }
            DirectiveEffect::NextFreeVgpr => {
                let granule = vgpr_granule(bytes, target.generation);
                ((get(bytes, VGPR_GRANULES) + 1) * granule, u32::MAX)
            }
            DirectiveEffect::AccumOffset => ((get(bytes, ACCUM_OFFSET) + 1) * 4, u32::MAX),
            DirectiveEffect::NextFreeSgpr if target.generation >= Gfx::Gfx10 => (0, u32::MAX),
            DirectiveEffect::NextFreeSgpr => {
                let (limit, reserved) = if target.generation <= Gfx::Gfx7 { (100, 4) } else { (102, 6) };
                (((get(bytes, SGPR_GRANULES) + 1) * 8 - reserved).min(limit), u32::MAX)
            }
            DirectiveEffect::ReserveVcc
            | DirectiveEffect::ReserveFlatScratch
            | DirectiveEffect::ReserveXnackMask => continue,
        };
        if value != usual {
            all.push((directive.name, value));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(gpu: &str) -> DescriptorTarget {
        DescriptorTarget::of(&Gpu::new(gpu).unwrap())
    }

    fn built(gpu: &str, values: &[(&str, i64)]) -> Result<[u8; SIZE], DescriptorError> {
        let mut builder = DescriptorBuilder::new(target(gpu));
        for (name, value) in values {
            builder.set(name, *value)?;
        }
        builder.finish()
    }

    fn words(bytes: &[u8; SIZE]) -> Vec<(usize, u32)> {
        let words = bytes.as_chunks::<4>().0.iter().map(|w| u32::from_le_bytes(*w)).enumerate();
        words.map(|(i, w)| (4 * i, w)).filter(|(_, w)| *w != 0).collect()
    }

    const LEAST: [(&str, i64); 2] = [("next_free_vgpr", 0), ("next_free_sgpr", 0)];

    /// What LLVM 19 makes of the least descriptor.
    #[test]
    fn defaults() {
        for (gpu, expected) in [
            ("gfx600", &[(48, 0x00ac_0000), (52, 0x80)][..]),
            ("gfx802", &[(48, 0x00ac_02c0), (52, 0x80)]),
            ("gfx900", &[(48, 0x00ac_0000), (52, 0x80)]),
            ("gfx1030", &[(48, 0x60ac_0000), (52, 0x80), (56, 0x400)]),
            ("gfx908", &[(48, 0x00ac_0000), (52, 0x80)]),
            ("gfx1200", &[(48, 0x600c_0000), (52, 0x80), (56, 0x400)]),
        ] {
            assert_eq!(words(&built(gpu, &LEAST).unwrap()), expected, "{gpu}");
        }
    }

    /// Where the granules of register counts change, as LLVM 19 has them.
    #[test]
    fn register_granules() {
        for (gpu, vgprs, sgprs) in [
            ("gfx600", &[(4, 0), (5, 1), (253, 63)][..], &[(4, 0), (5, 1), (12, 1), (13, 2), (93, 12)][..]),
            ("gfx801", &[(4, 0), (256, 63)], &[(2, 0), (3, 1), (10, 1), (11, 2), (99, 13)]),
            ("gfx900", &[(4, 0), (8, 1)], &[(2, 0), (3, 1), (102, 13)]),
            ("gfx1030", &[(8, 0), (9, 1), (249, 31)], &[(0, 0), (106, 0)]),
        ] {
            for &(count, granules) in vgprs {
                let bytes = built(gpu, &[("next_free_vgpr", count), ("next_free_sgpr", 0)]).unwrap();
                assert_eq!(get(&bytes, VGPR_GRANULES), granules, "{gpu}: {count} VGPRs");
            }
            for &(count, granules) in sgprs {
                let bytes = built(gpu, &[("next_free_vgpr", 0), ("next_free_sgpr", count)]).unwrap();
                assert_eq!(get(&bytes, SGPR_GRANULES), granules, "{gpu}: {count} SGPRs");
            }
        }
        let many = built("gfx600", &[("next_free_vgpr", 0), ("next_free_sgpr", 101)]);
        assert_eq!(many, Err(DescriptorError::TooManySgprs(105, 104)));
    }

    #[test]
    fn what_is_asked_for_counts_as_user_sgprs() {
        let mut values = LEAST.to_vec();
        values.extend([("user_sgpr_private_segment_buffer", 1), ("user_sgpr_kernarg_segment_ptr", 1)]);
        let bytes = built("gfx900", &values).unwrap();
        assert_eq!(words(&bytes), [(48, 0x00ac_0000), (52, 0x8c), (56, 9)]);
        values.push(("user_sgpr_count", 5));
        assert_eq!(built("gfx900", &values), Err(DescriptorError::UserSgprs(5, 6)));
    }

    #[test]
    fn directives_that_do_not_do() {
        let one = |gpu, name, value| DescriptorBuilder::new(target(gpu)).set(name, value);
        assert_eq!(one("gfx900", "wavefront_size32", 1), Err(DescriptorError::NotHere));
        assert_eq!(one("gfx1200", "dx10_clamp", 1), Err(DescriptorError::NotHere));
        assert_eq!(one("gfx1030", "ieee_mode", 2), Err(DescriptorError::Range(2, 1)));
        assert_eq!(one("gfx1030", "ieee_mode", -1), Err(DescriptorError::Range(-1, 1)));
        assert_eq!(one("gfx1030", "no_such_thing", 0), Err(DescriptorError::Unknown));
        assert_eq!(
            built("gfx900", &[("next_free_vgpr", 1)]),
            Err(DescriptorError::Missing("next_free_sgpr"))
        );
        assert_eq!(built("gfx900", &[LEAST[0], LEAST[0]]), Err(DescriptorError::Twice));
    }

    /// What a descriptor is told as makes it again, whatever is in the bits that directives set.
    #[test]
    fn told_and_made_again() {
        for gpu in ["gfx600", "gfx700", "gfx803", "gfx900", "gfx1010", "gfx1100", "gfx1200"] {
            let target = target(gpu);
            let mut seed = 0x9e37_79b9_u32;
            for _ in 0..200 {
                let mut bytes = [0; SIZE];
                for directive in DIRECTIVES.iter().filter(|d| d.exists(target)) {
                    if let DirectiveEffect::Bits(place) | DirectiveEffect::User(place, _) = directive.sets {
                        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        put(&mut bytes, place, seed >> 7);
                    }
                }
                put(&mut bytes, USER_SGPR_COUNT, 31);
                let granules = if get(&bytes, WAVE32) == 1 { 31 } else { 63 };
                put(&mut bytes, VGPR_GRANULES, granules);
                if target.generation < Gfx::Gfx10 {
                    put(&mut bytes, SGPR_GRANULES, seed % 12);
                }
                let mut builder = DescriptorBuilder::new(target);
                for (name, value) in directives(&bytes, target) {
                    builder.set(name, i64::from(value)).unwrap();
                }
                assert_eq!(builder.finish().unwrap(), bytes, "{gpu}");
            }
        }
    }
}
