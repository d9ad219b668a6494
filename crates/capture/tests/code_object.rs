//! AMD code objects: what is written is read, cut or broken ones give what is whole.

use std::borrow::Cow;
use unwedge_capture::code_object::{
    CodeObject, Loader, NotCodeObject, Relocation, RelocationKind, Section, SectionKind, Symbol, SymbolKind,
    flags_of, read, write,
};

fn section(name: &'static str, kind: SectionKind, bytes: Vec<u8>) -> Section<'static> {
    Section { name: Cow::Borrowed(name), kind, address: 0, bytes: Cow::Owned(bytes), align: 64 }
}

fn symbol(name: &'static str, kind: SymbolKind, section: usize, value: u64, size: u64) -> Symbol<'static> {
    Symbol {
        name: Cow::Borrowed(name),
        kind,
        global: kind != SymbolKind::Other,
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
            section(".text", SectionKind::Code, (0..80).collect()),
            section(".rodata", SectionKind::ReadOnly, vec![7; 64]),
        ],
        symbols: vec![
            symbol("L1", SymbolKind::Other, 0, 4, 0),
            symbol("helper", SymbolKind::Function, 0, 48, 16),
            symbol("main", SymbolKind::Function, 0, 0, 32),
            symbol("main.kd", SymbolKind::Object, 1, 0, 64),
        ],
        relocations: vec![Relocation {
            kind: RelocationKind::REL64,
            section: 1,
            offset: 16,
            symbol: 2,
            addend: 16,
        }],
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
    let known: Vec<_> = again.sections.iter().filter(|s| s.kind != SectionKind::Other).cloned().collect();
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
    assert_eq!(again.descriptor_of("main"), Some(&[7; 64][..]));
    assert_eq!(again.descriptor_of("helper"), None);
}

/// A kernel of the first format starts with a header of 256 bytes.
#[test]
fn headers_are_no_code() {
    let mut code = vec![0; 256 + 8];
    code[16..24].copy_from_slice(&256u64.to_le_bytes());
    let object = CodeObject {
        loader: Loader::Hsa(2),
        flags: flags_of("gfx803").unwrap(),
        sections: vec![section(".hsatext", SectionKind::Code, code)],
        symbols: vec![symbol("k", SymbolKind::HsaKernel, 0, 0, 0)],
        relocations: Vec::new(),
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
                object.descriptor_of(function.name);
            }
        }
    }
}
