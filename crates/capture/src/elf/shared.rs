//! Writing: a shared object, as a loader maps it. It holds one relocatable object whose sections get addresses, and a table of its global symbols.
//!
//! Three segments: what is read, code, and what is written; addresses are offsets in the file, and segments begin at pages. Never: several objects,
//! addresses that only the loader knows. Facts: the ELF specification, and what `ld.lld -shared` makes of the same object.

use super::{CodeObject, EM_AMDGPU, ElfSectionKind, ElfSymbol, ElfSymbolKind, LinkError, write};
use object::elf;

const HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;
const SECTION_HEADER: u16 = 64;
const SYMBOL: u64 = 24;
const PAGE: u64 = 0x1000;
/// What a section's alignment counts at most.
const MOST_ALIGN: u64 = PAGE;
/// Protected: references from inside are to the object's own symbol.
const PROTECTED: u8 = 3;

/// Why an object is not written as a shared one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SharedObjectError {
    /// It cannot be linked by itself.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It has addresses already.
    #[error("the object is linked already")]
    Linked,
    /// Bytes depend on where the object is loaded.
    #[error("the address of {0} is needed where the object is loaded: link it with ld.lld -shared")]
    Address(String),
    /// Sections have numbers of 16 bits.
    #[error("the object has {0} sections, more than a shared object can number")]
    Sections(usize),
}

/// A section of the file.
struct OutSection {
    name: String,
    kind: u32,
    flags: u64,
    /// Address and offset in the file.
    address: u64,
    size: u64,
    /// `None`: zeros that are not in the file.
    bytes: Option<Vec<u8>>,
    link: u32,
    info: u32,
    align: u64,
    entry: u64,
    /// The section of the object that it is.
    of: Option<usize>,
}

impl OutSection {
    fn table(name: &str, kind: elf::SectionType, bytes: Vec<u8>, align: u64, entry: u64) -> OutSection {
        OutSection {
            name: name.to_owned(),
            kind: kind.0,
            flags: elf::SHF_ALLOC.0,
            address: 0,
            size: bytes.len() as u64,
            bytes: Some(bytes),
            link: 0,
            info: 0,
            align,
            entry,
            of: None,
        }
    }
}

/// Strings, each once; the first is empty.
#[derive(Default)]
struct Strings(Vec<u8>);

impl Strings {
    fn add(&mut self, text: &str) -> u32 {
        if self.0.is_empty() {
            self.0.push(0);
        }
        let at = self.0.len() as u32;
        // A name ends at its first zero byte.
        self.0.extend(text.bytes().take_while(|byte| *byte != 0));
        self.0.push(0);
        at
    }
}

/// The hash of a name, as the System V ABI has it.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0, |hash: u32, byte| {
        let next = (hash << 4).wrapping_add(u32::from(byte));
        let high = next & 0xf000_0000;
        (next ^ high >> 24) & !high
    })
}

/// A chained table of hashes: numbers of buckets and symbols, first symbols of buckets, next symbols.
fn hash_table(names: &[&str]) -> Vec<u8> {
    let buckets = names.len().max(1);
    let mut first = vec![0u32; buckets];
    let mut next = vec![0u32; names.len() + 1];
    for (number, name) in (1..).zip(names) {
        let bucket = hash(name) as usize % buckets;
        next[number as usize] = first[bucket];
        first[bucket] = number;
    }
    let words = [buckets as u32, names.len() as u32 + 1].into_iter().chain(first).chain(next);
    words.flat_map(u32::to_le_bytes).collect()
}

/// The bytes of a shared object with all that a relocatable object loads, and its global symbols.
///
/// # Errors
/// What is not defined in the object, or depends on where it is loaded.
pub fn write_shared(object: &CodeObject<'_>) -> Result<Vec<u8>, SharedObjectError> {
    if object.is_linked() {
        return Err(SharedObjectError::Linked);
    }
    let mut linked = object.clone();
    let own = |kinds: &[ElfSectionKind]| -> Vec<OutSection> {
        let sections = object.sections.iter().enumerate();
        sections
            .filter(|(_, section)| kinds.contains(&section.kind))
            .filter_map(|(of, section)| {
                let (kind, flags) = write::section_type(section.kind)?;
                let zeros = section.kind == ElfSectionKind::Zeros;
                Some(OutSection {
                    flags,
                    bytes: (!zeros).then(Vec::new),
                    size: section.bytes.len() as u64,
                    of: Some(of),
                    ..OutSection::table(
                        &section.name,
                        kind,
                        Vec::new(),
                        section.align.clamp(1, MOST_ALIGN),
                        0,
                    )
                })
            })
            .collect()
    };
    // Those whose section is not in the file are not, either.
    let is_written = |section: &usize| {
        object.sections.get(*section).is_some_and(|section| write::section_type(section.kind).is_some())
    };
    let globals = object.symbols.iter().filter(|symbol| symbol.global);
    let globals: Vec<(&ElfSymbol<'_>, usize)> =
        globals.filter_map(|symbol| Some((symbol, symbol.section.filter(is_written)?))).collect();
    let names: Vec<&str> = globals.iter().map(|(symbol, _)| &*symbol.name).collect();
    let mut strings = Strings::default();
    strings.add("");
    let name_offsets: Vec<u32> = names.iter().map(|name| strings.add(name)).collect();
    let symbols = vec![0; (names.len() + 1) * SYMBOL as usize];

    // Read, then code, then written. The numbers of sections begin with an empty one.
    let mut sections = own(&[ElfSectionKind::Note]);
    let dynsym = sections.len() + 1;
    sections.push(OutSection {
        link: dynsym as u32 + 2,
        info: 1,
        ..OutSection::table(".dynsym", elf::SHT_DYNSYM, symbols, 8, SYMBOL)
    });
    sections.push(OutSection {
        link: dynsym as u32,
        ..OutSection::table(".hash", elf::SHT_HASH, hash_table(&names), 4, 4)
    });
    sections.push(OutSection::table(".dynstr", elf::SHT_STRTAB, strings.0, 1, 0));
    sections.extend(own(&[ElfSectionKind::ReadOnly]));
    let code = sections.len();
    sections.extend(own(&[ElfSectionKind::Code]));
    let written = sections.len();
    const DYNAMIC_ENTRIES: usize = 6;
    sections.push(OutSection {
        flags: elf::SHF_ALLOC.0 | elf::SHF_WRITE.0,
        link: dynsym as u32 + 2,
        ..OutSection::table(".dynamic", elf::SHT_DYNAMIC, vec![0; DYNAMIC_ENTRIES * 16], 8, 16)
    });
    sections.extend(own(&[ElfSectionKind::Data]));
    sections.extend(own(&[ElfSectionKind::Zeros]));
    let unloaded = sections.len();
    sections.extend(own(&[ElfSectionKind::Unloaded]));
    // The empty one, and that of the names of sections.
    if sections.len() + 2 >= usize::from(elf::SHN_LORESERVE) {
        return Err(SharedObjectError::Sections(object.sections.len()));
    }

    // The header of the program headers, three segments, the table for the loader, its notes, and no executable stack.
    const SEGMENTS: u64 = 7;
    let mut next = HEADER + SEGMENTS * PROGRAM_HEADER;
    // By section of the object: its number in the file, and its address.
    let mut places = vec![(0u16, 0u64); object.sections.len()];
    for (number, section) in sections.iter_mut().enumerate() {
        if number == code || number == written {
            next = next.next_multiple_of(PAGE);
        }
        section.address = next.next_multiple_of(section.align);
        next = section.address + section.size;
        if let Some(of) = section.of.filter(|_| number < unloaded) {
            linked.sections[of].address = section.address;
            places[of] = (number as u16 + 1, section.address);
        }
    }
    linked.resolve().map_err(|error| match error {
        super::link::ResolveError::Link(error) => SharedObjectError::Link(error),
        super::link::ResolveError::Address(name) => SharedObjectError::Address(name),
    })?;
    let mut entries = vec![0; SYMBOL as usize];
    for ((symbol, section), name) in globals.iter().zip(&name_offsets) {
        let Some((number, address)) = places.get(*section) else { continue };
        entries.extend(name.to_le_bytes());
        entries.extend([elf::STB_GLOBAL.0 << 4 | symbol_type(symbol.kind), PROTECTED]);
        entries.extend(number.to_le_bytes());
        entries.extend(address.wrapping_add(symbol.value).to_le_bytes());
        entries.extend(symbol.size.to_le_bytes());
    }
    // The object may have sections of these names, too.
    let at = |name: &str| {
        let table = sections.iter().find(|section| section.of.is_none() && section.name == name);
        table.map_or((0, 0), |table| (table.address, table.size))
    };
    let (hash_at, (strings_at, strings_size)) = (at(".hash").0, at(".dynstr"));
    let dynamic: [(u64, u64); DYNAMIC_ENTRIES] = [
        (elf::DT_SYMTAB.0 as u64, at(".dynsym").0),
        (elf::DT_SYMENT.0 as u64, SYMBOL),
        (elf::DT_STRTAB.0 as u64, strings_at),
        (elf::DT_STRSZ.0 as u64, strings_size),
        (elf::DT_HASH.0 as u64, hash_at),
        (elf::DT_NULL.0 as u64, 0),
    ];
    for section in &mut sections {
        match (section.of, section.name.as_str()) {
            (Some(of), _) if section.bytes.is_some() => {
                section.bytes = Some(linked.sections[of].bytes.to_vec());
            }
            (None, ".dynsym") => section.bytes = Some(std::mem::take(&mut entries)),
            (None, ".dynamic") => {
                let words = dynamic.iter().flat_map(|(tag, value)| [*tag, *value]);
                section.bytes = Some(words.flat_map(u64::to_le_bytes).collect());
            }
            _ => {}
        }
    }
    let segments = [&sections[..code], &sections[code..written], &sections[written..unloaded]];
    Ok(file(object, &sections, segments, written))
}

fn symbol_type(kind: ElfSymbolKind) -> u8 {
    match kind {
        ElfSymbolKind::Function => elf::STT_FUNC.0,
        ElfSymbolKind::Object => elf::STT_OBJECT.0,
        ElfSymbolKind::HsaKernel => 10,
        ElfSymbolKind::Other => elf::STT_NOTYPE.0,
    }
}

/// A program header.
fn segment(kind: u32, flags: u32, start: u64, file: u64, memory: u64, align: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PROGRAM_HEADER as usize);
    bytes.extend(kind.to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    for word in [start, start, start, file, memory, align] {
        bytes.extend(word.to_le_bytes());
    }
    bytes
}

/// Headers, contents, and section headers.
fn file(
    object: &CodeObject<'_>,
    sections: &[OutSection],
    segments: [&[OutSection]; 3],
    dynamic: usize,
) -> Vec<u8> {
    const READ: u32 = 4;
    const WRITE: u32 = 2;
    const EXECUTE: u32 = 1;
    let end = |sections: &[OutSection], file: bool| {
        let held = sections.iter().filter(|section| !file || section.bytes.is_some());
        held.map(|section| section.address + section.size).max().unwrap_or_default()
    };
    let mut names = Strings::default();
    names.add("");
    let name_offsets: Vec<u32> = sections.iter().map(|section| names.add(&section.name)).collect();
    let own_name = names.add(".shstrtab");
    let contents = end(sections, true);
    let names_at = contents;
    let headers_at = (names_at + names.0.len() as u64).next_multiple_of(8);

    let (os_abi, abi_version) = object.loader.identification();
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, os_abi, abi_version, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(elf::ET_DYN.0.to_le_bytes());
    bytes.extend(EM_AMDGPU.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    for word in [0, HEADER, headers_at] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(object.flags.to_le_bytes());
    let notes = sections.iter().find(|section| section.kind == elf::SHT_NOTE.0);
    let table = &sections[dynamic];
    let load = |own: &[OutSection], flags: u32, first: Option<u64>| {
        let start = first.unwrap_or_else(|| own.first().map_or(0, |section| section.address));
        let length = |file| end(own, file).saturating_sub(start);
        segment(elf::PT_LOAD.0, flags, start, length(true), length(false), PAGE)
    };
    let count = 7u64;
    let program = [
        segment(elf::PT_PHDR.0, READ, HEADER, count * PROGRAM_HEADER, count * PROGRAM_HEADER, 8),
        load(segments[0], READ, Some(0)),
        load(segments[1], READ | EXECUTE, None),
        load(segments[2], READ | WRITE, None),
        segment(elf::PT_DYNAMIC.0, READ | WRITE, table.address, table.size, table.size, 8),
        notes.map_or_else(
            || segment(elf::PT_NULL.0, 0, 0, 0, 0, 0),
            |notes| segment(elf::PT_NOTE.0, READ, notes.address, notes.size, notes.size, 4),
        ),
        segment(elf::PT_GNU_STACK.0, READ | WRITE, 0, 0, 0, 0),
    ];
    let header_count = sections.len() as u16 + 2;
    for half in
        [HEADER as u16, PROGRAM_HEADER as u16, count as u16, SECTION_HEADER, header_count, header_count - 1]
    {
        bytes.extend(half.to_le_bytes());
    }
    program.iter().for_each(|header| bytes.extend(header));
    for section in sections {
        if let Some(held) = &section.bytes {
            bytes.resize(section.address as usize, 0);
            bytes.extend(held);
        }
    }
    bytes.resize(names_at as usize, 0);
    bytes.extend(&names.0);
    bytes.resize(headers_at as usize + usize::from(SECTION_HEADER), 0);
    let mut header = |name: u32, section: &OutSection| {
        bytes.extend(name.to_le_bytes());
        bytes.extend(section.kind.to_le_bytes());
        let address = if section.flags & elf::SHF_ALLOC.0 == 0 { 0 } else { section.address };
        for word in [section.flags, address, section.address, section.size] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(section.link.to_le_bytes());
        bytes.extend(section.info.to_le_bytes());
        bytes.extend(section.align.to_le_bytes());
        bytes.extend(section.entry.to_le_bytes());
    };
    for (section, name) in sections.iter().zip(&name_offsets) {
        header(*name, section);
    }
    let own = OutSection { flags: 0, ..OutSection::table(".shstrtab", elf::SHT_STRTAB, names.0, 1, 0) };
    header(own_name, &OutSection { address: names_at, ..own });
    bytes
}
