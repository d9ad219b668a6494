//! Blocks of texels against decoders of others, over random blocks.

use unwedge_hw::adreno::format::{Format, MAX_BLOCK_TEXELS, TexelCodec, f16_to_f32};

fn codec(name: &str) -> TexelCodec {
    Format::named(name).unwrap_or_else(|| panic!("{name}")).codec()
}

/// Random blocks. Every other one has few different bytes, so that endpoints are often equal or in order.
fn blocks() -> impl Iterator<Item = [u8; 16]> {
    let mut state = 0x1234_5678_9abc_def1u64;
    (0..20_000).map(move |number| {
        std::array::from_fn(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let byte = (state >> 32) as u8;
            if number % 2 == 0 { byte } else { [0, 0x7f, 0x80, 0xff][usize::from(byte & 3)] }
        })
    })
}

fn texels(codec: &TexelCodec, block: &[u8]) -> Vec<[f32; 4]> {
    let mut out = [[0.0; 4]; MAX_BLOCK_TEXELS];
    let count = codec.unpack_block(block, &mut out).expect("a block");
    let all = out[..count].to_vec();
    let (width, height) = codec.block_size();
    assert_eq!(all.len(), (width * height) as usize);
    // A texel alone is the same.
    for at in [0, count / 2, count - 1] {
        let alone = codec.unpack_f32(block, at as u32 % width, at as u32 / width);
        assert_eq!(alone, Some(all[at]));
    }
    all
}

/// 8 bits of a channel from 0 to 1.
fn byte(value: f32) -> u8 {
    (value * 255.0).round() as u8
}

#[test]
fn bc1_to_bc3() {
    for (name, bytes, decode) in [
        ("DXT1_RGBA", 8, bcdec_rs::bc1 as fn(&[u8], &mut [u8], usize)),
        ("DXT3_RGBA", 16, bcdec_rs::bc2),
        ("DXT5_RGBA", 16, bcdec_rs::bc3),
    ] {
        let codec = codec(name);
        for block in blocks() {
            let mut theirs = [0; 64];
            decode(&block[..bytes], &mut theirs, 16);
            for (at, (ours, theirs)) in texels(&codec, &block).iter().zip(theirs.chunks(4)).enumerate() {
                for (ours, &theirs) in ours.iter().zip(theirs) {
                    // They round to 8 bits, in some places twice.
                    let difference = (ours * 255.0 - f32::from(theirs)).abs();
                    assert!(difference <= 1.01, "{name} {block:x?} texel {at}: {ours} and {theirs}");
                }
            }
        }
    }
}

#[test]
fn bc4_and_bc5() {
    for (name, signed) in
        [("RGTC1_UNORM", false), ("RGTC1_SNORM", true), ("RGTC2_UNORM", false), ("RGTC2_SNORM", true)]
    {
        let codec = codec(name);
        let channels = if name.starts_with("RGTC1") { 1 } else { 2 };
        for block in blocks() {
            // -128 counts as -127, but is the lesser of the two. The other compares them as equal.
            let one = |at: usize| block[at..at + 2].iter().all(|byte| matches!(byte, 0x80 | 0x81));
            if signed && (one(0) || one(8)) {
                continue;
            }
            let mut theirs = [0.0; 32];
            match channels {
                1 => bcdec_rs::bc4_float(&block[..8], &mut theirs[..16], 4, signed),
                _ => bcdec_rs::bc5_float(&block, &mut theirs, 8, signed),
            }
            for (ours, theirs) in texels(&codec, &block).iter().zip(theirs.chunks(channels)) {
                for (ours, theirs) in ours.iter().zip(theirs) {
                    assert!((ours - theirs).abs() < 2e-6, "{name} {block:x?}: {ours} and {theirs}");
                }
            }
        }
    }
}

#[test]
fn bc6h() {
    for (name, signed) in [("BPTC_RGB_UFLOAT", false), ("BPTC_RGB_FLOAT", true)] {
        let codec = codec(name);
        for block in blocks() {
            let mut theirs = [0; 48];
            bcdec_rs::bc6h_half(&block, &mut theirs, 12, signed);
            for (ours, theirs) in texels(&codec, &block).iter().zip(theirs.chunks(3)) {
                let theirs = [0, 1, 2].map(|channel| f16_to_f32(theirs[channel]));
                let same = (0..3).all(|c| ours[c] == theirs[c] || ours[c].is_nan() && theirs[c].is_nan());
                assert!(same, "{name} {block:x?}: {ours:?} and {theirs:?}");
            }
        }
    }
}

#[test]
fn bc7() {
    let codec = codec("BPTC_RGBA_UNORM");
    for (number, mut block) in blocks().enumerate() {
        // Every mode as often as any other, the reserved one included.
        let mode = number % 9;
        block[0] = ((u32::from(block[0]) << 1 | 1) << mode) as u8;
        let mut theirs = [0; 64];
        bcdec_rs::bc7(&block, &mut theirs, 16);
        let ours: Vec<u8> = texels(&codec, &block).concat().into_iter().map(byte).collect();
        assert_eq!(ours, theirs, "mode {mode}: {block:x?}");
    }
}

#[test]
fn etc_and_eac_alpha() {
    type Decode = fn(&[u8], &mut [u32]);
    for (name, bytes, decode) in [
        ("ETC1_RGB8", 8, texture2ddecoder::decode_etc1_block as Decode),
        ("ETC2_RGB8", 8, texture2ddecoder::decode_etc2_rgb_block),
        ("ETC2_RGB8A1", 8, texture2ddecoder::decode_etc2_rgba1_block),
        ("ETC2_RGBA8", 16, texture2ddecoder::decode_etc2_rgba8_block),
    ] {
        let codec = codec(name);
        for mut block in blocks() {
            if name == "ETC1_RGB8" {
                // Differences that leave the range are not ETC1.
                block[3] &= !2;
            }
            let mut theirs = [0; 16];
            decode(&block[..bytes], &mut theirs);
            for (at, (ours, theirs)) in texels(&codec, &block).iter().zip(theirs).enumerate() {
                let [b, g, r, a] = theirs.to_le_bytes();
                // The other keeps the colour of transparent texels.
                let theirs = if name == "ETC2_RGB8A1" && a == 0 { [0; 4] } else { [r, g, b, a] };
                assert_eq!(ours.map(byte), theirs, "{name} {block:x?} texel {at}");
            }
        }
    }
}

/// Against the formula of the specification over a text of bits.
#[test]
fn eac_of_eleven_bits() {
    const STEPS: [i32; 8] = [-3, -7, -10, -13, 2, 6, 9, 12];
    for (name, channels, signed) in [
        ("ETC2_R11_UNORM", 1, false),
        ("ETC2_R11_SNORM", 1, true),
        ("ETC2_RG11_UNORM", 2, false),
        ("ETC2_RG11_SNORM", 2, true),
    ] {
        let codec = codec(name);
        for mut block in blocks() {
            // Table 1 in both channels.
            (block[1], block[9]) = (block[1] & 0xf0 | 1, block[9] & 0xf0 | 1);
            let ours = texels(&codec, &block);
            for (channel, part) in block.chunks(8).enumerate().take(channels) {
                let bits: String = part[2..].iter().map(|byte| format!("{byte:08b}")).collect();
                for (at, index) in bits.as_bytes().chunks(3).enumerate() {
                    let index = index.iter().fold(0, |value, digit| 2 * value + usize::from(digit - b'0'));
                    let factor = i32::from(part[1] >> 4);
                    let change = if factor == 0 { STEPS[index] } else { STEPS[index] * factor * 8 };
                    let value = if signed {
                        let base = i32::from(part[0] as i8).max(-127) * 8;
                        (base + change).clamp(-1023, 1023) as f32 / 1023.0
                    } else {
                        (i32::from(part[0]) * 8 + 4 + change).clamp(0, 2047) as f32 / 2047.0
                    };
                    // Columns come first.
                    assert_eq!(ours[at % 4 * 4 + at / 4][channel], value, "{name} {block:x?} {at}");
                }
            }
        }
    }
    // By hand: base 1, factor 0, table 0, index 0 of every texel: 8 - 3.
    let signed = codec("ETC2_R11_SNORM");
    let flat = texels(&signed, &[1, 0, 0, 0, 0, 0, 0, 0]);
    assert!(flat.iter().all(|texel| *texel == [5.0 / 1023.0, 0.0, 0.0, 1.0]), "{flat:?}");
    // Base -128 counts as -127; factor 2, table 13, index 3 of every texel: -10 steps of 16.
    let low = texels(&signed, &[0x80, 0x2d, 0x6d, 0xb6, 0xdb, 0x6d, 0xb6, 0xdb]);
    assert!(low.iter().all(|texel| texel[0] == -1.0), "{low:?}");
    let unclamped = texels(&signed, &[0x00, 0x2d, 0x6d, 0xb6, 0xdb, 0x6d, 0xb6, 0xdb]);
    assert!(unclamped.iter().all(|texel| texel[0] == -160.0 / 1023.0), "{unclamped:?}");
}

const MAGENTA: [f32; 4] = [1.0, 0.0, 1.0, 1.0];

#[test]
fn astc() {
    let mut compared = 0;
    for (name, width, height) in [
        ("ASTC_4x4", 4, 4),
        ("ASTC_5x4", 5, 4),
        ("ASTC_6x5", 6, 5),
        ("ASTC_8x6", 8, 6),
        ("ASTC_10x10", 10, 10),
        ("ASTC_12x12", 12, 12),
    ] {
        let codec = codec(name);
        for block in blocks() {
            let ours = texels(&codec, &block);
            // What is not valid, the other decodes as something.
            if ours.iter().all(|texel| *texel == MAGENTA) {
                continue;
            }
            let mut theirs = [0; 144];
            texture2ddecoder::decode_astc_block(&block, width, height, &mut theirs);
            compared += 1;
            for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                let [b, g, r, a] = theirs.to_le_bytes();
                for (ours, theirs) in ours.iter().zip([r, g, b, a]) {
                    let difference = (ours * 255.0 - f32::from(theirs)).abs();
                    assert!(difference <= 0.7, "{name} {block:x?} texel {at}: {ours} and {theirs}");
                }
            }
        }
    }
    assert!(compared > 5_000, "{compared}");
}

#[test]
fn astc_of_one_colour() {
    let mut block = [0xff; 16];
    (block[0], block[1]) = (0xfc, 0xfd);
    block[8..].copy_from_slice(&[0xff, 0xff, 0, 0x80, 0, 0, 0, 0x40]);
    assert_eq!(texels(&codec("ASTC_8x5"), &block), vec![[1.0, 0.5, 0.0, 0.25]; 40]);
    let srgb = texels(&codec("ASTC_8x5_SRGB"), &block)[0];
    assert!((srgb[1] - 0.215_860_5).abs() < 1e-6 && srgb[3] == 0.25, "{srgb:?}");
    // Of high dynamic range, and with an empty extent.
    block[1] = 0xff;
    assert_eq!(texels(&codec("ASTC_8x5"), &block)[0], MAGENTA);
    block[1] = 0xfd;
    block[2..8].fill(0);
    assert_eq!(texels(&codec("ASTC_8x5"), &block)[0], MAGENTA);
    assert_eq!(texels(&codec("ASTC_4x4"), &[0; 16])[0], MAGENTA);
}

#[test]
fn srgb_and_subsampled() {
    let block = [0x00, 0xf8, 0, 0, 0, 0, 0, 0];
    let red = texels(&codec("DXT1_SRGBA"), &block);
    assert_eq!(red[0], [1.0, 0.0, 0.0, 1.0]);
    // Half of two endpoints is half of what is encoded.
    let block = [0x00, 0x00, 0x1f, 0x00, 2, 0, 0, 0];
    let half = texels(&codec("DXT1_SRGBA"), &block)[0][2];
    assert!((half - 0.214_041_14).abs() < 1e-6, "{half}");
    let pair = texels(&codec("G8B8_G8R8_UNORM"), &[255, 51, 0, 102]);
    assert_eq!(pair, [[0.4, 1.0, 0.2, 1.0], [0.4, 0.0, 0.2, 1.0]]);
    let pair = texels(&codec("B8G8_R8G8_UNORM"), &[51, 255, 102, 0]);
    assert_eq!(pair, [[0.4, 1.0, 0.2, 1.0], [0.4, 0.0, 0.2, 1.0]]);
}

#[test]
fn what_is_not_there_is_absent() {
    for name in
        ["DXT1_RGB", "BPTC_RGBA_UNORM", "ETC2_RGBA8", "ASTC_12x10", "ETC2_R11_UNORM", "B8G8_R8G8_UNORM"]
    {
        let codec = codec(name);
        let (width, height) = codec.block_size();
        let bytes = codec.bytes() as usize;
        assert_eq!(codec.unpack(&[0; 16][..bytes - 1], 0, 0), None, "{name}");
        assert_eq!(codec.unpack(&[0; 16], width, 0), None, "{name}");
        assert_eq!(codec.unpack(&[0; 16], 0, height), None, "{name}");
        assert!(codec.unpack(&[0; 16], width - 1, height - 1).is_some(), "{name}");
    }
}
