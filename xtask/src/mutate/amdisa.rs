//! Assembly of AMD GPUs, broken: sources, single lines, code objects, bare code, bytes in hexadecimal, and files that hold code
//! objects.

use super::judge::Judge;
use unwedge_campaigns::amdisa::{View, show};
use unwedge_isa::amdgcn::Gpu;
use unwedge_isa::amdgcn::listing::{self, AmdListingOptions};
use unwedge_testkit::bundle;
use unwedge_testkit::captures::mutate_bytes;
use unwedge_testkit::mutate::{Rng, mutate};

/// One GPU for each column of the tables.
const GPUS: [&str; 10] =
    ["gfx600", "gfx700", "gfx803", "gfx900", "gfx906", "gfx1010", "gfx1030", "gfx1100", "gfx1150", "gfx1200"];
/// Dwords of code that sources are made of.
const DWORDS: usize = 96;

/// What surrounds the instructions of a source.
const FRAME: &str = "\
.amdhsa_code_object_version 5
.set LANES, 64
.macro pause n=1, rest:vararg
.if \\n > 0
 s_nop \\n
.else
 s_nop 7
.endif
.ifnb \\rest
 pause \\rest
.endif
.endm
.text
.globl main
.type main,@function
.p2align 8
main:
 pause 1, 2, 3
.rept 3
.irp n, 4, 5
 s_nop \\n
.endr
.endr
1: s_cbranch_scc0 1b
 s_branch .Lend
";
const TAIL: &str = "\
.Lend: s_endpgm
.size main, .Lend + 4 - main
.rodata
.long LANES, main - main, -1
.asciz \"text\\n\"
.fill 3, 2, 7
.amdhsa_kernel main
.amdhsa_next_free_vgpr 9
.amdhsa_next_free_sgpr 4
.end_amdhsa_kernel
";

/// What is broken of one GPU.
struct Whole {
    gpu: Gpu,
    source: Vec<u8>,
    lines: Vec<u8>,
    object: Vec<u8>,
    code: Vec<u8>,
    hex: Vec<u8>,
}

/// Assembly of every GPU.
pub(super) struct Amdisa {
    wholes: Vec<Whole>,
    /// Bundles, programs and archives.
    files: Vec<(&'static str, Vec<u8>)>,
}

impl Amdisa {
    pub(super) fn new() -> Amdisa {
        let gpus = GPUS.iter().filter_map(|name| Gpu::new(name).ok());
        Amdisa { wholes: gpus.map(|gpu| Whole::of(gpu, 0)).collect(), files: bundle::formats() }
    }

    pub(super) fn one(&self, share: u64, seed: u64, judge: &mut Judge) {
        if share % 6 == 5 {
            let at = (share / 6) as usize % self.files.len().max(1);
            let (Some((name, file)), Some(whole)) = (self.files.get(at), self.wholes.first()) else { return };
            let broken = mutate_bytes(file, seed);
            return judge.amdisa(&broken, whole.gpu, View::Objects, &format!("seed {seed}, {name}"));
        }
        let at = (share / 5) as usize % self.wholes.len().max(1);
        let Some(whole) = self.wholes.get(at) else { return };
        // Every now and then other instructions.
        let fresh = (share % 50 >= 45).then(|| Whole::of(whole.gpu, seed));
        let whole = fresh.as_ref().unwrap_or(whole);
        let (broken, what, views): (Vec<u8>, &str, &[View]) = match share % 5 {
            0 => (mutate(&whole.source, seed), "source", &[View::Assemble, View::AssembleHex]),
            1 => (mutate(&whole.lines, seed), "lines", &[View::AssembleLines]),
            2 => {
                let views = &[View::Disassemble, View::DisassembleWords];
                (mutate_bytes(&whole.object, seed), "object", views)
            }
            3 => (mutate_bytes(&whole.code, seed), "code", &[View::Disassemble, View::DisassembleWords]),
            _ => (mutate(&whole.hex, seed), "hex", &[View::DisassembleLines]),
        };
        for &view in views {
            judge.amdisa(&broken, whole.gpu, view, &format!("seed {seed}, {} {what}", whole.gpu.name()));
        }
    }
}

impl Whole {
    /// Instructions are what random words are, as far as they are any.
    fn of(gpu: Gpu, seed: u64) -> Whole {
        let mut rng = Rng::new(seed);
        let word = |rng: &mut Rng| (rng.below(1 << 16) << 16 | rng.below(1 << 16)) as u32;
        let code: Vec<u8> = (0..DWORDS).flat_map(|_| word(&mut rng).to_le_bytes()).collect();
        let mut text = String::new();
        listing::write(&code, &gpu, &AmdListingOptions::default(), &mut text, &mut |_, _| ());
        let source = format!("{FRAME}{text}{TAIL}").into_bytes();
        let instruction = |line: &&str| line.starts_with('\t') && !line.contains("L");
        let lines = text.lines().filter(instruction).collect::<Vec<_>>().join("\n").into_bytes();
        let mut object = Vec::new();
        let _ = show(View::Assemble, &source, gpu, &mut object);
        let hex = code.chunks(8).map(|bytes| {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            digits + "\n"
        });
        Whole { gpu, source, lines, object, hex: hex.collect::<String>().into_bytes(), code }
    }
}
