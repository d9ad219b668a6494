//! Reading: headers, sections and symbols, each as far as it is whole.

use super::{
    AddressPointer, CodeObject, EM_AMDGPU, ElfRelocation, ElfSection, ElfSectionKind, ElfSymbol,
    ElfSymbolKind, Loader, NotCodeObject, RelocationKind, processor_of_flags,
};
use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _, Sym as _};
use object::read::{ReadRef, StringTable};
use std::borrow::Cow;
use unwedge_base::plural::counted;
use unwedge_base::{Diagnostic, Span};

type ElfHeader = elf::FileHeader64<LE>;

/// A symbol type of HSA v2: a kernel that starts with a header.
const STT_AMDGPU_HSA_KERNEL: u8 = 10;

/// Reads a code object. What is cut or malformed is left out and said in its diagnostics.
///
/// # Errors
/// When it is no ELF file, or none of an AMD GPU.
pub fn read(bytes: &[u8]) -> Result<CodeObject<'_>, NotCodeObject> {
    let header = header(bytes)?;
    let ident = &header.e_ident;
    let mut object = CodeObject {
        loader: Loader::of(ident.os_abi.0, ident.abi_version),
        flags: header.e_flags.get(LE).0,
        sections: Vec::new(),
        symbols: Vec::new(),
        relocations: Vec::new(),
        pointers: Vec::new(),
        diagnostics: Vec::new(),
    };
    let places = sections(header, bytes, &mut object);
    if object.sections.is_empty() {
        segments(header, bytes, &mut object);
    }
    symbols(header, bytes, &places, &mut object);
    relocations(header, bytes, &places, &mut object);
    Ok(object)
}

/// The processor of a code object, by its header if that names it. Nothing else is read then.
///
/// # Errors
/// As those of [`read`].
pub fn processor(bytes: &[u8]) -> Result<Option<&'static str>, NotCodeObject> {
    match processor_of_flags(header(bytes)?.e_flags.get(LE).0) {
        Some(named) => Ok(Some(named)),
        None => Ok(read(bytes)?.processor()),
    }
}

/// The header of a file for AMD GPUs.
fn header(bytes: &[u8]) -> Result<&ElfHeader, NotCodeObject> {
    let header = ElfHeader::parse(bytes).map_err(|_| NotCodeObject::NotElf)?;
    if header.endian().is_err() {
        return Err(NotCodeObject::NotElf);
    }
    let machine = header.e_machine.get(LE);
    if machine != elf::Machine(EM_AMDGPU) {
        return Err(NotCodeObject::OtherMachine(machine.0));
    }
    Ok(header)
}

/// The relocations of all sections, with addends of their own or without. Those of symbols that are not there are left out.
fn relocations(header: &ElfHeader, bytes: &[u8], places: &[Option<usize>], object: &mut CodeObject<'_>) {
    let start = header.e_shoff.get(LE);
    let Ok(headers) = bytes.read_slice_at::<elf::SectionHeader64<LE>>(start, places.len()) else { return };
    let mut lost = 0_usize;
    for table in headers {
        let held = held(bytes, table.sh_offset.get(LE), table.sh_size.get(LE));
        let linked = headers.get(table.sh_link.get(LE) as usize);
        if let Some(symbols) = linked.filter(|linked| linked.sh_type.get(LE) == elf::SHT_DYNSYM)
            && table.sh_type.get(LE) == elf::SHT_RELA
        {
            lost += pointers(held, symbols, bytes, object);
            continue;
        }
        let section = places.get(table.sh_info.get(LE) as usize).copied().flatten();
        let mut add = |offset: u64, info: u64, addend: Option<i64>| {
            let symbol = (info >> 32).checked_sub(1).and_then(|at| usize::try_from(at).ok());
            match (section, symbol.filter(|&at| at < object.symbols.len())) {
                (Some(section), Some(symbol)) => {
                    let kind = RelocationKind(info as u32);
                    // Of what is linked, offsets are addresses.
                    let start = object.sections.get(section).map_or(0, |section| section.address);
                    let offset = offset.wrapping_sub(start);
                    let addend = addend.unwrap_or_else(|| object.addend_at(section, offset, kind));
                    object.relocations.push(ElfRelocation { kind, section, offset, symbol, addend });
                }
                _ => lost += 1,
            }
        };
        let number = |entry: &[u8], at: usize| {
            let bytes = entry.get(8 * at..8 * at + 8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
            bytes.map_or(0, u64::from_le_bytes)
        };
        match table.sh_type.get(LE) {
            elf::SHT_RELA => held
                .chunks_exact(24)
                .for_each(|entry| add(number(entry, 0), number(entry, 1), Some(number(entry, 2) as i64))),
            elf::SHT_REL => {
                held.chunks_exact(16).for_each(|entry| add(number(entry, 0), number(entry, 1), None));
            }
            _ => {}
        }
    }
    if lost > 0 {
        let lost = counted(lost as u64, "relocation is", "relocations are");
        let message = format!("{lost} of a section or symbol that is not there");
        object.diagnostics.push(Diagnostic::note(None, message));
    }
    object.relocations.sort_by_key(|relocation| (relocation.section, relocation.offset));
}

/// What a loader writes into a linked object: addresses, of which it knows where the object lies. Returns how many are of
/// nothing that is there.
fn pointers(
    table: &[u8],
    symbols: &elf::SectionHeader64<LE>,
    bytes: &[u8],
    object: &mut CodeObject<'_>,
) -> usize {
    let symbols = held(bytes, symbols.sh_offset.get(LE), symbols.sh_size.get(LE));
    let loaded = object.sections.iter().enumerate().filter(|(_, s)| s.address != 0 && !s.bytes.is_empty());
    let mut places: Vec<_> = loaded.map(|(i, s)| (s.address, s.bytes.len() as u64, i)).collect();
    places.sort_unstable();
    let (mut found, mut lost) = (Vec::new(), 0);
    for entry in table.as_chunks::<24>().0 {
        let number = |at: usize| entry[8 * at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let (address, info, addend) = (number(0), number(1), number(2));
        let symbol = usize::try_from(info >> 32).ok().and_then(|at| symbols.as_chunks::<24>().0.get(at));
        let value = match (RelocationKind(info as u32), symbol) {
            (RelocationKind::RELATIVE64, _) => Some(0),
            // Of a symbol that is defined here.
            (RelocationKind::ABS64, Some([_, _, _, _, _, _, low, high, value @ ..])) if low | high != 0 => {
                value.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
            }
            _ => None,
        };
        let before = places.partition_point(|(start, ..)| *start <= address).checked_sub(1);
        let place = before.and_then(|at| places.get(at)).and_then(|&(start, size, section)| {
            let offset = address - start;
            Some((section, offset)).filter(|_| offset.checked_add(8).is_some_and(|end| end <= size))
        });
        match (place, value) {
            (Some((section, offset)), Some(value)) => {
                found.push(AddressPointer { section, offset, address: value.wrapping_add(addend) });
            }
            _ => lost += 1,
        }
    }
    object.pointers.append(&mut found);
    lost
}

/// The sections; the answer gives for each section of the file its index among those kept.
fn sections<'a>(header: &ElfHeader, bytes: &'a [u8], object: &mut CodeObject<'a>) -> Vec<Option<usize>> {
    let start = header.e_shoff.get(LE);
    let count = u64::from(header.e_shnum.get(LE));
    let whole = (bytes.len() as u64).saturating_sub(start) / size_of::<elf::SectionHeader64<LE>>() as u64;
    if start == 0 || count == 0 {
        return Vec::new();
    }
    if whole < count {
        let message = format!("{} of {count} section headers are missing", count - whole);
        object.diagnostics.push(Diagnostic::loss(Span::new(bytes.len(), bytes.len()), message));
    }
    let Ok(headers) = bytes.read_slice_at::<elf::SectionHeader64<LE>>(start, count.min(whole) as usize)
    else {
        return Vec::new();
    };
    let names = headers.get(usize::from(header.e_shstrndx.get(LE).0));
    let names = names.and_then(|names| names.strings(LE, bytes).ok().flatten()).unwrap_or_default();
    let mut places = Vec::with_capacity(headers.len());
    for section in headers {
        let kind = section.sh_type.get(LE);
        if kind == elf::SHT_NULL {
            places.push(None);
            continue;
        }
        let name = section.name(LE, names).map(String::from_utf8_lossy).unwrap_or_default();
        let claimed = section.sh_size.get(LE);
        let held = match kind {
            elf::SHT_NOBITS => &[][..],
            _ => held(bytes, section.sh_offset.get(LE), claimed),
        };
        if kind != elf::SHT_NOBITS && (held.len() as u64) < claimed {
            let message =
                format!("section {name} has {} of {}", held.len(), counted(claimed, "byte", "bytes"));
            object.diagnostics.push(Diagnostic::loss(Span::new(bytes.len(), bytes.len()), message));
        }
        places.push(Some(object.sections.len()));
        object.sections.push(ElfSection {
            name,
            kind: kind_of(kind, section.sh_flags.get(LE)),
            address: section.sh_addr.get(LE),
            bytes: Cow::Borrowed(held),
            align: section.sh_addralign.get(LE),
        });
    }
    places
}

fn kind_of(kind: elf::SectionType, flags: elf::SectionFlags) -> ElfSectionKind {
    let has = |flag: elf::SectionFlags| flags.0 & flag.0 != 0;
    match kind {
        elf::SHT_NOTE => ElfSectionKind::Note,
        elf::SHT_NOBITS => ElfSectionKind::Zeros,
        elf::SHT_PROGBITS if has(elf::SHF_EXECINSTR) => ElfSectionKind::Code,
        elf::SHT_PROGBITS if has(elf::SHF_ALLOC) && has(elf::SHF_WRITE) => ElfSectionKind::Data,
        elf::SHT_PROGBITS if has(elf::SHF_ALLOC) => ElfSectionKind::ReadOnly,
        elf::SHT_PROGBITS => ElfSectionKind::Unloaded,
        _ => ElfSectionKind::Other,
    }
}

/// What is loaded, of a file without sections.
fn segments<'a>(header: &ElfHeader, bytes: &'a [u8], object: &mut CodeObject<'a>) {
    let start = header.e_phoff.get(LE);
    let count = u64::from(header.e_phnum.get(LE));
    let whole = (bytes.len() as u64).saturating_sub(start) / size_of::<elf::ProgramHeader64<LE>>() as u64;
    let headers = bytes.read_slice_at::<elf::ProgramHeader64<LE>>(start, count.min(whole) as usize);
    for segment in headers.unwrap_or_default() {
        let kind = match segment.p_type(LE) {
            elf::PT_LOAD if segment.p_flags(LE).0 & elf::PF_X.0 != 0 => ElfSectionKind::Code,
            elf::PT_LOAD if segment.p_flags(LE).0 & elf::PF_W.0 != 0 => ElfSectionKind::Data,
            elf::PT_LOAD => ElfSectionKind::ReadOnly,
            elf::PT_NOTE => ElfSectionKind::Note,
            _ => continue,
        };
        let claimed = segment.p_filesz(LE);
        let held = held(bytes, segment.p_offset(LE), claimed);
        if (held.len() as u64) < claimed {
            let message = format!("a segment has {} of {}", held.len(), counted(claimed, "byte", "bytes"));
            object.diagnostics.push(Diagnostic::loss(Span::new(bytes.len(), bytes.len()), message));
        }
        object.sections.push(ElfSection {
            name: Cow::Borrowed(""),
            kind,
            address: segment.p_vaddr(LE),
            bytes: Cow::Borrowed(held),
            align: segment.p_align(LE),
        });
    }
}

/// The symbols of the symbol table, or of the dynamic one where there is no other.
fn symbols<'a>(header: &ElfHeader, bytes: &'a [u8], places: &[Option<usize>], object: &mut CodeObject<'a>) {
    let start = header.e_shoff.get(LE);
    let Ok(headers) = bytes.read_slice_at::<elf::SectionHeader64<LE>>(start, places.len()) else { return };
    let table = |kind| headers.iter().find(|s| s.sh_type.get(LE) == kind);
    let Some(table) = table(elf::SHT_SYMTAB).or_else(|| table(elf::SHT_DYNSYM)) else { return };
    let held = held(bytes, table.sh_offset.get(LE), table.sh_size.get(LE));
    let count = held.len() / size_of::<elf::Sym64<LE>>();
    let names = headers.get(table.sh_link.get(LE) as usize);
    let names: StringTable<'a> = names.and_then(|n| n.strings(LE, bytes).ok().flatten()).unwrap_or_default();
    let Ok(all) = held.read_slice_at::<elf::Sym64<LE>>(0, count) else { return };
    for symbol in all.iter().skip(1) {
        let section = usize::from(symbol.st_shndx.get(LE).0);
        object.symbols.push(ElfSymbol {
            name: symbol.name(LE, names).map(String::from_utf8_lossy).unwrap_or_default(),
            kind: match symbol.st_type() {
                elf::STT_FUNC => ElfSymbolKind::Function,
                elf::STT_OBJECT => ElfSymbolKind::Object,
                elf::SymbolType(STT_AMDGPU_HSA_KERNEL) => ElfSymbolKind::HsaKernel,
                _ => ElfSymbolKind::Other,
            },
            global: symbol.st_bind() != elf::STB_LOCAL,
            section: places.get(section).copied().flatten(),
            value: symbol.st_value.get(LE),
            size: symbol.st_size.get(LE),
        });
    }
}

/// The part of a range that the file holds.
fn held(bytes: &[u8], start: u64, size: u64) -> &[u8] {
    let start = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
    let rest = &bytes[start..];
    &rest[..usize::try_from(size).unwrap_or(usize::MAX).min(rest.len())]
}
