//! AMD code objects: what is written is read, cut or broken ones give what is whole.

use std::borrow::Cow;
use unwedge_capture::elf::{
    AddressPointer, CodeObject, ElfRelocation, ElfSection, ElfSectionKind, ElfSymbol, ElfSymbolKind, Loader,
    NotCodeObject, RelocationKind, flags_of, read, write,
};

fn section(name: &'static str, kind: ElfSectionKind, bytes: Vec<u8>) -> ElfSection<'static> {
    ElfSection { name: Cow::Borrowed(name), kind, address: 0, bytes: Cow::Owned(bytes), align: 64 }
}

fn symbol(
    name: &'static str,
    kind: ElfSymbolKind,
    section: usize,
    value: u64,
    size: u64,
) -> ElfSymbol<'static> {
    ElfSymbol {
        name: Cow::Borrowed(name),
        kind,
        global: kind != ElfSymbolKind::Other,
        section: Some(section),
        value,
        size,
    }
}

fn kernel() -> CodeObject<'static> {
    CodeObject {
        loader: Loader::Hsa(5),
        flags: flags_of("gfx1030").unwrap(),
        sections: vec![
            section(".text", ElfSectionKind::Code, (0..80).collect()),
            section(".rodata", ElfSectionKind::ReadOnly, vec![7; 64]),
        ],
        symbols: vec![
            symbol("L1", ElfSymbolKind::Other, 0, 4, 0),
            symbol("helper", ElfSymbolKind::Function, 0, 48, 16),
            symbol("main", ElfSymbolKind::Function, 0, 0, 32),
            symbol("main.kd", ElfSymbolKind::Object, 1, 0, 64),
        ],
        relocations: vec![ElfRelocation {
            kind: RelocationKind::REL64,
            section: 1,
            offset: 16,
            symbol: 2,
            addend: 16,
        }],
        pointers: Vec::new(),
        diagnostics: Vec::new(),
    }
}

#[test]
fn written_and_read() {
    let object = kernel();
    let bytes = write(&object).unwrap();
    let again = read(&bytes).unwrap();
    assert_eq!(
        (again.loader, again.flags, again.processor()),
        (object.loader, object.flags, Some("gfx1030"))
    );
    assert!(again.diagnostics.is_empty());
    let known: Vec<_> = again.sections.iter().filter(|s| s.kind != ElfSectionKind::Other).cloned().collect();
    assert_eq!(known, object.sections);
    assert_eq!(again.symbols.len(), object.symbols.len());
    let functions = again.functions();
    let shown: Vec<_> = functions.iter().map(|f| (f.name, f.kernel, f.address, f.code.len())).collect();
    assert_eq!(
        shown,
        [("main", true, 0, 32), ("", false, 32, 16), ("helper", false, 48, 16), ("", false, 64, 16)]
    );
    let [relocation] = &again.relocations[..] else { panic!("{:?}", again.relocations) };
    assert_eq!(relocation.kind.name(), Some("R_AMDGPU_REL64"));
    assert_eq!((&*again.sections[relocation.section].name, relocation.offset), (".rodata", 16));
    assert_eq!((&*again.symbols[relocation.symbol].name, relocation.addend), ("main", 16));
    assert_eq!(again.descriptors().get("main").copied(), Some(&[7; 64][..]));
    assert_eq!(again.descriptors().get("helper"), None);
}

/// A kernel of the first format starts with a header of 256 bytes.
#[test]
fn headers_are_no_code() {
    let mut code = vec![0; 256 + 8];
    code[16..24].copy_from_slice(&256u64.to_le_bytes());
    let object = CodeObject {
        loader: Loader::Hsa(2),
        flags: flags_of("gfx803").unwrap(),
        sections: vec![section(".hsatext", ElfSectionKind::Code, code)],
        symbols: vec![symbol("k", ElfSymbolKind::HsaKernel, 0, 0, 0)],
        relocations: Vec::new(),
        pointers: Vec::new(),
        diagnostics: Vec::new(),
    };
    let bytes = write(&object).unwrap();
    let again = read(&bytes).unwrap();
    let functions = again.functions();
    let shown: Vec<_> = functions.iter().map(|f| (f.name, f.kernel, f.address, f.code.len())).collect();
    assert_eq!((again.loader, &shown[..]), (Loader::Hsa(2), &[("k", true, 256, 8)][..]));
}

#[test]
fn other_files_are_none() {
    assert_eq!(read(b""), Err(NotCodeObject::NotElf));
    assert_eq!(read(b"\x7fELF"), Err(NotCodeObject::NotElf));
    assert_eq!(read(&[0; 200]), Err(NotCodeObject::NotElf));
    let mut bytes = write(&kernel()).unwrap();
    bytes[18] = 62;
    bytes[19] = 0;
    assert_eq!(read(&bytes), Err(NotCodeObject::OtherMachine(62)));
}

#[test]
fn cut_files_say_so() {
    let bytes = write(&kernel()).unwrap();
    for cut in 0..bytes.len() {
        if let Ok(object) = read(&bytes[..cut]) {
            assert!(!object.diagnostics.is_empty() || !object.sections.is_empty(), "cut at {cut}");
            object.functions();
        }
    }
}

#[test]
fn broken_files_do_no_harm() {
    let whole = write(&kernel()).unwrap();
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + next() % 6 {
            let at = next() % bytes.len();
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff, next() as u8][next() % 6];
        }
        bytes.truncate(bytes.len() - next() % 3 * (next() % 40));
        if let Ok(object) = read(&bytes) {
            for function in object.functions() {
                assert!(function.code.len() <= bytes.len());
            }
            assert!(object.descriptors().len() <= object.symbols.len());
        }
    }
}

/// A section of a linked file: type, address, link, entry size, bytes.
type Linked = (u32, u64, u32, u64, Vec<u8>);

/// A linked object: a header, the bytes of sections, their headers.
fn linked(sections: &[Linked]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01\x40\x03\0\0\0\0\0\0\0\x03\0\xe0\0\x01\0\0\0".to_vec();
    file.resize(64, 0);
    let mut headers = vec![0; 64];
    for (kind, address, link, entry, bytes) in sections {
        for word in [0, *kind] {
            headers.extend_from_slice(&word.to_le_bytes());
        }
        for long in [2, *address, file.len() as u64, bytes.len() as u64] {
            headers.extend_from_slice(&long.to_le_bytes());
        }
        headers.extend_from_slice(&link.to_le_bytes());
        headers.extend_from_slice(&[0; 4]);
        for long in [8, *entry] {
            headers.extend_from_slice(&long.to_le_bytes());
        }
        file.extend_from_slice(bytes);
    }
    let at = (file.len() as u64).to_le_bytes();
    file[40..48].copy_from_slice(&at);
    file[52] = 64;
    file[58] = 64;
    file[60] = sections.len() as u8 + 1;
    file.extend_from_slice(&headers);
    file
}

#[test]
fn addresses_a_loader_writes() {
    let longs = |longs: &[u64]| longs.iter().flat_map(|long| long.to_le_bytes()).collect::<Vec<u8>>();
    // Of the symbols: none, one that is defined, one that is not.
    let symbols = longs(&[0, 0, 0, 0x0001_0011_0000_0000, 0x2010, 8, 0x11 << 32, 0x2020, 8]);
    let table = longs(&[
        0x3000,
        13,
        0x2030, // where the object is, and more
        0x3008,
        1 << 32 | 3,
        4, // the first symbol
        0x3010,
        2 << 32 | 3,
        0, // one that is elsewhere
        0x3018,
        13,
        0, // beyond the section's last byte
    ]);
    let file = linked(&[
        (11, 0, 0, 24, symbols),
        (4, 0, 1, 24, table),
        (1, 0x2000, 0, 0, vec![1; 64]),
        (1, 0x3000, 0, 0, vec![0; 28]),
    ]);
    let object = read(&file).unwrap();
    let pointer = |offset, address| AddressPointer { section: 3, offset, address };
    assert_eq!(object.pointers, [pointer(0, 0x2030), pointer(8, 0x2014)]);
    let told: Vec<_> = object.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(told, ["2 relocations are of a section or symbol that is not there"]);
    for end in 0..file.len() {
        let _ = read(&file[..end]);
    }
}
