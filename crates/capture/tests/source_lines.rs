//! Source lines of machine code, of objects that are linked and that are not, and of tables that are broken.

use std::borrow::Cow;
use unwedge_capture::elf::{
    CodeObject, ElfRelocation, ElfSection, ElfSectionKind, ElfSymbol, ElfSymbolKind, Loader, RelocationKind,
    SourceLines,
};
use unwedge_testkit::dwarf::debug_line;

fn section(name: &'static str, kind: ElfSectionKind, address: u64, bytes: Vec<u8>) -> ElfSection<'static> {
    ElfSection { name: Cow::Borrowed(name), kind, address, bytes: Cow::Owned(bytes), align: 4 }
}

/// Two sections of code; the table is of the second, and begins 8 bytes after its start.
fn object(table: Vec<u8>, base: u64) -> CodeObject<'static> {
    let code = |name, address| section(name, ElfSectionKind::Code, address, vec![0; 64]);
    CodeObject {
        loader: Loader::Hsa(5),
        flags: 0,
        sections: vec![
            code(".text", base),
            code(".text.second", if base == 0 { 0 } else { base + 64 }),
            section(".debug_line", ElfSectionKind::Other, 0, table),
        ],
        symbols: vec![ElfSymbol {
            name: Cow::Borrowed(""),
            kind: ElfSymbolKind::Other,
            global: false,
            section: Some(1),
            value: 0,
            size: 0,
        }],
        relocations: Vec::new(),
        pointers: Vec::new(),
        diagnostics: Vec::new(),
    }
}

fn shown(lines: &SourceLines, section: usize) -> Vec<String> {
    let at = |offset: u64| lines.at(section, offset).map(|line| line.to_string()).unwrap_or_default();
    (0..10).map(|dword| at(4 * dword)).collect()
}

const EXPECTED: [&str; 10] = [
    "",
    "",
    "src/k.c:7:3",
    "src/k.c:7:3",
    "src/k.c:5:12",
    "src/k.c:120",
    "src/k.c:120",
    "src/k.c:120",
    "",
    "",
];

/// Rows at 8, 16 and 20 bytes after an address, to 32 bytes after it.
fn table(base: u64) -> (Vec<u8>, usize) {
    debug_line("src", "k.c", &[(base + 8, 7, 3), (base + 16, 5, 12), (base + 20, 120, 0)], base + 32)
}

#[test]
fn code_of_a_linked_object_has_lines() {
    let lines = SourceLines::of(&object(table(0x1040).0, 0x1000));
    assert_eq!(shown(&lines, 1), EXPECTED);
    assert_eq!(shown(&lines, 0), [""; 10]);
    assert_eq!(lines.section(1).at(8).map(|line| line.column), Some(Some(3)));
}

/// The address is in a relocation, and the sections both begin at 0.
#[test]
fn code_of_an_object_that_is_not_linked_has_lines() {
    let (bytes, at) = table(0);
    let mut object = object(bytes, 0);
    object.relocations.push(ElfRelocation {
        kind: RelocationKind::ABS64,
        section: 2,
        offset: at as u64,
        symbol: 0,
        addend: 8,
    });
    let lines = SourceLines::of(&object);
    assert_eq!(shown(&lines, 1), EXPECTED);
    assert_eq!(shown(&lines, 0), [""; 10]);
}

#[test]
fn without_a_table_there_are_no_lines() {
    let mut bare = object(Vec::new(), 0x1000);
    assert!(SourceLines::of(&bare).is_empty());
    bare.sections.pop();
    assert!(SourceLines::of(&bare).is_empty());
}

/// A table that is cut anywhere, or has another byte anywhere, is read as far as that goes.
#[test]
fn broken_tables_are_read_as_far_as_they_go() {
    let (whole, _) = table(0x1040);
    let mut some = 0;
    for cut in 0..whole.len() {
        let lines = SourceLines::of(&object(whole[..cut].to_vec(), 0x1000));
        some += usize::from(!lines.is_empty());
        for value in [0, 0x7f, 0xff] {
            let mut broken = whole.clone();
            broken[cut] = value;
            let lines = SourceLines::of(&object(broken, 0x1000));
            assert!(shown(&lines, 1).iter().all(|line| line.len() < 1200));
        }
    }
    assert_eq!(some, 0, "a unit that claims more bytes than there are is not read");
    let twice = [whole.clone(), whole[..whole.len() - 1].to_vec()].concat();
    assert_eq!(shown(&SourceLines::of(&object(twice, 0x1000)), 1), EXPECTED);
}
