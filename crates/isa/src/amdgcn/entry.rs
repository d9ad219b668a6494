//! What registers hold at the first instruction of a kernel of HSA, as its descriptor asks for it.
//!
//! Facts: the AMDGPU chapter of LLVM's documentation (Initial Kernel Execution State). Never: what a driver puts into the
//! memory these registers point to.

use super::descriptor::{
    self, DIRECTIVES, DescriptorBits, DescriptorTarget, DirectiveEffect, FLOAT_MODE, GROUP_SGPRS, RSRC2,
    SCRATCH, SIZE, USER_SGPR_COUNT, WAVE32, WORKITEM_ID,
};
use super::model::Gfx;
use super::{Gpu, Reg};

/// What scalar registers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SgprPreset {
    /// The buffer descriptor of scratch.
    PrivateSegmentBuffer,
    /// The address of the dispatch packet.
    DispatchPtr,
    /// The address of the queue.
    QueuePtr,
    /// The address of the arguments.
    KernargSegmentPtr,
    /// The number of the dispatch.
    DispatchId,
    /// What FLAT_SCRATCH is made of.
    FlatScratchInit,
    /// Bytes of scratch of a lane.
    PrivateSegmentSize,
    /// The workgroup's place along an axis.
    WorkgroupId(u8),
    /// Where the wave is in its workgroup.
    WorkgroupInfo,
    /// Bytes between the scratch of all and that of the wave.
    ScratchOffset,
}

/// The state a kernel begins in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelEntry {
    /// Scalar registers that are set: the first, how many, and what they hold.
    pub scalars: Vec<(Reg, u8, SgprPreset)>,
    /// The workgroup's place is in `ttmp9` (x) and `ttmp7` (y, z), whatever else says where.
    pub place_in_ttmp: bool,
    /// Axes of the thread's place that vector registers from v0 on hold: 1 to 3.
    pub axes: u8,
    /// All axes are in v0, 10 bits each.
    pub packed: bool,
    /// Bytes of LDS of a workgroup that the kernel asks for at least.
    pub lds: u32,
    /// Bytes of scratch of a lane that the kernel asks for at least.
    pub scratch: u32,
    /// Bytes of arguments; 0: not said.
    pub arguments: u32,
    /// The MODE register.
    pub mode: u32,
}

impl KernelEntry {
    /// The state that a descriptor asks for.
    pub fn of(bytes: &[u8; SIZE], gpu: &Gpu) -> KernelEntry {
        let generation = gpu.generation();
        let exists = |directive: &&descriptor::KernelDirective| directive.exists(DescriptorTarget::of(gpu));
        let value = |name: &str| {
            let found = DIRECTIVES.iter().filter(exists).find(|directive| directive.name == name);
            match found.map(|directive| directive.sets) {
                Some(DirectiveEffect::Bits(place) | DirectiveEffect::User(place, _)) => {
                    descriptor::get(bytes, place)
                }
                _ => 0,
            }
        };
        let mut scalars = Vec::new();
        let mut next = 0;
        for directive in DIRECTIVES.iter().filter(exists) {
            if let (DirectiveEffect::User(place, count), Some(given)) = (directive.sets, user(directive.name))
                && descriptor::get(bytes, place) == 1
            {
                scalars.push((Reg::sgpr(next), count, given));
                next += count;
            }
        }
        // Those of the hardware follow those of the user, of which there may be more than are asked for.
        next = value("user_sgpr_count") as u8;
        let place_in_ttmp = generation >= Gfx::Gfx12;
        let system = [
            ("system_sgpr_workgroup_id_x", SgprPreset::WorkgroupId(0), place_in_ttmp),
            ("system_sgpr_workgroup_id_y", SgprPreset::WorkgroupId(1), place_in_ttmp),
            ("system_sgpr_workgroup_id_z", SgprPreset::WorkgroupId(2), place_in_ttmp),
            ("system_sgpr_workgroup_info", SgprPreset::WorkgroupInfo, false),
            ("system_sgpr_private_segment_wavefront_offset", SgprPreset::ScratchOffset, false),
        ];
        for (name, given, elsewhere) in system {
            if value(name) == 1 && !elsewhere {
                scalars.push((Reg::sgpr(next), 1, given));
                next += 1;
            }
        }
        let modes = value("dx10_clamp") << 8 | value("ieee_mode") << 9 | value("fp16_overflow") << 23;
        KernelEntry {
            scalars,
            place_in_ttmp,
            axes: value("system_vgpr_workitem_id").min(2) as u8 + 1,
            packed: generation >= Gfx::Gfx11,
            lds: value("group_segment_fixed_size"),
            scratch: value("private_segment_fixed_size"),
            arguments: value("kernarg_size"),
            mode: descriptor::get(bytes, FLOAT_MODE) | modes,
        }
    }
}

/// How many registers are set when a kernel starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRegCounts {
    /// Scalar registers, from `s0` on: user registers, and behind them those of the workgroup.
    pub sgprs: u16,
    /// Vector registers, from `v0` on: places of threads.
    pub vgprs: u16,
    /// Lanes of its waves, where there is a choice and it is told: 32 or not.
    pub wave32: Option<bool>,
}

impl EntryRegCounts {
    /// By a descriptor.
    pub fn of(bytes: &[u8; SIZE], generation: Gfx) -> EntryRegCounts {
        let wave32 = (generation >= Gfx::Gfx10).then(|| descriptor::get(bytes, WAVE32) == 1);
        let rsrc2 = descriptor::get(bytes, DescriptorBits { byte: RSRC2, lsb: 0, width: 32 });
        EntryRegCounts { wave32, ..EntryRegCounts::of_rsrc2(rsrc2, generation) }
    }

    /// By `COMPUTE_PGM_RSRC2` alone, which does not tell the lanes.
    pub fn of_rsrc2(rsrc2: u32, generation: Gfx) -> EntryRegCounts {
        let bits = |place: DescriptorBits| place.of_word(rsrc2);
        // From gfx12 on places of workgroups are in trap registers, from gfx11 on the hardware sets scratch up.
        let group = if generation >= Gfx::Gfx12 { 0 } else { GROUP_SGPRS.map(bits).iter().sum() };
        let scratch = if generation >= Gfx::Gfx11 { 0 } else { bits(SCRATCH) };
        // There a thread's whole place is in one register.
        let vgprs = if generation >= Gfx::Gfx11 { 1 } else { 1 + bits(WORKITEM_ID).min(2) };
        EntryRegCounts {
            sgprs: (bits(USER_SGPR_COUNT) + group + scratch) as u16,
            vgprs: vgprs as u16,
            wave32: None,
        }
    }
}

fn user(name: &str) -> Option<SgprPreset> {
    Some(match name {
        "user_sgpr_private_segment_buffer" => SgprPreset::PrivateSegmentBuffer,
        "user_sgpr_dispatch_ptr" => SgprPreset::DispatchPtr,
        "user_sgpr_queue_ptr" => SgprPreset::QueuePtr,
        "user_sgpr_kernarg_segment_ptr" => SgprPreset::KernargSegmentPtr,
        "user_sgpr_dispatch_id" => SgprPreset::DispatchId,
        "user_sgpr_flat_scratch_init" => SgprPreset::FlatScratchInit,
        "user_sgpr_private_segment_size" => SgprPreset::PrivateSegmentSize,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use descriptor::DescriptorBuilder;

    fn descriptor(gpu: &str, values: &[(&str, i64)]) -> (Gpu, [u8; SIZE]) {
        let gpu = Gpu::new(gpu).unwrap();
        let mut builder = DescriptorBuilder::new(DescriptorTarget::of(&gpu));
        for (name, value) in [("next_free_vgpr", 8), ("next_free_sgpr", 32)].iter().chain(values) {
            builder.set(name, *value).unwrap();
        }
        (gpu, builder.finish().unwrap())
    }

    fn entry(gpu: &str, values: &[(&str, i64)]) -> KernelEntry {
        let (gpu, bytes) = descriptor(gpu, values);
        KernelEntry::of(&bytes, &gpu)
    }

    fn set(gpu: &str, values: &[(&str, i64)]) -> EntryRegCounts {
        let (gpu, bytes) = descriptor(gpu, values);
        EntryRegCounts::of(&bytes, gpu.generation())
    }

    #[test]
    fn the_mode_is_that_of_the_descriptor() {
        let asked = [("fp16_overflow", 1), ("float_denorm_mode_32", 3)];
        assert_eq!(entry("gfx900", &asked).mode, 1 << 23 | 0x3f0);
        assert_eq!(entry("gfx900", &[]).mode, 0x3c0);
        assert_eq!(entry("gfx1200", &asked).mode, 1 << 23 | 0xf0);
        assert_eq!(entry("gfx803", &[]).mode, 0x3c0);
    }

    #[test]
    fn registers_follow_each_other() {
        let asked = [
            ("user_sgpr_kernarg_segment_ptr", 1),
            ("user_sgpr_private_segment_buffer", 1),
            ("user_sgpr_dispatch_ptr", 1),
            ("system_sgpr_workgroup_id_z", 1),
            ("system_sgpr_private_segment_wavefront_offset", 1),
            ("system_vgpr_workitem_id", 1),
            ("group_segment_fixed_size", 512),
        ];
        let found = entry("gfx900", &asked);
        let expected = [
            (Reg::sgpr(0), 4, SgprPreset::PrivateSegmentBuffer),
            (Reg::sgpr(4), 2, SgprPreset::DispatchPtr),
            (Reg::sgpr(6), 2, SgprPreset::KernargSegmentPtr),
            (Reg::sgpr(8), 1, SgprPreset::WorkgroupId(0)),
            (Reg::sgpr(9), 1, SgprPreset::WorkgroupId(2)),
            (Reg::sgpr(10), 1, SgprPreset::ScratchOffset),
        ];
        assert_eq!(found.scalars, expected);
        assert_eq!((found.axes, found.packed, found.lds, found.mode), (2, false, 512, 0x3c0));
        assert_eq!(set("gfx900", &asked), EntryRegCounts { sgprs: 11, vgprs: 2, wave32: None });
    }

    #[test]
    fn padding_and_places_elsewhere() {
        let asked =
            [("user_sgpr_kernarg_segment_ptr", 1), ("user_sgpr_count", 15), ("float_denorm_mode_32", 3)];
        let found = entry("gfx1100", &asked);
        let expected = [
            (Reg::sgpr(0), 2, SgprPreset::KernargSegmentPtr),
            (Reg::sgpr(15), 1, SgprPreset::WorkgroupId(0)),
        ];
        assert_eq!((found.scalars.as_slice(), found.packed, found.mode), (&expected[..], true, 0x3f0));
        assert_eq!(set("gfx1100", &asked), EntryRegCounts { sgprs: 16, vgprs: 1, wave32: Some(true) });
        assert_eq!(set("gfx1200", &asked), EntryRegCounts { sgprs: 15, vgprs: 1, wave32: Some(true) });
        let found = entry("gfx1200", &asked);
        assert_eq!(found.scalars, [(Reg::sgpr(0), 2, SgprPreset::KernargSegmentPtr)]);
        assert!(found.place_in_ttmp);
    }
}
