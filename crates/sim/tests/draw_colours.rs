//! What draws leave in render targets: blending, logic operations, masks and formats, against arithmetic of this test.

#[allow(dead_code, reason = "this test uses a part of it")]
mod cp_rig;

#[path = "cp_rig/scene.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod scene;

use cp_rig::{high, low};
use scene::*;
use unwedge_base::Generation::{self, A6xx, A7xx};
use unwedge_hw::Db;
use unwedge_hw::adreno::format::{ChannelKind, Format, Numeric, Source};

/// Pixels along a side of the target of all pairs of two bytes.
const WIDE: u32 = 256;
const WHITE: [f32; 4] = [1.0; 4];

fn generations() -> [Generation; 2] {
    [A6xx, A7xx]
}

/// A target of all pairs of two bytes, of texels of so many bytes.
fn wide<'d>(db: &'d Db, generation: Generation, bytes: u32) -> Scene<'d> {
    let mut scene = Scene::new(db, generation);
    scene.more((WIDE * WIDE * bytes) as usize);
    let half = (WIDE as f32 / 2.0).to_bits();
    scene.set("GRAS_CL_VPORT[0].XOFFSET", &[half, half, half, half, 0, 1f32.to_bits()]);
    let last = (WIDE - 1) | (WIDE - 1) << 16;
    for scissor in
        ["GRAS_SC_VIEWPORT_SCISSOR[0].TL", "GRAS_SC_SCREEN_SCISSOR[0].TL", "GRAS_SC_WINDOW_SCISSOR_TL"]
    {
        scene.set(scissor, &[0, last]);
    }
    let pitch = WIDE * bytes / 64;
    scene.set("RB_MRT[0].PITCH", &[pitch, pitch * WIDE, low(MORE), high(MORE), 0]);
    // Column and row in sixteenths are in r2.x and r2.y.
    scene.set("HLSQ_CONTROL_4_REG", &[0xfc00_fcfc | 8 << 16]);
    scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.0, WHITE));
    scene
}

fn fragment(scene: &mut Scene<'_>, lines: &[String]) {
    let lines: Vec<String> = [
        vec!["shr.b r2.x, r2.x, 4".to_owned(), "shr.b r2.y, r2.y, 4".to_owned()],
        lines.to_vec(),
        vec!["end".to_owned()],
    ]
    .concat();
    scene.code(FRAGMENT_CODE, &lines.join("\n"));
    scene.set("SP_FS_INSTRLEN", &[lines.len().div_ceil(16) as u32]);
}

fn mov(register: &str, value: f32) -> String {
    format!("mov.u32u32 {register}, 0x{:x}", value.to_bits())
}

fn format(scene: &mut Scene<'_>, format: Format) {
    let number = format.render_format().expect("renderable").0;
    scene.set("RB_MRT[0].BUF_INFO", &[number | format.swap().code() << 13]);
    let numeric = format.codec().numeric();
    let integers = u32::from(numeric == Numeric::Sint) << 8 | u32::from(numeric == Numeric::Uint) << 9;
    scene.set("SP_FS_MRT[0].REG", &[number | integers]);
    scene.set("RB_SRGB_CNTL", &[format.is_srgb().into()]);
}

fn pairs() -> impl Iterator<Item = (u32, u32)> {
    (0..WIDE).flat_map(|y| (0..WIDE).map(move |x| (x, y)))
}

/// The bytes of the target before a draw, by row.
fn stored(y: u32) -> [u8; 4] {
    let y = y as u8;
    [y, y.wrapping_mul(7), 255 - y, y.wrapping_mul(3).wrapping_add(1)]
}

fn fill(scene: &mut Scene<'_>) {
    for (x, y) in pairs() {
        scene.write(MORE + u64::from((y * WIDE + x) * 4), u32::from_le_bytes(stored(y)));
    }
}

const SECOND: [f32; 4] = [0.5, 0.25, 0.75, 0.125];
const CONSTANTS: [f32; 4] = [0.1, 0.2, 0.3, 0.4];

/// Red, green and blue are the column in 255ths, alpha is what is left to one.
fn column_as_colour(scene: &mut Scene<'_>) {
    fragment(
        scene,
        &[
            "cov.u32f32 r2.x, r2.x".into(),
            mov("r2.z", 1.0 / 255.0),
            "mul.f r0.z, r2.x, r2.z".into(),
            "mov.u32u32 r0.w, r0.z".into(),
            "mov.u32u32 r1.x, r0.z".into(),
            "add.f r1.y, (neg)r0.z, (1.0)".into(),
            mov("r3.x", SECOND[0]),
            mov("r3.y", SECOND[1]),
            mov("r3.z", SECOND[2]),
            mov("r3.w", SECOND[3]),
        ],
    );
}

fn colour(x: u32) -> [f64; 4] {
    let value = x as f32 * (1.0f32 / 255.0);
    [value, value, value, 1.0 - value].map(f64::from)
}

fn factor(code: u32, n: usize, s: [f64; 4], d: [f64; 4]) -> f64 {
    let (second, constants) = (SECOND.map(f64::from), CONSTANTS.map(f64::from));
    let value = match code & !1 {
        0 => return f64::from(code),
        4 => s[n],
        6 => s[3],
        8 => d[n],
        10 => d[3],
        12 => constants[n],
        14 => constants[3],
        16 => return if n == 3 { 1.0 } else { s[3].min(1.0 - d[3]) },
        20 => second[n],
        _ => second[3],
    };
    if code & 1 == 0 { value } else { 1.0 - value }
}

/// Every factor as that of the source and of the destination, with every operation, over all pairs of source and stored byte.
#[test]
fn blending_of_all_bytes() {
    let db = Db::builtin();
    let factors = [0u32, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 21, 22, 23];
    let mut scenes = generations().map(|generation| wide(&db, generation, 4));
    for scene in &mut scenes {
        column_as_colour(scene);
        // The second colour is that of the output after the target's.
        scene.set("SP_FS_OUTPUT_CNTL0", &[0xfcfc_fc01]).set("SP_FS_OUTPUT[1].REG", &[12]);
        scene.set("RB_BLEND_RED_F32", &CONSTANTS.map(f32::to_bits));
    }
    for (at, source) in factors.into_iter().enumerate() {
        let (destination, operation) = (factors[(at + 7) % factors.len()], at as u32 % 5);
        // Alpha has an equation of its own.
        let (alpha_source, alpha_operation) = (factors[(at + 3) % factors.len()], (at as u32 + 2) % 5);
        let scene = &mut scenes[at % 2];
        fill(scene);
        let rgb = source | operation << 5 | destination << 8;
        let alpha = alpha_source | alpha_operation << 5 | source << 8;
        scene.set("RB_MRT[0].CONTROL", &[3 | 0xf << 7, rgb | alpha << 16]).draw(STRIP, 4).done();
        for (x, y) in pairs() {
            let (s, d) = (colour(x), stored(y).map(|byte| f64::from(byte) / 255.0));
            let found = scene.read(MORE + u64::from((y * WIDE + x) * 4)).to_le_bytes();
            for n in 0..4 {
                let (source, operation, destination) = match n {
                    3 => (alpha_source, alpha_operation, source),
                    _ => (source, operation, destination),
                };
                let (a, b) = (s[n] * factor(source, n, s, d), d[n] * factor(destination, n, s, d));
                let value = match operation {
                    0 => a + b,
                    1 => a - b,
                    2 => b - a,
                    3 => s[n].min(d[n]),
                    _ => s[n].max(d[n]),
                };
                let apart = (f64::from(found[n]) - value.clamp(0.0, 1.0) * 255.0).abs();
                assert!(apart <= 0.5002, "{source} {operation} {destination}, {n} at {x},{y}: {found:?}");
            }
        }
    }
}

/// The sum of source and destination in the other formats of 8 bits, over all pairs of source and stored byte: sRGB is added as linear
/// light.
#[test]
fn blending_in_every_format_of_bytes() {
    let db = Db::builtin();
    let formats = ["R8_UNORM", "R8_SNORM", "R8G8_UNORM", "R8G8_SNORM", "R8G8B8A8_SNORM", "R8G8B8A8_SRGB"];
    for (at, name) in formats.into_iter().enumerate() {
        let of = Format::named(name).unwrap();
        let bytes = of.block_bytes();
        let mut scene = wide(&db, generations()[at % 2], bytes);
        format(&mut scene, of);
        let (signed, srgb) = (name.ends_with("SNORM"), name.ends_with("SRGB"));
        column_as_colour(&mut scene);
        for (x, y) in pairs() {
            let from = MORE + u64::from((y * WIDE + x) * bytes);
            for (n, byte) in (0..).zip(stored(y)).take(bytes as usize) {
                assert!(scene.machine.space.memory.store(from + n, 1, byte.into()));
            }
        }
        scene.set("RB_MRT[0].CONTROL", &[3 | 0xf << 7, 0x0101_0101]).draw(STRIP, 4).done();
        for (x, y) in pairs() {
            let from = MORE + u64::from((y * WIDE + x) * bytes);
            for n in 0..bytes as usize {
                let encoded = srgb && n < 3;
                let byte = stored(y)[n];
                let before = match (signed, encoded) {
                    (true, _) => (f64::from(byte as i8) / 127.0).max(-1.0),
                    (_, false) => f64::from(byte) / 255.0,
                    (_, true) => match f64::from(byte) / 255.0 {
                        code if code <= 0.04045 => code / 12.92,
                        code => ((code + 0.055) / 1.055).powf(2.4),
                    },
                };
                let sum = (colour(x)[n] + before).clamp(if signed { -1.0 } else { 0.0 }, 1.0);
                let exact = match (signed, encoded) {
                    (true, _) => sum * 127.0,
                    (_, false) => sum * 255.0,
                    (_, true) if sum <= 0.003_130_8 => sum * 12.92 * 255.0,
                    (_, true) => (1.055 * sum.powf(1.0 / 2.4) - 0.055) * 255.0,
                };
                let found = scene.machine.space.memory.load(from + n as u64, 1).known().unwrap() as u8;
                let found = if signed { f64::from(found as i8) } else { f64::from(found) };
                assert!((found - exact).abs() <= 0.502, "{name}, {n} at {x},{y}: {found}, not {exact}");
            }
        }
    }
}

/// All operations over all pairs of bytes, of normalized numbers and of integers.
#[test]
fn logic_operations_of_all_bytes() {
    let db = Db::builtin();
    for (generation, name) in [(A6xx, "R8G8B8A8_UINT"), (A7xx, "R8G8B8A8_UNORM")] {
        let mut scene = wide(&db, generation, 4);
        format(&mut scene, Format::named(name).unwrap());
        match name.ends_with("UINT") {
            true => fragment(
                &mut scene,
                &[
                    "mov.u32u32 r0.z, r2.x".into(),
                    "mov.u32u32 r0.w, r2.x".into(),
                    "mov.u32u32 r1.x, r2.x".into(),
                    "mov.u32u32 r1.y, r2.x".into(),
                ],
            ),
            false => column_as_colour(&mut scene),
        }
        for code in 0..16u32 {
            fill(&mut scene);
            scene.set("RB_MRT[0].CONTROL", &[1 << 2 | code << 3 | 0xf << 7, 0]).draw(STRIP, 4).done();
            for (x, y) in pairs() {
                let (s, d) = (x as u8, stored(y)[0]);
                let expected = [
                    0,
                    !(s | d),
                    !s & d,
                    !s,
                    s & !d,
                    !d,
                    s ^ d,
                    !(s & d),
                    s & d,
                    !(s ^ d),
                    d,
                    !s | d,
                    s,
                    s | !d,
                    s | d,
                    0xff,
                ][code as usize];
                let found = scene.read(MORE + u64::from((y * WIDE + x) * 4)).to_le_bytes();
                assert_eq!(found[0], expected, "{name} {code} {x:x} {y:x}");
            }
        }
    }
}

/// Numbers from below to above the range of a format become the nearest of its bytes.
#[test]
fn conversion_to_bytes() {
    let db = Db::builtin();
    for (at, name) in
        ["R8_UNORM", "R8_SNORM", "R8G8B8A8_SRGB", "R8G8B8A8_UNORM", "R8G8B8A8_SNORM"].into_iter().enumerate()
    {
        let of = Format::named(name).unwrap();
        let bytes = of.block_bytes();
        let mut scene = wide(&db, generations()[at % 2], bytes);
        format(&mut scene, of);
        let signed = name.ends_with("SNORM");
        let (scale, first) = if signed { (2.4f32 / 65535.0, -1.2f32) } else { (1.2 / 65535.0, -0.1) };
        fragment(
            &mut scene,
            &[
                "shl.b r2.y, r2.y, 8".into(),
                "add.u r2.x, r2.x, r2.y".into(),
                "cov.u32f32 r2.x, r2.x".into(),
                mov("r2.z", scale),
                mov("r2.w", first),
                "mad.f32 r0.z, r2.x, r2.z, r2.w".into(),
                "mov.u32u32 r0.w, r0.z".into(),
                "mov.u32u32 r1.x, r0.z".into(),
                "mov.u32u32 r1.y, r0.z".into(),
            ],
        );
        scene.draw(STRIP, 4).done();
        for (x, y) in pairs() {
            let value = f64::from(((y * WIDE + x) as f32).mul_add(scale, first));
            let from = MORE + u64::from((y * WIDE + x) * bytes);
            for n in 0..bytes {
                let byte = scene.machine.space.memory.load(from + u64::from(n), 1).known().unwrap() as u8;
                let (found, exact) = match (signed, name.ends_with("SRGB") && n < 3) {
                    (true, _) => (f64::from(byte as i8), value.clamp(-1.0, 1.0) * 127.0),
                    (_, false) => (f64::from(byte), value.clamp(0.0, 1.0) * 255.0),
                    (_, true) => {
                        let linear = value.clamp(0.0, 1.0);
                        let encoded = match linear <= 0.003_130_8 {
                            true => linear * 12.92,
                            false => 1.055 * linear.powf(1.0 / 2.4) - 0.055,
                        };
                        (f64::from(byte), encoded * 255.0)
                    }
                };
                assert!((found - exact).abs() <= 0.502, "{name} {value}: {found}, not {exact}");
            }
        }
    }
}

/// Integers that do not fit are the nearest that do.
#[test]
fn integers_to_bytes() {
    let db = Db::builtin();
    for (generation, name) in [(A6xx, "R8_UINT"), (A7xx, "R8_SINT")] {
        let mut scene = wide(&db, generation, 1);
        format(&mut scene, Format::named(name).unwrap());
        // From -32768 to 32767, or from 0 to 65535.
        let first = if name.ends_with("SINT") { 0x8000 } else { 0u32 };
        fragment(
            &mut scene,
            &[
                "shl.b r2.y, r2.y, 8".into(),
                "add.u r2.x, r2.x, r2.y".into(),
                format!("mov.u32u32 r2.z, 0x{first:x}"),
                "sub.u r0.z, r2.x, r2.z".into(),
            ],
        );
        scene.draw(STRIP, 4).done();
        for (x, y) in pairs() {
            let value = i64::from(y * WIDE + x) - i64::from(first);
            let at = y * WIDE + x;
            let byte = scene.machine.space.memory.load(MORE + u64::from(at), 1).known().unwrap() as u8;
            match first {
                0 => assert_eq!(i64::from(byte), value.min(255)),
                _ => assert_eq!(i64::from(byte as i8), value.clamp(-128, 127)),
            }
        }
    }
}

/// A colour in every format that can be rendered, read back as far as its bits go.
#[test]
fn every_renderable_format() {
    let db = Db::builtin();
    let mut checked = 0;
    let floats = [0.8f32, 0.3, 0.55, 0.7];
    let integers = [3u32, 1, 2, 1];
    let mut scenes = generations().map(|generation| {
        let mut scene = Scene::new(&db, generation);
        scene.more(0x8000);
        scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.0, WHITE));
        scene
    });
    for of in Format::all().filter(|of| of.render_format().is_some() && !of.is_depth_stencil()) {
        let (codec, scene) = (of.codec(), &mut scenes[checked % 2]);
        let integer = codec.numeric() != Numeric::Float;
        let bits: Vec<u32> = if integer { integers.to_vec() } else { floats.map(f32::to_bits).to_vec() };
        let source: Vec<String> = ["r0.z", "r0.w", "r1.x", "r1.y"]
            .iter()
            .zip(&bits)
            .map(|(register, bits)| format!("mov.u32u32 {register}, 0x{bits:x}"))
            .collect();
        scene.code(FRAGMENT_CODE, &format!("{}\nend", source.join("\n")));
        format(scene, of);
        let pitch = SIZE * codec.bytes();
        // Pitches are multiples of 64 bytes.
        let pitch = pitch.div_ceil(64);
        scene.set("RB_MRT[0].PITCH", &[pitch, pitch * SIZE, low(MORE), high(MORE), 0]);
        scene.draw(STRIP, 4).done();
        let from = MORE + u64::from(5 * pitch * 64 + 7 * codec.bytes());
        let texel: Vec<u8> = (0..codec.bytes())
            .map(|n| scene.machine.space.memory.load(from + u64::from(n), 1).known().unwrap() as u8)
            .collect();
        let found = codec.unpack(&texel, 0, 0).unwrap();
        for (n, source) in of.swizzle().into_iter().enumerate() {
            let Source::Channel(channel) = source else { continue };
            let channel = of.channels().get(usize::from(channel)).copied();
            // Intensities and luminances are written from red.
            if of.swizzle()[..n].contains(&source) {
                continue;
            }
            let expected = bits[n];
            if integer {
                assert_eq!(found[n], expected, "{} {n}", of.name());
                continue;
            }
            let step = match channel {
                Some(channel) => match (channel.kind, channel.bits) {
                    (ChannelKind::Unorm, bits) if of.is_srgb() && n < 3 => {
                        1.2 / f64::from((1u32 << bits.min(24)) - 1)
                    }
                    (ChannelKind::Unorm, bits) => 0.501 / f64::from((1u32 << bits.min(24)) - 1),
                    (ChannelKind::Snorm, bits) => 0.501 / f64::from((1u32 << (bits.min(24) - 1)) - 1),
                    (ChannelKind::Float, 32) => 0.0,
                    (ChannelKind::Float, 16) => 2f64.powi(-11),
                    (ChannelKind::Float, bits) => 2f64.powi(4 - i32::from(bits)),
                    (kind, _) => panic!("{}: {kind:?}", of.name()),
                },
                // A shared exponent has nine bits.
                None => 2f64.powi(-9),
            };
            let apart = (f64::from(f32::from_bits(found[n])) - f64::from(floats[n])).abs();
            assert!(apart <= step, "{} {n}: {apart}", of.name());
        }
        checked += 1;
    }
    assert!(checked > 50, "{checked}");
}

/// A component is written where the state, and the shader's components, allow it.
#[test]
fn write_masks() {
    let db = Db::builtin();
    for generation in generations() {
        let mut scene = Scene::new(&db, generation);
        scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.0, WHITE));
        for mask in 0..16u32 {
            for components in [0xf, 0x7, 0x9] {
                scene.put(IMAGE, &[0x4030_2010; (SIZE * SIZE) as usize]);
                scene.set("RB_MRT[0].CONTROL", &[mask << 7]).set("RB_RENDER_COMPONENTS", &[components]);
                let image = scene.draw(STRIP, 4).image();
                let bytes =
                    [0, 1, 2, 3].map(|n| if mask & components & 1 << n != 0 { 0xff } else { 0x10 * (n + 1) });
                assert_eq!(
                    image[100].to_le_bytes(),
                    bytes.map(|byte: u32| byte as u8),
                    "{mask:x} {components:x}"
                );
            }
        }
    }
}

/// Several targets: each has its output, format and mask.
#[test]
fn several_targets() {
    let db = Db::builtin();
    for generation in generations() {
        let mut scene = Scene::new(&db, generation);
        scene.more(0x8000).vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.0, [1.0, 0.5, 0.0, 1.0]));
        let source = "(rpt3)bary.f (ei)r0.z, (r)0, r0.x\nmov.u32u32 r2.x, 7\nmov.u32u32 r2.y, 8\nend";
        scene.code(FRAGMENT_CODE, source);
        scene.set("SP_FS_OUTPUT_CNTL1", &[3]).set("SP_FS_OUTPUT[0].REG", &[2, 8, 2]);
        scene.set("RB_RENDER_COMPONENTS", &[0xf3f]);
        let number = |name: &str| Format::named(name).unwrap().render_format().unwrap().0;
        let targets = [(1, "R32G32_UINT", SIZE / 8), (2, "R16_FLOAT", SIZE / 32)];
        for (n, name, pitch) in targets {
            let at = MORE + 0x4000 * (n - 1);
            let state = [0xf << 7, 0, number(name), pitch, pitch * SIZE, low(at), high(at), 0];
            scene.set(&format!("RB_MRT[{n}].CONTROL"), &state);
        }
        scene.set("SP_FS_MRT[1].REG", &[number("R32G32_UINT") | 1 << 9]);
        let image = scene.draw(STRIP, 4).image();
        assert_eq!(image[77], 0xff00_80ff);
        assert_eq!([0, 4].map(|at| scene.read(MORE + 8 * 77 + at)), [7, 8]);
        assert_eq!(scene.read(MORE + 0x4000 + 2 * 76), 0x3c00_3c00, "two halves");
    }
}

/// Alpha takes samples away in proportion, and is one in the target where the state says so.
#[test]
fn alpha_to_coverage_and_to_one() {
    let db = Db::builtin();
    for generation in generations() {
        let mut scene = Scene::new(&db, generation);
        scene.more(0x4000);
        for register in ["GRAS_RAS_MSAA_CNTL", "GRAS_DEST_MSAA_CNTL", "RB_RAS_MSAA_CNTL", "RB_DEST_MSAA_CNTL"]
        {
            scene.set(register, &[2]);
        }
        scene.set("RB_MRT[0].PITCH", &[SIZE / 4, SIZE * SIZE / 4, low(MORE), high(MORE), 0]);
        for (alpha, covered) in [(0.0, 0), (0.25, 1), (0.5, 2), (0.75, 3), (1.0, 4)] {
            for to_one in [false, true] {
                (0..0x4000).step_by(4).for_each(|at| scene.write(MORE + at, 0));
                scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.0, [1.0, 0.0, 0.0, alpha]));
                scene.set("RB_BLEND_CNTL", &[0xffff << 16 | 1 << 10 | u32::from(to_one) << 11]);
                scene.draw(STRIP, 4).done();
                let samples = [0, 4, 8, 12].map(|at| scene.read(MORE + 16 * 50 + at));
                assert_eq!(samples.iter().filter(|texel| **texel != 0).count(), covered, "{alpha}");
                let expected = if to_one { 255 } else { (alpha * 255.0f32).round_ties_even() as u32 };
                assert!(samples.iter().all(|texel| *texel == 0 || texel >> 24 == expected), "{samples:x?}");
            }
        }
    }
}

/// Fragments that read and write memory at their pixel do it in the order of primitives.
#[test]
fn ordered_fragments() {
    let db = Db::builtin();
    for generation in generations() {
        for mode in [1u32, 3] {
            let mut scene = Scene::new(&db, generation);
            scene.more((SIZE * SIZE * 4) as usize);
            scene.machine.compute.threads = 4;
            let count = 40u32;
            // Rectangles that overlap, each with its number as red.
            let mut random = 17u32;
            let mut next = || {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                f64::from(random >> 8) / f64::from(1u32 << 24)
            };
            let mut expected = vec![0u32; (SIZE * SIZE) as usize];
            let mut vertices = Vec::new();
            for number in 1..=count {
                let edge = [next(), next(), next(), next()].map(|at| (at * f64::from(SIZE)) as u32);
                let (left, right) = (edge[0].min(edge[1]), edge[0].max(edge[1]) + 1);
                let (top, bottom) = (edge[2].min(edge[3]), edge[2].max(edge[3]) + 1);
                let place = |at: u32| at as f32 * 2.0 / SIZE as f32 - 1.0;
                let corners =
                    strip([place(left), place(top)], [place(right), place(bottom)], 0.0, [number as f32; 4]);
                vertices.extend([corners[0], corners[1], corners[2], corners[2], corners[1], corners[3]]);
                for (x, y) in
                    (top..bottom.min(SIZE)).flat_map(|y| (left..right.min(SIZE)).map(move |x| (x, y)))
                {
                    let value = &mut expected[(y * SIZE + x) as usize];
                    *value = value.wrapping_mul(3).wrapping_add(number);
                }
            }
            let words: Vec<u32> = vertices.iter().flatten().map(|value| value.to_bits()).collect();
            // Vertices behind the code's place for them would run into it.
            let at = MORE + 0x10_0000;
            scene
                .machine
                .space
                .memory
                .map(at, words.iter().flat_map(|word| word.to_le_bytes()).collect())
                .unwrap();
            scene.set("VFD_FETCH[0].BASE", &[low(at), high(at), 4 * words.len() as u32, 32]);
            scene.set("HLSQ_CONTROL_4_REG", &[0xfc00_fcfc | 8 << 16]);
            let lines = [
                "bary.f (ei)r0.z, 0, r0.x".to_owned(),
                "shr.b r2.x, r2.x, 4".into(),
                "shr.b r2.y, r2.y, 4".into(),
                "shl.b r2.y, r2.y, 5".into(),
                "add.u r2.x, r2.x, r2.y".into(),
                "shl.b r2.x, r2.x, 2".into(),
                format!("mov.u32u32 r2.y, 0x{:x}", high(MORE)),
                "cov.f32u32 r0.z, r0.z".into(),
                "ldg.u32 r3.x, g[r2.x], 1".into(),
                "(sy)shl.b r3.z, r3.x, 1".into(),
                "add.u r3.x, r3.x, r3.z".into(),
                "add.u r3.x, r3.x, r0.z".into(),
                "stg.u32 g[r2.x], r3.x, 1".into(),
                "end".into(),
            ];
            assert_eq!(low(MORE), 0);
            scene.code(FRAGMENT_CODE, &lines.join("\n"));
            scene.set("GRAS_SC_CNTL", &[2 | mode << 3]).draw(TRIANGLES, 6 * count).done();
            let found: Vec<u32> = (0..u64::from(SIZE * SIZE)).map(|at| scene.read(MORE + 4 * at)).collect();
            assert_eq!(found, expected, "{mode}");
        }
    }
}
