//! `unwedge lrc` as a shell sees it: exit statuses, text, JSON.

mod program;

use program::{status, stderr, stdout, unwedge};
use std::process::Output;
use unwedge::capture::intel::RingRegister;
use unwedge::hw::intel::platform::{IntelDriver, Platform, Version};
use unwedge::intel::lrc::{LrcLayout, LrcOwner, PAGE};
use unwedge_testkit::i915::ErrorStateBuilder;
use unwedge_testkit::intel::{EngineState, TestDevice};
use unwedge_testkit::pack::bytes;
use unwedge_testkit::xe::DevcoreBuilder;

const COMPLETE: i32 = 0;
const UNUSABLE: i32 = 1;
const USAGE: i32 = 2;
const LOST: i32 = 3;
const FOUND: i32 = 4;

fn page(platform: &str, engine: &str) -> Vec<u32> {
    let platform = Platform::by_name(platform).unwrap();
    let driver = platform.drivers()[0];
    LrcLayout::of(LrcOwner { driver, version: platform.version(), engine: engine.parse().unwrap() })
        .unwrap()
        .expand()
}

const TGL: [&str; 4] = ["--platform", "tgl", "--engine", "rcs0"];

fn verify(more: &[&str], input: &[u8]) -> Output {
    unwedge(&[&["lrc", "verify", "-"], more].concat(), input)
}

#[test]
fn expand_writes_the_page_that_verify_expects() {
    for (platform, engine) in
        [("bdw", "vcs1"), ("skl", "rcs0"), ("0x9a49", "bcs0"), ("12.70", "ccs0"), ("lnl", "vecs3")]
    {
        let target = ["--platform", platform, "--engine", engine];
        let page = unwedge(&[&["lrc", "expand"], &target[..]].concat(), b"");
        assert_eq!((status(&page), page.stdout.len()), (COMPLETE, 4 * PAGE), "{platform} {engine}");
        let output = verify(&target, &page.stdout);
        assert_eq!(status(&output), COMPLETE, "{platform} {engine}: {}", stdout(&output));
        assert!(stdout(&output).contains("as expected"));
        assert_eq!(
            status(&verify(&[&target[..], &["--strict"]].concat(), &page.stdout)),
            FOUND,
            "a disabled ring"
        );
    }
}

#[test]
fn an_image_may_be_text_or_a_whole_context() {
    let page = page("tgl", "rcs0");
    let text: String = page
        .chunks(4)
        .enumerate()
        .map(|(i, w)| format!("{:04x}: {:08x} 0x{:08x} {:x} {:08x}\n", 16 * i, w[0], w[1], w[2], w[3]))
        .collect();
    assert_eq!(status(&verify(&TGL, text.as_bytes())), COMPLETE);
    let html = verify(&[&TGL[..], &["--html", "-"]].concat(), text.as_bytes());
    assert_eq!(status(&html), COMPLETE);
    assert!(stdout(&html).starts_with("<!DOCTYPE html>"), "{}", stdout(&html));
    let mut whole = vec![0x1234; PAGE];
    whole.extend(&page);
    whole.extend([7; PAGE]);
    let output = verify(&TGL, &bytes(&whole));
    assert_eq!(status(&output), COMPLETE);
    assert!(stdout(&output).contains("page 1 of 3"), "{}", stdout(&output));
    assert_eq!(status(&verify(&[&TGL[..], &["--page", "2"]].concat(), &bytes(&whole))), FOUND);
    assert_eq!(status(&verify(&[&TGL[..], &["--page", "3"]].concat(), &bytes(&whole))), USAGE);
}

/// A status page may begin with any numbers: with those of captures too.
#[test]
fn what_is_said_to_be_an_image_is_one() {
    for first in [[4, 12], [13, 4], [1, 9], [0x464c_457f, 0x0001_0102]] {
        let image = [&first[..], &[0; PAGE - 2], &page("tgl", "rcs0")].concat();
        let output = verify(&TGL, &bytes(&image));
        assert_eq!(status(&output), COMPLETE, "{first:x?}: {}", stderr(&output));
    }
    let mut harmed = page("tgl", "rcs0");
    harmed[0] = 4;
    let output = verify(&TGL, &bytes(&harmed));
    assert_eq!(status(&output), FOUND, "{}", stderr(&output));
    assert!(stdout(&output).contains("1 dword differs"), "{}", stdout(&output));
    let capture = bytes(&[13, 4, 630, 0, 0]);
    assert!(stderr(&verify(&[], &capture)).contains("neither a context image"));
}

#[test]
fn differences_are_4_and_all_listed() {
    let mut page = page("tgl", "rcs0");
    page[4] = 0x2030;
    page[0x21] = 0x5a5a_5a5a;
    let output = verify(&TGL, &bytes(&page));
    assert_eq!(status(&output), FOUND);
    for said in [
        "dword 0x004",
        "(RING_BUFFER_HEAD)",
        "found 0x00002030 (RING_BUFFER_TAIL)",
        "dword 0x021",
        "2 dwords differ",
    ] {
        assert!(stdout(&output).contains(said), "{said}: {}", stdout(&output));
    }
    let output = verify(&[&TGL[..], &["--json"]].concat(), &bytes(&page));
    assert_eq!(status(&output), FOUND);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["schema"], "unwedge.lrc.verify");
    assert_eq!(json["matches"], false);
    assert_eq!(json["differences"].as_array().unwrap().len(), 2);
    assert_eq!(json["differences"][0]["found_register"], "RING_BUFFER_TAIL");
    assert_eq!(json["differences"][1]["kind"], "no-load");
}

#[test]
fn a_flag_that_differs_is_told_in_words() {
    let mut page = page("tgl", "rcs0");
    page[1] ^= 1 << 12;
    let output = verify(&TGL, &bytes(&page));
    assert_eq!(status(&output), FOUND);
    for said in [
        "expected 0x11081019 (MI_LOAD_REGISTER_IMM of 13, posted, relative)",
        "found 0x11080019 (MI_LOAD_REGISTER_IMM of 13, relative)",
        "1 dword differs",
    ] {
        assert!(stdout(&output).contains(said), "{said}: {}", stdout(&output));
    }
}

#[test]
fn a_ring_that_wrapped_is_fine_where_one_is_strict() {
    let strict = [&TGL[..], &["--strict"]].concat();
    let mut page = page("tgl", "rcs0");
    // Head, tail, and the control of a ring of four pages, enabled.
    assert_eq!([page[4], page[6], page[10]], [0x2034, 0x2030, 0x203c]);
    (page[7], page[11]) = (0x1000, 0x3001);
    for (head, code, said) in [
        (0x0060_0800, COMPLETE, "as expected"),
        (0x0060_2000, COMPLETE, "the ring wrapped between them"),
        (0x0060_1008, FOUND, "past the tail"),
        (0x0060_4000, FOUND, "outside of the ring"),
    ] {
        page[5] = head;
        let output = verify(&strict, &bytes(&page));
        assert_eq!(status(&output), code, "{head:#x}: {}", stdout(&output));
        assert!(stdout(&output).contains(said), "{head:#x}: {}", stdout(&output));
        assert_eq!(status(&verify(&TGL, &bytes(&page))), COMPLETE);
    }
}

#[test]
fn what_is_missing_is_said() {
    let page = bytes(&page("tgl", "rcs0"));
    let cut = verify(&TGL, &page[..402]);
    assert_eq!(status(&cut), LOST);
    assert!(stderr(&cut).contains("85 dwords of the registers are missing"), "{}", stderr(&cut));
    assert!(stderr(&cut).contains("2 bytes at the end are not a whole dword"), "{}", stderr(&cut));
    let empty = verify(&TGL, b"");
    assert_eq!(status(&empty), UNUSABLE);
    assert!(stderr(&empty).contains("empty"), "{}", stderr(&empty));
    let dump = verify(&[], b"**** Xe Device Coredump ****\nkernel: 6.12\n");
    assert_eq!(status(&dump), UNUSABLE);
    assert!(stderr(&dump).contains("there is no context in this dump"), "{}", stderr(&dump));
}

/// Wherever a dump is cut in a context, what is missing is said, and nothing of what is there: its registers are as they have
/// to be as far as they go.
#[test]
fn a_dump_that_is_cut_in_a_context_has_no_other_page_as_its_registers() {
    let device = TestDevice::named("tgl");
    let mut image = vec![0x0101_0101; PAGE];
    image.extend(page("tgl", "rcs0"));
    let engine = EngineState::new("rcs0").context(0x20_0000, &image).hung(1);
    for (dump, first) in [
        (ErrorStateBuilder::new(device).engine(engine.clone()).text(), PAGE),
        (ErrorStateBuilder::new(device).engine(engine.clone()).unpacked().text(), PAGE),
        (DevcoreBuilder::new(device).engine(engine.clone()).text(), 0),
    ] {
        let text = String::from_utf8_lossy(&dump);
        let heading = text.find("HW context").or(text.find("[HWCTX].data")).unwrap();
        let start = heading + text[heading..].find(['\n', ' ']).unwrap() + 1;
        let length = text[start..].find('\n').map_or(dump.len() - start, |end| end);
        for at in (start + 60..start + length).step_by(length / 12) {
            let output = verify(&["--json"], &dump[..at]);
            let said = format!("{} of {length}: {}{}", at - start, stdout(&output), stderr(&output));
            assert_eq!(status(&output), LOST, "{said}");
            if output.stdout.is_empty() {
                continue;
            }
            let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(json["findings"].as_array().unwrap().len(), 0, "{said}");
            assert_eq!(json["differences"].as_array().unwrap().len(), 0, "{said}");
            assert_eq!(json["page"], first / PAGE, "{said}");
            let output = verify(&[], &dump[..at]);
            let of_page = ["note: the registers", "note: no page"];
            assert!(!of_page.iter().any(|n| stdout(&output).contains(n)), "{said}: {}", stdout(&output));
        }
    }
}

/// Error states and dumps of every device, whose contexts are as the hardware saves them but for what `harm` does to that of
/// the first engine.
fn dumps(harm: impl Fn(&mut Vec<u32>)) -> Vec<(String, Vec<u8>)> {
    let image = |device: TestDevice, driver: IntelDriver, engine: &str| {
        let version = Version::new(device.version.0 as u8, device.version.1 as u8);
        let engine = engine.parse().unwrap();
        let mut image = vec![0x0101_0101; PAGE];
        image.extend(LrcLayout::of(LrcOwner { driver, version, engine }).unwrap().expand());
        if engine.to_string() == "rcs0" {
            harm(&mut image);
        }
        image
    };
    let mut out = Vec::new();
    for device in TestDevice::ALL {
        // Ponte Vecchio has no render engine.
        if device.name == "pvc" {
            continue;
        }
        let engine = |driver, name: &str, at| {
            EngineState::new(name)
                .set(RingRegister::Acthd, 8)
                .context(at, &image(device, driver, name))
                .hung(1)
        };
        if device.version < (20, 0) {
            let dump = ErrorStateBuilder::new(device)
                .engine(engine(IntelDriver::I915, "rcs0", 0x20_0000))
                .engine(engine(IntelDriver::I915, "bcs0", 0x30_0000));
            out.push((format!("{} i915", device.name), dump.text()));
        }
        if device.version >= (12, 0) {
            let dump = DevcoreBuilder::new(device).engine(engine(IntelDriver::Xe, "rcs0", 0x20_0000));
            out.push((format!("{} xe", device.name), dump.text()));
        }
    }
    out
}

#[test]
fn contexts_of_dumps_are_verified_as_they_are() {
    for (name, dump) in dumps(|_| {}) {
        let output = verify(&[], &dump);
        assert_eq!(status(&output), COMPLETE, "{name}: {}{}", stdout(&output), stderr(&output));
        assert!(stdout(&output).contains("rcs0 of graphics"), "{name}: {}", stdout(&output));
        assert!(stdout(&output).contains("the layout is as expected"), "{name}: {}", stdout(&output));
    }
    for (name, dump) in dumps(|image| image[PAGE + 0x10..PAGE + 0x18].fill(0x6b6b_6b6b)) {
        let output = verify(&[], &dump);
        assert_eq!(status(&output), FOUND, "{name}: {}", stderr(&output));
        assert!(
            stdout(&output).contains("filled with 0x6b6b6b6b: freed slab"),
            "{name}: {}",
            stdout(&output)
        );
        let only = verify(&["--context", "rcs0", "--json"], &dump);
        let json: serde_json::Value = serde_json::from_slice(&only.stdout).unwrap();
        assert_eq!(json["context"]["engine"], "rcs0", "{name}");
        assert_eq!(json["findings"][0]["kind"], "fill", "{name}");
    }
}

#[test]
fn one_context_of_a_dump_can_be_chosen() {
    let dumps = dumps(|image| image[PAGE + 5] = 0x124);
    let (_, dump) = dumps.iter().find(|(name, _)| name == "tgl i915").unwrap();
    for (which, engine) in [("bcs0", "bcs0"), ("0", "rcs0"), ("1", "bcs0")] {
        let output = unwedge(&["lrc", "show", "-", "--context", which], dump);
        assert!(stdout(&output).starts_with(&format!("{engine}, HW context at 0x00")), "{}", stdout(&output));
        assert_eq!(stdout(&output).matches("register page:").count(), 1);
    }
    let output = unwedge(&["lrc", "show", "-"], dump);
    assert_eq!(stdout(&output).matches("register page:").count(), 2);
    let output = unwedge(&["lrc", "show", "-", "--context", "vcs0"], dump);
    assert_eq!(status(&output), USAGE);
    assert!(
        stderr(&output).contains("has 0 (rcs0, HW context at 0x00200000), 1 (bcs0"),
        "{}",
        stderr(&output)
    );
    let output = unwedge(&["lrc", "verify", "-", "--context", "0", "--engine", "ccs0"], dump);
    assert_eq!(status(&output), USAGE, "tgl has no compute engine");
}

#[test]
fn what_overwrote_a_context_is_found_in_the_dump() {
    let foreign: Vec<u32> = (0..64).map(|i| 0x9e37_79b9_u32.wrapping_mul(i + 1)).collect();
    let layout = LrcLayout::of(LrcOwner {
        driver: IntelDriver::I915,
        version: Version::new(12, 0),
        engine: "rcs0".parse().unwrap(),
    });
    let mut image = [vec![0; PAGE], layout.unwrap().expand()].concat();
    image[PAGE + 0x20..PAGE + 0x60].copy_from_slice(&foreign);
    let dump = ErrorStateBuilder::new(TestDevice::named("tgl")).engine(
        EngineState::new("rcs0")
            .set(RingRegister::Acthd, 8)
            .context(0x20_0000, &image)
            .status_page(0x30_0000, &[&[7; 9][..], &foreign].concat())
            .hung(1),
    );
    let output = verify(&[], &dump.text());
    assert_eq!(status(&output), FOUND);
    assert!(stdout(&output).contains("the same as in HW Status at 0x300"), "{}", stdout(&output));
}

#[test]
fn usage_says_what_there_is() {
    let page = bytes(&page("tgl", "rcs0"));
    for (args, said) in [
        (&[][..], "whose context? --platform tgl --engine rcs0"),
        (&["--platform", "nothing", "--engine", "rcs0"][..], "bdw, chv, skl"),
        (&["--platform", "tgl"], "rcs0, bcs0, vcs0"),
        (&["--engine", "rcs0"], "--platform is missing"),
        (&["--platform", "tgl", "--engine", "ccs0"], "it has rcs0"),
        (&["--platform", "tgl", "--engine", "xcs0"], "no engine has the name"),
        (
            &["--platform", "lnl", "--engine", "rcs0", "--driver", "i915"],
            "i915 does not drive graphics 20.04",
        ),
    ] {
        let output = verify(args, &page);
        assert_eq!(status(&output), USAGE, "{args:?}");
        assert!(stderr(&output).contains(said), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn show_finds_out_whose_it_is() {
    let mut page = page("mtl", "ccs0");
    page[5] = 0x0040_0800;
    let output = unwedge(&["lrc", "show", "-"], &bytes(&page));
    assert_eq!(status(&output), COMPLETE);
    for said in ["looks like ccs0", "RING_BUFFER_HEAD WRAP_COUNT=2 OFFSET=0x800", "MI_BATCH_BUFFER_END"] {
        assert!(stdout(&output).contains(said), "{said}: {}", stdout(&output));
    }
    let output = unwedge(&["lrc", "show", "-", "--json"], &bytes(&page));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["context"]["engine"], "ccs0");
    assert_eq!(json["registers"][1]["fields"][0]["name"], "WRAP_COUNT");
}

#[test]
fn tables_to_bytes_and_back() {
    let encoded = unwedge(&["lrc", "encode", "--table", "dg2_rcs", "-o", "-"], b"");
    assert_eq!(status(&encoded), COMPLETE);
    let text = unwedge(&["lrc", "decode", "-"], &encoded.stdout);
    assert_eq!(status(&text), COMPLETE);
    assert!(stdout(&text).starts_with("skip 1\nlri posted\n    CTXT_SR_CTL"), "{}", stdout(&text));
    let again = unwedge(&["lrc", "encode", "-", "-o", "-"], &text.stdout);
    assert_eq!(again.stdout, encoded.stdout, "{}", stderr(&again));
    let sizes = unwedge(&["lrc", "encode", "--list"], b"");
    assert!(stdout(&sizes).contains("gen12_xcs (i915, xe): 38 bytes; plain 16-bit 54, 32-bit 108"));
    let broken = unwedge(&["lrc", "encode", "-"], b"skip 1\nlri NOTHING\n");
    assert_eq!(status(&broken), UNUSABLE);
    assert!(stderr(&broken).contains("line 2: no register has the name `NOTHING`"), "{}", stderr(&broken));
    let broken = unwedge(&["lrc", "decode", "-"], &[0x81, 0x02, 0x11]);
    assert_eq!(status(&broken), UNUSABLE);
    assert!(stderr(&broken).contains("byte 3"), "{}", stderr(&broken));
    assert_eq!(status(&unwedge(&["lrc", "decode", "-"], &[0x81, 0, 80])), LOST);
}
