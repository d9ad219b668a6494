//! Any bytes disassemble to a listing that assembles to the same bytes.
//!
//! `UNWEDGE_ALL=1 cargo test --release -p unwedge-isa --test eu_any_bytes` has 2 million words on each platform.

use unwedge_isa::eu::{Field, Instruction, Platform, program};
use unwedge_testkit::mutate::Rng;

/// Instructions in a program.
const WORDS: usize = 64;

fn wide(state: &mut Rng) -> u128 {
    u128::from(state.next_u64()) << 64 | u128::from(state.next_u64())
}

/// Texts that the platform assembles, of most formats.
const SEEDS: &[&str] = &[
    "add(8) g40<1>D g38<8,8,1>D g36<8,8,1>D { align1 1Q };",
    "mov(16) g101<1>F g110.1<16,8,2>F { align1 1H };",
    "mov(8) g4<1>F 0x3f800000F { align1 1Q };",
    "(+f0.0) sel.sat(8) g64<1>F -g15<8,8,1>F (abs)g15<8,8,1>F { align1 1Q };",
    "cmp.nz.f0.1(16) null<1>F g98<8,8,1>F 0x3f800000F { align1 1H };",
    "mad(8) g4<1>F g33<8,8,1>F g15<8,8,1>F g37<1,1,1>F { align1 1Q };",
    "mad(8) g4<1>.xF g33<4,4,1>.xF g15<4,4,1>.yF g37.0<0,1,0>F { align16 1Q };",
    "math sqrt(8) g14<1>F g53<8,8,1>F null<8,8,1>F { align1 1Q };",
    "mov(8) g[a0.2 16]<1>UD g[a0 32]<VxH,1,0>UD { align1 1Q };",
    "sync nop(1) null<0,1,0>UB { align1 WE_all 1N };",
    "jmpi(1) 16D { align1 WE_all 1N };",
    "send(8) g96UD g104UD nullUD 0x0210b500 0x00000000 ugm MsgDesc: { align1 1Q $3 };",
    "send(8) g96UD g104UD g4UD a0<0>UD a0.2<0>UD ugm MsgDesc: { align1 1Q };",
    "sends(8) nullUD g104UD g4UD 0x02025efd 0x00000040 dp data 1 MsgDesc: { align1 1Q };",
    "dpas.8x8(8) g40<1>F g20<1,1,0>F g30<1,1,0>HF g35<1,1,0>HF { align1 1Q $1 };",
    "nop;",
];

/// Words that are instructions, and words of nothing but an opcode.
fn bases(platform: Platform) -> Vec<u128> {
    let mut words: Vec<u128> = SEEDS
        .iter()
        .filter_map(|text| program::assemble(platform, text).ok())
        .filter_map(|bytes| Some(u128::from_le_bytes(bytes.try_into().ok()?)))
        .collect();
    assert!(words.len() >= SEEDS.len() / 2, "{}: {} texts", platform.name(), words.len());
    for code in 0..128 {
        let mut inst = Instruction { bits: 0, platform };
        inst.set(Field::Opcode, code);
        if inst.row().is_some() {
            words.push(inst.bits);
        }
    }
    words
}

/// A word: random, sparse, two instructions of 8 bytes, or an instruction or the word before with some bits changed.
fn word(state: &mut Rng, bases: &[u128], before: u128) -> u128 {
    const COMPACTED: u128 = 1 << 29 | 1 << 93;
    let kind = state.next_u64() % 10;
    // Whole instructions stand before the bare opcodes.
    let most = if kind.is_multiple_of(2) { SEEDS.len() / 2 } else { bases.len() };
    let base = bases[state.next_u64() as usize % most];
    let mut word = match kind {
        0 => return wide(state),
        1 => return wide(state) & wide(state) & wide(state),
        2 => {
            let opcodes = base & 0x7f | (base & 0x7f) << 64;
            wide(state) & !(0x7f | 0x7f << 64) | opcodes | COMPACTED
        }
        3 | 4 => before,
        _ => base,
    };
    for _ in 0..state.next_u64() % (kind * 2) {
        word ^= 1 << (state.next_u64() % 128);
    }
    // The form of 8 bytes would make all that follows another.
    let whole = kind > 4 && !state.next_u64().is_multiple_of(8);
    if whole { word & !(1 << 29) } else { word }
}

#[test]
fn listings_of_any_bytes_assemble_to_them() {
    let count = if std::env::var_os("UNWEDGE_ALL").is_some() { 2_000_000 } else { 6_000 };
    for (index, platform) in Platform::names().enumerate() {
        let platform = Platform::by_name(platform).unwrap();
        let bases = bases(platform);
        let mut state = Rng::new(0x9e37_79b9_7f4a_7c15 ^ index as u64);
        let (mut instructions, mut raw) = (0, 0);
        for _ in 0..count / WORDS {
            let mut before = 0;
            let mut bytes: Vec<u8> = Vec::new();
            for _ in 0..WORDS {
                before = word(&mut state, &bases, before);
                bytes.extend_from_slice(&before.to_le_bytes());
            }
            bytes.truncate(bytes.len() - (state.next_u64() % 16) as usize);
            let listing = program::listing(platform, &bytes);
            let again = program::assemble(platform, &listing);
            assert_eq!(again.as_ref(), Ok(&bytes), "{}\n{listing}", platform.name());
            assert!(!program::disassemble(platform, &bytes).is_empty());
            instructions += program::instructions(platform, &bytes).count();
            raw += listing.lines().filter(|line| line.starts_with(".raw")).count();
        }
        println!("{}: {instructions} instructions, {raw} of them .raw", platform.name());
        assert!(raw < instructions, "{}: nothing has a text", platform.name());
    }
}
