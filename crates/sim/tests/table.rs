//! Which instructions of the table are emulated.

use std::collections::BTreeMap;
use unwedge_isa::amdgcn::model::{COLUMNS, Form, GENS};
use unwedge_isa::amdgcn::{Gpu, Inst, codec, tables};
use unwedge_sim::amdgcn::Program;

/// Rows that have no semantics here: names, or what they start with.
const MISSING: &[&str] = &[
    // Where the row of texels begins is not documented.
    "image_gather4h",
    "image_msaa_load",
    // What they compute is not known, or is nothing.
    "v_illegal",
    "v_screen_partition_4se_b32",
    // Stacks, boxes and instances of gfx12's rays: what they do is not documented.
    "ds_bvh_stack_push8_",
    "image_bvh8_intersect_ray",
    "image_bvh_dual_intersect_ray",
    // Waves here have all their registers from the start.
    "s_alloc_vgpr",
    // The first half of a scaled product, whose name other words may follow: what it does to them is not documented.
    "v_mfma_ld_scale_b32",
];

#[test]
fn rows_without_semantics_are_those_that_are_known() {
    let gpus: Vec<Gpu> = Gpu::names().map(|(name, _)| Gpu::new(name).expect("known")).collect();
    let mut missing: BTreeMap<&str, &str> = BTreeMap::new();
    let (mut rows, mut seen) = (0, std::collections::HashSet::new());
    for number in 0..tables::variants().len() as u16 {
        let Some(inst) = Inst::new(number) else { continue };
        let variant = inst.variant();
        if !matches!(variant.form, Form::Native | Form::E32 | Form::E64) || variant.second.is_some() {
            continue;
        }
        // Operands of zero bits are registers of number zero; only the words are needed.
        let there = gpus.iter().find_map(|gpu| {
            let words = sample(&inst, gpu)?;
            Some(Program::new(&words, 0, *gpu))
        });
        let Some(program) = there else { continue };
        rows += usize::from(seen.insert(inst.row().name));
        for name in program.not_emulated() {
            missing.insert(name, variant.encoding.name());
        }
    }
    eprintln!("{} of {rows} rows are not emulated:", missing.len());
    for (name, encoding) in &missing {
        eprintln!("  {encoding} {name}");
    }
    let strange: Vec<&&str> =
        missing.keys().filter(|name| !MISSING.iter().any(|start| name.starts_with(start))).collect();
    assert!(strange.is_empty(), "{strange:?}");
    assert!(rows > 1000 && COLUMNS > GENS);
}

/// Words of an instruction: found by trying its opcode with fields that most take.
fn sample(inst: &Inst, gpu: &Gpu) -> Option<Vec<u32>> {
    let layout = tables::layout(inst.variant().encoding, gpu)?;
    let generation = gpu.generation() as usize;
    let opcode = *inst.variant().opcodes.get(generation)?;
    if opcode == unwedge_isa::amdgcn::model::NO_OPCODE {
        return None;
    }
    use unwedge_isa::amdgcn::model::Field;
    let mut bits = u128::from(layout.high_value) << 64 | u128::from(layout.value);
    let op = layout.fields[Field::Op as usize];
    let hi = layout.fields[Field::OpHi as usize];
    let low = u128::from(opcode) & ((1 << op.width) - 1);
    bits |= low << op.lsb | (u128::from(opcode) >> op.width) << hi.lsb;
    // Scalar or vector registers where zero means the other kind, and fields that must not be zero.
    let put = |bits: u128, field: Field, value: u128| {
        let place = layout.fields[field as usize];
        if place.width == 0 {
            bits
        } else {
            bits & !(((1u128 << place.width) - 1) << place.lsb) | value << place.lsb
        }
    };
    let vector = [Field::Src0, Field::Src1, Field::Src2];
    let tries = [
        vec![],
        vector.iter().map(|field| (*field, 256u128)).collect::<Vec<_>>(),
        vec![(Field::Src0, 256)],
        vec![(Field::Src0, 256), (Field::Src1, 128), (Field::Src2, 128)],
        vec![(Field::Imm, 1)],
        vec![(Field::Dmask, 1)],
        vec![(Field::Dmask, 1), (Field::Dim, 6)],
        vec![(Field::Dmask, 15), (Field::Unorm, 1), (Field::R128, 1)],
        vec![(Field::BufFormat, 1)],
        vec![(Field::Glc, 1)],
        vec![(Field::Gds, 1)],
        vec![(Field::Lds, 1)],
        vec![(Field::Saddr, 0x7f)],
        vec![(Field::Saddr, 0x7d)],
        vec![(Field::Saddr, 0x7c)],
        vec![(Field::Soffset, 0x7c)],
        vec![(Field::Soffset, 0x7d)],
        vec![(Field::Saddr, 0x7c), (Field::Th, 1)],
        vec![(Field::Th, 1)],
        vec![(Field::OpSelHi, 3), (Field::OpSelHi2, 1)],
        vec![
            (Field::Src0, 256),
            (Field::Src1, 256),
            (Field::Src2, 256),
            (Field::OpSelHi, 3),
            (Field::OpSelHi2, 1),
        ],
        vec![(Field::Ssrc0, 128)],
        vec![(Field::Ssrc0, 193)],
    ];
    tries.into_iter().find_map(|fields| {
        let made = fields.into_iter().fold(bits, |bits, (field, value)| put(bits, field, value));
        let mut words: Vec<u32> = (0..layout.dwords).map(|n| (made >> (32 * n)) as u32).collect();
        words.push(0);
        let decoded = codec::decode(&words, gpu)?;
        (decoded.inst.number() == inst.number()).then_some(words)
    })
}
