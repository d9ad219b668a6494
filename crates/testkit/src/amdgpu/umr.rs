//! Text as umr prints it: waves in the forms of old and new versions, rings, registers.

use super::Gfx;
use super::radv::waiting_code;
use std::fmt::Write;

/// How waves are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaveForm {
    /// A table: `umr -wa` up to 1.0.7.
    Columns,
    /// Blocks with decoded fields: `umr -O bits -wa` of old.
    OldBits,
    /// Blocks of registers: `umr -wa` since.
    Blocks,
    /// The same with decoded fields: `umr -O bits -wa` since.
    Bits,
    /// The same in colours.
    Coloured,
}

impl WaveForm {
    /// Every form.
    pub const ALL: [WaveForm; 5] =
        [WaveForm::Columns, WaveForm::OldBits, WaveForm::Blocks, WaveForm::Bits, WaveForm::Coloured];
}

/// A wave.
#[derive(Clone, Debug, PartialEq)]
pub struct WaveSpec {
    /// Shader engine, shader array, compute unit or work group processor, SIMD, wave.
    pub place: [u32; 5],
    /// Program counter.
    pub pc: u64,
    /// Lanes that execute.
    pub exec: u64,
    /// `SQ_WAVE_STATUS`
    pub status: u32,
    /// Dwords of the instruction.
    pub inst: [u32; 2],
    /// Address space.
    pub vmid: u32,
    /// Scalar registers.
    pub sgprs: Vec<u32>,
    /// The first lanes of vector registers.
    pub vgprs: Vec<Vec<u32>>,
    /// Where the shader begins.
    pub shader: u64,
    /// Its dwords with umr's disassembly.
    pub code: Vec<(u32, String)>,
}

impl WaveSpec {
    /// A wave in lane mask `exec` at this place of a shader.
    pub fn at(place: [u32; 5], shader: u64, offset: u64, code: &[(u32, &str)]) -> WaveSpec {
        let word = |skip: u64| {
            let at = usize::try_from(offset / 4 + skip).unwrap_or(usize::MAX);
            code.get(at).map_or(0, |(word, _)| *word)
        };
        WaveSpec {
            place,
            pc: shader.wrapping_add(offset),
            exec: u64::MAX,
            // valid, halt
            status: 0x0001_2000,
            inst: [word(0), word(1)],
            vmid: 3,
            sgprs: (0..8).collect(),
            vgprs: vec![vec![0x3f80_0000; 64]; 2],
            shader,
            code: code.iter().map(|(word, text)| (*word, (*text).to_owned())).collect(),
        }
    }

    /// Two waves in a loop that waits for memory.
    pub fn some(gfx: Gfx) -> Vec<WaveSpec> {
        // umr writes the distance of a branch, and nothing beside the further dwords of an instruction.
        let text = |at: usize, text: &str| if at == 0 { text.replace("BB0", "-4") } else { ";;".to_owned() };
        let dwords = |(words, name): (Vec<u32>, String)| {
            words.into_iter().enumerate().map(|(at, word)| (word, text(at, &name))).collect::<Vec<_>>()
        };
        let code: Vec<(u32, String)> = waiting_code(gfx).into_iter().flat_map(dwords).collect();
        let code: Vec<(u32, &str)> = code.iter().map(|(word, text)| (*word, text.as_str())).collect();
        let shader = 0x8001_2000_0000;
        vec![
            WaveSpec::at([0, 0, 1, 0, 0], shader, 8, &code),
            WaveSpec { exec: 0, ..WaveSpec::at([1, 1, 2, 3, 4], shader, 12, &code) },
        ]
    }
}

/// What umr prints of these waves.
pub fn waves_text(gfx: Gfx, waves: &[WaveSpec], form: WaveForm) -> String {
    let mut out = String::new();
    if waves.is_empty() {
        return "No active waves!\n".to_owned();
    }
    let wgp = gfx >= Gfx::V10;
    if form == WaveForm::Columns {
        let units = if wgp { "SA WGP" } else { "SH CU" };
        let _ = writeln!(
            out,
            "SE {units} SIMD WAVE# WAVE_STATUS PC_HI PC_LO INST_DW0 INST_DW1 EXEC_HI EXEC_LO HW_ID GPRALLOC LDSALLOC \
             TRAPSTS IBSTS TBA_HI TBA_LO TMA_HI TMA_LO IB_DBG0 M0"
        );
    }
    for wave in waves {
        match form {
            WaveForm::Columns => columns(&mut out, wave),
            WaveForm::OldBits => old_bits(&mut out, wave, wgp),
            WaveForm::Blocks => block(&mut out, wave, wgp, false),
            WaveForm::Bits | WaveForm::Coloured => block(&mut out, wave, wgp, true),
        }
    }
    if form == WaveForm::Coloured {
        out = out
            .replace("ixSQ", "\x1b[1;32mixSQ")
            .replace(": ", "\x1b[0m: ")
            .replace("pgm[", "pgm[\x1b[1;34m");
    }
    out
}

fn place(wave: &WaveSpec, wgp: bool) -> String {
    let [se, sa, cu, simd, slot] = wave.place;
    if wgp {
        format!("se{se}.sa{sa}.wgp{cu}.simd{simd}.wave{slot}")
    } else {
        format!("se{se}.sh{sa}.cu{cu}.simd{simd}.wave{slot}")
    }
}

fn halves(value: u64) -> [u32; 2] {
    [(value >> 32) as u32, value as u32]
}

fn columns(out: &mut String, wave: &WaveSpec) {
    let [se, sa, cu, simd, slot] = wave.place;
    let ([pc_hi, pc_lo], [exec_hi, exec_lo]) = (halves(wave.pc), halves(wave.exec));
    let _ = write!(out, "{se} {sa} {cu} {simd} {slot}");
    for value in [wave.status, pc_hi, pc_lo, wave.inst[0], wave.inst[1], exec_hi, exec_lo] {
        let _ = write!(out, " {value:08x}");
    }
    let _ = writeln!(out, "{}", " 00000000".repeat(11));
    sgprs(out, wave);
    code(out, wave);
}

fn sgprs(out: &mut String, wave: &WaveSpec) {
    for (i, values) in wave.sgprs.chunks(4).enumerate() {
        let values: Vec<String> = values.iter().map(|value| format!("{value:08x}")).collect();
        let _ = writeln!(out, ">SGPRS[{}..{}] = {{ {} }}", 4 * i, 4 * i + 3, values.join(", "));
    }
}

fn code(out: &mut String, wave: &WaveSpec) {
    for (offset, (word, text)) in (0u64..).step_by(4).zip(&wave.code) {
        let marker = if wave.shader + offset == wave.pc { " * " } else { "   " };
        let (vmid, base, offset) = (wave.vmid, wave.shader, format!("0x{offset:x}"));
        let _ = writeln!(out, " {marker} pgm[{vmid}@0x{base:x} + {offset:<6}] = 0x{word:08x}\t\t{text}");
    }
}

/// Name and value of each register, as new umr names them.
fn registers(wave: &WaveSpec) -> Vec<(&'static str, u32)> {
    let ([pc_hi, pc_lo], [exec_hi, exec_lo]) = (halves(wave.pc), halves(wave.exec));
    vec![
        ("ixSQ_WAVE_STATUS", wave.status),
        ("ixSQ_WAVE_PC_LO", pc_lo),
        ("ixSQ_WAVE_PC_HI", pc_hi),
        ("ixSQ_WAVE_EXEC_LO", exec_lo),
        ("ixSQ_WAVE_EXEC_HI", exec_hi),
        ("ixSQ_WAVE_INST_DW0", wave.inst[0]),
        ("ixSQ_WAVE_INST_DW1", wave.inst[1]),
        ("ixSQ_WAVE_IB_STS", 0x0000_0121),
        ("ixSQ_WAVE_M0", 0),
    ]
}

fn block(out: &mut String, wave: &WaveSpec, wgp: bool, bits: bool) {
    let rule = "-".repeat(54);
    let _ = write!(out, "\n{rule}\n{}\n\n\nMain Registers:\n\t", place(wave, wgp));
    for (i, (name, value)) in registers(wave).into_iter().enumerate() {
        let separator = if i > 0 && i % 4 == 0 { "\n\t" } else { "" };
        let _ = write!(out, "{separator}{name:>20}: {value:08x} | ");
    }
    out.push_str("\n\n");
    if bits {
        let _ = write!(out, "\n\nRegister Bits:\n\t\n\nixSQ_WAVE_STATUS[{:08x}]:\n\t", wave.status);
        for (name, bit) in [("SCC", 0), ("EXECZ", 9), ("HALT", 13), ("VALID", 16)] {
            let _ = write!(out, "{name:>20}: {:08x} | ", wave.status >> bit & 1);
        }
        out.push_str("\n\n");
    }
    sgprs(out, wave);
    let lanes: String = (0..64).map(|lane| format!(" t{lane:02}     ")).collect();
    let _ = writeln!(out, "\nVGPRS:       {lanes}");
    for (number, lanes) in wave.vgprs.iter().enumerate() {
        let lanes: String = lanes.iter().map(|lane| format!(" {lane:08x}")).collect();
        let _ = writeln!(out, "    [{number:3}] = {{{lanes} }}");
    }
    let size = 4 * wave.code.len();
    let _ =
        writeln!(out, "\n\nPGM_MEM: (found shader at: {}@0x{:x} of {size} bytes)", wave.vmid, wave.shader);
    code(out, wave);
    out.push('\n');
}

fn old_bits(out: &mut String, wave: &WaveSpec, wgp: bool) {
    let ([pc_hi, pc_lo], [exec_hi, exec_lo]) = (halves(wave.pc), halves(wave.exec));
    let _ = write!(out, "\n{}\n\n\nMain Registers:\n\t", place(wave, wgp));
    let names = [
        ("pc_hi", pc_hi),
        ("pc_lo", pc_lo),
        ("wave_inst_dw0", wave.inst[0]),
        ("wave_inst_dw1", wave.inst[1]),
        ("exec_hi", exec_hi),
        ("exec_lo", exec_lo),
    ];
    for (name, value) in names {
        let _ = write!(out, "{name:>20}: {value:08x} | ");
    }
    let _ = write!(out, "\n\n\nWave_Status[{:08x}]:\n\t", wave.status);
    for (name, bit) in [("scc", 0), ("execz", 9), ("halt", 13), ("valid", 16)] {
        let _ = write!(out, "{name:>20}: {:8} | ", wave.status >> bit & 1);
    }
    out.push_str("\n\nSGPRS:\n");
    for (i, values) in wave.sgprs.chunks(4).enumerate() {
        let values: Vec<String> = values.iter().map(|value| format!("{value:08x}")).collect();
        let _ = writeln!(out, "\t[{:4}..{:4}] = {{ {} }}", 4 * i, 4 * i + 3, values.join(", "));
    }
    out.push_str("\n\nPGM_MEM:\n");
    code(out, wave);
    out.push('\n');
}

/// `umr -R`: a ring from 31 dwords in front of its read pointer to its write pointer.
pub fn ring_text(path: &str, rptr: usize, wptr: usize, dwords: &[u32]) -> String {
    let mut out = format!("\n{path}.rptr == {rptr}\n{path}.wptr == {wptr}\n{path}.drv_wptr == {wptr}\n");
    let mut at = (rptr + dwords.len() - 31.min(dwords.len())) % dwords.len().max(1);
    for _ in 0..dwords.len() {
        let flag = |set: bool, c: char| if set { c } else { '.' };
        let value = dwords.get(at).copied().unwrap_or(0);
        let (r, w, d) = (flag(at == rptr, 'r'), flag(at == wptr, 'w'), flag(at == wptr, 'D'));
        let _ = writeln!(out, "{path}.ring[{at:4}] == 0x{value:08x}    {r}{w}{d} ");
        if at == wptr {
            break;
        }
        at = (at + 1) % dwords.len();
    }
    out.push('\n');
    out
}

/// `umr -RS`: streams of packets, each with its address space, address and dwords.
pub fn ring_stream_text(streams: &[(u32, u64, &[u32])]) -> String {
    let mut out = String::new();
    for (vmid, iova, dwords) in streams {
        let rows: Vec<StreamRow<'_>> =
            (0..).step_by(4).zip(*dwords).map(|(offset, value)| (offset, *value, "|---> WORD")).collect();
        out += &stream(*vmid, *iova, dwords.len(), &rows, true);
        out.push('\n');
    }
    out
}

/// A register, its value, and its fields with their lowest and highest bit.
type RegisterSpec<'a> = (&'a str, u32, &'a [(&'a str, u32, u32)]);

/// `umr -O bits -r`: registers below a path such as `navi21.gfx1030`.
pub fn registers_text(path: &str, registers: &[RegisterSpec<'_>]) -> String {
    let mut out = String::new();
    for (name, value, fields) in registers {
        let _ = writeln!(out, "{path}.{name} => 0x{value:08x}");
        for (field, low, high) in *fields {
            let bits = (u64::from(*value) >> low) & ((2u64 << (high - low)) - 1);
            let field = format!(".{field}[{low}:{high}]");
            let _ = writeln!(out, "\t{field:<62}== {bits:8} (0x{bits:08x})");
        }
    }
    out
}

/// A line of a stream: where the dword is in the stream, in bytes, the dword, and what umr says of it.
type StreamRow<'a> = (u32, u32, &'a str);

/// A stream in the form of `umr -RS` before 1.0.7 (`hex` is not set: vmids are decimal) or since.
fn stream(vmid: u32, iova: u64, words: usize, rows: &[StreamRow<'_>], hex: bool) -> String {
    let vmid = if hex { format!("0x{vmid:x}") } else { vmid.to_string() };
    let from = if hex { "0x0@0x0" } else { "0@0x0" };
    let mut out = format!("Decoding IB at {vmid}@0x{iova:x} from {from} of {words} words (type 4)\n");
    for (offset, value, text) in rows {
        let _ = writeln!(out, "[{vmid}@0x{iova:08x} + 0x{offset:04x}]\t[        0x{value:08x}]\t{text}");
    }
    out
}

/// Text in each form that umr has had for rings, IBs, messages, blocks and memory: its name, and the text.
pub fn printed_forms() -> Vec<(&'static str, String)> {
    let stream = |vmid, iova, words, rows: &[StreamRow<'_>], hex| {
        stream(vmid, iova, words, rows, hex) + "Done decoding IB\n\n"
    };
    // Dwords that umr leaves out: a reserved one of COND_EXEC, that of SWITCH_BUFFER, the payload of NOP, offsets of registers.
    let ring = stream(
        0,
        0x44_5000,
        63,
        &[
            (0x00, 0xc003_2200, "Opcode 0x22 [PKT3_COND_EXEC] (4 words, type: 3, hdr: 0xc0032200)"),
            (0x04, 0x0040_1080, "|---> GPU_ADDR_LO32=0x401080"),
            (0x08, 0, "|---> GPU_ADDR_HI32=0x0"),
            (0x10, 7, "|---> EXEC_COUNT=0x7"),
            (0x14, 0xc000_8b00, "Opcode 0x8b [PKT3_SWITCH_BUFFER] (1 words, type: 3, hdr: 0xc0008b00)"),
            (0x1c, 0xc002_3f00, "Opcode 0x3f [PKT3_INDIRECT_BUFFER] (3 words, type: 3, hdr: 0xc0023f00)"),
            (0x20, 0x0002_2c00, "|---> IB_BASE_LO=0x22c00, SWAP=0"),
            (0x24, 0xffff_8000, "|---> IB_BASE_HI=0x8000"),
            (0x28, 0x0300_000c, "|---> IB_SIZE=12, IB_VMID=3, CHAIN=0"),
            (0x2c, 0xc031_1000, "Opcode 0x10 [PKT3_NOP] (50 words, type: 3, hdr: 0xc0311000)"),
            (0xf8, 0xffff_1000, "Opcode 0x10 [PKT3_NOP] (0 words, type: 3, hdr: 0xffff1000)"),
        ],
        false,
    );
    let called = stream(
        3,
        0x8000_0002_2c00,
        12,
        &[
            (0x00, 0xc002_6900, "Opcode 0x69 [PKT3_SET_CONTEXT_REG] (3 words, type: 3, hdr: 0xc0026900)"),
            (0x08, 0x8000_0000, "|---> gfx930.mmPA_SC_GENERIC_SCISSOR_TL=0x80000000"),
            (0x0c, 0x4000_4000, "|---> gfx930.mmPA_SC_GENERIC_SCISSOR_BR=0x40004000"),
            (0x10, 0xc000_4600, "Opcode 0x46 [PKT3_EVENT_WRITE] (1 words, type: 3, hdr: 0xc0004600)"),
            (0x14, 0xe, "|---> EVENT_TYPE=14, EVENT_INDEX=0"),
            (0x18, 0xc001_7600, "Opcode 0x76 [PKT3_SET_SH_REG] (2 words, type: 3, hdr: 0xc0017600)"),
            (0x20, 0x0050_0500, "|---> gfx930.mmSPI_SHADER_PGM_RSRC3_PS=0x500500"),
            (0x24, 0xc001_2d00, "Opcode 0x2d [PKT3_DRAW_INDEX_AUTO] (2 words, type: 3, hdr: 0xc0012d00)"),
            (0x28, 3, "|---> INDEX_COUNT=3"),
            (0x2c, 2, "|---> DRAW_INITIATOR=2"),
        ],
        false,
    );
    let pairs = stream(
        3,
        0x8000_00b2_a400,
        8,
        &[
            (
                0x00,
                0xc003_be00,
                "Opcode 0xbe [PKT3_SET_UCONFIG_REG_PAIRS] (4 words, type: 3, hdr: 0xc003be00)",
            ),
            (0x04, 0x380, "|---> REG_OFFSET=[gfx1201.regTA_CS_BC_BASE_ADDR]/0x380"),
            (0x08, 0x0100_0300, "|---> REG_DATA=0x1000300"),
            (0x0c, 0x381, "|---> REG_OFFSET=[gfx1201.regTA_CS_BC_BASE_ADDR_HI]/0x381"),
            (0x10, 0x80, "|---> REG_DATA=0x80"),
            (0x14, 0xc001_ba00, "Opcode 0xba [PKT3_SET_SH_REG_PAIRS] (2 words, type: 3, hdr: 0xc001ba00)"),
            (0x18, 0x20d, "|---> REG_OFFSET=[gfx1201.regCOMPUTE_PGM_HI]/0x20d"),
            (0x1c, 0x80, "|---> REG_DATA=0x80"),
        ],
        true,
    );
    let video = stream(
        0,
        0,
        12,
        &[
            (0x00, 0xc, "Opcode 0xc [VCN_ENC_CMD_REG_WAIT] (3 words, type: 0, hdr: 0xc)"),
            (0x04, 0x6_9b44, "|---> mmhub302.regMMVM_INVALIDATE_ENG0_SEM=0x69b44"),
            (0x08, 1, "|---> MASK=0x1"),
            (0x0c, 1, "|---> WAIT TIME=0x1"),
            (0x10, 0xb, "Opcode 0xb [VCN_ENC_CMD_REG_WRITE] (2 words, type: 0, hdr: 0xb)"),
            (0x14, 0x7_f000, "|---> <unknown>=0x7f000"),
            (0x18, 0, "|---> VALUE TO WRITE=0x0"),
            (0x1c, 3, "Opcode 0x3 [VCN_ENC_CMD_FENCE] (4 words, type: 0, hdr: 0x3)"),
            (0x20, 0x40_17a0, "|---> ADDR_LO32=0x4017a0"),
            (0x24, 0, "|---> ADDR_HI32=0x0"),
            (0x28, 0xc7d7, "|---> SEQUENCE NUMBER=0xc7d7"),
            (0x2c, 4, "|---> VCN_ENC_CMD_TRAP=0x4"),
        ],
        true,
    );
    let message = "\
Decoding VCN message at 0x104@0xffff800100020000 from 0x0@0x8c of 4 words
[0x104@0x00020000 + 0x0000]\t[        0x00000010]\t|---> IB_SIZE=16
[0x104@0x00020000 + 0x0004]\t[        0xc0012d00]\t|---> IB_TYPE(RENCODE_IB_PARAM_LAYER_CONTROL)
[0x104@0x00020000 + 0x0008]\t[        0x00000003]\t|---> max_num_temporal_layers=3
[0x104@0x00020000 + 0x000c]\t[        0x00000002]\t|---> 
Done Decoding VCN message at 0x104@0xffff800100020000 from 0x0@0x8c of 4 words
";
    let copy = stream(
        0,
        0x100,
        7,
        &[
            (0x00, 1, "Opcode 0x1/0x0 [COPY] (6 words, type: 1, hdr: 0x1)"),
            (0x04, 0xfff, "|---> COUNT=4095"),
            (0x08, 0, "|---> PARAMETER=0"),
            (0x0c, 0x1000, "|---> SRC_ADDR_LO=0x1000"),
            (0x10, 0x80, "|---> SRC_ADDR_HI=0x80"),
            (0x14, 0x2000, "|---> DST_ADDR_LO=0x2000"),
            (0x18, 0x80, "|---> DST_ADDR_HI=0x80"),
        ],
        true,
    );
    let old = "
raven1.gfx.rptr == 2
raven1.gfx.wptr == 6
raven1.gfx.drv_wptr == 6
raven1.gfx.ring[   2] == 0xc0023f00    r.. PKT3 OPCODE 0x3f, PKT3_INDIRECT_BUFFER
raven1.gfx.ring[   3] == 0x00022c00    ... IB_BASE_LO: 0x00022c00
raven1.gfx.ring[   4] == 0xffff8000    ... IB_BASE_HI: 0x00008000
raven1.gfx.ring[   5] == 0x03000003    ... IB_SIZE:3, VMID:3
raven1.gfx.ring[   6] == 0xffff1000    .wD 

Dumping IB at (gfxhub) VMID:3 0x800000022c00 of 3 words from ring[3]
IB[3@0x800000022c00 + 0x0   ] = 0xc0012d00 ... PKT3 OPCODE 0x2d, PKT3_DRAW_INDEX_AUTO
IB[3@0x800000022c00 + 0x4   ] = 0x00000003 ... INDEX_COUNT: 3
IB[3@0x800000022c00 + 0x8   ] = 0x00000002 ... DRAW_INITIATOR: 2
End of IB

Disassembly of shader 3@0x800001200200 of length 8 bytes from IB[3@0x800000022c00 + 0x8]
    pgm[3@0x800001200200 + 0x0   ] = 0xbe8000c1\t\ts_mov_b32 s0, -1
    pgm[3@0x800001200200 + 0x4   ] = 0xbf810000\t\ts_endpgm
";
    let wave = "
------------------------------------------------------
se0.sa1.wgp2.simd3.wave4


Main Registers:
\t    ixSQ_WAVE_STATUS: 00012000 |     ixSQ_WAVE_PC_LO: 01200204 |     ixSQ_WAVE_PC_HI: 00008000 | 

>SGPRS[0..3] = { 00000000, 00000001, 00000002, 00000003 }


PGM_MEM: (found shader at: 3@0x800001200200 of 8 bytes)
   Shader registers:
      gfx1101.regCOMPUTE_PGM_RSRC1(3@0x100008) == 0xe00f0100
         VGPRS[0:5] == 0x0

    pgm[3@0x800001200200 + 0x0   ] = 0xbe8000c1\t\ts_mov_b32 s0, -1
 *  pgm[3@0x800001200200 + 0x4   ] = 0xbfb00000\t\ts_endpgm
";
    let memory = "\
$ sudo umr -vr 0x003@0x100000400 0x8 | xxd -e
00000000: bf021000 bf810000                    ........
$ umr --vm-read 6@0x200000000 0x10 | xxd
00000000: 0010 02bf 0000 81bf 0000 0000 0000 0000  ................
$ umr -vr 6@0x300000000 0x10 | hexdump -C
00000000  00 10 02 bf 00 00 81 bf  00 00 00 00 00 00 00 00  |................|
00000010
";
    vec![
        ("reserved-left-out", ring + &called),
        ("pairs", pairs),
        ("video", video + message),
        ("dma", format!("gfx1030.mmGRBM_STATUS => 0x00003028\n{copy}")),
        ("umr-R", old.to_owned()),
        ("wave-of-stream", wave.to_owned()),
        (
            "blocks",
            "\tnavi48.gfx1201 (12.0.1)\n\tnavi48.mmhub410 (4.1.0)\n\tnavi48.vcn500 (5.0.0)\n".to_owned(),
        ),
        ("blocks-without-versions", "\traven1.gfx91\n\traven1.mmhub10{0}\n\traven1.vcn10\n".to_owned()),
        ("memory", memory.to_owned()),
    ]
}
