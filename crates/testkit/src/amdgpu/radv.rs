//! Hang reports as RADV writes them: a folder, as names and bytes, or one text.

use super::{Gfx, WaveForm, WaveSpec, ring_stream_text, waves_text};
use std::fmt::Write;

const RESET: &str = "\x1b[0m";
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[1;32m";
const YELLOW: &str = "\x1b[1;33m";
const CYAN: &str = "\x1b[1;36m";

/// A shader of a report.
#[derive(Clone, Debug)]
pub struct ShaderSpec {
    /// `Pixel Shader`
    pub name: String,
    /// Its first byte.
    pub address: u64,
    /// Instructions: dwords, and their text.
    pub code: Vec<(Vec<u32>, String)>,
}

impl ShaderSpec {
    /// A shader that waits for memory in a loop.
    pub fn waiting(gfx: Gfx, name: &str, address: u64) -> ShaderSpec {
        ShaderSpec { name: name.to_owned(), address, code: waiting_code(gfx) }
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.code.iter().map(|(words, _)| 4 * words.len() as u64).sum()
    }
}

/// A loop that loads a descriptor and waits for it, and an end that is never reached: dwords, and their text.
pub(super) fn waiting_code(gfx: Gfx) -> Vec<(Vec<u32>, String)> {
    let (load, operands) = match gfx {
        Gfx::V8 | Gfx::V9 | Gfx::V9_4_3 => ([0xc00a_0100, 0], "s_load_dwordx4 s[4:7], s[0:1], 0x0"),
        Gfx::V10 => ([0xf408_0100, 0xfa00_0000], "s_load_dwordx4 s[4:7], s[0:1], null"),
        Gfx::V11 => ([0xf408_0100, 0xf800_0000], "s_load_b128 s[4:7], s[0:1], null"),
        Gfx::V12 => ([0xf400_4100, 0xf800_0000], "s_load_b128 s[4:7], s[0:1], 0x0"),
    };
    let (wait, waits) = match gfx {
        Gfx::V8 => (0xbf8c_007f, "s_waitcnt lgkmcnt(0)"),
        Gfx::V9 | Gfx::V9_4_3 | Gfx::V10 => (0xbf8c_c07f, "s_waitcnt lgkmcnt(0)"),
        Gfx::V11 => (0xbf89_fc07, "s_waitcnt lgkmcnt(0)"),
        Gfx::V12 => (0xbfc7_0000, "s_wait_kmcnt 0x0"),
    };
    let (branch, end) = if gfx >= Gfx::V11 { (0xbfa0_fffc, 0xbfb0_0000) } else { (0xbf82_fffc, 0xbf81_0000) };
    let code = [
        (load.to_vec(), operands),
        (vec![wait], waits),
        (vec![branch], "s_branch BB0"),
        (vec![end], "s_endpgm"),
    ];
    code.map(|(words, text)| (words, text.to_owned())).into()
}

/// Builds a report. Files that nothing was said for are empty or absent, as in real ones.
#[derive(Clone, Debug)]
pub struct RadvBuilder {
    gfx: Gfx,
    members: Vec<(String, String)>,
    shaders: Vec<ShaderSpec>,
    waves: Vec<WaveSpec>,
}

impl RadvBuilder {
    /// A report with `app_info.log` and `gpu_info.log` only.
    pub fn new(gfx: Gfx) -> RadvBuilder {
        let mut builder = RadvBuilder { gfx, members: Vec::new(), shaders: Vec::new(), waves: Vec::new() };
        builder.add(
            "app_info.log",
            "Application name: vkcube\nApplication version: 0\nEngine name: vkcube\nEngine version: 0\n\
             API version: 1.3.0\nEnabled debug options: hang, \n",
        );
        let (chip, level) = gfx.chip();
        builder.add(
            "gpu_info.log",
            &format!(
                "Mesa version: 25.0.7\nDevice name: AMD Radeon (RADV {chip}) (DRM 3.59.0 / 6.12.0)\n\n\
                 Device info:\n    name = {chip}\n    gfx_level = {level}\n    num_se = 4\n"
            ),
        );
        builder
    }

    /// Adds text to a file.
    pub fn add(&mut self, name: &str, text: &str) {
        match self.members.iter_mut().find(|(known, _)| known == name) {
            Some((_, there)) => there.push_str(text),
            None => self.members.push((name.to_owned(), text.to_owned())),
        }
    }

    /// `trace.log`: the trace point that was reached, and the dwords of a stream; NOPs with a trace point are taken for
    /// such.
    pub fn trace(mut self, id: u32, streams: &[(&str, &[u32])]) -> RadvBuilder {
        let mut text = format!("Trace ID: {id:x}\n");
        for (name, dwords) in streams {
            let _ = writeln!(text, "------------------ {name} begin - GFX ------------------");
            stream(&mut text, id, dwords);
            let _ = writeln!(text, "------------------- {name} end - GFX -------------------\n");
        }
        self.add("trace.log", &text);
        self
    }

    /// A shader of the bound pipeline.
    pub fn shader(mut self, shader: ShaderSpec) -> RadvBuilder {
        self.shaders.push(shader);
        self
    }

    /// Waves: `umr_waves.log`, and below the instructions they stand at.
    pub fn waves(mut self, waves: &[WaveSpec]) -> RadvBuilder {
        self.waves.extend_from_slice(waves);
        self
    }

    /// `umr_ring.log`
    pub fn ring(mut self, dwords: &[u32]) -> RadvBuilder {
        let text = format!("\nUMR GFX ring:\n\n{}", ring_stream_text(&[(0, 0x1800, dwords)]));
        self.add("umr_ring.log", &text);
        self
    }

    /// `registers.log`: a register with its fields as numbers.
    pub fn register(mut self, name: &str, value: u32, fields: &[(&str, u32)]) -> RadvBuilder {
        if !self.members.iter().any(|(member, _)| member == "registers.log") {
            self.add("registers.log", "Memory-mapped registers:\n");
        }
        let mut text = format!("        {YELLOW}{name}{RESET} <- {}\n", shown(value));
        for (field, value) in fields {
            let _ = writeln!(text, "{}{field} = {}", " ".repeat(12 + name.len()), shown(*value));
        }
        self.add("registers.log", &text);
        self
    }

    /// A buffer that was made, and where `destroyed` that was destroyed: `bo_history.log`, `bo_ranges.log` and
    /// `addr_binding_report.log`.
    pub fn buffer(mut self, timestamp: u64, iova: u64, size: u64, destroyed: Option<u64>) -> RadvBuilder {
        let end = iova + size;
        let events = [(Some(timestamp), 0, "bind"), (destroyed, 1, "unbind")];
        for (timestamp, gone, binding) in events {
            let Some(timestamp) = timestamp else { continue };
            let event =
                format!("timestamp={timestamp}, VA={iova:016x}-{end:016x}, destroyed={gone}, is_virtual=0\n");
            self.add("bo_history.log", &event);
            let binding = format!(
                "timestamp={timestamp}, VA={iova:016x}-{end:016x}, binding_type={binding}, \
                 object_type=VK_OBJECT_TYPE_DEVICE_MEMORY, object_handle=0x5555aaaa\n"
            );
            self.add("addr_binding_report.log", &binding);
        }
        if destroyed.is_none() {
            self.add("bo_ranges.log", &format!("  VA={iova:016x}-{end:016x}, handle=7\n"));
        }
        self
    }

    /// `vm_fault.log`, and in `dmesg.log` what the kernel says of it.
    pub fn fault(mut self, address: u64, status: u32) -> RadvBuilder {
        let mut text = format!("VM fault report.\n\nFailing VM page: 0x{address:08x}\n");
        if self.gfx >= Gfx::V10 {
            let cid = status >> 9 & 0x1ff;
            let _ = write!(
                text,
                "GCVM_L2_PROTECTION_FAULT_STATUS: 0x{status:x}\n\t CLIENT_ID: (TCP) 0x{cid:x}\n\t MORE_FAULTS: {}\n\t \
                 WALKER_ERROR: {}\n\t PERMISSION_FAULTS: {}\n\t MAPPING_ERROR: {}\n\t RW: {}\n",
                status & 1,
                status >> 1 & 7,
                status >> 4 & 15,
                status >> 8 & 1,
                status >> 18 & 1
            );
        } else {
            let _ = writeln!(text, "VM_CONTEXT1_PROTECTION_FAULT_STATUS: 0x{status:x}");
        }
        text.push_str("\nPerforming some verifications with address binding report...\nVA not found!\n");
        self.add("vm_fault.log", &text);
        let log = format!(
            "[  100.000001] amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:3 pasid:32771)\n\
             [  100.000002] amdgpu 0000:03:00.0: amdgpu:  in process vkcube pid 4711 thread vkcube pid 4711\n\
             [  100.000003] amdgpu 0000:03:00.0: amdgpu:   in page starting at address 0x{address:016x} from client 0x1b \
             (UTCL2)\n\
             [  100.000004] amdgpu 0000:03:00.0: amdgpu: GCVM_L2_PROTECTION_FAULT_STATUS:0x{status:08X}\n"
        );
        self.add("dmesg.log", &log);
        self
    }

    /// In `dmesg.log` a ring that timed out.
    pub fn timeout(mut self, ring: &str, signaled: u32, emitted: u32) -> RadvBuilder {
        let log = format!(
            "[  110.000001] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring {ring} timeout, signaled seq={signaled}, \
             emitted seq={emitted}\n"
        );
        self.add("dmesg.log", &log);
        self
    }

    /// `trap_handler.log`: an exception in a shader.
    pub fn trap(mut self, shader: &ShaderSpec, offset: u64) -> RadvBuilder {
        let (start, end) = (shader.address, shader.address + shader.size());
        let mut text = format!(
            "\nHardware registers:\n        {YELLOW}SQ_WAVE_STATUS{RESET} <- 0x00012000\n\n\n\nShader registers:\n\
             m0: 0x00000000\nexec_lo: 0xffffffff\nexec_hi: 0x00000000\n\nSGPRS:\n\
             s[0-3] = {{ 00000001, 00000002, 00000003, 00000004 }}\n\n\nVGPRS:\n              t00      t01     \n    \
             [  0] = {{ 00000005 00000006 }}\n\n\nLDS:\n\
             lds[0-7] = {{ 00000007, 00000000, 00000000, 00000000, 00000000, 00000000, 00000000, 00000000 }}\n\n\n\
             PC=0x{:x}, trapID=0, HT=1, PC_rewind=0\nFaulty shader found VA=[0x{start:x}-0x{end:x}], \
             instr_offset={offset}\n",
            start + offset
        );
        annotated(&mut text, shader, &[]);
        self.add("trap_handler.log", &text);
        self
    }

    /// A report with something in every file.
    pub fn complete(gfx: Gfx) -> RadvBuilder {
        let shader = ShaderSpec::waiting(gfx, "Pixel Shader", 0x8001_2000_0000);
        let inner = [0xc001_2d00, 3, 2];
        let mut builder = RadvBuilder::new(gfx)
            .trace(
                2,
                &[
                    ("Preamble IB", &[0xffff_1000]),
                    (
                        "Main IB",
                        &[0xc000_1000, 0xcafe_0001, 0xc000_1000, 0xcafe_0002, 0xc000_1000, 0xcafe_0003],
                    ),
                    ("Postamble IB", &inner),
                ],
            )
            .shader(ShaderSpec::waiting(gfx, "Vertex Shader as NGG", 0x8001_1000_0000))
            .shader(shader.clone())
            .waves(&WaveSpec::some(gfx))
            .ring(&[0xc002_3f00, 0x0010_0000, 0x8001, 0x40])
            .register("GRBM_STATUS", 0xa000_3028, &[("CP_BUSY", 1), ("GUI_ACTIVE", 1)])
            .register("CP_STAT", 0, &[])
            .buffer(1000, 0x8001_0000_0000, 0x10000, Some(2000))
            .buffer(1500, 0x8002_0000_0000, 0x10000, None)
            .fault(0x8001_0000_1000, 0x0080_0831)
            .timeout(gfx.ring(), 100, 102)
            .trap(&shader, 8);
        builder.add(
            "bo_history.log",
            "timestamp=1600, VA=0000900000000000-0000900000010000, mapped_to=0000800200000000\n",
        );
        builder.add("dmesg.log", "[  111.000001] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n");
        builder
    }

    /// The files of the folder: names and contents.
    pub fn members(&self) -> Vec<(String, Vec<u8>)> {
        let mut members = self.members.clone();
        members.push(("pipeline.log".to_owned(), self.pipeline()));
        let waves = waves_text(self.gfx, &self.waves, WaveForm::Bits);
        members.push(("umr_waves.log".to_owned(), format!("\nUMR GFX waves:\n\n{waves}")));
        members.sort();
        let mut members: Vec<_> = members.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
        if !self.shaders.is_empty() {
            members.push((
                format!("{}.spv", "0123456789abcdef".repeat(3).get(..40).unwrap_or_default()),
                vec![3, 2, 0x23, 7],
            ));
        }
        members
    }

    /// The same as one text.
    pub fn text(&self) -> Vec<u8> {
        let mut text = b"========== RADV GPU hang report ==========\n".to_vec();
        for (name, bytes) in self.members() {
            if let Some(stem) = name.strip_suffix(".log").filter(|stem| !stem.starts_with("trap")) {
                text.extend_from_slice(format!("\n========== {stem} ==========\n").as_bytes());
                text.extend_from_slice(&bytes);
            }
        }
        text
    }

    fn pipeline(&self) -> String {
        let mut text = "AMD_IP_GFX:\nPipeline hash: 123456789abcdef0\n".to_owned();
        for shader in &self.shaders {
            let _ = write!(
                text,
                "{}:\n\nSPIRV (see {}.spv)\n\nNIR:\nshader: MESA_SHADER_FRAGMENT\nimpl main {{\n    block b0:  // preds:\n}}\n\n\
                 ACO IR:\nAfter Spilling:\nBB0\n\nDISASM:\nBB0:\n",
                shader.name,
                "0123456789abcdef".repeat(3).get(..40).unwrap_or_default()
            );
            for (words, instruction) in &shader.code {
                let _ = writeln!(text, "\t{instruction:<60};{}", hex(words));
            }
            text.push_str(
                "\n\n\n*** SHADER STATS ***\nDriver pipeline hash: 1\nSGPRs: 128\n********************\n\n\n",
            );
        }
        let _ = write!(text, "{CYAN}The number of active waves = {}{RESET}\n\n", self.waves.len());
        let mut waves = self.waves.clone();
        for shader in &self.shaders {
            let range = shader.address..shader.address + shader.size();
            let (inside, outside): (Vec<_>, Vec<_>) =
                waves.into_iter().partition(|wave| range.contains(&wave.pc));
            waves = outside;
            if inside.is_empty() {
                continue;
            }
            let _ = writeln!(text, "{YELLOW}{} - annotated disassembly:{RESET}", shader.name);
            annotated(&mut text, shader, &inside);
            text.push_str("\n\n");
        }
        if !waves.is_empty() {
            let _ = writeln!(text, "{CYAN}Waves not executing currently-bound shaders:{RESET}");
            for wave in &waves {
                let [se, sa, cu, simd, slot] = wave.place;
                let _ = writeln!(
                    text,
                    "    SE{se} SH{sa} CU{cu} SIMD{simd} WAVE{slot}  EXEC={:016x}  INST={:08X} {:08X}  PC={:x}",
                    wave.exec, wave.inst[0], wave.inst[1], wave.pc
                );
            }
        }
        let _ = write!(
            text,
            "Num vertex bindings: 1\nVBO#0:\n\tVA: 0x800200000000\n\tStride: 16\n\tNum records: 64 (0x40)\n\
             Descriptors:\n(set=0 binding=1 offset=0x20) {CYAN}Buffer:{RESET}\n        {YELLOW}SQ_BUF_RSRC_WORD0{RESET} <- \
             0x00100000\n{}BASE_ADDRESS = 0x00100000\n\n\n\n",
            " ".repeat(29)
        );
        text
    }
}

fn hex(words: &[u32]) -> String {
    words.iter().map(|word| format!(" {word:08x}")).collect()
}

/// A number as Mesa prints it.
fn shown(value: u32) -> String {
    match value {
        0..=9 => value.to_string(),
        10..=0x8000 => format!("{value} (0x{value:08x})"),
        _ => format!("0x{value:08x}"),
    }
}

/// A disassembly with addresses, and the waves below the instructions they stand at.
fn annotated(text: &mut String, shader: &ShaderSpec, waves: &[WaveSpec]) {
    let mut offset = 0;
    for (words, instruction) in &shader.code {
        let (pc, size) = (shader.address + offset, 4 * words.len());
        let _ = writeln!(text, "\t{instruction:<60};{} [PC=0x{pc:x}, off={offset}, size={size}]", hex(words));
        for wave in waves.iter().filter(|wave| wave.pc == pc) {
            let [se, sa, cu, simd, slot] = wave.place;
            let inst = if size == 4 {
                format!("INST32={:08X}", wave.inst[0])
            } else {
                format!("INST64={:08X} {:08X}", wave.inst[0], wave.inst[1])
            };
            let _ = writeln!(
                text,
                "          {GREEN}^ SE{se} SH{sa} CU{cu} SIMD{simd} WAVE{slot}  EXEC={:016x}  {inst}{RESET}",
                wave.exec
            );
        }
        offset += size as u64;
    }
}

/// Type 3 packets, the way Mesa decodes them as far as it matters here.
fn stream(text: &mut String, reached: u32, dwords: &[u32]) {
    let mut at = 0;
    while let Some(&header) = dwords.get(at) {
        at += 1;
        let count =
            if header >> 30 == 3 && header != super::NOP { (header >> 16 & 0x3fff) as usize + 1 } else { 0 };
        let name = match header >> 8 & 0xff {
            0x10 => "NOP",
            0x2d => "DRAW_INDEX_AUTO",
            0x3f => "INDIRECT_BUFFER",
            _ => "UNKNOWN",
        };
        let _ = writeln!(text, "{header:08x} {GREEN}{name}{RESET}:");
        for _ in 0..count {
            let Some(value) = dwords.get(at) else {
                let _ = writeln!(text, "???????? ");
                break;
            };
            at += 1;
            if value >> 16 == 0xcafe {
                let (id, pad) = (value & 0xffff, " ".repeat(17));
                let said = match id.cmp(&reached) {
                    std::cmp::Ordering::Less => "This trace point was reached by the CP.",
                    std::cmp::Ordering::Equal => {
                        "!!!!! This is the last trace point that was reached by the CP !!!!!"
                    }
                    std::cmp::Ordering::Greater => "!!!!! This trace point was NOT reached by the CP !!!!!",
                };
                let _ = writeln!(text, "{pad}{RED}Trace point ID: {id}{RESET}\n{pad}{RED}{said}{RESET}");
                let _ = writeln!(text, "{value:08x} ");
            } else {
                let _ = writeln!(text, "{value:08x}         {YELLOW}VALUE{RESET} <- {}", shown(*value));
            }
        }
    }
}
