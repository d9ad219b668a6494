//! The formats of files that hold others: how each is recognized, and which parts it has. Objects and programs of Windows: `coff.rs`.

use super::{ThinMember, coff};
use object::LittleEndian as LE;
use object::elf;
use object::read::ReadRef;
use object::read::elf::{FileHeader as _, SectionHeader as _};
use std::ops::Range;
use unwedge_base::{Diagnostic, Span};

/// The magic bytes of a bundle.
const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// The magic bytes of a compressed bundle.
const COMPRESSED: &[u8] = b"CCOB";
/// The magic bytes of an offload binary.
const OFFLOAD_BINARY: &[u8] = &[0x10, 0xff, 0x10, 0xad];
const ARCHIVE: &[u8] = b"!<arch>\n";
const THIN_ARCHIVE: &[u8] = b"!<thin>\n";
/// Bytes of the header of an archive's member.
const MEMBER_HEADER: usize = 60;
/// Sections of programs that hold bundles or offload binaries.
const SECTIONS: [&[u8]; 3] = [b".hip_fatbin", b".llvm.offloading", b"__CLANG_OFFLOAD_BUNDLE__"];
/// `e_machine` of AMD GPUs.
const EM_AMDGPU: u16 = 224;
/// Alignment of bundles in programs.
const PAGE: usize = 4096;
/// Bytes of the name of a part; the rest is cut.
pub(super) const MAX_NAME: usize = 256;
/// Losses of one file that are kept.
const MAX_LOSSES: usize = 100;
/// Members of a thin archive that are named.
const MAX_NAMED: usize = 5;

/// A format of files that hold others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BundleFormat {
    /// Of clang's offload bundler.
    Bundle,
    /// The same, compressed.
    Compressed,
    /// Of LLVM's offload packager.
    OffloadBinary,
    /// Of ar.
    Archive,
    /// An ELF file of another machine than an AMD GPU.
    HostElf,
    /// An object or program of Windows.
    HostCoff,
}

/// How a part is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BundleCompression {
    Zlib,
    Zstd,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BundlePart {
    /// Empty where the format gives it no name.
    pub(super) name: String,
    /// Where it is in the file.
    pub(super) range: Range<usize>,
    /// How it is compressed, and the bytes that its header says it unpacks to.
    pub(super) compression: Option<(BundleCompression, u64)>,
}

/// The parts of a file, how far it goes, and what was lost.
#[derive(Clone, Debug, Default)]
pub(super) struct BundleParts {
    pub(super) parts: Vec<BundlePart>,
    /// Bytes of the file that belong to it; another may follow.
    pub(super) size: usize,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Files that a thin archive names and does not hold.
    pub(super) elsewhere: Vec<ThinMember>,
    /// Bytes of all parts. They may not be more than the file has, so that overlapping parts do not multiply the work.
    covered: usize,
}

impl BundleFormat {
    /// The format of a file by its first bytes.
    pub(super) fn of(start: &[u8]) -> Option<BundleFormat> {
        let machine = start.get(18..20);
        Some(match start {
            _ if start.starts_with(BUNDLE) => BundleFormat::Bundle,
            _ if start.starts_with(COMPRESSED) && matches!(number::<2>(start, 4), Some(1..=3)) => {
                BundleFormat::Compressed
            }
            _ if start.starts_with(OFFLOAD_BINARY) => BundleFormat::OffloadBinary,
            _ if start.starts_with(ARCHIVE) || start.starts_with(THIN_ARCHIVE) => BundleFormat::Archive,
            _ if start.starts_with(b"\x7fELF\x02\x01") && machine? != EM_AMDGPU.to_le_bytes() => {
                BundleFormat::HostElf
            }
            _ if coff::recognize(start) => BundleFormat::HostCoff,
            _ => return None,
        })
    }

    /// The parts of a file of this format.
    pub(super) fn parts(self, file: &[u8]) -> BundleParts {
        let mut parts = BundleParts { size: file.len(), ..BundleParts::default() };
        match self {
            BundleFormat::Bundle => parts.bundle(file),
            BundleFormat::Compressed => parts.compressed(file),
            BundleFormat::OffloadBinary => parts.offload_binary(file),
            BundleFormat::Archive => parts.archive(file),
            BundleFormat::HostElf => parts.host_elf(file),
            BundleFormat::HostCoff => parts.host_coff(file),
        };
        parts
    }
}

/// A little-endian number of `N` bytes at an offset.
pub(super) fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let held = bytes.get(at..at.checked_add(N)?)?;
    Some(held.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

pub(super) fn named(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(MAX_NAME)];
    // A name is shown to people.
    String::from_utf8_lossy(cut).chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

impl BundleParts {
    fn lose(&mut self, at: usize, message: &str) {
        if self.diagnostics.len() < MAX_LOSSES {
            self.diagnostics.push(Diagnostic::loss(Span::new(at, at), message));
        }
    }

    /// Adds a part that a header claims, as far as the file has it; returns where it ends.
    fn add(&mut self, file: &[u8], name: String, start: u64, size: u64, of: &str) -> usize {
        let first = usize::try_from(start).unwrap_or(usize::MAX).min(file.len());
        let end = usize::try_from(start.saturating_add(size)).unwrap_or(usize::MAX);
        if end > file.len() {
            let held = file.len() - first;
            self.lose(file.len(), &format!("{of} {name} has {held} of its {size} bytes"));
        }
        let end = end.min(file.len());
        if first < end && self.covers(file, first..end) {
            self.parts.push(BundlePart { name, range: first..end, compression: None });
        }
        end
    }

    /// Whether there is room for another part.
    fn covers(&mut self, file: &[u8], range: Range<usize>) -> bool {
        self.covered = self.covered.saturating_add(range.len());
        if self.covered > file.len() {
            self.lose(range.start, "parts of the file overlap");
        }
        self.covered <= file.len()
    }

    /// Magic, how many, and for each where it is, its size and its id.
    fn bundle(&mut self, file: &[u8]) -> Option<()> {
        let cut = "a bundle ends in its table of entries";
        let Some(count) = number::<8>(file, BUNDLE.len()) else {
            self.lose(file.len(), cut);
            return None;
        };
        let mut at = BUNDLE.len() + 8;
        let mut size = at;
        for _ in 0..count {
            let entry = (number::<8>(file, at), number::<8>(file, at + 8), number::<8>(file, at + 16));
            let (Some(start), Some(held), Some(id)) = entry else {
                self.lose(file.len(), cut);
                break;
            };
            at += 24;
            let end = usize::try_from(id).ok().and_then(|id| at.checked_add(id));
            let Some(id) = end.and_then(|end| file.get(at..end)) else {
                self.lose(file.len(), cut);
                break;
            };
            at += id.len();
            size = size.max(at);
            if held > 0 {
                size = size.max(self.add(file, named(id), start, held, "entry"));
            }
        }
        self.size = size;
        Some(())
    }

    /// Magic, version, method, from version 2 on the size of all, the size unpacked, a hash, the compressed bundle.
    fn compressed(&mut self, file: &[u8]) -> Option<()> {
        let version = number::<2>(file, 4)?;
        let (size, unpacked, header) = match version {
            1 => (Some(file.len() as u64), number::<4>(file, 8), 20),
            2 => (number::<4>(file, 8), number::<4>(file, 12), 24),
            _ => (number::<8>(file, 8), number::<8>(file, 16), 32),
        };
        let (Some(size), Some(unpacked)) = (size, unpacked) else {
            self.lose(file.len(), "a compressed bundle ends in its header");
            return None;
        };
        let method = match number::<2>(file, 6)? {
            0 => BundleCompression::Zlib,
            1 => BundleCompression::Zstd,
            other => {
                self.lose(6, &format!("a bundle is compressed by the unknown method {other}"));
                return None;
            }
        };
        let claimed = usize::try_from(size).unwrap_or(usize::MAX);
        if claimed > file.len() {
            self.lose(file.len(), &format!("a compressed bundle has {} of its {size} bytes", file.len()));
        }
        self.size = claimed.clamp(header.min(file.len()), file.len());
        if header < self.size {
            let (name, range) = (String::new(), header..self.size);
            self.parts.push(BundlePart { name, range, compression: Some((method, unpacked)) });
        }
        Some(())
    }

    /// Version 1: magic, version, size, then where the one entry is. The entry has texts with names, triple and processor
    /// among them, and says where the image is. Later versions give the number of entries where version 1 has their size.
    fn offload_binary(&mut self, file: &[u8]) -> Option<()> {
        let read = self.offload_entries(file);
        if read.is_none() {
            self.lose(file.len(), "an offload binary ends in its header");
        }
        read
    }

    fn offload_entries(&mut self, file: &[u8]) -> Option<()> {
        let version = number::<4>(file, 4)?;
        let claimed = usize::try_from(number::<8>(file, 8)?).unwrap_or(usize::MAX);
        self.size = claimed.clamp(OFFLOAD_BINARY.len(), file.len());
        // Sections hold several of these: each is read within its own size, so that the work is not quadratic.
        let file = file.get(..self.size)?;
        let mut at = usize::try_from(number::<8>(file, 16)?).ok()?;
        let count = if version >= 2 { number::<8>(file, 24)? } else { 1 };
        for _ in 0..count {
            let word = |index: usize| number::<8>(file, at.checked_add(8 * index)?);
            let (strings, how_many) = (usize::try_from(word(1)?).ok()?, word(2)?);
            let (start, size) = (word(3)?, word(4)?);
            let (mut triple, mut arch) = (String::new(), String::new());
            for index in 0..how_many.min(64) as usize {
                let pair = strings.checked_add(16 * index)?;
                let text = |at: usize| {
                    let bytes = file.get(usize::try_from(number::<8>(file, at)?).ok()?..)?;
                    bytes[..bytes.len().min(MAX_NAME)].split(|byte| *byte == 0).next()
                };
                match text(pair)? {
                    b"triple" => triple = named(text(pair + 8)?),
                    b"arch" => arch = named(text(pair + 8)?),
                    _ => {}
                }
            }
            if size > 0 {
                self.add(file, format!("{triple}-{arch}"), start, size, "entry");
            }
            at = at.checked_add(40)?;
        }
        Some(())
    }

    /// Members with a header of text each; names that are long are in a table, or before the contents (BSD).
    fn archive(&mut self, file: &[u8]) -> Option<()> {
        let thin = file.starts_with(THIN_ARCHIVE);
        let mut at = ARCHIVE.len();
        let mut long_names: &[u8] = &[];
        while at < file.len() {
            let header = file.get(at..at + MEMBER_HEADER).filter(|header| header.ends_with(b"`\n"));
            let size = header.and_then(|header| decimal(&header[48..58]));
            let (Some(header), Some(size)) = (header, size) else {
                self.lose(at, "a member of an archive has no valid header");
                break;
            };
            at += MEMBER_HEADER;
            let field = header[..16].trim_ascii_end();
            let end = usize::try_from(size).ok().and_then(|size| at.checked_add(size)).unwrap_or(usize::MAX);
            let contents = file.get(at..end.min(file.len())).unwrap_or_default();
            // The name of a member, and how many bytes of it are before the contents.
            let member = match field {
                // Symbol tables.
                b"/" | b"/SYM64/" | b"__.SYMDEF" | b"__.SYMDEF SORTED" => None,
                b"//" => {
                    long_names = contents;
                    None
                }
                [b'#', b'1', b'/', length @ ..] => {
                    let length = decimal(length).and_then(|length| usize::try_from(length).ok());
                    let length = length.unwrap_or(0).min(contents.len());
                    let name = contents[..length].split(|byte| *byte == 0).next().unwrap_or_default();
                    (!name.starts_with(b"__.SYMDEF")).then_some((name, length))
                }
                [b'/', place @ ..] => {
                    let place = decimal(place).and_then(|place| usize::try_from(place).ok());
                    let name = place.and_then(|place| long_names.get(place..)).unwrap_or(field);
                    // With the two bytes that end it: whether it is longer shows.
                    let name = &name[..name.len().min(MAX_NAME + 2)];
                    // GNU ends them with a line, Microsoft with a zero.
                    let name = name.split(|byte| matches!(byte, b'\n' | 0)).next().unwrap_or_default();
                    Some((name.strip_suffix(b"/").unwrap_or(name), 0))
                }
                _ => Some((field.strip_suffix(b"/").unwrap_or(field), 0)),
            };
            let mut end = end;
            match member {
                // The contents are not in the file.
                Some((name, length)) if thin => {
                    let shown = named(name);
                    let whole = shown.as_bytes() == name;
                    self.elsewhere.push(ThinMember { name: shown, whole });
                    end = at + length;
                }
                Some((name, length)) => {
                    let rest = size.saturating_sub(length as u64);
                    self.add(file, named(name), (at + length) as u64, rest, "member");
                }
                None => {}
            }
            // Members start at even places.
            at = end.checked_add(end % 2)?;
        }
        if thin {
            let files = self.elsewhere.len();
            let more = if files > MAX_NAMED { ", …" } else { "" };
            let first: Vec<&str> =
                self.elsewhere.iter().take(MAX_NAMED).map(|member| member.name.as_str()).collect();
            let first = first.join(", ");
            let message = format!(
                "a thin archive holds no files, but names {files}, to be read by themselves: {first}{more}"
            );
            self.lose(0, &message);
        }
        Some(())
    }

    /// The bundles and offload binaries in the sections of a program. Linkers put those of its objects one after the other.
    fn host_elf(&mut self, file: &[u8]) -> Option<()> {
        let header = elf::FileHeader64::<LE>::parse(file).ok()?;
        let count = u64::from(header.e_shnum.get(LE));
        let start = header.e_shoff.get(LE);
        let whole = (file.len() as u64).saturating_sub(start) / size_of::<elf::SectionHeader64<LE>>() as u64;
        let count = count.min(whole) as usize;
        let headers = file.read_slice_at::<elf::SectionHeader64<LE>>(start, count).ok()?;
        let names = headers.get(usize::from(header.e_shstrndx.get(LE).0));
        let names = names.and_then(|names| names.data(LE, file).ok()).unwrap_or_default();
        for section in headers.iter().filter(|section| section.sh_type.get(LE) != elf::SHT_NOBITS) {
            // The name is searched for no further than the longest that counts.
            let Some(name) = names.get(section.sh_name.get(LE) as usize..) else { continue };
            let name = name[..name.len().min(MAX_NAME)].split(|byte| *byte == 0).next().unwrap_or_default();
            if !SECTIONS.contains(&name) && !name.starts_with(b".llvm.offloading.") {
                continue;
            }
            self.section(file, named(name), section.sh_offset.get(LE), section.sh_size.get(LE));
        }
        Some(())
    }

    /// Adds what a section of a program holds.
    pub(super) fn section(&mut self, file: &[u8], name: String, start: u64, size: u64) {
        let before = self.parts.len();
        self.add(file, name, start, size, "section");
        // What the section holds takes its place.
        let section = self.parts.get(before).cloned();
        self.parts.truncate(before);
        if let Some(section) = section {
            self.in_section(file, &section);
        }
    }

    fn in_section(&mut self, file: &[u8], section: &BundlePart) {
        let mut at = section.range.start;
        while let Some(rest) = file.get(at..section.range.end).filter(|rest| !rest.is_empty()) {
            let found = BundleFormat::of(rest).filter(|format| {
                !matches!(format, BundleFormat::Archive | BundleFormat::HostElf | BundleFormat::HostCoff)
            });
            let Some(format) = found else {
                // Between them there is padding.
                at += rest
                    .iter()
                    .skip(1)
                    .position(|byte| [b'_', b'C', 0x10].contains(byte))
                    .map_or(rest.len(), |skip| skip + 1);
                continue;
            };
            let mut size = format.parts(rest).size.max(1);
            if format == BundleFormat::Compressed && number::<2>(rest, 4) == Some(1) {
                // Its header does not say where it ends.
                size = next_bundle(rest).unwrap_or(rest.len());
            }
            let range = at..at.saturating_add(size).min(section.range.end);
            self.parts.push(BundlePart {
                name: section.name.clone(),
                range: range.clone(),
                compression: None,
            });
            at = range.end;
        }
    }
}

/// The files that a thin archive names; `None` if a file is not one.
pub(super) fn thin_members(file: &[u8]) -> Option<Vec<ThinMember>> {
    file.starts_with(THIN_ARCHIVE).then(|| BundleFormat::Archive.parts(file).elsewhere)
}

/// An archive of some files: their names are before their contents, as BSD has long ones.
pub(super) fn archive(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = ARCHIVE.to_vec();
    for (name, contents) in members {
        let size = name.len() + contents.len();
        let field = format!("#1/{}", name.len());
        archive.extend(format!("{field:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 0).bytes());
        archive.extend(name.bytes());
        archive.extend_from_slice(contents);
        if !archive.len().is_multiple_of(2) {
            archive.push(b'\n');
        }
    }
    archive
}

/// Where the next bundle starts: clang aligns them to pages, and a compressed stream may hold the magic bytes anywhere.
fn next_bundle(bytes: &[u8]) -> Option<usize> {
    let starts = |at: &usize| bytes.get(*at..).is_some_and(|rest| BundleFormat::of(rest).is_some());
    (PAGE..bytes.len()).step_by(PAGE).find(starts)
}

fn decimal(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field.trim_ascii()).ok()?.parse().ok()
}
