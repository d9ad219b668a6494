//! Old error states of i915 listed and as JSON lines; registers with their fields, fences, EU attention, the GuC's registers.

use serde_json::Value;
use unwedge_capture::{Dump, DumpPart};
use unwedge_hw::Db;
use unwedge_testkit::i915::{ErrorStateBuilder, I915Era};
use unwedge_testkit::i915_old::{DEVICES, OldEra, OldErrorState};
use unwedge_testkit::intel::TestDevice;
use unwedge_view::Style;
use unwedge_view::intel::info::IntelSummary;
use unwedge_view::intel::{IntelDump, json, text};

const MAX: u64 = 1 << 30;

fn listing(bytes: &[u8]) -> String {
    let dump = Dump::read(&[DumpPart { name: "dump", bytes }]).unwrap();
    let mut out = Vec::new();
    let options = text::ListingOptions { max_size: MAX, style: Style::default(), all_fields: false };
    let lost = text::decode(IntelDump::of(&dump).unwrap(), bytes.len() as u64, &[], options, &mut out);
    assert!(lost.is_empty(), "{lost:?}");
    String::from_utf8(out).unwrap()
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    let dump = Dump::read(&[DumpPart { name: "dump", bytes }]).unwrap();
    let mut out = Vec::new();
    json::decode(IntelDump::of(&dump).unwrap(), bytes.len() as u64, &[], MAX, &Db::builtin(), &mut out);
    String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.contains(line), "not there: {line}\nin\n{text}");
}

#[test]
fn commands_of_every_old_generation_are_listed() {
    for device in DEVICES {
        for era in OldEra::ALL.into_iter().filter(|era| era.has_memory()) {
            let bytes = OldErrorState::complete(device, era).text();
            let said = listing(&bytes);
            for command in
                ["MI_FLUSH", "MI_BATCH_BUFFER_START", "PIPE_CONTROL", "3DPRIMITIVE", "MI_BATCH_BUFFER_END"]
            {
                assert!(said.contains(command), "{} {era:?}: no {command}\n{said}", device.name);
            }
            has(&said, "0x000001000000      4096 bytes");
            if era >= OldEra::V2_6_38 {
                has(&said, "0x00000000 to 0x000c0000, pitch 768, Y-tiled");
            }
            let dump = Dump::read(&[DumpPart { name: "dump", bytes: &bytes }]).unwrap();
            let mut info = Vec::new();
            IntelSummary::of(IntelDump::of(&dump).unwrap()).text(Style::default(), &mut info).unwrap();
            let info = String::from_utf8(info).unwrap();
            has(&info, &format!("{}, graphics ", device.name));
            assert!(!info.contains("not known"), "{} {era:?}\n{info}", device.name);
        }
    }
}

#[test]
fn error_registers_have_fields() {
    let of = |name: &str, era, register: &str, value| {
        let device = DEVICES.into_iter().find(|d| d.name == name).unwrap();
        listing(&OldErrorState::complete(device, era).register(register, value).text())
    };
    let old = OldEra::V2_6_35;
    has(&of("i965gm", old, "PGTBL_ER", 1 << 21 | 1), "0x00200001    Host, Vertex Fetch");
    has(&of("gm45", OldEra::V3_10, "ERROR", 0), "EIR");
    has(&of("snb", OldEra::V3_10, "ERROR", 1), "0x00000001    TLB Page Fault Error");
    has(&of("ivb", OldEra::V3_16, "ERR_INT", 1 << 13 | 1), "FIFO Underrun A, Unclaimed MMIO");
}

/// A bit that no table names is shown as a number.
#[test]
fn unknown_bits_are_numbers() {
    let device = DEVICES[0];
    let bytes = OldErrorState::complete(device, OldEra::V3_10).register("PGTBL_ER", 1 << 30).text();
    let said = listing(&bytes);
    let line = said.lines().find(|line| line.contains("PGTBL_ER")).unwrap();
    assert_eq!(line.trim_end().rsplit("  ").next(), Some("0x40000000"), "{line}");
    let snb = listing(&OldErrorState::complete(DEVICES[3], OldEra::V3_10).text());
    let done = snb.lines().find(|line| line.contains("DONE_REG")).unwrap();
    assert!(done.trim_end().ends_with("0xffffffff"), "{done}");
}

#[test]
fn fences_attention_and_guc_registers_as_json() {
    let old = lines(&OldErrorState::complete(DEVICES[3], OldEra::V3_10).text());
    let fence = old.iter().find(|line| line["type"] == "fence").unwrap();
    assert_eq!(
        (&fence["start"], &fence["end"]),
        (&"0x0000000000000000".into(), &"0x00000000000c0000".into())
    );
    assert_eq!(
        (&fence["pitch"], &fence["tiling"], &fence["valid"]),
        (&768.into(), &"Y".into(), &true.into())
    );
    let buffer = old.iter().find(|line| line["type"] == "buffer").unwrap();
    assert_eq!((&buffer["name"], &buffer["size"]), (&"Active".into(), &4096.into()));

    let pvc = ErrorStateBuilder::complete(TestDevice::named("pvc"), I915Era::V6_1);
    let text = pvc.attention(0x81, &[0, 0, 0x101, 0], &[0, 0, 0x101, 1 << 31]).text();
    let said = listing(&text);
    has(
        &said,
        "after: 3 threads, 250 us after the halt\n    DSS 1, EU 0, thread 0\n    DSS 1, EU 1, thread 0\n    DSS 1, EU 7, thread 7\n",
    );
    has(&said, "Global Debug Enable, Force External Halt And Exception Enable");
    has(&said, "0xc000  0x00000001  GUC_STATUS  MIA In Reset");
    has(&said, "0xc0b0  0x00000001\n  0xc0b4  0x00000002\n");
    let json = lines(&text);
    let after = json.iter().find(|line| line["type"] == "attention" && line["name"] == "after").unwrap();
    assert_eq!((&after["number"], &after["after_us"]), (&3.into(), &250.into()));
    assert_eq!(after["threads"], serde_json::json!([[1, 0, 0], [1, 1, 0], [1, 7, 7]]));
    let guc: Vec<_> = json.iter().filter(|line| line["section"] == "guc").collect();
    assert_eq!(guc.len(), 3);
    assert_eq!(guc[2]["name"], "GUC_STATUS");
}
