//! A dump of i915 or xe for people: everything it says, then everything it holds.

use super::streams::Unpacked;
use super::values::{GucRegister, Meaning};
use super::{IntelDump, Unpacking, commands, engine_name, memory_limit, space_name};
use crate::Style;
use crate::json::hex_digits;
use std::io::{self, Write};
use unwedge_base::Diagnostic;
use unwedge_base::plural::counted;
use unwedge_capture::i915::{ErrorState, EuThread};
use unwedge_capture::intel::{DumpEngine, IntelRegister, KeyValue, MemoryBlock};
use unwedge_hw::intel::platform::{EngineClass, Version};
use unwedge_intel::fence::IntelFence;

/// Threads that are listed of one time.
const THREADS: usize = 256;
/// From this version on subslices come in pairs.
const DSS: Version = Version::new(12, 50);

/// Dwords in a row.
const ROW: usize = 8;

/// Longest listing of a dump: so many bytes, and so many more per byte of the dump.
pub const LENGTH: u64 = 64 << 20;
/// See [`LENGTH`].
pub const LENGTH_PER_BYTE: u64 = 64;

/// How a dump is listed.
#[derive(Clone, Copy, Debug)]
pub struct ListingOptions {
    /// Bytes that may be held at once.
    pub max_size: u64,
    /// Colours.
    pub style: Style,
    /// Fields that are zero are shown, too.
    pub all_fields: bool,
}

/// A dump as text. `bytes` is the size of its file, `unpacking` what was lost before it was read. Returns what was lost; a
/// failed write is for the owner of `out` to remember.
pub fn decode(
    dump: IntelDump<'_, '_>,
    bytes: u64,
    unpacking: &[Diagnostic],
    options: ListingOptions,
    out: &mut dyn Write,
) -> Vec<Diagnostic> {
    let mut diagnostics = [unpacking, dump.diagnostics()].concat();
    diagnostics.extend(show(dump, bytes, options, out));
    diagnostics
}

/// Lists a dump. Returns what was lost on the way; a failed write is for the owner of `out` to remember.
fn show(
    dump: IntelDump<'_, '_>,
    bytes: u64,
    options: ListingOptions,
    out: &mut dyn Write,
) -> Vec<Diagnostic> {
    let length = LENGTH.saturating_add(LENGTH_PER_BYTE.saturating_mul(bytes));
    let version = dump.graphics().version;
    let mut listing =
        Listing { dump, version, options, out: CappedWriter { out, left: length }, lost: Vec::new() };
    let ended = listing.all(options.max_size);
    let too_long = ended.is_err() && listing.out.left == 0;
    let mut lost = listing.lost;
    if too_long {
        lost.push(Diagnostic::loss(None, "the output is too long: the rest is not shown"));
    }
    lost
}

/// Counts what may still be written.
struct CappedWriter<'o> {
    out: &'o mut dyn Write,
    left: u64,
}

impl Write for CappedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.left = self.left.saturating_sub(bytes.len() as u64);
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

struct Listing<'d, 'a, 'o> {
    dump: IntelDump<'d, 'a>,
    /// Of its graphics; `None` when it does not say.
    version: Option<Version>,
    options: ListingOptions,
    out: CappedWriter<'o>,
    lost: Vec<Diagnostic>,
}

impl Listing<'_, '_, '_> {
    fn all(&mut self, max_size: u64) -> io::Result<()> {
        let dump = self.dump;
        self.heading("device")?;
        self.fields(dump.fields())?;
        match dump {
            IntelDump::I915(state) => {
                self.registers(&state.registers, None)?;
                for &(number, value) in &state.fences {
                    let fence = self.version.and_then(|version| IntelFence::of(version, value));
                    let fence =
                        fence.filter(|_| value != 0).map_or(String::new(), |fence| fence_text(&fence));
                    writeln!(self.out, "  fence[{number}] = 0x{value:016x}{fence}")?;
                }
                self.attentions(state)?;
                self.guc_registers(state)?;
            }
            IntelDump::Xe(xe) => {
                for gt in &xe.gts {
                    self.heading(&format!("GT {}", gt.id))?;
                    self.fields(&gt.fields)?;
                }
                self.list("GuC", &xe.guc)?;
                for queue in &xe.queues {
                    let id = queue.guc_id.map_or(String::new(), |id| format!(" {id}"));
                    self.heading(&format!("queue{id}"))?;
                    self.fields(&queue.fields)?;
                    self.fields(&queue.jobs)?;
                    for context in &queue.contexts {
                        let at = context.descriptor.map_or(String::new(), |d| format!(" 0x{d:08x}"));
                        self.heading(&format!("context{at}"))?;
                        self.fields(&context.fields)?;
                    }
                }
                if !xe.batches.is_empty() {
                    self.heading("job")?;
                }
                for (i, at) in xe.batches.iter().enumerate() {
                    writeln!(self.out, "  batch {i}: 0x{at:016x}")?;
                }
                self.list("address space", &xe.vm)?;
            }
        }
        let mut unpacked = Unpacked::of(dump, memory_limit(dump.bytes(), max_size));
        for (i, engine) in dump.engines().iter().enumerate() {
            self.heading(&format!("engine {}", engine_name(&engine.name)))?;
            self.fields(&engine.fields)?;
            self.registers(&engine.registers, Some(engine))?;
            if let Some(unpacked) = &mut unpacked {
                let (ListingOptions { style, all_fields, .. }, out) = (self.options, &mut self.out);
                unpacked.each(i, &mut |stream| commands::text(stream, style, all_fields, out))?;
            }
        }
        drop(unpacked);
        if let IntelDump::I915(state) = dump
            && !state.buffers.is_empty()
        {
            self.heading("buffers")?;
            for b in &state.buffers {
                writeln!(self.out, "  0x{:012x} {:>9} bytes  {}: {}", b.address, b.size, b.list, b.more)?;
            }
        }
        if let IntelDump::I915(state) = dump
            && !state.requests.is_empty()
        {
            self.heading("requests")?;
            for (engine, r) in &state.requests {
                let engine = engine_name(engine);
                let place = |at: Option<u32>| at.map_or("-".to_owned(), |at| format!("0x{at:08x}"));
                let (head, tail) = (place(r.head), place(r.tail));
                writeln!(self.out, "  {engine} seqno {:#x}, head {head}, tail {tail}", r.seqno)?;
            }
        }
        let mut unpacking = Unpacking::of(dump, max_size);
        for block in dump.blocks() {
            self.block(block, &mut unpacking)?;
        }
        Ok(())
    }

    /// Threads of EUs that waited for a debugger.
    fn attentions(&mut self, state: &ErrorState<'_>) -> io::Result<()> {
        let subslice = if self.version.is_some_and(|version| version >= DSS) { "DSS" } else { "subslice" };
        for (i, attention) in state.attentions().enumerate() {
            if i == 0 {
                self.heading("EU attention")?;
            }
            let after = attention.after_us.map_or(String::new(), |us| format!(", {us} us after the halt"));
            let threads = counted(attention.count, "thread", "threads");
            writeln!(self.out, "  {}: {threads}{after}", attention.when)?;
            for thread in attention.threads().take(THREADS) {
                let EuThread { subslice: number, eu, thread } = thread;
                writeln!(self.out, "    {subslice} {number}, EU {eu}, thread {thread}")?;
            }
            if let Some(more) = attention.threads().count().checked_sub(THREADS).filter(|&more| more > 0) {
                writeln!(self.out, "    … and {more} more")?;
            }
        }
        Ok(())
    }

    /// Registers of the GuC: by name where they have one, else by offset.
    fn guc_registers(&mut self, state: &ErrorState<'_>) -> io::Result<()> {
        if !state.guc_registers.is_empty() {
            self.heading("GuC registers")?;
        }
        for &(offset, value) in &state.guc_registers {
            let known = self.version.and_then(|version| GucRegister::of(version, offset, value));
            let known = known.map_or(String::new(), |known| known.to_string());
            writeln!(self.out, "  0x{offset:04x}  0x{value:08x}{known}")?;
        }
        Ok(())
    }

    fn heading(&mut self, name: &str) -> io::Result<()> {
        writeln!(self.out, "{}", self.options.style.bold(name))
    }

    fn list(&mut self, name: &str, fields: &[KeyValue<'_>]) -> io::Result<()> {
        if fields.is_empty() {
            return Ok(());
        }
        self.heading(name)?;
        self.fields(fields)
    }

    fn fields(&mut self, fields: &[KeyValue<'_>]) -> io::Result<()> {
        fields.iter().try_for_each(|f| writeln!(self.out, "  {}: {}", f.key, f.value))
    }

    fn registers(
        &mut self,
        registers: &[IntelRegister<'_>],
        engine: Option<&DumpEngine<'_>>,
    ) -> io::Result<()> {
        let class = engine.and_then(DumpEngine::id).map_or(EngineClass::Render, |id| id.class);
        for r in registers {
            let digits = if r.value > u64::from(u32::MAX) { 16 } else { 8 };
            let more = String::from_utf8_lossy(r.more);
            let meaning = self.version.and_then(|version| Meaning::of(version, class, r, registers));
            let meaning = meaning.map_or(String::new(), |meaning| format!("  {meaning}"));
            let name = format!("{}{}", r.name, r.index);
            let line = format!("  {name:28} 0x{:0digits$x}  {more}{meaning}", r.value);
            writeln!(self.out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// The heading of a block and its contents.
    fn block(&mut self, block: &MemoryBlock<'_>, unpacking: &mut Unpacking) -> io::Result<()> {
        let mut heading = format!("memory {} {}", engine_name(&block.owner), block.name).replace("  ", " ");
        if let Some(address) = block.address {
            heading.push_str(&format!(" at 0x{address:016x}"));
        }
        if let Some(space) = space_name(block.space) {
            heading.push_str(&format!(" ({space})"));
        }
        let decoded = unpacking.contents(block);
        match (&decoded, block.length) {
            (Some(decoded), _) => heading.push_str(&format!(", {} bytes", decoded.dwords.len() as u64 * 4)),
            (None, Some(length)) => heading.push_str(&format!(", {length} bytes, not captured")),
            (None, None) => heading.push_str(", not captured"),
        }
        if let Some(error) = block.error {
            heading.push_str(&format!(": error {error}"));
        }
        self.heading(&heading)?;
        let Some(decoded) = decoded else { return Ok(()) };
        self.lost.extend(decoded.diagnostic(&block.name, block.span));
        contents(block, &decoded.dwords, &mut self.out)
    }
}

fn fence_text(fence: &IntelFence) -> String {
    let IntelFence { valid, range, pitch, tiling } = fence;
    let valid = if *valid { "" } else { "not valid, " };
    format!("  {valid}0x{:08x} to 0x{:08x}, pitch {pitch}, {tiling}-tiled", range.start, range.end)
}

/// The contents of a block, whose kind says what they are.
fn contents(block: &MemoryBlock<'_>, dwords: &[u32], out: &mut dyn Write) -> io::Result<()> {
    rows(block.address.unwrap_or(0), dwords, out)
}

/// Rows of dwords; rows like the one before are left out.
fn rows(base: u64, dwords: &[u32], out: &mut dyn Write) -> io::Result<()> {
    let mut before: Option<&[u32]> = None;
    let mut skipped = false;
    // Most of what is printed of a dump is this: each row is put together by hand, and written at once.
    let mut line = Vec::new();
    for (i, row) in dwords.chunks(ROW).enumerate() {
        if before == Some(row) {
            if !skipped {
                writeln!(out, "  *")?;
            }
            skipped = true;
            continue;
        }
        (before, skipped) = (Some(row), false);
        let at = base.wrapping_add((i * ROW * 4) as u64);
        line.clear();
        line.extend_from_slice(b"  0x");
        let high = hex_digits((at >> 32) as u32);
        let unused = high.iter().take(4).take_while(|&&digit| digit == b'0').count();
        line.extend_from_slice(&high[unused..]);
        line.extend_from_slice(&hex_digits(at as u32));
        line.push(b':');
        for &word in row {
            line.push(b' ');
            line.extend_from_slice(&hex_digits(word));
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    if skipped {
        let end = base.wrapping_add(dwords.len() as u64 * 4);
        writeln!(out, "  0x{end:012x}:")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_are_left_out() {
        let mut dwords = vec![0; 40];
        dwords[0] = 1;
        let mut out = Vec::new();
        rows(0x1000, &dwords, &mut out).unwrap();
        let zeros = "00000000 00000000 00000000 00000000 00000000 00000000 00000000";
        let expected = format!(
            "  0x000000001000: 00000001 {zeros}\n  0x000000001020: 00000000 {zeros}\n  *\n  0x0000000010a0:\n"
        );
        assert_eq!(String::from_utf8_lossy(&out), expected);
        for at in [0, 0x1234_5678_9abc, 0x1_0000_0000_0000, !0xf] {
            let mut out = Vec::new();
            rows(at, &[7], &mut out).unwrap();
            assert_eq!(String::from_utf8_lossy(&out), format!("  0x{at:012x}: 00000007\n"));
        }
    }
}
