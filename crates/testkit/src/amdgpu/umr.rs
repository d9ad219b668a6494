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
        let size = dwords.len();
        let _ = write!(out, "Decoding IB at 0x{vmid:x}@0x{iova:x} from 0x0@0x0 of {size} words (type 4)");
        for (offset, value) in (0..).step_by(4).zip(*dwords) {
            let _ = write!(
                out,
                "\n[0x{vmid:x}@0x{iova:08x} + 0x{offset:04x}]\t[        0x{value:08x}]\t|---> WORD"
            );
        }
        out.push_str("\n\n");
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
