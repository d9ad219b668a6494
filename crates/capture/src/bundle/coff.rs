//! Objects and programs of Windows (COFF, PE) that hold bundles in a section, as those of hipcc do.
//!
//! Facts: Microsoft's "PE Format", clang's names of the sections; linkers cut names to eight bytes in programs.

use super::format::{BundleParts, MAX_NAME, named, number};

/// The headers of a file.
struct Headers {
    /// Where the table of sections is.
    sections: usize,
    count: usize,
    /// Where names longer than eight bytes are.
    strings: Option<usize>,
}

/// Machines of hosts: x86-64, ARM64, i386.
const MACHINES: [u64; 3] = [0x8664, 0xaa64, 0x14c];
/// Bytes of a section's header.
const SECTION: usize = 40;
/// Bytes of a symbol, and of one in an object with more than 65,279 sections.
const SYMBOLS: [usize; 2] = [18, 20];
/// What the names of sections with bundles or offload binaries begin with. The segment `.hipFatBinSegment` has a pointer to the
/// bundle, or in some objects the bundle itself.
const NAMES: [&[u8]; 4] = [b".hip_fat", b".hipFat", b".llvm.of", b"__CLANG_"];

/// Whether a file starts as an object or a program of Windows does. Objects have no magic bytes: the machine must be one of a host,
/// and the header must be that of an object.
pub(super) fn recognize(start: &[u8]) -> bool {
    let small = || {
        let machine = number::<2>(start, 0).is_some_and(|machine| MACHINES.contains(&machine));
        // No optional header, no flag of a program, and sections.
        machine
            && number::<2>(start, 16) == Some(0)
            && number::<2>(start, 18).is_some_and(|flags| flags & 0x2 == 0)
            && number::<2>(start, 2).is_some_and(|count| count > 0)
            && number::<4>(start, 8).is_some_and(|symbols| symbols >= 60)
    };
    start.starts_with(b"MZ") && number::<4>(start, 0x3c).is_some_and(|at| at >= 0x40)
        || is_big(start)
        || small()
}

fn is_big(start: &[u8]) -> bool {
    number::<4>(start, 0) == Some(0xffff_0000)
        && number::<2>(start, 4).is_some_and(|version| version >= 2)
        && number::<2>(start, 6).is_some_and(|machine| MACHINES.contains(&machine))
}

impl Headers {
    fn of(file: &[u8]) -> Option<Headers> {
        let (header, count, symbols, many, width) = if is_big(file) {
            (56, number::<4>(file, 44)?, number::<4>(file, 48)?, number::<4>(file, 52)?, SYMBOLS[1])
        } else {
            let at = match file.starts_with(b"MZ") {
                false => 0,
                true => {
                    let at = usize::try_from(number::<4>(file, 0x3c)?).ok()?;
                    file.get(at..)?.starts_with(b"PE\0\0").then_some(at + 4)?
                }
            };
            let optional = usize::try_from(number::<2>(file, at + 16)?).ok()?;
            let (symbols, many) = (number::<4>(file, at + 8)?, number::<4>(file, at + 12)?);
            (at + 20 + optional, number::<2>(file, at + 2)?, symbols, many, SYMBOLS[0])
        };
        let strings = symbols.checked_add(many.checked_mul(width as u64)?)?;
        let strings = usize::try_from(strings).ok().filter(|_| symbols != 0);
        Some(Headers { sections: header, count: usize::try_from(count).ok()?, strings })
    }

    /// The name of a section: eight bytes, or the place of a longer one.
    fn name<'f>(&self, file: &'f [u8], field: &'f [u8]) -> &'f [u8] {
        let short = || field.split(|byte| *byte == 0).next().unwrap_or_default();
        let long = || {
            let place = std::str::from_utf8(short().strip_prefix(b"/")?).ok()?.parse::<usize>().ok()?;
            let name = file.get(self.strings?.checked_add(place)?..)?;
            name[..name.len().min(MAX_NAME)].split(|byte| *byte == 0).next()
        };
        long().unwrap_or_else(short)
    }
}

impl BundleParts {
    /// The bundles and offload binaries in the sections of an object or a program.
    pub(super) fn host_coff(&mut self, file: &[u8]) -> Option<()> {
        let headers = Headers::of(file)?;
        let table = file.get(headers.sections..)?;
        for section in table.chunks_exact(SECTION).take(headers.count) {
            let name = headers.name(file, &section[..8]);
            if !NAMES.iter().any(|start| name.starts_with(start)) {
                continue;
            }
            let (virtual_size, size) = (number::<4>(section, 8)?, number::<4>(section, 16)?);
            // Sections of programs are padded.
            let size = if virtual_size > 0 { size.min(virtual_size) } else { size };
            self.section(file, named(name), number::<4>(section, 20)?, size);
        }
        Some(())
    }
}
