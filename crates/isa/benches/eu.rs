//! Speed of the EU disassembler in bytes and of the assembler in lines, over valid code that the benchmark makes:
//! instructions as compilers mix them, in random order with random registers, so that no branch is learned by heart; and
//! over the programs of a platform in the data folder, one after the other.

#[path = "../tests/data/mod.rs"]
mod data;

use divan::counter::{BytesCount, ItemsCount};
use unwedge_isa::eu::{Instruction, Platform, asm, disasm, program};

fn main() {
    divan::main();
}

/// Instructions as compilers mix them, gen12.5; `#` stands for a number.
const MIX: &[&str] = &[
    "add(8) g#<1>D g#<8,8,1>D g#<8,8,1>D { align1 1Q @1 };",
    "add(16) g#<1>F g#<1,1,0>F -g#<1,1,0>F { align1 1H };",
    "mov(16) g#<1>F g#<1,1,0>F { align1 2H I@2 };",
    "mov(8) g#<1>UD g#<8,8,1>UD { align1 1Q };",
    "mov(16) g#<1>UD 0x0000000#UD { align1 1H A@1 };",
    "mul(16) g#<1>F g#<1,1,0>F 0x3f000000F /* 0.5F */ { align1 1H };",
    "mad(16) g#<1>F g#<8,8,1>F g#.0<0,1,0>F g#<1,1,1>F { align1 1H F@1 };",
    "mad(8) g#<1>F g#<8,8,1>F g#<8,8,1>F g#<1,1,1>F { align1 1Q $5.dst };",
    "(+f0.0) sel(8) g#<1>D -g#<8,8,1>D g#<8,8,1>D { align1 1Q @1 $9.dst };",
    "sel.l(16) g#<1>F g#<1,1,0>F g#<1,1,0>F { align1 1H };",
    "cmp.nz.f0.0(16) g#<1>F g#<8,8,1>F 0x3f800000F /* 1F */ { align1 1H };",
    "math sqrt(16) g#<1>F g#<8,8,1>F null<8,8,1>F { align1 1H @6 $3 };",
    "shl(16) g#<1>D g#<8,8,1>D 0x0000000#UD { align1 1H };",
    "send(8) g#UD g#UD nullUD 0x02103500 0x00000000 ugm MsgDesc: ( load, a32, d32, V4 ) { align1 1Q $13 };",
    "and(16) g#<1>UD g2.2<0,1,0>UD g#<8,8,1>UD { align1 1H };",
    "sync nop(1) null<0,1,0>UB { align1 WE_all 1N @4 };",
];

fn source(lines: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut text = String::new();
    for _ in 0..lines {
        for (index, part) in MIX[next() as usize % MIX.len()].split('#').enumerate() {
            if index > 0 {
                // A digit where it ends in an immediate.
                let most = if text.ends_with("0x0000000") { 10 } else { 128 };
                text.push_str(&(next() % most).to_string());
            }
            text.push_str(part);
        }
        text.push('\n');
    }
    text
}

fn dg2() -> Platform {
    Platform::by_name("dg2").expect("it is in the table")
}

fn code() -> Vec<u8> {
    program::assemble(dg2(), &source(20_000)).expect("the source is valid")
}

#[divan::bench]
fn disassemble(bencher: divan::Bencher<'_, '_>) {
    let code = code();
    if let Some(path) = std::env::var_os("UNWEDGE_BENCH_CODE") {
        std::fs::write(path, &code).expect("a file for another disassembler");
    }
    bencher.counter(BytesCount::new(code.len())).bench(|| program::disassemble(dg2(), &code));
}

/// With the proof that each text assembles to its bytes.
#[divan::bench]
fn listing(bencher: divan::Bencher<'_, '_>) {
    let code = code();
    bencher.counter(BytesCount::new(code.len())).bench(|| program::listing(dg2(), &code));
}

#[divan::bench]
fn decode_to_text(bencher: divan::Bencher<'_, '_>) {
    let code = code();
    let instructions: Vec<_> = program::instructions(dg2(), &code).collect();
    let mut text = String::new();
    bencher.counter(BytesCount::new(code.len())).bench_local(|| {
        text.clear();
        for placed in &instructions {
            let inst = placed.inst.unwrap_or(Instruction { bits: 0, platform: dg2() });
            disasm::push_alone(&mut text, &inst, placed.compacted());
        }
        text.len()
    });
}

#[divan::bench]
fn assemble(bencher: divan::Bencher<'_, '_>) {
    let source = source(20_000);
    let lines: Vec<&str> = source.lines().collect();
    bencher
        .counter(ItemsCount::new(lines.len()))
        .bench(|| lines.iter().filter(|line| asm::assemble(dg2(), line).is_ok()).count());
}

#[divan::bench]
fn assemble_program(bencher: divan::Bencher<'_, '_>) {
    let source = source(20_000);
    bencher
        .counter(ItemsCount::new(source.lines().count()))
        .bench(|| program::assemble(dg2(), &source).map(|code| code.len()));
}

/// A platform of each generation of which there are programs.
const PLATFORMS: [&str; 6] = ["bdw", "skl", "icl", "tgl", "dg2", "lnl"];

/// Bytes of programs: with fewer, caches and tables of branches hold all of it.
const BYTES: usize = 1 << 18;

/// The programs of a platform, all of them again until they are long.
fn programs(name: &str) -> (Platform, Vec<u8>) {
    let once = data::eu_programs(name).concat();
    let times = if once.is_empty() { 0 } else { BYTES.div_ceil(once.len()) };
    (Platform::by_name(name).expect("it is in the table"), once.repeat(times))
}

#[divan::bench(args = PLATFORMS)]
fn disassemble_programs(bencher: divan::Bencher<'_, '_>, name: &str) {
    let (platform, code) = programs(name);
    bencher.counter(BytesCount::new(code.len())).bench(|| program::disassemble(platform, &code));
}

/// With the proof that each text assembles to its bytes.
#[divan::bench(args = PLATFORMS)]
fn listing_of_programs(bencher: divan::Bencher<'_, '_>, name: &str) {
    let (platform, code) = programs(name);
    bencher.counter(BytesCount::new(code.len())).bench(|| program::listing(platform, &code));
}

#[divan::bench(args = PLATFORMS)]
fn assemble_programs(bencher: divan::Bencher<'_, '_>, name: &str) {
    let (platform, code) = programs(name);
    let listing = program::listing(platform, &code);
    bencher
        .counter(ItemsCount::new(program::instructions(platform, &code).count()))
        .bench(|| program::assemble(platform, &listing).map(|code| code.len()));
}
