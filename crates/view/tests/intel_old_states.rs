//! What `decode` shows of the states of gen4 to gen7.5: text and JSON lines of error states that the kit makes.

use serde_json::Value;
use std::collections::BTreeSet;
use unwedge_capture::{Dump, DumpPart};
use unwedge_hw::Db;
use unwedge_testkit::i915_old::{BATCH, DEVICES, OldEra};
use unwedge_testkit::intel::TestDevice;
use unwedge_testkit::intel_old_states::{CODE, OldWorkStates, SURFACE_MEMORY, at};
use unwedge_view::Style;
use unwedge_view::intel::{IntelDump, json, text};

const MAX: u64 = 1 << 30;

fn listing(bytes: &[u8]) -> String {
    let dump = Dump::read(&[DumpPart { name: "dump", bytes }]).unwrap();
    let mut out = Vec::new();
    let options = text::ListingOptions { max_size: MAX, style: Style::default(), all_fields: false };
    text::decode(IntelDump::of(&dump).unwrap(), bytes.len() as u64, &[], options, &mut out);
    String::from_utf8(out).unwrap()
}

fn references(bytes: &[u8]) -> Vec<Value> {
    let dump = Dump::read(&[DumpPart { name: "dump", bytes }]).unwrap();
    let mut out = Vec::new();
    json::decode(IntelDump::of(&dump).unwrap(), bytes.len() as u64, &[], MAX, &Db::builtin(), &mut out);
    let lines = String::from_utf8(out).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["type"] == "reference").collect()
}

/// What a dump has to show: its name in the listing, and where it is.
fn expected(device: TestDevice) -> Vec<(&'static str, u64)> {
    let mut all = vec![
        ("vec4 vertex shader", at::KERNELS + at::VERTEX),
        ("SIMD8 fragment shader", at::KERNELS + at::PIXEL_8),
        ("SAMPLER_STATE", at::SAMPLER),
        ("SAMPLER_BORDER_COLOR_STATE", at::BORDER),
        ("CC_VIEWPORT", at::CC_VIEWPORT),
        ("COLOR_CALC_STATE", at::COLOR_CALC),
        ("VS binding table of 1 entry,", at::TABLE),
        ("PS binding table of 1 entry,", at::TABLE),
        ("RENDER_SURFACE_STATE 0", at::SURFACE),
        ("vertex buffer 0, 48 bytes,", at::VERTICES),
        ("index buffer, 12 bytes,", at::INDICES),
        ("push constants", at::CONSTANTS),
        ("surface memory", SURFACE_MEMORY - BATCH),
        ("scratch space", SURFACE_MEMORY + 0x10_0000 - BATCH),
    ];
    if device.version.0 >= 5 {
        all.push(("SIMD16 fragment shader", at::KERNELS + at::PIXEL_16));
    }
    match device.version.0 {
        ..6 => all.extend([
            ("VS_STATE", at::VS_STATE),
            ("CLIP_STATE", at::CLIP_STATE),
            ("SF_STATE", at::SF_STATE),
            ("WM_STATE", at::WM_STATE),
            ("clip thread", at::KERNELS + at::CLIP),
            ("strips and fans thread", at::KERNELS + at::STRIPS_FANS),
            ("CLIP_VIEWPORT", at::CLIP_VIEWPORT),
            ("SF_VIEWPORT", at::SF_VIEWPORT),
        ]),
        6 => all.extend([("CLIP_VIEWPORT", at::CLIP_VIEWPORT), ("SF_VIEWPORT", at::SF_VIEWPORT)]),
        _ => all.push(("SF_CLIP_VIEWPORT", at::SF_VIEWPORT)),
    }
    if device.version.0 >= 6 {
        all.extend([
            ("BLEND_STATE", at::BLEND),
            ("DEPTH_STENCIL_STATE", at::DEPTH_STENCIL),
            ("SCISSOR_RECT", at::SCISSOR),
        ]);
    }
    all
}

#[test]
fn what_a_draw_points_to_is_listed() {
    for device in DEVICES {
        for era in OldEra::ALL.into_iter().filter(|era| era.has_memory()) {
            let listed = listing(&OldWorkStates::draw(device).error_state(era).text());
            for (what, offset) in expected(device) {
                let place = format!("at 0x{:012x}", BATCH + offset);
                let found = listed.lines().any(|line| {
                    let line = line.trim_start();
                    line.starts_with(what) && line.contains(&place)
                });
                assert!(found, "{} {era:?}: no {what} {place}\n{listed}", device.name);
            }
            assert!(!listed.contains("is not known"), "{} {era:?}\n{listed}", device.name);
        }
    }
}

#[test]
fn states_have_their_fields() {
    for device in DEVICES {
        let listed = listing(&OldWorkStates::draw(device).error_state(OldEra::V3_16).text());
        let has = |line: &str| {
            assert!(listed.lines().any(|l| l.trim() == line), "{}: {line}\n{listed}", device.name)
        };
        has("Surface Format: 192 (B8G8R8A8_UNORM)");
        has("Surface Type: 1 (SURFTYPE_2D)");
        has("Width: 63");
        has("Maximum Depth: 1");
        has("Depth Test Enable: true");
        has("pointer 0: 0x00000780");
        match device.version.0 {
            ..6 => {
                has("8 Pixel Dispatch Enable: true");
                has("XMax Clip Guardband: 1");
                // The pipelined pointers have a geometry shader that is off.
                let off = format!("GS_STATE at 0x{:012x}", BATCH + at::GS_STATE);
                assert!(!listed.contains(&off), "{}\n{listed}", device.name);
            }
            _ => {
                has("Color Buffer Blend Enable: true");
                has("Scissor Rectangle X Max: 639");
            }
        }
    }
}

/// There is no disassembler for these generations, and the listing says so.
#[test]
fn code_is_shown_as_dwords() {
    for device in DEVICES {
        let bytes = OldWorkStates::draw(device).error_state(OldEra::V3_16).text();
        let listed = listing(&bytes);
        let name = match device.version {
            (major, 50) => format!("gen{major}.5"),
            (major, _) => format!("gen{major}"),
        };
        let held = at::END - at::KERNELS;
        let line = format!(": code of {name} is not disassembled, {held} bytes to the end of its buffer");
        assert!(listed.lines().any(|l| l.ends_with(&line)), "{line}\n{listed}");
        let row = format!("0x{:012x}: {CODE:08x} {CODE:08x} {CODE:08x} {CODE:08x}", BATCH + at::KERNELS);
        assert!(listed.lines().any(|l| l.trim() == row), "{row}\n{listed}");

        let references = references(&bytes);
        let kernel = references.iter().find(|line| line["target"] == "kernel").unwrap();
        assert_eq!(kernel["bytes_to_end"], held, "{kernel}");
        assert_eq!(kernel["dwords"].as_array().unwrap().len(), 32, "{kernel}");
        assert!(kernel["bytes"].is_null() && kernel["code"].is_null(), "{kernel}");
    }
}

#[test]
fn references_as_json() {
    for device in DEVICES {
        let references = references(&OldWorkStates::draw(device).error_state(OldEra::V3_10).text());
        let found: BTreeSet<(String, String)> = references
            .iter()
            .map(|line| {
                (line["target"].as_str().unwrap().to_owned(), line["iova"].as_str().unwrap().to_owned())
            })
            .collect();
        for (what, offset) in expected(device) {
            let target = match what {
                _ if what.contains("shader") || what.ends_with("thread") => "kernel",
                _ if what.contains("binding table") => "binding-table",
                _ if what.chars().next().is_some_and(char::is_uppercase) => "state",
                _ => "buffer",
            };
            let key = (target.to_owned(), format!("0x{:016x}", BATCH + offset));
            assert!(found.contains(&key), "{}: {what} {key:?}\n{references:#?}", device.name);
        }
        let surface = references.iter().find(|line| line["name"] == "RENDER_SURFACE_STATE").unwrap();
        let fields = surface["states"][0]["fields"].as_array().unwrap();
        let pitch = fields.iter().find(|field| field["name"] == "Surface Pitch").unwrap();
        assert_eq!(pitch["decoded"], 255, "{surface}");
        assert_eq!(surface["buffer"]["iova"], format!("0x{BATCH:016x}"));
        let constants = references.iter().find(|line| line["name"] == "push constants").unwrap();
        assert_eq!(constants["size"], 128, "{}: {constants}", device.name);
        assert_eq!(constants["held"], true);
    }
}

#[test]
fn what_a_dispatch_points_to_is_listed() {
    for device in DEVICES {
        let listed = listing(&OldWorkStates::dispatch(device).error_state(OldEra::V3_16).text());
        let constants = if device.version.0 < 6 { "push constants, 128 bytes," } else { "CURBE, 64 bytes," };
        for (what, offset) in [
            ("INTERFACE_DESCRIPTOR_DATA", at::DESCRIPTOR),
            ("compute shader", at::KERNELS + at::COMPUTE),
            (constants, at::CONSTANTS),
            ("SAMPLER_STATE", at::SAMPLER),
            ("RENDER_SURFACE_STATE 0", at::SURFACE),
        ] {
            let place = format!("at 0x{:012x}", BATCH + offset);
            let found = listed.lines().any(|line| line.contains(what) && line.contains(&place));
            assert!(found, "{}: no {what} {place}\n{listed}", device.name);
        }
    }
}

/// The modes of a codec have a table of the descriptors that they use.
#[test]
fn descriptors_of_gen4_media_work() {
    for device in DEVICES.into_iter().filter(|device| device.version.0 < 6) {
        for (mode, name, descriptors) in [
            (0, None, 1),
            (1, Some("VLD_STATE"), 2),
            (2, Some("VFE_STATE_EX"), 2),
            (7, Some("VFE_STATE_EX"), 2),
        ] {
            let bytes = OldWorkStates::media(device, mode).error_state(OldEra::V3_16).text();
            let references = references(&bytes);
            let of = |name: &str| references.iter().find(|line| line["name"] == name);
            assert!(of("VFE_STATE").is_some(), "{} {mode}: {references:#?}", device.name);
            for codec in ["VLD_STATE", "VFE_STATE_EX"] {
                assert_eq!(of(codec).is_some(), name == Some(codec), "{} {mode} {codec}", device.name);
            }
            let base = of("INTERFACE_DESCRIPTOR_DATA").unwrap();
            assert_eq!(base["states"].as_array().unwrap().len(), descriptors, "{} {mode}", device.name);
        }
    }
}

/// Gen4 has one pointer for all widths. With several on it is that of a jump table, whose width no command says.
#[test]
fn the_one_kernel_pointer_of_gen4() {
    for device in DEVICES.into_iter().filter(|device| device.version.0 < 5) {
        // 8 and 16 pixels; 16 and 32 pixels.
        for widths in [0b011, 0b110] {
            let mut work = OldWorkStates::draw(device);
            let word = &mut work.batch[at::WM_STATE as usize / 4 + 5];
            *word = *word & !0b111 | widths;
            let listed = listing(&work.error_state(OldEra::V3_16).text());
            let line =
                format!("fragment shader, payload from g3, at 0x{:012x}", BATCH + at::KERNELS + at::PIXEL_8);
            assert!(listed.lines().any(|l| l.trim_start().starts_with(&line)), "{}\n{listed}", device.name);
        }
    }
}
