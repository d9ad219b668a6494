//! Streams and shaders as umr prints them: what it leaves out stays unknown, whose packets they are follows from their names.

use unwedge_capture::umr::{UmrStreamKind, UmrText};
use unwedge_testkit::mutate::Rng;

/// A ring and an IB of gfx11, whose packets of registers have no offsets; colours, and vmids in hexadecimal.
const GFX: &str = "\
Decoding IB at 0x0@0x1800 from 0x0@0x0 of 6 words (type 4)
[0x0@0x00001800 + 0x0000]\t[        0xc0023f00]\tOpcode 0x3f [PKT3_INDIRECT_BUFFER] (3 words, type: 3, hdr: 0xc0023f00)
[0x0@0x00001800 + 0x0004]\t[        0x00100000]\t|---> IB_BASE_LO=0x100000, SWAP=0
[0x0@0x00001800 + 0x0008]\t[        0x00000080]\t|---> IB_BASE_HI=0x80
[0x0@0x00001800 + 0x000c]\t[        0x01000008]\t|---> IB_SIZE=8, IB_VMID=1
[0x0@0x00001800 + 0x0010]\t[        0xffff1000]\tOpcode 0x10 [PKT3_NOP] (0 words, type: 3, hdr: 0xffff1000)
[0x0@0x00001800 + 0x0014]\t[        0xffff1000]\tOpcode 0x10 [PKT3_NOP] (0 words, type: 3, hdr: 0xffff1000)
Done decoding IB

Decoding IB at 0x1@0x8000100000 from 0x0@0x1800 of 9 words (type 4)
[0x1@0x8000100000 + 0x0000]\t[        0xc0027600]\tOpcode 0x76 [PKT3_SET_SH_REG] (3 words, type: 3, hdr: 0xc0027600)
[0x1@0x8000100000 + 0x0008]\t[        0x00345600]\t|---> gfx1101.regCOMPUTE_PGM_LO=0x345600
[0x1@0x8000100000 + 0x000c]\t[        0x00000000]\t|---> gfx1101.regCOMPUTE_PGM_HI=0x0
[0x1@0x8000100000 + 0x0010]\t[        0xc0031500]\tOpcode 0x15 [PKT3_DISPATCH_DIRECT] (4 words, type: 3, hdr: 0xc0031500)
[0x1@0x8000100000 + 0x0014]\t[        0x00000001]\t|---> DIM_X=1
[0x1@0x8000100000 + 0x0018]\t[        0x00000001]\t|---> DIM_Y=1
[0x1@0x8000100000 + 0x001c]\t[        0x00000001]\t|---> DIM_Z=1
[0x1@0x8000100000 + 0x0020]\t[        0x00000041]\t|---> COMPUTE_SHADER_EN=1
Done decoding IB

Shader from 0x1@[0x8000100000 + 0x10] at 0x1@0x34560000, type COMPUTE (2), size 12
Shader registers (unfiltered):
\t\tgfx1101.regCOMPUTE_PGM_RSRC1(1@0x100008) == 0xe00f0100
\t\t\tVGPRS[0:5] == 0x0
\t\tgfx1101.regCOMPUTE_PGM_RSRC2(1@0x10000c) == 0x1390

Shader program:
\tpgm[1@0x34560000 + 0x0   ] = 0xbea10080\t\ts_mov_b32 s33, 0
\tpgm[1@0x34560000 + 0x4   ] = 0xbe8000c1\t\ts_mov_b32 s0, -1
\tpgm[1@0x34560000 + 0x8   ] = 0xbfb00000\t\ts_endpgm
Done disassembly of shader
";

fn read(text: &str) -> UmrText<'_> {
    UmrText::read(text.as_bytes()).expect("text of umr")
}

#[test]
fn registers_without_their_offsets() {
    let umr = read(GFX);
    let [ring] = &umr.rings[..] else { panic!("{} rings", umr.rings.len()) };
    assert_eq!(ring.kind(), Some(UmrStreamKind::Pm4));
    let ib = &ring.ibs[1];
    assert_eq!((ib.vmid, ib.iova, ib.size, ib.contents.len()), (1, 0x80_0010_0000, Some(9), 8));
    // The dword that umr leaves out is not known.
    assert_eq!(
        (ib.contents.get(0), ib.contents.get(1), ib.contents.get(2)),
        (Some(0xc002_7600), None, Some(0x34_5600))
    );
    let writes: Vec<_> = ib.writes.iter().map(|write| (write.dword, &*write.name)).collect();
    assert_eq!(writes, [(2, "regCOMPUTE_PGM_LO"), (3, "regCOMPUTE_PGM_HI")]);
    let version = umr.gc_version().map(|version| (version.major, version.minor, version.revision));
    assert_eq!(version, Some((11, 0, 1)));
    assert!(umr.registers.is_empty(), "what a stream sets is not what was read");
}

#[test]
fn shaders_beside_streams() {
    let umr = read(GFX);
    let [shader] = &umr.shaders[..] else { panic!("{} shaders", umr.shaders.len()) };
    assert_eq!((shader.vmid, shader.address, shader.size), (1, 0x3456_0000, Some(12)));
    assert_eq!(shader.stage.as_deref(), Some("COMPUTE (2)"));
    let words: Vec<u32> = shader.code.iter().map(|word| word.word).collect();
    assert_eq!(words, [0xbea1_0080, 0xbe80_00c1, 0xbfb0_0000]);
    let registers: Vec<_> = shader.registers.iter().map(|r| (&*r.name, r.value, r.fields.len())).collect();
    assert_eq!(
        registers,
        [("regCOMPUTE_PGM_RSRC1", Some(0xe00f_0100), 1), ("regCOMPUTE_PGM_RSRC2", Some(0x1390), 0)]
    );
    assert!(umr.diagnostics.is_empty(), "{:?}", umr.diagnostics);
}

/// `umr -vd`: words alone, without a wave or a stream.
#[test]
fn listings_alone() {
    let umr = read(
        "  pgm[6@0x1000 + 0x0   ] = 0xbf800000\ts_nop 0\n* pgm[6@0x1000 + 0x4   ] = 0xbf810000\ts_endpgm\n\
                    pgm[6@0x9000 + 0x0   ] = 0xbf810000\ts_endpgm\n",
    );
    let found: Vec<_> = umr.shaders.iter().map(|shader| (shader.address, shader.code.len())).collect();
    assert_eq!(found, [(0x1000, 2), (0x9000, 1)]);
    assert!(umr.shaders[0].code[1].at_pc);
}

/// Fields of 16, 32 and 64 bits become dwords.
#[test]
fn user_queues_of_hsa() {
    let umr = read("\
Decoding IB at 0x0@0x7a0823e00000 from 0x0@0x0 of 0 words (type 0)
[0x0@0x7a0823e00000 + 0x0000]   [        0x00000b02]    Opcode 0x2 [HSA_KERNEL_DISPATCH] (32 words, type: 0, hdr: 0xb02)
[0x0@0x7a0823e00000 + 0x0002]   [            0x0003]    |---> setup_dimensions=3
[0x0@0x7a0823e00000 + 0x0004]   [            0x0040]    |---> workgroup_size_x=64
[0x0@0x7a0823e00000 + 0x0006]   [            0x0001]    |---> workgroup_size_y=1
[0x0@0x7a0823e00000 + 0x0008]   [            0x0001]    |---> workgroup_size_z=1
[0x0@0x7a0823e00000 + 0x000a]   [            0x0000]    |---> reserved0=0
[0x0@0x7a0823e00000 + 0x000c]   [        0x00000100]    |---> grid_size_x=256
[0x0@0x7a0823e00000 + 0x0010]   [        0x00000001]    |---> grid_size_y=1
[0x0@0x7a0823e00000 + 0x0014]   [        0x00000001]    |---> grid_size_z=1
[0x0@0x7a0823e00000 + 0x0018]   [        0x00000000]    |---> private_segment_size=0
[0x0@0x7a0823e00000 + 0x001c]   [        0x00000000]    |---> group_segment_size=0
[0x0@0x7a0823e00000 + 0x0020]   [0x00007a0944aa4540]    |---> kernel_object=0x7a0944aa4540
Done decoding IB
");
    let ib = &umr.rings[0].ibs[0];
    assert_eq!(ib.kind, Some(UmrStreamKind::Aql));
    let expected = [0x3_0b02, 0x1_0040, 1, 0x100, 1, 1, 0, 0, 0x44aa_4540, 0x7a09];
    assert_eq!(ib.contents.whole(), Some(&expected[..]));
    assert!(umr.diagnostics.is_empty(), "{:?}", umr.diagnostics);
}

#[test]
fn whose_packets_they_are() {
    let kind = |packet: &str| {
        let text =
            format!("Decoding IB at 0@0x0 from 0@0x0 of 1 words\n[0@0x0 + 0x0000]\t[0x00000001]\t{packet}\n");
        UmrText::read(text.as_bytes()).expect("text of umr").rings[0].kind()
    };
    for (packet, expected) in [
        ("Opcode 0x10 [PKT3_NOP] (0 words, type: 3, hdr: 0xffff1000)", Some(UmrStreamKind::Pm4)),
        ("Opcode 0x0 [PKT0] (1 words, type: 0, hdr: 0x1)", Some(UmrStreamKind::Registers)),
        ("Opcode 0x1 [VCN_ENC_CMD_END] (1 words, type: 0, hdr: 0x1)", Some(UmrStreamKind::Video)),
        ("Opcode 0x1 [COPY] Sub-Opcode 0 (7 words, hdr: 0x1)", Some(UmrStreamKind::Sdma)),
        ("Opcode 0x2 [HSA_BARRIER_AND] (32 words, type: 0, hdr: 0x1503)", Some(UmrStreamKind::Aql)),
        ("Opcode 0x2 [MES_SCH_API_ADD_QUEUE] (64 words, type: 1, hdr: 0x1)", Some(UmrStreamKind::Mes)),
        ("Opcode 0x2 [VPE_CMD] Sub-Opcode 1 (64 words, type: 1, hdr: 0x1)", Some(UmrStreamKind::Other)),
        ("|---> DIM_X=1", None),
    ] {
        assert_eq!(kind(packet), expected, "{packet}");
    }
}

/// Any byte of the text may be missing or another one.
#[test]
fn broken_texts_do_no_harm() {
    for cut in 0..GFX.len() {
        let _ = UmrText::read(&GFX.as_bytes()[..cut]);
    }
    let mut rng = Rng::new(7);
    let mut next = move || rng.next_u64() as usize;
    for _ in 0..2_000 {
        let mut text = GFX.as_bytes().to_vec();
        for _ in 0..1 + next() % 4 {
            let at = next() % text.len();
            text[at] = b"0f]['@=+. \n\t\xff|"[next() % 13];
        }
        if let Ok(umr) = UmrText::read(&text) {
            let dwords: usize = umr.rings.iter().flat_map(|ring| &ring.ibs).map(|ib| ib.contents.len()).sum();
            assert!(dwords <= text.len() / 8 && umr.diagnostics.len() < 1_000);
        }
    }
}
