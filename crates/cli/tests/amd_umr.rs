//! Text of umr, as a shell sees it: registers that it names without their offsets, its shaders, and engines whose packets are not
//! those of graphics.

mod program;

use program::{text, unwedge};

fn good(args: &[&str], input: &str) -> String {
    let output = unwedge(args, input.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

const SET: &str = "\
Decoding IB at 0x1@0x8000100000 from 0x0@0x1800 of 9 words (type 4)
[0x1@0x8000100000 + 0x0000]\t[0xc0027600]\tOpcode 0x76 [PKT3_SET_SH_REG] (3 words, type: 3, hdr: 0xc0027600)
[0x1@0x8000100000 + 0x0008]\t[0x00345600]\t|---> gfx1101.regCOMPUTE_PGM_LO=0x345600
[0x1@0x8000100000 + 0x000c]\t[0x00000000]\t|---> gfx1101.regCOMPUTE_PGM_HI=0x0
[0x1@0x8000100000 + 0x0010]\t[0xc0031500]\tOpcode 0x15 [PKT3_DISPATCH_DIRECT] (4 words, type: 3, hdr: 0xc0031500)
[0x1@0x8000100000 + 0x0014]\t[0x00000001]\t|---> DIM_X=1
[0x1@0x8000100000 + 0x0018]\t[0x00000002]\t|---> DIM_Y=2
[0x1@0x8000100000 + 0x001c]\t[0x00000003]\t|---> DIM_Z=3
[0x1@0x8000100000 + 0x0020]\t[0x00000041]\t|---> COMPUTE_SHADER_EN=1
Done decoding IB
";

const SHADER: &str = "
Shader from 0x1@[0x8000100000 + 0x10] at 0x1@0x34560000, type COMPUTE (2), size 8
Shader program:
\tpgm[1@0x34560000 + 0x0   ] = 0x7e000281\t\tv_mov_b32_e32 v0, 1
\tpgm[1@0x34560000 + 0x4   ] = 0xbfb00000\t\ts_endpgm
Done disassembly of shader
";

#[test]
fn an_offset_that_umr_leaves_out_follows_from_the_name() {
    let shown = good(&["decode", "-"], SET);
    for expected in ["SET_SH_REG", "COMPUTE_PGM_LO", "DISPATCH_DIRECT"] {
        assert!(shown.contains(expected), "{expected} in\n{shown}");
    }
    // The same text with the dword gives the same packets.
    let line = "[0x1@0x8000100000 + 0x0004]\t[0x0000020c]\t|---> REG=COMPUTE_PGM_LO\n";
    let with = SET.replacen("[0x1@0x8000100000 + 0x0008]", &format!("{line}[0x1@0x8000100000 + 0x0008]"), 1);
    assert_eq!(shown, good(&["decode", "-"], &with));
    // Without a name it stays unknown: the packet cannot be read.
    let without = SET.replace("gfx1101.reg", "").replace("COMPUTE_PGM_LO=", "VALUE=");
    assert!(
        !text(&unwedge(&["decode", "-", "--chip", "gfx1101"], without.as_bytes()).stdout)
            .contains("COMPUTE_PGM_LO")
    );
}

#[test]
fn shaders_of_umr_are_disassembled_and_checked() {
    let both = format!("{SET}{SHADER}");
    let listed = good(&["amd", "disasm", "-"], &both);
    assert!(listed.contains("0x0000000034560000"), "{listed}");
    let code = good(&["amd", "disasm", "--shader", "0", "-"], &both);
    assert!(code.contains("v_mov_b32_e32 v0, 1") && code.contains("s_endpgm"), "{code}");
    assert_eq!(good(&["amd", "check", "--shader", "0", "-"], &both), "");
    assert!(good(&["decode", "-"], &both).contains("COMPUTE (2) shader at 1@0x34560000"));
}

/// Packets of other engines are not taken for those of graphics, and no hang of graphics is reported.
#[test]
fn other_engines_are_not_graphics() {
    let stream = |packet: &str| {
        format!(
            "gfx1101.regGRBM_STATUS => 0x00003028\nDecoding IB at 0x0@0x100 from 0x0@0x0 of 2 words\n\
             [0x0@0x100 + 0x0000]\t[0xc0031500]\t{packet}\n[0x0@0x100 + 0x0004]\t[0x00000001]\t|---> A=1\n\
             Done decoding IB\n"
        )
    };
    for packet in [
        "Opcode 0x1 [VCN_ENC_CMD_IB] (5 words, type: 0, hdr: 0x2)",
        "Opcode 0x0 [PKT0] (1 words, type: 0, hdr: 0x1)",
        "Opcode 0x2 [MES_SCH_API_ADD_QUEUE] (64 words, type: 1, hdr: 0x1)",
        "Opcode 0x2 [HSA_KERNEL_DISPATCH] (32 words, type: 0, hdr: 0xb02)",
    ] {
        for verb in ["explain", "decode"] {
            let shown = text(&unwedge(&[verb, "-"], stream(packet).as_bytes()).stdout);
            assert!(!shown.contains("DISPATCH_DIRECT"), "{verb} {packet}:\n{shown}");
        }
    }
    let gfx =
        text(&unwedge(&["decode", "-"], stream("Opcode 0x15 [PKT3_X] (4 words, type: 3)").as_bytes()).stdout);
    assert!(gfx.contains("DISPATCH_DIRECT"), "{gfx}");
}

/// The ring of an engine, dword by dword.
fn ring(name: &str, dwords: &[u32]) -> String {
    let mut text = "gfx1101.regGRBM_STATUS => 0x00003028\n".to_owned();
    for (at, dword) in dwords.iter().enumerate() {
        text += &format!("navi32.{name}.ring[{at:5}] == 0x{dword:08x}    .\n");
    }
    text
}

#[test]
fn packets_of_video_engines_and_of_the_scheduler_are_named() {
    let queue: Vec<u32> = std::iter::once(1 | 3 << 4 | 64 << 12).chain(0x40..0x7f).collect();
    let vcn = [2, 1, 0x1000, 0x80, 0x20, 3, 0x2000, 0x80, 7, 4, 0xb, 0x840, 5, 0xc, 0x840, 1, 1, 0];
    let message = [0x10, 0x3000_0002, 1, 2, 8, 0x0100_0003, 1];
    for (name, dwords, expected) in [
        (
            "vcn_unified_0",
            &vcn[..],
            &["VCN_IB", "IB_BASE = 0x8000001000", "VCN_FENCE", "VCN_TRAP", "VCN_REG_WAIT"][..],
        ),
        ("vcn_enc_0.0", &message, &["VCN_SIGNATURE", "VCN_OP_ENCODE", "VCN_END"]),
        ("vcn_dec_0", &[0x5a0, 7, 0x8000_0000], &["VCN_PACKET0", "REG_OFFSET = 0x5a0", "VCN_PACKET2"]),
        ("jpeg_dec_0", &[0x6000_0000, 0, 0x1085, 3], &["JPEG_PACKET", "TYPE = NOP", "REG_OFFSET = 0x1085"]),
        ("mes_3.0.0", &queue, &["MES_REMOVE_QUEUE", "DOORBELL_OFFSET = 0x40", "QUEUE_ID"]),
    ] {
        let text_of = ring(name, dwords);
        let shown = good(&["decode", "-"], &text_of);
        for expected in expected {
            assert!(shown.contains(expected), "{name}: {expected} in\n{shown}");
        }
        assert!(!shown.contains("missing") && !shown.contains("no packet"), "{name}:\n{shown}");
        good(&["decode", "--json", "-"], &text_of);
        let explained = text(&unwedge(&["explain", "-"], text_of.as_bytes()).stdout);
        assert!(!explained.contains("VCN_") && !explained.contains("DISPATCH"), "{name}:\n{explained}");
    }
}

/// Every form that umr has had is decoded, and none but those of graphics as packets of graphics.
#[test]
fn every_form_of_umr_is_decoded() {
    for (name, gpu, expected) in [
        (
            "reserved-left-out",
            "Renoir",
            &[
                "COND_EXEC",
                "rest of the packet",
                "INDIRECT_BUFFER",
                "PA_SC_GENERIC_SCISSOR_BR",
                "SPI_SHADER_PGM_RSRC3_PS",
                "DRAW_INDEX_AUTO",
            ][..],
        ),
        ("pairs", "Navi 48", &["TA_CS_BC_BASE_ADDR_HI = 0x80", "COMPUTE_PGM_HI"]),
        ("video", "gfx11", &["VCN_REG_WAIT", "VCN_FENCE", "c0012d00"]),
        ("dma", "Navi 21", &["SDMA_COPY_LINEAR", "SRC_ADDR = 0x8000001000"]),
        ("umr-R", "Raven", &["INDIRECT_BUFFER", "DRAW_INDEX_AUTO", "s_mov_b32 s0, -1"]),
        ("wave-of-stream", "Phoenix", &["regCOMPUTE_PGM_RSRC1", "VGPRS"]),
        ("blocks", "Navi 48", &["navi48.vcn500"]),
        ("blocks-without-versions", "Raven", &["raven1.gfx91"]),
        ("memory", "unknown", &["memory at 3@0x100000400", "bf021000 bf810000"]),
    ] {
        let forms = unwedge_testkit::amdgpu::printed_forms();
        let input = forms.into_iter().find(|(form, _)| *form == name).expect("a form").1;
        let shown = good(&["decode", "-"], &input);
        assert!(shown.lines().next().is_some_and(|line| line.contains(gpu)), "{name}:\n{shown}");
        for expected in expected {
            assert!(shown.contains(expected), "{name}: {expected} in\n{shown}");
        }
        assert_eq!(
            shown.contains("DRAW_INDEX_AUTO"),
            ["reserved-left-out", "umr-R"].contains(&name),
            "{name}"
        );
        good(&["decode", "--json", "-"], &input);
        good(&["info", "-"], &input);
        let explained = text(&unwedge(&["explain", "-"], input.as_bytes()).stdout);
        let graphics = ["reserved-left-out", "pairs", "umr-R"].contains(&name);
        assert!(graphics || !explained.contains("gfx timed out"), "{name}:\n{explained}");
    }
}
