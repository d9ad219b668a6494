//! What is around streams and waves: the list of blocks (`umr -lb`), and memory that `umr --vm-read` wrote through a program that prints
//! bytes. umr writes the bytes themselves, so only the command says which address they are of.

use super::{MAX_NAME, UmrReader};
use crate::amd::text::{TextLine, TextScan};
use crate::umr::model::*;

/// Bytes of a line of `xxd -c`.
const MAX_LINE: usize = 256;

/// A dump of bytes that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct HexDump {
    /// Whether groups are little-endian numbers (`xxd -e`).
    numbers: bool,
}

impl<'a> UmrReader<'a> {
    /// `umr -vr 0x001@0x100000400 0x4 | xxd -e`, and the lines of its output.
    pub(super) fn hex_line(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        if let Some((vmid, address)) = vm_read(text) {
            self.waves.take()?;
            let numbers = text.contains("xxd") && text.split_ascii_whitespace().any(|word| word == "-e");
            self.umr.memory.push(UmrMemory { vmid, address, ..UmrMemory::default() });
            self.hex_dump = Some(HexDump { numbers });
            return Some(());
        }
        let dump = self.hex_dump?;
        let Some((offset, bytes)) = hex_bytes(text, dump.numbers) else {
            self.hex_dump = None;
            return None;
        };
        let memory = self.umr.memory.last_mut()?;
        let at = memory.address.checked_add(offset);
        let (dwords, rest) = bytes.as_chunks::<4>();
        let aligned = at.is_some_and(|at| at % 4 == 0) && rest.is_empty();
        let base = offset / 4;
        let fits = aligned
            && (base..)
                .zip(dwords)
                .all(|(dword, bytes)| memory.contents.push(dword, u32::from_le_bytes(*bytes)));
        if !fits && !bytes.is_empty() {
            return self.lose(line, "a line of memory that does not hold whole dwords");
        }
        Some(())
    }

    /// `navi48.gfx1201 (12.0.1)`
    pub(super) fn block_line(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        let (path, version) = text.split_once(' ').unwrap_or((text, ""));
        let numbers = version.strip_prefix('(').and_then(|version| version.strip_suffix(')'));
        let is_version =
            |text: &str| text.split('.').count() == 3 && text.split('.').all(|n| n.parse::<u32>().is_ok());
        if !version.is_empty() && !numbers.is_some_and(is_version) {
            return None;
        }
        let (chip, name) = path.split_once('.')?;
        let word = |text: &str| {
            (1..=MAX_NAME).contains(&text.len())
                && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_{}".contains(c))
        };
        let known = |block: &str| name.strip_prefix(block).is_some_and(|rest| rest.starts_with(digit));
        if !word(chip) || !word(name) || !BLOCKS.iter().any(|block| known(block)) {
            return None;
        }
        self.fields.take()?;
        self.umr.blocks.push(UmrBlock { chip: line.keep(chip), name: line.keep(name) });
        Some(())
    }
}

/// Blocks that umr lists, by what comes before their version.
const BLOCKS: [&str; 24] = [
    "gfx", "gmc", "mmhub", "athub", "oss", "sdma", "vcn", "uvd", "vce", "jpeg", "dcn", "dce", "nbif", "nbio",
    "bif", "hdp", "mp", "smu", "thm", "smuio", "umc", "df", "vpe", "clk",
];

fn digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// Address space and address of the memory that a command reads: both are hexadecimal, with or without `0x`.
fn vm_read(text: &str) -> Option<(u32, u64)> {
    let (before, arguments) = text.split_once(" -vr ").or_else(|| text.split_once(" --vm-read "))?;
    before.split([' ', '/']).any(|word| word == "umr").then_some(())?;
    let mut scan = TextScan::new(arguments);
    let place = scan.blanks().word()?;
    let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok();
    match place.split_once('@') {
        Some((vmid, address)) => Some((hex(vmid)?.try_into().ok()?, hex(address)?)),
        None => Some((0, hex(place)?)),
    }
}

/// Offset and bytes of a line of `xxd` (`00000000: 0010 02bf …  ....`) or `hexdump -C` (`00000000  00 10 02 bf …  |....|`).
fn hex_bytes(text: &str, numbers: bool) -> Option<(u64, Vec<u8>)> {
    let mut scan = TextScan::new(text);
    let digits = scan.rest().find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    let offset = scan.bare_hex().filter(|_| (6..=16).contains(&digits))?;
    let bytes = match scan.rest().strip_prefix(':') {
        Some(groups) => groups.strip_prefix(' ')?.split("  ").next()?,
        None if scan.rest().is_empty() => "",
        None => scan.rest().strip_prefix("  ")?.split('|').next()?,
    };
    let mut found = Vec::new();
    for group in bytes.split_ascii_whitespace() {
        let start = found.len();
        let (pairs, odd) = group.as_bytes().as_chunks::<2>();
        if !odd.is_empty() || found.len() + pairs.len() > MAX_LINE {
            return None;
        }
        for pair in pairs {
            found.push(u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?);
        }
        if numbers {
            found.get_mut(start..)?.reverse();
        }
    }
    Some((offset, found))
}
