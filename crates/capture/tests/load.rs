//! Loading functions of code objects: what is set where they begin, and distances that a section tells by itself.

use std::borrow::Cow;
use unwedge_capture::elf::{
    CodeObject, ElfRelocation, ElfSection, ElfSectionKind, ElfSymbol, ElfSymbolKind, LinkError, LoadError,
    LoadedKernel, Loader, RelocationKind, StartRegisters, flags_of, metadata, read, write,
};
use unwedge_isa::amdgcn::Gpu;
use unwedge_isa::amdgcn::descriptor::{DescriptorBuilder, DescriptorTarget};
use unwedge_isa::amdgcn::source::MetadataLine;

fn gpu() -> Gpu {
    Gpu::new("gfx1030").unwrap()
}

fn section(name: &'static str, kind: ElfSectionKind, bytes: Vec<u8>) -> ElfSection<'static> {
    ElfSection { name: Cow::Borrowed(name), kind, address: 0, bytes: Cow::Owned(bytes), align: 64 }
}

fn symbol(
    name: &'static str,
    kind: ElfSymbolKind,
    section: Option<usize>,
    value: u64,
    size: u64,
) -> ElfSymbol<'static> {
    ElfSymbol { name: Cow::Borrowed(name), kind, global: true, section, value, size }
}

fn note(yaml: &str) -> Vec<u8> {
    let line = |(at, text): (usize, &str)| MetadataLine {
        line: at + 1,
        indent: text.len() - text.trim_start().len(),
        text: text.trim().to_owned(),
    };
    metadata::note(&yaml.lines().enumerate().map(line).collect::<Vec<_>>()).unwrap()
}

/// `main` at 0 with a descriptor, `helper` at 32; three relocations.
fn object() -> CodeObject<'static> {
    let mut builder = DescriptorBuilder::new(DescriptorTarget::of(&gpu()));
    for (name, value) in [
        ("next_free_vgpr", 8),
        ("next_free_sgpr", 16),
        ("user_sgpr_kernarg_segment_ptr", 1),
        ("wavefront_size32", 1),
        ("group_segment_fixed_size", 512),
        ("private_segment_fixed_size", 64),
    ] {
        builder.set(name, value).unwrap();
    }
    let arguments = "amdhsa.kernels:\n  - .args:\n      - .offset: 0\n        .size: 8\n        \
                     .value_kind: global_buffer\n    .name: main\n";
    let relocation =
        |kind, offset, symbol, addend| ElfRelocation { kind, section: 0, offset, symbol, addend };
    CodeObject {
        loader: Loader::Hsa(5),
        flags: flags_of("gfx1030").unwrap(),
        sections: vec![
            section(".text", ElfSectionKind::Code, vec![0; 48]),
            section(".rodata", ElfSectionKind::ReadOnly, builder.finish().unwrap().to_vec()),
            section(".note", ElfSectionKind::Note, note(arguments)),
        ],
        symbols: vec![
            symbol("main", ElfSymbolKind::Function, Some(0), 0, 32),
            symbol("main.kd", ElfSymbolKind::Object, Some(1), 0, 64),
            symbol("helper", ElfSymbolKind::Function, Some(0), 32, 16),
        ],
        relocations: vec![
            relocation(RelocationKind::REL32_LO, 4, 2, 4),
            relocation(RelocationKind::REL32_HI, 8, 2, 8),
            relocation(RelocationKind::REL32_LO, 12, 1, 0),
        ],
        pointers: Vec::new(),
        diagnostics: Vec::new(),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

#[test]
fn a_kernel_with_all_that_is_told_of_it() {
    let bytes = write(&object()).unwrap();
    let kernel = LoadedKernel::load(&read(&bytes).unwrap(), "main", &gpu()).unwrap();
    assert_eq!((kernel.name.as_str(), kernel.code.len()), ("main", 32));
    // From 4 to 32, and 4 more; the descriptor is in another section.
    assert_eq!((word(&kernel.code, 4), word(&kernel.code, 8)), (32, 0));
    assert_eq!(kernel.unknown, [12]);
    let start = kernel.start.unwrap();
    assert_eq!(start.registers, Some(StartRegisters { sgprs: 3, vgprs: 1 }));
    assert_eq!(start.wave32, Some(true));
    let entry = kernel.entry.unwrap();
    assert_eq!((entry.lds, entry.scratch), (512, 64));
    let [argument] = &kernel.arguments.unwrap()[..] else { panic!("one argument") };
    assert_eq!((argument.offset, argument.size, argument.kind.as_str()), (0, 8, "global_buffer"));
}

#[test]
fn a_function_that_nothing_starts() {
    let object = object();
    let helper = LoadedKernel::load(&object, "helper", &gpu()).unwrap();
    assert_eq!((helper.start, helper.entry, helper.unknown.len(), helper.code.len()), (None, None, 0, 16));
    let there = vec!["main".to_owned(), "helper".to_owned()];
    assert_eq!(
        LoadedKernel::load(&object, "other", &gpu()),
        Err(LoadError::NoFunction { name: "other".to_owned(), there })
    );
    let refused = LoadedKernel::load(&object, "main", &Gpu::new("gfx900").unwrap());
    assert!(matches!(refused, Err(LoadError::OtherProcessor { object: "gfx1030", .. })));
}

#[test]
fn linking_lays_sections_out() {
    let mut object = object();
    object.link(0x10_0000).unwrap();
    let [text, rodata] = [0, 1].map(|at| object.sections[at].address);
    assert!(object.is_linked() && text != 0 && rodata > text);
    let kernel = LoadedKernel::load(&object, "main", &gpu()).unwrap();
    assert_eq!((kernel.address, kernel.unknown.len()), (text, 0));
    assert_eq!(word(&kernel.code, 12), (rodata - text - 12) as u32);
    // A second time changes nothing.
    let once = object.clone();
    object.link(0x20_0000).unwrap();
    assert_eq!(object, once);
}

#[test]
fn what_one_file_alone_does_not_link() {
    let mut undefined = object();
    undefined.symbols.push(symbol("elsewhere", ElfSymbolKind::Other, None, 0, 0));
    undefined.relocations[0].symbol = 3;
    assert_eq!(undefined.link(0), Err(LinkError::Undefined { symbol: "elsewhere".to_owned() }));
    let mut unknown = object();
    unknown.relocations[0].kind = RelocationKind(99);
    assert!(matches!(unknown.link(0), Err(LinkError::UnknownKind { kind: RelocationKind(99), .. })));
    let mut outside = object();
    outside.relocations[0].offset = 46;
    assert_eq!(outside.link(0), Err(LinkError::OutOfSection { symbol: "helper".to_owned() }));
}

#[test]
fn registers_that_mesa_lists() {
    let mut object = object();
    object.symbols.remove(1);
    object.relocations.clear();
    // COMPUTE_PGM_RSRC2: two user registers, and the workgroup's place along x.
    let config = [[0xb848u32, 0], [0xb84c, 2 << 1 | 1 << 7]].concat().into_iter().flat_map(u32::to_le_bytes);
    object.sections.push(section(".AMDGPU.config", ElfSectionKind::Other, config.collect()));
    let kernel = LoadedKernel::load(&object, "main", &gpu()).unwrap();
    assert_eq!(kernel.start.unwrap().registers, Some(StartRegisters { sgprs: 3, vgprs: 1 }));
}
