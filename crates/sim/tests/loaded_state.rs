//! Descriptors that CP_LOAD_STATE6 loads reach the compute shader: uniform buffers from the packet, images from memory.

#[allow(dead_code, reason = "shared with the tests of packets")]
mod cp_rig;

use cp_rig::*;
use unwedge_base::Generation;
use unwedge_hw::Db;
use unwedge_isa::ir3::asm::Assembler;
use unwedge_sim::adreno::RunEnd;

const VALUE: u64 = 0x1000;
const OUTPUT: u64 = 0x2000;
const IMAGES: u64 = 0x3000;

#[test]
fn loaded_descriptors_reach_the_shader() {
    let db = Db::builtin();
    for (generation, gpu_id) in [(Generation::A6xx, 630), (Generation::A7xx, 740)] {
        let mut machine = machine(&db, generation);
        let mut put =
            |offset: u64, value: u32| assert!(machine.space.memory.store(DATA + offset, 4, value.into()));
        let mut assembler = Assembler::new(gpu_id);
        let code = [
            "ldc.offset0.1.imm r1.x, 0, 1",
            "(sy)(ss)nop",
            "(rpt5)nop",
            "stib.b.untyped.1d.u32.1.imm r1.x, r0.x, 0",
            "end",
        ];
        for (at, line) in (0u64..).zip(code) {
            let word = assembler.instruction(line).unwrap_or_else(|why| panic!("{line}: {why}"));
            put(8 * at, word as u32);
            put(8 * at + 4, (word >> 32) as u32);
        }
        put(VALUE, 77);
        // Four dwords of FMT6_32_UINT as a buffer.
        let output = DATA + OUTPUT;
        for (at, word) in (0u64..).zip([0x4b << 22, 4, 4 << 29, 0, low(output), high(output)]) {
            put(IMAGES + 4 * at, word);
        }
        let mut stream = Stream::new(&db, generation);
        let gpu = stream.gpu;
        let reg = |name: &str| gpu.reg_offset(name).unwrap_or_else(|| panic!("{name}"));
        stream.write(reg("SP_CS_OBJ_START"), &[low(DATA), high(DATA)]).write(reg("SP_CS_INSTRLEN"), &[1]);
        // The local id in r0.x, no workgroup id; four fibers.
        let values = if generation == Generation::A6xx { "HLSQ_CS_CNTL_0" } else { "SP_CS_CNTL_0" };
        stream.write(reg(values), &[0xfc]).write(reg("HLSQ_CS_NDRANGE_0"), &[3 << 2]);
        // SB6_CS_SHADER is block 13: one ST6_UBO from the packet as number 1, one ST6_IBO from memory as number 0.
        let buffer = DATA + VALUE;
        let header = |dst: u32, ty: u32, source: u32| dst | ty << 14 | source << 16 | 13 << 18 | 1 << 22;
        stream.op("LOAD_STATE6_FRAG", &[header(1, 2, 0), 0, 0, low(buffer), high(buffer) | 1 << 17]);
        stream.op("LOAD_STATE6_FRAG", &[header(0, 3, 2), low(DATA + IMAGES), high(DATA + IMAGES)]);
        stream.op("EXEC_CS", &[0, 1, 1, 1]);
        let words = stream.words.clone();
        assert_eq!(run(&mut machine, &words), RunEnd::Done, "{generation}");
        assert_eq!([0, 4, 8, 12].map(|at| data(&machine, OUTPUT + at)), [77; 4], "{generation}");
    }
}
