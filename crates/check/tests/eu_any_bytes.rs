//! Any bytes are checked in a bounded time, on every platform.

use unwedge_check::eu::{CheckOptions, check, check_instruction};
use unwedge_isa::eu::{Generation, Instruction, Platform};
use unwedge_testkit::mutate::Rng;

#[test]
fn any_instruction_is_checked() {
    for (index, name) in Platform::names().enumerate() {
        let platform = Platform::by_name(name).unwrap();
        let mut state = Rng::new(0x9e37_79b9_7f4a_7c15 ^ index as u64);
        let mut broken = 0;
        for round in 0..20_000 {
            let mut bits = u128::from(state.next_u64()) << 64 | u128::from(state.next_u64());
            // Sparse words are often instructions.
            if round % 2 == 0 {
                bits &= u128::from(state.next_u64()) << 64 | u128::from(state.next_u64());
            }
            let rules = check_instruction(&Instruction { bits, platform });
            broken += usize::from(!rules.is_empty());
            for rule in rules {
                assert!(rule.info().holds(platform), "{} on {name}: {bits:#034x}", rule.info().name);
            }
        }
        let known = platform.generation() <= Generation::Xe2;
        assert!(if known { broken > 1000 } else { broken == 0 }, "{name}: {broken}");
    }
}

#[test]
fn any_program_is_checked() {
    // Opcodes of branches, messages and arithmetic of each generation, so that graphs are dense.
    const OLD: [u8; 8] = [34, 36, 37, 39, 40, 49, 64, 32];
    const NEW: [u8; 8] = [34, 36, 37, 39, 40, 49, 64, 56];
    for (index, name) in Platform::names().enumerate() {
        let platform = Platform::by_name(name).unwrap();
        let mut state = Rng::new(0x2545_f491_4f6c_dd1d ^ index as u64);
        for (round, length) in [0usize, 1, 9, 64, 300, 600].into_iter().cycle().take(30).enumerate() {
            let mut bytes = Vec::new();
            for at in 0..length {
                let mut word = u128::from(state.next_u64()) << 64 | u128::from(state.next_u64());
                if round % 3 != 0 {
                    let opcodes = if name == "tgl" || index > 15 { NEW } else { OLD };
                    word = word & !0x2000_007f | u128::from(opcodes[(state.next_u64() % 8) as usize]);
                    let target = (state.next_u64() % length as u64) as i64 - at as i64;
                    word = word & !(0xffff_ffff << 96) | u128::from((target * 16) as i32 as u32) << 96;
                }
                bytes.extend(word.to_le_bytes());
            }
            bytes.truncate(bytes.len().saturating_sub((state.next_u64() % 16) as usize));
            let report = check(platform, &bytes, CheckOptions { whole: round % 2 == 0, inputs: Some(1) });
            assert!(report.instructions * 8 <= bytes.len());
            assert!(report.findings.iter().all(|f| f.at as usize <= bytes.len()));
        }
    }
}
