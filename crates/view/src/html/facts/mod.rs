//! What a page shows of a dump beside its report: rings, buffers, registers, units, in one form for all vendors. Lists of what a
//! dump does not hold are empty.
//!
//! Every list is bounded, and has a count of what is left out. Never: a judgement; that is the report's.

mod adreno;
mod amd;
mod intel;
mod stages;

use std::borrow::Cow;
use unwedge_capture::Dump;
use unwedge_hw::{Db, ValueType, Variants};
use unwedge_postmortem::Report;

/// Rings, engines or queues.
const QUEUES: usize = 64;
/// Buffers.
const BUFFERS: usize = 2000;
/// Registers of all tables.
const REGISTERS: usize = 5000;

/// The facts.
#[derive(Default)]
pub(crate) struct DumpFacts {
    pub(crate) queues: Vec<QueueFacts>,
    pub(crate) buffers: Vec<BufferFacts>,
    /// Buffers that are left out.
    pub(crate) more_buffers: usize,
    pub(crate) registers: Vec<RegisterTable>,
    /// Registers that are left out.
    pub(crate) more_registers: usize,
    /// Registers of all tables, at most.
    most_registers: usize,
    /// The stages of the GPU, in the order of the pipeline.
    pub(crate) stages: Vec<StageFacts>,
    /// The register or registers that say which are busy.
    pub(crate) stages_from: String,
    /// Sections that the dump lacks, and what that means.
    pub(crate) absent: Vec<(String, Cow<'static, str>)>,
}

/// A ring, engine or queue.
#[derive(Default)]
pub(crate) struct QueueFacts {
    pub(crate) name: String,
    /// It is the one that hung.
    pub(crate) hung: bool,
    /// Where the engine reads and the driver has written, and the size of the ring, all in dwords.
    pub(crate) read: Option<u64>,
    pub(crate) written: Option<u64>,
    pub(crate) size: Option<u64>,
    /// The last fence that the GPU has written, and the last that the driver has submitted.
    pub(crate) retired: Option<u64>,
    pub(crate) submitted: Option<u64>,
}

impl QueueFacts {
    /// Fences that are submitted and not retired. Numbers of fences wrap around at 32 bits.
    pub(crate) fn open(&self) -> Option<u64> {
        let (retired, submitted) = (u32::try_from(self.retired?).ok()?, u32::try_from(self.submitted?).ok()?);
        Some(u64::from(submitted.wrapping_sub(retired)))
    }
}

/// A buffer.
pub(crate) struct BufferFacts {
    pub(crate) iova: u64,
    pub(crate) size: u64,
    pub(crate) name: String,
    /// The dump has its contents.
    pub(crate) held: bool,
}

/// Registers of a section.
pub(crate) struct RegisterTable {
    pub(crate) name: String,
    pub(crate) rows: Vec<RegisterFacts>,
}

/// A register.
pub(crate) struct RegisterFacts {
    pub(crate) name: String,
    /// In hexadecimal.
    pub(crate) value: String,
    /// Its fields that are not zero.
    pub(crate) meaning: String,
}

/// Blocks of the GPU that belong together.
pub(crate) struct StageFacts {
    pub(crate) name: &'static str,
    pub(crate) blocks: Vec<BlockFacts>,
}

/// A block of the GPU.
pub(crate) struct BlockFacts {
    pub(crate) name: Cow<'static, str>,
    pub(crate) busy: bool,
}

impl DumpFacts {
    /// Of a dump, as far as a page shows them. `db` is the database of Adreno.
    pub(crate) fn of(dump: &Dump<'_>, db: &Db, report: &Report) -> DumpFacts {
        DumpFacts::within(REGISTERS, dump, db, report)
    }

    /// Of a dump, with so many registers at most.
    pub(crate) fn within(most_registers: usize, dump: &Dump<'_>, db: &Db, report: &Report) -> DumpFacts {
        let mut facts = DumpFacts { most_registers, ..DumpFacts::default() };
        match dump {
            Dump::Msm(dump) => adreno::collect(dump, db, &mut facts),
            Dump::I915(_) | Dump::Xe(_) => intel::collect(dump, report, &mut facts),
            Dump::Amdgpu(_) | Dump::Radv(_) | Dump::Umr(_) => amd::collect(dump, &mut facts),
        }
        let hung = report.hang.as_ref();
        let number = hung.and_then(|hang| hang.ring).map(|ring| format!("ring {ring}"));
        let name = hung.and_then(|hang| hang.ring_name.clone()).or(number);
        for queue in &mut facts.queues {
            queue.hung = Some(&queue.name) == name.as_ref();
        }
        facts.queues.truncate(QUEUES);
        facts.buffers.sort_by_key(|buffer| (buffer.iova, buffer.size));
        facts.more_buffers = facts.buffers.len().saturating_sub(BUFFERS);
        facts
    }

    /// The buffers that a table lists.
    pub(crate) fn listed_buffers(&self) -> &[BufferFacts] {
        &self.buffers[..self.buffers.len().min(BUFFERS)]
    }

    /// Adds registers, as far as there is room.
    fn add_registers(&mut self, name: impl Into<String>, rows: impl Iterator<Item = RegisterFacts>) {
        let before: usize = self.registers.iter().map(|table| table.rows.len()).sum();
        let mut rows = rows.fuse();
        let kept: Vec<RegisterFacts> =
            rows.by_ref().take(self.most_registers.saturating_sub(before)).collect();
        self.more_registers = self.more_registers.saturating_add(rows.count());
        if !kept.is_empty() {
            self.registers.push(RegisterTable { name: name.into(), rows: kept });
        }
    }
}

/// The fields of a value that are not zero: `CP_BUSY | HLSQ_BUSY`, `COLOR_FORMAT = FMT6_8_8_8_8_UNORM`. Empty for a
/// value without fields.
fn meaning(ty: Option<ValueType<'_>>, value: u64) -> String {
    let Some(ty) = ty.filter(|ty| value != 0 && ty.is_bitset()) else { return String::new() };
    let mut out = Vec::new();
    ty.write(value, &mut Variants::default(), &unwedge_hw::Palette::default(), &mut out);
    let text = String::from_utf8_lossy(&out).into_owned();
    text.trim_start_matches("{ ").trim_end_matches(" }").to_owned()
}
