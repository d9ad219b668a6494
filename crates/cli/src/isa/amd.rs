//! `unwedge amd asm` and `unwedge amd disasm`; `amd check` is a file of its own.

use super::{batch, deliver, source};
use crate::args::{AmdAsm, AmdCommand, AmdDisasm, AmdEmit, AmdLoader, AmdTarget, Global};
use crate::failure::{Failure, Outcome, complain};
use crate::input::Input;
use crate::output::Output;
use std::borrow::Cow;
use std::io::Write;
use unwedge_capture::code_object::{
    self, CodeObject, Function, Loader, NotCodeObject, Relocation, RelocationKind,
};
use unwedge_isa::amdgcn::descriptor;
use unwedge_isa::amdgcn::listing::{self, Counts, Options};
use unwedge_isa::amdgcn::source::{self as assembly, Assembly, metadata};
use unwedge_isa::amdgcn::{Gpu, codec, text};

/// Mistakes of a source that are shown.
const SHOWN: usize = 100;

/// Runs the command.
pub fn run(command: &AmdCommand, global: &Global) -> Result<Outcome, Failure> {
    match command {
        AmdCommand::Asm(args) if args.hex => asm_batch(args, global),
        AmdCommand::Asm(args) => asm(args, global),
        AmdCommand::Disasm(args) if args.hex => disasm_batch(args, global),
        AmdCommand::Disasm(args) => disasm(args, global),
        AmdCommand::Run(args) => super::amd_run::run(args, global),
        AmdCommand::Check(args) => super::amd_check::run(args, global),
    }
}

/// The GPU that is named, or that a code object says.
pub(super) fn gpu(target: &AmdTarget, said: Option<&str>) -> Result<Gpu, Failure> {
    let name = target.gpu.as_deref().or(said);
    let name =
        name.ok_or_else(|| Failure::Usage("which GPU? name it with --gpu, as in --gpu gfx1030".to_owned()))?;
    let usage = |e: unwedge_isa::amdgcn::GpuError| Failure::Usage(e.to_string());
    Gpu::new(name).map_err(usage)?.with_features(target.features.as_deref().unwrap_or("")).map_err(usage)
}

/// The GPU of a code object, of which the command line must not say another. A processor that is not known is what it says.
pub(super) fn gpu_of(target: &AmdTarget, object: &CodeObject<'_>, file: &str) -> Result<Gpu, Failure> {
    let gpu = gpu(target, object.processor())?;
    let other = |own: &&str| match own.strip_suffix("-generic") {
        Some(family) => !gpu.name().starts_with(&family.replace('-', "")),
        None => Gpu::new(own).is_ok_and(|own| own.name() != gpu.name()),
    };
    match object.processor().filter(other) {
        Some(own) => Err(Failure::Usage(format!("{file} is code of {own}, not of {}", gpu.name()))),
        None => Ok(gpu),
    }
}

/// A GPU with waves of 32 lanes, or 64, where that is told.
pub(super) fn with_lanes(gpu: Gpu, wave32: Option<bool>) -> Gpu {
    let mode = match wave32 {
        Some(true) => "+wavefrontsize32",
        Some(false) => "+wavefrontsize64",
        None => return gpu,
    };
    gpu.with_features(mode).unwrap_or(gpu)
}

fn asm_batch(args: &AmdAsm, global: &Global) -> Result<Outcome, Failure> {
    let gpu = gpu(&args.target, None)?;
    batch(&args.file, global, &mut |line, reply| assembled_line(line, &gpu, reply))?;
    Ok(Outcome::Complete)
}

/// The bytes of one line in hexadecimal.
pub(crate) fn assembled_line(line: &str, gpu: &Gpu, reply: &mut Vec<u8>) -> Result<(), String> {
    if line.trim_ascii_start().starts_with(".long") {
        return assembled_data(line, gpu, reply);
    }
    let inst = text::parse_line(line, gpu, &()).map_err(|e| e.to_string())?;
    let words = codec::encode(&inst, gpu).map_err(|e| e.to_string())?;
    words.as_slice().iter().for_each(|word| hexadecimal(&word.to_le_bytes(), reply));
    Ok(())
}

/// A line of data: what words that are no instruction are written as.
fn assembled_data(line: &str, gpu: &Gpu, reply: &mut Vec<u8>) -> Result<(), String> {
    let made = assembly::assemble(line, gpu);
    match made.errors.first() {
        Some(error) => Err(format!("column {}: {}", error.column, error.what)),
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

fn disasm_batch(args: &AmdDisasm, global: &Global) -> Result<Outcome, Failure> {
    let gpu = gpu(&args.target, None)?;
    let mut words = Vec::new();
    batch(&args.file, global, &mut |line, reply| disassembled_line(line, &gpu, &mut words, reply))?;
    Ok(Outcome::Complete)
}

/// The instructions of a line of bytes in hexadecimal. `words` is room to work in.
pub(crate) fn disassembled_line(
    line: &str,
    gpu: &Gpu,
    words: &mut Vec<u32>,
    reply: &mut Vec<u8>,
) -> Result<(), String> {
    let mut shown = String::new();
    read_words(line, words)?;
    let mut at = 0;
    while let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) {
        if at > 0 {
            shown.push_str(" ; ");
        }
        at += match codec::decode(rest, gpu) {
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

/// Bytes in hexadecimal as dwords: `000000d8`, `0x00 0x00 0x00 0xd8`, `[0x00,0x00,0x00,0xd8]`.
fn read_words(line: &str, words: &mut Vec<u32>) -> Result<(), String> {
    words.clear();
    let (mut word, mut digits) = (0u32, 0u32);
    let mut rest = line.trim_ascii().as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after.first()) {
            (b' ' | b'\t' | b',' | b'[' | b']', _) if digits.is_multiple_of(2) => continue,
            (b'0', Some(b'x' | b'X')) if digits.is_multiple_of(2) => {
                rest = &after[1..];
                continue;
            }
            _ => {}
        }
        let digit = char::from(*first).to_digit(16).ok_or("expected bytes in hexadecimal")?;
        // The first digit of a byte is its upper one, the first byte of a dword its lowest.
        word |= digit << (digits / 2 % 4 * 8 + (1 - digits % 2) * 4);
        digits += 1;
        if digits.is_multiple_of(8) {
            words.push(std::mem::take(&mut word));
        }
    }
    if digits == 0 || !digits.is_multiple_of(8) {
        return Err("expected bytes in hexadecimal, four for each dword".to_owned());
    }
    Ok(())
}

fn asm(args: &AmdAsm, global: &Global) -> Result<Outcome, Failure> {
    let gpu = gpu(&args.target, None)?;
    let (name, text) = source(&args.file, global)?;
    let bytes = assembled(&name, &text, &gpu, args.emit, args.loader)?;
    deliver(&bytes, args.output.as_deref(), global)?;
    Ok(Outcome::Complete)
}

/// What a source makes. Its mistakes are told on standard error.
pub(crate) fn assembled(
    name: &str,
    text: &str,
    gpu: &Gpu,
    emit: AmdEmit,
    loader: AmdLoader,
) -> Result<Vec<u8>, Failure> {
    let made = assembly::assemble(text, gpu);
    mistakes(&made, text, name)?;
    let code = made.sections.first().map_or(&[][..], |s| &s.bytes);
    match emit {
        AmdEmit::Raw => Ok(code.to_vec()),
        AmdEmit::Hex => {
            let mut lines = Vec::new();
            for dword in code.chunks(4) {
                let shown: String = dword.iter().rev().map(|byte| format!("{byte:02x}")).collect();
                lines.extend_from_slice(shown.as_bytes());
                lines.push(b'\n');
            }
            Ok(lines)
        }
        AmdEmit::Elf => object(&made, loader, gpu, name),
    }
}

/// Shows the mistakes of a source.
fn mistakes(made: &Assembly, text: &str, name: &str) -> Result<(), Failure> {
    let mistakes = made.errors.len() + made.more_errors;
    if mistakes > 0 {
        let lines: Vec<&str> = text.lines().collect();
        for error in made.errors.iter().take(SHOWN) {
            let line = lines.get(error.line - 1).copied().unwrap_or_default();
            let mark: String =
                line.chars().take(error.column - 1).map(|c| if c == '\t' { c } else { ' ' }).collect();
            let used = error.used.map(|line| format!(" (used in line {line})")).unwrap_or_default();
            complain!("{name}:{}:{}: {}{used}\n  {line}\n  {mark}^", error.line, error.column, error.what);
        }
        return Err(Failure::Source { name: name.to_owned(), mistakes });
    }
    Ok(())
}

/// The code object of an assembly.
fn object(made: &Assembly, loader: AmdLoader, gpu: &Gpu, name: &str) -> Result<Vec<u8>, Failure> {
    let loader = match (made.version, loader) {
        (Some(version @ 3..=6), _) => Loader::Hsa(version as u8),
        (_, AmdLoader::HsaV3) => Loader::Hsa(3),
        (_, AmdLoader::HsaV4) => Loader::Hsa(4),
        (_, AmdLoader::HsaV5) => Loader::Hsa(5),
        (_, AmdLoader::HsaV6) => Loader::Hsa(6),
        (_, AmdLoader::Pal) => Loader::Pal,
        (_, AmdLoader::Mesa) => Loader::Mesa,
    };
    let sections = made.sections.iter().map(|section| code_object::Section {
        name: Cow::Borrowed(section.name.as_str()),
        kind: match section.kind {
            assembly::SectionKind::Code => code_object::SectionKind::Code,
            assembly::SectionKind::ReadOnly => code_object::SectionKind::ReadOnly,
            assembly::SectionKind::Data => code_object::SectionKind::Data,
            assembly::SectionKind::Zeros => code_object::SectionKind::Zeros,
            assembly::SectionKind::Note => code_object::SectionKind::Note,
        },
        address: 0,
        bytes: Cow::Borrowed(&section.bytes[..]),
        align: section.align,
    });
    let symbols = made.symbols.iter().map(|symbol| code_object::Symbol {
        name: Cow::Borrowed(symbol.name.as_str()),
        kind: match symbol.kind {
            assembly::SymbolKind::Function => code_object::SymbolKind::Function,
            assembly::SymbolKind::Object => code_object::SymbolKind::Object,
            assembly::SymbolKind::Label => code_object::SymbolKind::Other,
        },
        global: symbol.global,
        section: symbol.section,
        value: symbol.value as u64,
        size: symbol.size,
    });
    let relocations = made.relocations.iter().filter_map(|relocation| {
        Some(Relocation {
            kind: RelocationKind::REL64,
            section: relocation.section,
            offset: relocation.offset as u64,
            symbol: made.symbols.iter().position(|s| s.name == relocation.symbol)?,
            addend: relocation.addend,
        })
    });
    let object = CodeObject {
        loader,
        flags: code_object::flags_of(gpu.name()).unwrap_or(0),
        sections: sections.collect(),
        symbols: symbols.collect(),
        relocations: relocations.collect(),
        pointers: Vec::new(),
        diagnostics: Vec::new(),
    };
    code_object::write(&object).map_err(|e| Failure::Unusable(format!("{name}: no code object: {e}")))
}

fn disasm(args: &AmdDisasm, global: &Global) -> Result<Outcome, Failure> {
    let input = Input::open(&args.file, global.max_size)?;
    // Opened when there is something to show.
    let mut out: Option<Output> = None;
    let mut write = |part: &str| {
        // A failed write is remembered, and reported by `finish`.
        let _ = out.get_or_insert_with(|| Output::open(global, true)).write_all(part.as_bytes());
    };
    let (counts, outcome) = disassembled(&input.name, &input.bytes, args, &mut write)?;
    if let Some(out) = out {
        out.finish()?;
    }
    if counts.unknown > 0 {
        complain!("{}: {} dwords are no instructions of this GPU", input.name, counts.unknown);
    }
    Ok(outcome)
}

/// The listing of a code object, or of bare code. What was lost is told on standard error.
pub(crate) fn disassembled(
    name: &str,
    bytes: &[u8],
    args: &AmdDisasm,
    write: &mut dyn FnMut(&str),
) -> Result<(Counts, Outcome), Failure> {
    match code_object::read(bytes) {
        Ok(object) => {
            let gpu = gpu(&args.target, object.processor())?;
            let outcome = Outcome::of(name, &object.diagnostics);
            let mut text = String::new();
            let counts = functions(&object, args, &gpu, name, &mut text)?;
            write(&text);
            Ok((counts, outcome))
        }
        Err(wrong @ NotCodeObject::OtherMachine(_)) => Err(Failure::Unusable(format!("{name}: {wrong}"))),
        Err(NotCodeObject::NotElf) => {
            if args.function.is_some() {
                return Err(Failure::Usage(format!("{name} is bare code: it names no functions")));
            }
            let gpu = gpu(&args.target, None)?;
            let options = Options { words: args.words, ..Options::default() };
            Ok((listing::write_to(bytes, &gpu, &options, &mut |_, _| (), write), Outcome::Complete))
        }
    }
}

/// The functions of a code object, and the descriptors of its kernels.
fn functions(
    object: &CodeObject<'_>,
    args: &AmdDisasm,
    gpu: &Gpu,
    name: &str,
    out: &mut String,
) -> Result<Counts, Failure> {
    let mut counts = Counts::default();
    let (mut section, mut shown) = (None, 0);
    for function in object.functions() {
        if args.function.as_deref().is_some_and(|wanted| wanted != function.name) {
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
            header(&function, out);
        }
        let labels = if shown == 0 { String::new() } else { format!("{shown}_") };
        let options = Options { words: args.words, address: function.address, labels: &labels };
        let mut left = relocations(object, &function);
        let mut mark = |address: u64, out: &mut String| left = related(object, left, address, out);
        let found = listing::write(function.code, gpu, &options, out, &mut mark);
        related(object, left, u64::MAX, out);
        counts.instructions += found.instructions;
        counts.unknown += found.unknown;
        shown += 1;
    }
    if let Some(wanted) = args.function.as_ref().filter(|_| shown == 0) {
        let functions = object.functions();
        let names: Vec<&str> = functions.iter().map(|f| f.name).filter(|n| !n.is_empty()).take(20).collect();
        return Err(Failure::NotFound(format!(
            "{name}: no function {wanted}; there are {}",
            names.join(", ")
        )));
    }
    for function in object.functions().iter().filter(|f| f.kernel) {
        if args.function.as_deref().is_none_or(|wanted| wanted == function.name) {
            kernel(object, function.name, gpu, out);
        }
    }
    if args.function.is_none() {
        let notes = object.sections.iter().filter(|s| s.kind == code_object::SectionKind::Note);
        if let Some(said) = notes.into_iter().find_map(|s| metadata::text(&s.bytes)) {
            out.push_str(&format!("\t.amdgpu_metadata\n---\n{said}...\n\t.end_amdgpu_metadata\n"));
        }
    }
    Ok(counts)
}

/// The relocations of a function's bytes.
fn relocations<'o>(object: &'o CodeObject<'_>, function: &Function<'_>) -> &'o [Relocation] {
    let start = object.sections[function.section].address;
    let place = |address: u64| (function.section, address.saturating_sub(start));
    let before = |limit: (usize, u64)| object.relocations.partition_point(|r| (r.section, r.offset) < limit);
    let end = function.address.saturating_add(function.code.len() as u64);
    object.relocations.get(before(place(function.address))..before(place(end))).unwrap_or_default()
}

/// Tells, as comments, the relocations in front of an address: those of the line before. Gives the others.
fn related<'o>(
    object: &CodeObject<'_>,
    relocations: &'o [Relocation],
    address: u64,
    out: &mut String,
) -> &'o [Relocation] {
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

fn header(function: &Function<'_>, out: &mut String) {
    let name = function.name;
    out.push_str(&format!("\t.globl {name}\n\t.type {name},@function\n{name}:\n"));
}

/// The directives of a kernel's descriptor.
fn kernel(object: &CodeObject<'_>, name: &str, gpu: &Gpu, out: &mut String) {
    let Some(bytes) =
        object.descriptor_of(name).and_then(|bytes| <&[u8; descriptor::SIZE]>::try_from(bytes).ok())
    else {
        return;
    };
    out.push_str(&format!("\t.rodata\n\t.amdhsa_kernel {name}\n"));
    for (directive, value) in descriptor::directives(bytes, descriptor::Target::of(gpu)) {
        out.push_str(&format!("\t\t.amdhsa_{directive} {value}\n"));
    }
    out.push_str("\t.end_amdhsa_kernel\n");
}
