//! Every afuc source of `UNWEDGE_DATA`: it assembles to its firmware, that disassembles to its text, and the text
//! assembles to the firmware again.

use std::path::PathBuf;
use unwedge_hw::Db;
use unwedge_isa::afuc::disasm::{self, ListingForm};
use unwedge_isa::afuc::{FirmwareBlob, asm, assemble};
use unwedge_sim::adreno::sqe::{SqeStop, boot, disassemble};

use unwedge_isa::afuc::DbNames;
use unwedge_testkit::data;

/// The files of the folder with this extension.
fn files(extension: &str) -> Vec<PathBuf> {
    data::files("adreno/afuc", &format!(".{extension}"))
}

#[test]
fn sources_assemble_to_their_firmware() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    for path in files("asm") {
        let source = std::fs::read_to_string(&path).expect("a readable source");
        let Ok(expected) = std::fs::read(path.with_extension("fw")) else { continue };
        let options = asm::AfucAsmOptions { file: path.display().to_string(), firmware: None };
        match assemble(&source, &options, &names) {
            Ok(bytes) => assert!(bytes == expected, "{}: other bytes", path.display()),
            Err(errors) => panic!("{errors}"),
        }
    }
}

#[test]
fn firmware_disassembles_to_its_text_and_back() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    for path in files("fw") {
        let bytes = std::fs::read(&path).expect("a readable firmware");
        for form in [ListingForm::Mesa, ListingForm::Exact] {
            let options = disasm::AfucDisasmOptions { form, ..disasm::AfucDisasmOptions::default() };
            let text = disassemble(&bytes, &options, &names).expect("a firmware");
            if let Ok(expected) = std::fs::read_to_string(path.with_extension("disasm")) {
                let difference = expected.lines().zip(text.lines()).position(|(a, b)| a != b);
                assert!(text == expected, "{}: {form:?} differs at line {difference:?}", path.display());
            }
            assert!(
                assemble(&text, &asm::AfucAsmOptions::default(), &names).is_ok_and(|again| again == bytes)
            );
        }
    }
}

#[test]
fn the_bootstrap_routine_finds_the_packet_table_where_it_stands() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    for path in files("fw") {
        let blob = FirmwareBlob::new(&std::fs::read(&path).expect("a readable firmware"));
        let Some(firmware) = blob.firmware().filter(|firmware| firmware.generation() >= 6) else { continue };
        for (section, stop) in boot(&blob.words, firmware, &names) {
            assert_eq!(stop, SqeStop::Booted, "{}: {:?}", path.display(), section.processor);
            assert!(section.table_at.is_some(), "{}: {:?}", path.display(), section.processor);
        }
    }
}
