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

fn form(name: &str) -> String {
    let forms = unwedge_testkit::amdgpu::printed_forms();
    forms.into_iter().find(|(form, _)| *form == name).expect("a form").1
}

/// Nothing of any form is lost, and every dword that is printed is there.
#[test]
fn every_printed_form_is_read_whole() {
    for (name, text) in unwedge_testkit::amdgpu::printed_forms() {
        let umr = read(&text);
        assert!(umr.diagnostics.is_empty(), "{name}: {:?}", umr.diagnostics);
        // The rule above a wave.
        assert_eq!(umr.other_lines, u64::from(name == "wave-of-stream"), "{name}");
    }
}

#[test]
fn what_umr_leaves_out_of_packets_is_not_lost() {
    let text = form("reserved-left-out");
    let umr = read(&text);
    let [ring] = &umr.rings[..] else { panic!("{} rings", umr.rings.len()) };
    let headers: Vec<_> = ring.ibs[0].packets.iter().map(|packet| (packet.dword, packet.dwords)).collect();
    assert_eq!(headers, [(0, 4), (5, 1), (7, 3), (11, 50), (62, 0)]);
    assert_eq!((ring.ibs[0].contents.get(3), ring.ibs[0].contents.get(4)), (None, Some(7)));
    // A dword less at the end of an IB is lost.
    let cut = text.replace("[3@0x800000022c00 + 0x002c]\t[        0x00000002]\t|---> DRAW_INITIATOR=2\n", "");
    let cut = cut.replace("(2 words, type: 3, hdr: 0xc0012d00)", "(1 words, type: 3, hdr: 0xc0012d00)");
    assert_eq!(read(&cut).diagnostics.len(), 1);
}

#[test]
fn messages_to_video_engines_are_not_packets() {
    let text = form("video");
    let umr = read(&text);
    let kinds: Vec<_> = umr.rings[0].ibs.iter().map(|ib| (ib.kind, ib.contents.len())).collect();
    assert_eq!(kinds, [(Some(UmrStreamKind::Video), 12), (Some(UmrStreamKind::Message), 4)]);
    let hub = umr.block_version("mmhub").map(|hub| (hub.major, hub.minor, hub.revision));
    assert_eq!((hub, umr.gc_version()), (Some((3, 0, 2)), None));
    assert_eq!(umr.chip_names().next(), None, "`mmhub302` is a block, not a chip");
}

#[test]
fn memory_that_was_read_is_at_its_address() {
    let text = form("memory");
    let umr = read(&text);
    let memory: Vec<_> =
        umr.memory.iter().map(|m| (m.vmid, m.address, m.contents.get(0), m.contents.len())).collect();
    let first = Some(0xbf02_1000);
    assert_eq!(
        memory,
        [(3, 0x1_0000_0400, first, 2), (6, 0x2_0000_0000, first, 4), (6, 0x3_0000_0000, first, 4)]
    );
    // Without the command of umr, the address of the bytes is not known.
    assert!(UmrText::read(text.replace("umr", "cat").as_bytes()).is_err());
}

#[test]
fn broken_forms_do_no_harm() {
    let mut rng = Rng::new(11);
    for (_, text) in unwedge_testkit::amdgpu::printed_forms() {
        for _ in 0..300 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..1 + rng.next_u64() % 4 {
                if bytes.is_empty() {
                    break;
                }
                let at = rng.next_u64() as usize % bytes.len();
                match rng.next_u64() % 3 {
                    0 => bytes[at] = b"0f]['@=+. \n\t\xff|"[rng.next_u64() as usize % 13],
                    1 => drop(bytes.drain(at..bytes.len().min(at + 20))),
                    _ => bytes.truncate(at + 1),
                }
            }
            if let Ok(umr) = UmrText::read(&bytes) {
                assert!(umr.diagnostics.len() < 1_000);
            }
        }
    }
}
