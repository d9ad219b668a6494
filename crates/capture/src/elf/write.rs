//! Writing: a relocatable file, as an assembler makes it.

use super::{CodeObject, EM_AMDGPU, ElfRelocation, ElfSectionKind, ElfSymbol, ElfSymbolKind};
use object::Endianness;
use object::elf;
use object::write::elf::{FileHeader, Rel, SectionHeader, SectionIndex, Sym, Writer};

/// The bytes of a code object: relocatable, with the sections and symbols it lists. Sections of the kind
/// [`ElfSectionKind::Other`] (symbol tables, strings) are made anew and not copied.
///
/// # Errors
/// When a name cannot stand in a string table (it holds a zero byte), or a table grows past what ELF can number.
pub fn write(object: &CodeObject<'_>) -> Result<Vec<u8>, object::write::Error> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(Endianness::Little, true, &mut bytes);
    writer.reserve_file_header();
    writer.reserve_null_section_index();
    let kept: Vec<usize> =
        (0..object.sections.len()).filter(|&i| object.sections[i].kind != ElfSectionKind::Other).collect();
    let mut indices = vec![None; object.sections.len()];
    let mut names = Vec::new();
    let mut offsets = Vec::new();
    for &i in &kept {
        let section = &object.sections[i];
        names.push(writer.add_section_name(section.name.as_bytes()));
        indices[i] = Some(writer.reserve_section_index());
        let size = if section.kind == ElfSectionKind::Zeros { 0 } else { section.bytes.len() as u64 };
        offsets.push(writer.reserve(size, section.align.clamp(1, 1 << 16)));
    }
    // One table of relocations for each section that has any.
    let mut tables: Vec<(usize, _, _, Vec<ElfRelocation>)> = Vec::new();
    let mut related: Vec<ElfRelocation> = object.relocations.clone();
    related.sort_by_key(|r| (r.section, r.offset));
    let rela_names: Vec<String> = kept.iter().map(|&i| format!(".rela{}", object.sections[i].name)).collect();
    for (&i, name) in kept.iter().zip(&rela_names) {
        let of_section: Vec<_> = related.iter().filter(|r| r.section == i).copied().collect();
        if !of_section.is_empty() {
            let name = writer.add_section_name(name.as_bytes());
            writer.reserve_section_index();
            let offset = writer.reserve_relocations(of_section.len(), true);
            tables.push((i, name, offset, of_section));
        }
    }
    let mut order: Vec<usize> = (0..object.symbols.len()).collect();
    order.sort_by_key(|&i| object.symbols[i].global);
    let locals = order.iter().filter(|&&i| !object.symbols[i].global).count();
    writer.reserve_null_symbol_index();
    let mut symbol_names = Vec::new();
    for &i in &order {
        let symbol = &object.symbols[i];
        symbol_names.push(writer.add_string(symbol.name.as_bytes()));
        writer.reserve_symbol_index(symbol.section.and_then(|s| indices.get(s).copied().flatten()));
    }
    writer.reserve_symtab_section_index();
    writer.reserve_symtab();
    writer.reserve_strtab_section_index();
    writer.reserve_strtab()?;
    writer.reserve_shstrtab_section_index();
    writer.reserve_shstrtab()?;
    writer.reserve_section_headers();

    let (os_abi, abi_version) = object.loader.identification();
    writer.write_file_header(&FileHeader {
        os_abi: elf::OsAbi(os_abi),
        abi_version,
        e_type: elf::ET_REL,
        e_machine: elf::Machine(EM_AMDGPU),
        e_entry: 0,
        e_flags: elf::FileFlags(object.flags),
    })?;
    for &i in &kept {
        let section = &object.sections[i];
        if section.kind != ElfSectionKind::Zeros {
            writer.write_align(section.align.clamp(1, 1 << 16));
            writer.write(&section.bytes);
        }
    }
    for (.., relocations) in &tables {
        write_relocations(&mut writer, relocations, &order);
    }
    writer.write_null_symbol();
    for (&i, &name) in order.iter().zip(&symbol_names) {
        let symbol = &object.symbols[i];
        let section = symbol.section.and_then(|s| indices.get(s).copied().flatten());
        let name = writer.string_offset(Some(name));
        writer.write_symbol(&symbol_entry(symbol, section, name));
    }
    writer.write_strtab();
    writer.write_shstrtab();
    writer.write_null_section_header();
    for ((&i, &name), &offset) in kept.iter().zip(&names).zip(&offsets) {
        let section = &object.sections[i];
        if let Some((kind, flags)) = section_type(section.kind) {
            writer.write_section_header(&SectionHeader {
                sh_name: writer.section_name_offset(Some(name)),
                sh_type: kind,
                sh_flags: elf::SectionFlags(flags),
                sh_addr: 0,
                sh_offset: offset,
                sh_size: section.bytes.len() as u64,
                sh_link: 0,
                sh_info: 0,
                sh_addralign: section.align.max(1),
                sh_entsize: 0,
            });
        }
    }
    let symtab = writer.symtab_index();
    for (section, name, offset, relocations) in &tables {
        let section = indices.get(*section).copied().flatten().unwrap_or(SectionIndex(0));
        writer.write_relocation_section_header(*name, section, symtab, *offset, relocations.len(), true);
    }
    writer.write_symtab_section_header(locals as u32 + 1);
    writer.write_strtab_section_header();
    writer.write_shstrtab_section_header();
    Ok(bytes)
}

/// Entries of one table of relocations; symbols are numbered in the order in which they are written, from 1.
fn write_relocations(writer: &mut Writer<'_>, relocations: &[ElfRelocation], order: &[usize]) {
    writer.write_align_relocation();
    for relocation in relocations {
        let symbol = order.iter().position(|&i| i == relocation.symbol).map_or(0, |at| at + 1);
        writer.write_relocation(
            true,
            &Rel {
                r_offset: relocation.offset,
                r_sym: symbol as u32,
                r_type: elf::RelocationType(relocation.kind.0),
                r_addend: relocation.addend,
            },
        );
    }
}

/// A symbol as the table has it.
fn symbol_entry(symbol: &ElfSymbol, section: Option<SectionIndex>, name: u32) -> Sym {
    let bind = if symbol.global { elf::STB_GLOBAL } else { elf::STB_LOCAL };
    let kind = match symbol.kind {
        ElfSymbolKind::Function => elf::STT_FUNC,
        ElfSymbolKind::Object => elf::STT_OBJECT,
        ElfSymbolKind::HsaKernel => elf::SymbolType(10),
        ElfSymbolKind::Other => elf::STT_NOTYPE,
    };
    Sym {
        section: section.map(|s| s.0),
        st_name: name,
        st_info: elf::SymbolInfo::new(bind, kind),
        st_other: elf::SymbolOther(0),
        st_shndx: if symbol.section.is_none() && !symbol.global { elf::SHN_ABS } else { elf::SHN_UNDEF },
        st_value: symbol.value,
        st_size: symbol.size,
    }
}

/// Type and flags of a section; `None` for those that are not copied.
fn section_type(kind: ElfSectionKind) -> Option<(elf::SectionType, u64)> {
    Some(match kind {
        ElfSectionKind::Code => (elf::SHT_PROGBITS, elf::SHF_ALLOC.0 | elf::SHF_EXECINSTR.0),
        ElfSectionKind::ReadOnly => (elf::SHT_PROGBITS, elf::SHF_ALLOC.0),
        ElfSectionKind::Data => (elf::SHT_PROGBITS, elf::SHF_ALLOC.0 | elf::SHF_WRITE.0),
        ElfSectionKind::Zeros => (elf::SHT_NOBITS, elf::SHF_ALLOC.0 | elf::SHF_WRITE.0),
        ElfSectionKind::Note => (elf::SHT_NOTE, elf::SHF_ALLOC.0),
        ElfSectionKind::Other => return None,
    })
}
