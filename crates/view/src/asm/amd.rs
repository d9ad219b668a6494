//! Sources of AMD GPUs assembled, and code objects and lines listed.

use super::{AsmError, LineError, NoFunction, SourceErrors};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use unwedge_capture::elf::metadata;
use unwedge_capture::elf::{
    self, CodeFunction, CodeObject, ElfRelocation, LineRow, LineSequence, Loader, RelocationKind, SourceLines,
};
use unwedge_isa::amdgcn::descriptor;
use unwedge_isa::amdgcn::kernel_code;
use unwedge_isa::amdgcn::listing::{self, AmdListingOptions, ListingCounts};
use unwedge_isa::amdgcn::source::{self as assembly, Assembly};
use unwedge_isa::amdgcn::{Gpu, codec, text};

/// Errors of a source that are shown; the rest is counted.
const SHOWN: usize = 100;

/// The bytes of one line in hexadecimal, appended to `reply`.
///
/// # Errors
/// What is wrong with the line.
pub fn assembled_line(line: &str, gpu: &Gpu, reply: &mut Vec<u8>) -> Result<(), LineError> {
    if line.trim_ascii_start().starts_with(".long") {
        return assembled_data(line, gpu, reply);
    }
    let inst = text::parse_line(line, gpu, &())?;
    let words = codec::encode(&inst, gpu)?;
    words.as_slice().iter().for_each(|word| hexadecimal(&word.to_le_bytes(), reply));
    Ok(())
}

/// A line of data: what words that are no instruction are written as.
fn assembled_data(line: &str, gpu: &Gpu, reply: &mut Vec<u8>) -> Result<(), LineError> {
    let made = assembly::assemble(line, gpu);
    match made.errors.first() {
        Some(error) => Err(LineError::Data { column: error.column, error: error.what.clone() }),
        None => {
            made.sections.iter().for_each(|section| hexadecimal(&section.bytes, reply));
            Ok(())
        }
    }
}

fn hexadecimal(bytes: &[u8], reply: &mut Vec<u8>) {
    let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble & 15)];
    reply.extend(bytes.iter().flat_map(|&byte| [digit(byte >> 4), digit(byte)]));
}

/// The instructions of a line of bytes in hexadecimal. `words` is room to work in.
///
/// # Errors
/// What is wrong with the line.
pub fn disassembled_line(
    line: &str,
    gpu: &Gpu,
    words: &mut Vec<u32>,
    reply: &mut Vec<u8>,
) -> Result<(), LineError> {
    let mut shown = String::new();
    read_words(line, words)?;
    let mut at = 0;
    while let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) {
        if at > 0 {
            shown.push_str(" ; ");
        }
        at += match codec::decode_executed(rest, gpu) {
            Some(decoded) => {
                text::write(&decoded.inst, gpu, &mut shown);
                usize::from(decoded.dwords)
            }
            None => {
                shown.push_str(&format!(".long 0x{:08x}", rest[0]));
                1
            }
        };
    }
    reply.extend_from_slice(shown.as_bytes());
    Ok(())
}

/// Bytes in hexadecimal as dwords: `000000d8`, `0x00 0x00 0x00 0xd8`, `[0x00,0x00,0x00,0xd8]`; eight digits after `0x` are a dword:
/// `0xd8000000`.
fn read_words(line: &str, words: &mut Vec<u32>) -> Result<(), LineError> {
    words.clear();
    let (mut word, mut digits) = (0u32, 0u32);
    let mut rest = line.trim_ascii().as_bytes();
    while let [first, after @ ..] = rest {
        if let Some((dword, behind)) = dword(rest).filter(|_| digits.is_multiple_of(8)) {
            words.push(dword);
            digits += 8;
            rest = behind;
            continue;
        }
        rest = after;
        match (first, after.first()) {
            (b' ' | b'\t' | b',' | b'[' | b']', _) if digits.is_multiple_of(2) => continue,
            (b'0', Some(b'x' | b'X')) if digits.is_multiple_of(2) => {
                rest = &after[1..];
                continue;
            }
            _ => {}
        }
        let digit = char::from(*first).to_digit(16).ok_or(LineError::NotHexadecimal)?;
        // The first digit of a byte is its upper one, the first byte of a dword its lowest.
        word |= digit << (digits / 2 % 4 * 8 + (1 - digits % 2) * 4);
        digits += 1;
        if digits.is_multiple_of(8) {
            words.push(std::mem::take(&mut word));
        }
    }
    if digits == 0 || !digits.is_multiple_of(8) {
        return Err(LineError::NotDwords);
    }
    Ok(())
}

/// A dword with `0x` and all of its digits, and what follows it.
fn dword(text: &[u8]) -> Option<(u32, &[u8])> {
    let rest = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"))?;
    let (word, rest) = rest.split_at_checked(8)?;
    let digits = word.iter().all(u8::is_ascii_hexdigit) && !rest.first().is_some_and(u8::is_ascii_hexdigit);
    let word = digits.then(|| std::str::from_utf8(word).ok())??;
    Some((u32::from_str_radix(word, 16).ok()?, rest))
}

/// What an assembled source is given out as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// The bytes of its code.
    Raw,
    /// The dwords of its code in hexadecimal, one to a line.
    Hex,
    /// A code object for a loader, unless the source names another.
    Object(Loader),
    /// The same as a shared object, which the loader maps.
    Shared(Loader),
}

/// Assembles a source.
///
/// # Errors
/// When the source has errors, or does not fit into a code object.
pub fn assemble(text: &str, gpu: &Gpu, emit: Emit) -> Result<Vec<u8>, AsmError> {
    let mut made = assembly::assemble(text, gpu);
    made.encode_metadata(metadata::note);
    let count = made.errors.len() + made.more_errors;
    if count > 0 {
        let errors = made.errors.iter().take(SHOWN).map(|error| {
            let used = error.used.map(|line| format!(" (used in line {line})")).unwrap_or_default();
            (error.line, error.column, format!("{}{used}", error.what))
        });
        return Err(SourceErrors::of(text, errors, count).into());
    }
    let code = made.sections.first().map_or(&[][..], |s| &s.bytes);
    match emit {
        Emit::Raw => Ok(code.to_vec()),
        Emit::Hex => {
            let mut lines = Vec::new();
            for dword in code.chunks(4) {
                let shown: String = dword.iter().rev().map(|byte| format!("{byte:02x}")).collect();
                lines.extend_from_slice(shown.as_bytes());
                lines.push(b'\n');
            }
            Ok(lines)
        }
        Emit::Object(loader) => {
            elf::write(&object(&made, loader, gpu)).map_err(|e| AsmError::Object(Box::new(e)))
        }
        Emit::Shared(loader) => {
            elf::write_shared(&object(&made, loader, gpu)).map_err(|e| AsmError::Object(Box::new(e)))
        }
    }
}

/// The code object of an assembly.
fn object<'a>(made: &'a Assembly, loader: Loader, gpu: &Gpu) -> CodeObject<'a> {
    // What the source says comes before what is asked for.
    let target = made.target.as_ref();
    let loader = match (made.version, target.map(|target| &*target.system)) {
        (Some(version @ 2..=6), _) => Loader::Hsa(version as u8),
        (_, Some("amdpal")) => Loader::Pal,
        (_, Some("mesa3d")) => Loader::Mesa,
        _ => loader,
    };
    let sections = made.sections.iter().map(|section| elf::ElfSection {
        name: Cow::Borrowed(section.name.as_str()),
        kind: match section.kind {
            assembly::SourceSectionKind::Code => elf::ElfSectionKind::Code,
            assembly::SourceSectionKind::ReadOnly => elf::ElfSectionKind::ReadOnly,
            assembly::SourceSectionKind::Data => elf::ElfSectionKind::Data,
            assembly::SourceSectionKind::Zeros => elf::ElfSectionKind::Zeros,
            assembly::SourceSectionKind::Note => elf::ElfSectionKind::Note,
            assembly::SourceSectionKind::Unloaded => elf::ElfSectionKind::Unloaded,
        },
        address: 0,
        bytes: Cow::Borrowed(&section.bytes[..]),
        align: section.align,
    });
    let symbols = made.symbols.iter().map(|symbol| elf::ElfSymbol {
        name: Cow::Borrowed(symbol.name.as_str()),
        kind: match symbol.kind {
            assembly::SymbolKind::Function => elf::ElfSymbolKind::Function,
            assembly::SymbolKind::Object => elf::ElfSymbolKind::Object,
            assembly::SymbolKind::HsaKernel => elf::ElfSymbolKind::HsaKernel,
            assembly::SymbolKind::Label => elf::ElfSymbolKind::Other,
        },
        global: symbol.global,
        section: symbol.section,
        value: symbol.value as u64,
        size: symbol.size,
    });
    let relocations = made.relocations.iter().filter_map(|relocation| {
        Some(ElfRelocation {
            kind: RelocationKind::REL64,
            section: relocation.section,
            offset: relocation.offset as u64,
            symbol: made.symbols.iter().position(|s| s.name == relocation.symbol)?,
            addend: relocation.addend,
        })
    });
    let mut object = CodeObject {
        loader,
        flags: loader.flags(gpu.name(), target.and_then(|t| t.xnack), target.and_then(|t| t.sramecc)),
        sections: sections.collect(),
        symbols: symbols.collect(),
        relocations: relocations.collect(),
        pointers: Vec::new(),
        diagnostics: Vec::new(),
    };
    add_lines(made, &mut object);
    object
}

/// The largest number of a `.file` directive that gets lines.
const MOST_FILES: u32 = 1 << 16;

/// Adds the source lines of the `.loc` directives.
fn add_lines(made: &Assembly, object: &mut CodeObject<'_>) {
    let last = made.files.keys().next_back().copied().filter(|last| *last < MOST_FILES);
    let (Some(last), Some(primary)) = (last, made.files.values().next()) else { return };
    // File 0 is that of the unit; numbers without a name are not referred to.
    let mut files: Vec<String> =
        (0..=last).map(|number| made.files.get(&number).cloned().unwrap_or_default()).collect();
    if files[0].is_empty() {
        files[0].clone_from(primary);
    }
    let mut rows: BTreeMap<usize, Vec<LineRow>> = BTreeMap::new();
    for mark in &made.lines {
        let (offset, file, line, column) = (mark.offset as u64, mark.file, mark.line, mark.column);
        rows.entry(mark.section).or_default().push(LineRow { offset, file, line, column });
    }
    let size = |section: usize| made.sections[section].bytes.len() as u64;
    let sequences: Vec<LineSequence> =
        rows.into_iter().map(|(section, rows)| LineSequence { section, size: size(section), rows }).collect();
    if !sequences.is_empty() {
        object.add_lines(&files, &sequences);
    }
}

/// The functions of a code object, and the descriptors of its kernels.
/// Of all of them, or of the one that is wanted; with their words if `words` is set.
///
/// # Errors
/// When the object has no function of that name.
pub fn list_object(
    object: &CodeObject<'_>,
    gpu: &Gpu,
    words: bool,
    wanted: Option<&str>,
    out: &mut String,
) -> Result<ListingCounts, NoFunction> {
    let mut counts = ListingCounts::default();
    target(object, gpu, out);
    let lines = SourceLines::of(object);
    let (mut section, mut shown) = (None, 0);
    for function in object.functions() {
        if wanted.is_some_and(|wanted| wanted != function.name) {
            continue;
        }
        if section != Some(function.section) {
            section = Some(function.section);
            let said = &object.sections[function.section].name;
            match &**said {
                "" | ".text" => out.push_str("\t.text\n"),
                other => out.push_str(&format!("\t.section {other},\"ax\",@progbits\n")),
            }
        }
        if !function.name.is_empty() {
            header(&function, gpu, out);
        }
        let labels = if shown == 0 { String::new() } else { format!("{shown}_") };
        let options = AmdListingOptions { words, address: function.address, labels: &labels };
        let mut left = relocations(object, &function);
        let start = object.sections[function.section].address;
        let mut last = None;
        let mut mark = |address: u64, out: &mut String| {
            left = related(object, left, address, out);
            let line = lines.at(function.section, address.wrapping_sub(start));
            if let Some(line) = line.filter(|_| line != last) {
                out.push_str(&format!("\t// {line}\n"));
            }
            last = line;
        };
        let found = listing::write(function.code, gpu, &options, out, &mut mark);
        related(object, left, u64::MAX, out);
        counts.instructions += found.instructions;
        counts.unknown += found.unknown;
        shown += 1;
    }
    if let Some(wanted) = wanted.filter(|_| shown == 0) {
        let functions = object.functions();
        let names = functions.iter().map(|f| f.name).filter(|n| !n.is_empty()).take(20);
        return Err(NoFunction { wanted: wanted.to_owned(), known: names.map(str::to_owned).collect() });
    }
    let descriptors = object.descriptors();
    for function in object.functions().iter().filter(|f| f.kernel) {
        if wanted.is_none_or(|wanted| wanted == function.name) {
            kernel(&descriptors, function.name, gpu, out);
        }
    }
    if wanted.is_none()
        && let Some(metadata) = object.metadata()
    {
        out.push_str(&format!("\t.amdgpu_metadata\n---\n{metadata}...\n\t.end_amdgpu_metadata\n"));
    }
    if let Some(metadata) = object.text_metadata().filter(|_| wanted.is_none()) {
        let lines: String = metadata.lines().map(|line| format!("{line}\n")).collect();
        out.push_str(&format!("\t.amd_amdgpu_hsa_metadata\n{lines}\t.end_amd_amdgpu_hsa_metadata\n"));
    }
    Ok(counts)
}

/// The directives that name the GPU and the loader, so that the listing assembles without options.
fn target(object: &CodeObject<'_>, gpu: &Gpu, out: &mut String) {
    let system = match object.loader {
        Loader::Hsa(2) => {
            let (major, minor) = object.hsa_v2_version().unwrap_or((2, 1));
            let [first, second, third] = gpu.version();
            out.push_str(&format!("\t.hsa_code_object_version {major},{minor}\n"));
            out.push_str(&format!("\t.hsa_code_object_isa {first},{second},{third},\"AMD\",\"AMDGPU\"\n"));
            return;
        }
        Loader::Hsa(_) => "amd-amdhsa",
        Loader::Pal => "amd-amdpal",
        Loader::Mesa => "mesa-mesa3d",
        Loader::Other(..) => return,
    };
    let mode = |name: &str, on: Option<bool>| match on {
        Some(on) => format!(":{name}{}", if on { '+' } else { '-' }),
        None => String::new(),
    };
    let modes = mode("sramecc", object.sramecc()) + &mode("xnack", object.xnack());
    out.push_str(&format!("\t.amdgcn_target \"amdgcn-{system}--{}{modes}\"\n", gpu.name()));
    if let Loader::Hsa(version) = object.loader {
        out.push_str(&format!("\t.amdhsa_code_object_version {version}\n"));
    }
}

/// The relocations of a function's bytes.
fn relocations<'o>(object: &'o CodeObject<'_>, function: &CodeFunction<'_>) -> &'o [ElfRelocation] {
    let start = object.sections[function.section].address;
    let place = |address: u64| (function.section, address.saturating_sub(start));
    let before = |limit: (usize, u64)| object.relocations.partition_point(|r| (r.section, r.offset) < limit);
    let end = function.address.saturating_add(function.code.len() as u64);
    object.relocations.get(before(place(function.address))..before(place(end))).unwrap_or_default()
}

/// Tells, as comments, the relocations in front of an address: those of the line before. Gives the others.
fn related<'o>(
    object: &CodeObject<'_>,
    relocations: &'o [ElfRelocation],
    address: u64,
    out: &mut String,
) -> &'o [ElfRelocation] {
    let start = relocations.first().map_or(0, |r| object.sections[r.section].address);
    let (told, left) = relocations.split_at(
        relocations.partition_point(|relocation| start.saturating_add(relocation.offset) < address),
    );
    for relocation in told {
        let symbol = &object.symbols[relocation.symbol];
        let section = symbol.section.and_then(|section| object.sections.get(section));
        let name = if symbol.name.is_empty() { section.map_or("", |s| &s.name) } else { &symbol.name };
        // A name may hold anything, and what follows a comment is code again.
        let name: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        let kind =
            relocation.kind.name().map_or_else(|| format!("type {}", relocation.kind.0), str::to_owned);
        let at = start.saturating_add(relocation.offset);
        let sign = if relocation.addend < 0 { '-' } else { '+' };
        let addend = relocation.addend.unsigned_abs();
        out.push_str(&format!("\t// {at:012X}: {kind} {name}{sign}{addend:#x}\n"));
    }
    left
}

/// The label of a function, and the header of a kernel of HSA v2.
fn header(function: &CodeFunction<'_>, gpu: &Gpu, out: &mut String) {
    let name = function.name;
    if function.header.is_empty() {
        out.push_str(&format!("\t.globl {name}\n\t.type {name},@function\n{name}:\n"));
        return;
    }
    out.push_str(&format!("\t.globl {name}\n\t.amdgpu_hsa_kernel {name}\n{name}:\n"));
    let Some((header, after)) = function.header.split_first_chunk::<{ kernel_code::SIZE }>() else {
        data(function.header, out);
        return;
    };
    let (fields, complete) = kernel_code::fields(header, gpu);
    let mark = if complete { "" } else { "// " };
    if !complete {
        out.push_str(
            "\t// The header has bits that no field of amd_kernel_code_t has, so it is written as data\n",
        );
    }
    out.push_str(&format!("\t{mark}.amd_kernel_code_t\n"));
    for (name, value) in fields {
        out.push_str(&format!("\t{mark}\t{name} = {value}\n"));
    }
    out.push_str(&format!("\t{mark}.end_amd_kernel_code_t\n"));
    data(if complete { after } else { function.header }, out);
}

/// Bytes as dwords, four to a line; the rest as bytes.
fn data(bytes: &[u8], out: &mut String) {
    for line in bytes.chunks(16) {
        let (words, rest) = line.as_chunks::<4>();
        let words: Vec<_> = words.iter().map(|word| format!("{:#010x}", u32::from_le_bytes(*word))).collect();
        if !words.is_empty() {
            out.push_str(&format!("\t.long {}\n", words.join(", ")));
        }
        rest.iter().for_each(|byte| out.push_str(&format!("\t.byte {byte:#04x}\n")));
    }
}

/// The directives of a kernel's descriptor.
fn kernel(descriptors: &HashMap<&str, &[u8]>, name: &str, gpu: &Gpu, out: &mut String) {
    let Some(bytes) =
        descriptors.get(name).and_then(|bytes| <&[u8; descriptor::SIZE]>::try_from(*bytes).ok())
    else {
        return;
    };
    out.push_str(&format!("\t.rodata\n\t.amdhsa_kernel {name}\n"));
    for (directive, value) in descriptor::directives(bytes, descriptor::DescriptorTarget::of(gpu)) {
        out.push_str(&format!("\t\t.amdhsa_{directive} {value}\n"));
    }
    out.push_str("\t.end_amdhsa_kernel\n");
}
