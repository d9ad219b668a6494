//! Writing: a relocatable file, as an assembler makes it.

use super::{CodeObject, EM_AMDGPU, ElfRelocation, ElfSectionKind, ElfSymbol, ElfSymbolKind};
use object::Endianness;
use object::elf;
use object::write::StringId;
use object::write::elf::{FileHeader, Rel, SectionHeader, SectionIndex, Sym, Writer};

/// The bytes of a code object: relocatable, with the sections and symbols it lists. Sections of the kind
/// [`ElfSectionKind::Other`] (symbol tables, strings) are made anew and not copied.
///
/// # Errors
/// When a name cannot stand in a string table (it holds a zero byte), or a table grows past what ELF can number.
pub fn write(object: &CodeObject<'_>) -> Result<Vec<u8>, object::write::Error> {
    let rela_names: Vec<String> = object.sections.iter().map(|s| format!(".rela{}", s.name)).collect();
    let mut bytes = Vec::new();
    let mut writer = Writer::new(Endianness::Little, true, &mut bytes);
    let plan = FilePlan::reserve(&mut writer, object, &rela_names)?;
    let (os_abi, abi_version) = object.loader.identification();
    writer.write_file_header(&FileHeader {
        os_abi: elf::OsAbi(os_abi),
        abi_version,
        e_type: elf::ET_REL,
        e_machine: elf::Machine(EM_AMDGPU),
        e_entry: 0,
        e_flags: elf::FileFlags(object.flags),
    })?;
    plan.write_contents(&mut writer, object);
    plan.write_headers(&mut writer, object);
    Ok(bytes)
}

/// Where everything goes: reserved in the order in which it is written.
struct FilePlan {
    sections: Vec<PlannedSection>,
    /// By section of the object.
    indices: Vec<Option<SectionIndex>>,
    tables: Vec<PlannedTable>,
    /// Symbols of the object in the order in which they are written: local ones first.
    order: Vec<usize>,
    symbol_names: Vec<StringId>,
}

/// A section of the object.
struct PlannedSection {
    of: usize,
    name: StringId,
    offset: u64,
}

/// The relocations of a section that has any.
struct PlannedTable {
    of: usize,
    name: StringId,
    offset: u64,
    relocations: Vec<ElfRelocation>,
}

impl FilePlan {
    fn reserve<'a>(
        writer: &mut Writer<'a>,
        object: &'a CodeObject<'_>,
        rela_names: &'a [String],
    ) -> Result<FilePlan, object::write::Error> {
        writer.reserve_file_header();
        writer.reserve_null_section_index();
        let mut indices = vec![None; object.sections.len()];
        let mut sections = Vec::new();
        for (of, section) in object.sections.iter().enumerate() {
            if section.kind == ElfSectionKind::Other {
                continue;
            }
            let name = writer.add_section_name(section.name.as_bytes());
            indices[of] = Some(writer.reserve_section_index());
            let size = if section.kind == ElfSectionKind::Zeros { 0 } else { section.bytes.len() as u64 };
            let offset = writer.reserve(size, section.align.clamp(1, 1 << 16));
            sections.push(PlannedSection { of, name, offset });
        }
        let mut related: Vec<ElfRelocation> = object.relocations.clone();
        related.sort_by_key(|r| (r.section, r.offset));
        let mut tables = Vec::new();
        for PlannedSection { of, .. } in &sections {
            let relocations: Vec<_> = related.iter().filter(|r| r.section == *of).copied().collect();
            if let (false, Some(name)) = (relocations.is_empty(), rela_names.get(*of)) {
                let name = writer.add_section_name(name.as_bytes());
                writer.reserve_section_index();
                let offset = writer.reserve_relocations(relocations.len(), true);
                tables.push(PlannedTable { of: *of, name, offset, relocations });
            }
        }
        let mut order: Vec<usize> = (0..object.symbols.len()).collect();
        order.sort_by_key(|&i| object.symbols[i].global);
        writer.reserve_null_symbol_index();
        let mut names = Vec::new();
        let mut plan = FilePlan { sections, indices, tables, order, symbol_names: Vec::new() };
        for symbol in plan.order.iter().map(|&i| &object.symbols[i]) {
            names.push(writer.add_string(symbol.name.as_bytes()));
            writer.reserve_symbol_index(plan.index(symbol.section));
        }
        plan.symbol_names = names;
        writer.reserve_symtab_section_index();
        writer.reserve_symtab();
        writer.reserve_strtab_section_index();
        writer.reserve_strtab()?;
        writer.reserve_shstrtab_section_index();
        writer.reserve_shstrtab()?;
        writer.reserve_section_headers();
        Ok(plan)
    }

    /// The index of a section of the object, if it is written.
    fn index(&self, section: Option<usize>) -> Option<SectionIndex> {
        self.indices.get(section?).copied().flatten()
    }

    /// Sections, relocations, symbols and strings.
    fn write_contents(&self, writer: &mut Writer<'_>, object: &CodeObject<'_>) {
        for planned in &self.sections {
            let section = &object.sections[planned.of];
            if section.kind != ElfSectionKind::Zeros {
                writer.write_align(section.align.clamp(1, 1 << 16));
                writer.write(&section.bytes);
            }
        }
        for table in &self.tables {
            write_relocations(writer, &table.relocations, &self.order);
        }
        writer.write_null_symbol();
        for (&i, &name) in self.order.iter().zip(&self.symbol_names) {
            let symbol = &object.symbols[i];
            let name = writer.string_offset(Some(name));
            writer.write_symbol(&symbol_entry(symbol, self.index(symbol.section), name));
        }
        writer.write_strtab();
        writer.write_shstrtab();
    }

    fn write_headers(&self, writer: &mut Writer<'_>, object: &CodeObject<'_>) {
        writer.write_null_section_header();
        for planned in &self.sections {
            let section = &object.sections[planned.of];
            if let Some((kind, flags)) = section_type(section.kind) {
                writer.write_section_header(&SectionHeader {
                    sh_name: writer.section_name_offset(Some(planned.name)),
                    sh_type: kind,
                    sh_flags: elf::SectionFlags(flags),
                    sh_addr: 0,
                    sh_offset: planned.offset,
                    sh_size: section.bytes.len() as u64,
                    sh_link: 0,
                    sh_info: 0,
                    sh_addralign: section.align.max(1),
                    sh_entsize: 0,
                });
            }
        }
        let symtab = writer.symtab_index();
        for table in &self.tables {
            let section = self.index(Some(table.of)).unwrap_or(SectionIndex(0));
            let count = table.relocations.len();
            writer.write_relocation_section_header(table.name, section, symtab, table.offset, count, true);
        }
        let locals = self.order.iter().filter(|&&i| !object.symbols[i].global).count();
        writer.write_symtab_section_header(locals as u32 + 1);
        writer.write_strtab_section_header();
        writer.write_shstrtab_section_header();
    }
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
        ElfSymbolKind::Other if symbol.is_of_section() => elf::STT_SECTION,
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
pub(super) fn section_type(kind: ElfSectionKind) -> Option<(elf::SectionType, u64)> {
    Some(match kind {
        ElfSectionKind::Code => (elf::SHT_PROGBITS, elf::SHF_ALLOC.0 | elf::SHF_EXECINSTR.0),
        ElfSectionKind::ReadOnly => (elf::SHT_PROGBITS, elf::SHF_ALLOC.0),
        ElfSectionKind::Data => (elf::SHT_PROGBITS, elf::SHF_ALLOC.0 | elf::SHF_WRITE.0),
        ElfSectionKind::Zeros => (elf::SHT_NOBITS, elf::SHF_ALLOC.0 | elf::SHF_WRITE.0),
        ElfSectionKind::Note => (elf::SHT_NOTE, elf::SHF_ALLOC.0),
        ElfSectionKind::Unloaded => (elf::SHT_PROGBITS, 0),
        ElfSectionKind::Other => return None,
    })
}
