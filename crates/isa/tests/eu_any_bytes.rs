//! Any bytes disassemble to a listing that assembles to the same bytes.

use unwedge_isa::eu::{Platform, program};

/// xorshift
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn listings_of_random_bytes_assemble_to_them() {
    for (index, platform) in Platform::names().enumerate() {
        let platform = Platform::by_name(platform).unwrap();
        let mut state = 0x9e37_79b9_7f4a_7c15 ^ index as u64;
        for round in 0..400 {
            let mut bytes = Vec::new();
            for _ in 0..8 {
                let mut word = u128::from(next(&mut state)) << 64 | u128::from(next(&mut state));
                // Sparse words are often instructions.
                if round % 2 == 0 {
                    word &= u128::from(next(&mut state)) << 64 | u128::from(next(&mut state));
                    word &= u128::from(next(&mut state)) << 64 | u128::from(next(&mut state));
                }
                bytes.extend_from_slice(&word.to_le_bytes());
            }
            bytes.truncate(128 - (next(&mut state) % 16) as usize);
            let listing = program::listing(platform, &bytes);
            assert_eq!(
                program::assemble(platform, &listing).as_ref(),
                Ok(&bytes),
                "{}\n{listing}",
                platform.name()
            );
            let _ = program::disassemble(platform, &bytes);
        }
    }
}
