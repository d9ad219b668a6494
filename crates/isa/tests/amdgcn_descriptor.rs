//! The bits of kernel descriptors that are values of registers, against the registers of `unwedge_hw`: every directive lies
//! in one field of its register in each generation that has it, and every bit of a field is set by a directive or is
//! one that a descriptor does not set.

use unwedge_base::Gfx;
use unwedge_hw::amd::Amd;
use unwedge_hw::{Db, DecodedValue, Variants};
use unwedge_isa::amdgcn::Gpu;
use unwedge_isa::amdgcn::descriptor::{
    ACCUM_OFFSET, DIRECTIVES, DescriptorBits, DescriptorTarget, DirectiveEffect, RSRC1, RSRC2, RSRC3,
    SGPR_GRANULES, VGPR_GRANULES,
};

const REGISTERS: [(u8, &str); 3] =
    [(RSRC1, "COMPUTE_PGM_RSRC1"), (RSRC2, "COMPUTE_PGM_RSRC2"), (RSRC3, "COMPUTE_PGM_RSRC3")];

/// Directives, by their beginnings, and the field each belongs to. The first that fits counts.
const FIELDS: &[(&str, &str)] = &[
    ("user_sgpr_count", "USER_SGPR"),
    ("system_sgpr_private_segment_wavefront_offset", "SCRATCH_EN"),
    ("enable_private_segment", "SCRATCH_EN"),
    ("system_sgpr_workgroup_id_x", "TGID_X_EN"),
    ("system_sgpr_workgroup_id_y", "TGID_Y_EN"),
    ("system_sgpr_workgroup_id_z", "TGID_Z_EN"),
    ("system_sgpr_workgroup_info", "TG_SIZE_EN"),
    ("system_vgpr_workitem_id", "TIDIG_COMP_CNT"),
    ("float_", "FLOAT_MODE"),
    ("dx10_clamp", "DX10_CLAMP"),
    ("ieee_mode", "IEEE_MODE"),
    ("fp16_overflow", "FP16_OVFL"),
    ("workgroup_processor_mode", "WGP_MODE"),
    ("memory_ordered", "MEM_ORDERED"),
    ("forward_progress", "FWD_PROGRESS"),
    ("shared_vgpr_count", "SHARED_VGPR_CNT"),
    ("inst_pref_size", "INST_PREF_SIZE"),
    ("tg_split", "TG_SPLIT"),
    ("round_robin_scheduling", "WG_RR_EN"),
    ("exception_", "EXCP_EN"),
];

/// What the kernel driver or the command processor sets, and code cannot ask for.
const NOT_OF_CODE: &[&str] = &["PRIORITY", "PRIV", "TRAP_PRESENT", "EXCP_EN_MSB", "LDS_SIZE"];

/// Fields of a register: name, lowest bit, highest.
fn fields<'d>(amd: Amd<'d>, name: &str) -> Vec<(&'d str, u32, u32)> {
    let Some(ty) = amd.register(name).and_then(|register| register.ty()) else { return Vec::new() };
    let DecodedValue::Fields(fields) = ty.decode(0, &mut Variants::new()) else { return Vec::new() };
    fields.into_iter().map(|field| (field.name, field.low, field.high)).collect()
}

/// Bits of the register that a descriptor sets in a generation, with the fields they should be in.
fn set_bits(gpu: &Gpu, byte: u8) -> Vec<(&'static str, DescriptorBits)> {
    let target = DescriptorTarget::of(gpu);
    let of_directives = DIRECTIVES.iter().filter(|d| d.exists(target)).filter_map(|directive| {
        let (DirectiveEffect::Bits(place) | DirectiveEffect::User(place, _)) = directive.sets else {
            return None;
        };
        let field = || FIELDS.iter().find(|(start, _)| directive.name.starts_with(start));
        (place.byte == byte).then(|| (field().expect(directive.name).1, place))
    });
    let counts = [("VGPRS", VGPR_GRANULES), ("SGPRS", SGPR_GRANULES), ("ACCUM_OFFSET", ACCUM_OFFSET)];
    let accumulates = gpu.has_unified_vgprs();
    let counts = counts.into_iter().filter(move |(name, _)| *name != "ACCUM_OFFSET" || accumulates);
    of_directives.chain(counts.filter(|(_, place)| place.byte == byte)).collect()
}

#[test]
fn descriptors_set_the_fields_of_registers() {
    let db = Db::amd();
    for gfx in Gfx::ALL {
        let Some(gpu) = Gpu::from_gfx(gfx) else { continue };
        for (byte, register) in REGISTERS {
            // Registers of gfx90a are looked up among those of gfx9, which lack this one; those of gfx94x have it.
            let own = if gfx == Gfx::Gfx90a && byte == RSRC3 { Gfx::Gfx940 } else { gfx };
            let fields = fields(db.amd_gpu(own), register);
            let mut covered = 0u32;
            for (name, place) in set_bits(&gpu, byte) {
                let (low, high) = (u32::from(place.lsb), u32::from(place.lsb + place.width) - 1);
                let field = fields.iter().find(|field| field.0 == name);
                let &(_, first, last) = field.unwrap_or_else(|| panic!("{gfx}: {register} has no {name}"));
                assert!(
                    first <= low && high <= last,
                    "{gfx}: {register}.{name} is {last}:{first}, set is {high}:{low}"
                );
                covered |= (low..=high).fold(0, |bits, bit| bits | 1 << bit);
            }
            for (name, first, last) in fields.into_iter().filter(|(name, ..)| !NOT_OF_CODE.contains(name)) {
                let bits = (first..=last).fold(0, |bits, bit| bits | 1 << bit);
                assert_eq!(covered & bits, bits, "{gfx}: {register}.{name} is not set as a whole");
            }
        }
    }
}
