//! What the msm driver of Linux 6.12 reads of an a6xx or a7xx for a devcoredump, and how it sets a chip up.
//!
//! Facts: `data/adreno/msm_devcoredump.txt`. Never: a value of what is read.

use super::Adreno;
use std::ops::RangeInclusive;
use unwedge_base::{ChipId, Generation};

/// The table. It is read when a snapshot is asked for.
const TABLE: &str = include_str!("../../data/adreno/msm_devcoredump.txt");

/// How the driver knows a chip, and sets it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelChip {
    /// Its chip id.
    pub chip_id: ChipId,
    /// The number before the chip id in `revision:`; 0 for chips that only have a chip id.
    pub gpu_id: u32,
    /// CP_ROQ_THRESHOLDS_1 and _2. Where the firmware sets them, those of the nearest chip.
    pub roq_thresholds: [u32; 2],
    /// Cycles without progress after which the GPU reports a hang.
    pub hang_threshold: u32,
    /// It has a GMU, whose logs and registers are written.
    pub has_gmu: bool,
    /// The CP has privileged accesses: the driver's own buffers are mapped for those alone.
    pub has_privilege: bool,
    /// Names of texture processors among the clients of UCHE, as a660 has them.
    pub is_a660: bool,
}

/// Who reads a list of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterReader {
    /// The CPU.
    Cpu,
    /// The crash dumper; the CPU where the dumper has no memory to write to.
    Dumper,
    /// The crash dumper alone: through an aperture of the shader processors, or what drivers do not read with the CPU.
    DumperOnly,
}

/// A list of registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterList {
    /// Who reads it.
    pub reader: RegisterReader,
    /// In dwords.
    pub ranges: Vec<RangeInclusive<u32>>,
}

/// A memory that is read through an address and a data register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedBlock {
    /// As `regs-name:` has it.
    pub name: &'static str,
    /// How much is read.
    pub dwords: u32,
}

/// A memory inside the shader processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShaderMemory {
    /// As `type:` has it.
    pub ty: &'static str,
    /// As `pipe:` has it (a7xx).
    pub pipe: Option<&'static str>,
    /// Banks; on a7xx shader processors.
    pub banks: u32,
    /// On a7xx, parts of each.
    pub parts: u32,
    /// Dwords of each.
    pub dwords: u32,
}

/// Registers of a cluster, in contexts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRegisters {
    /// As `cluster-name:` has it.
    pub name: &'static str,
    /// As `pipe:` has it (a7xx).
    pub pipe: Option<&'static str>,
    /// As `context:` has it, one after the other.
    pub contexts: Vec<u32>,
    /// The contexts are numbers of a shader processor (a7xx), not values of the aperture's field.
    pub of_shader: bool,
    /// In dwords.
    pub ranges: Vec<RangeInclusive<u32>>,
}

/// Registers that the driver protects (CP_PROTECT_REG).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ProtectedRegisters {
    /// Those that may be read.
    readable: Vec<RangeInclusive<u32>>,
    /// Those that may not.
    hidden: Vec<RangeInclusive<u32>>,
}

impl ProtectedRegisters {
    /// Those of a table.
    fn of(table: &str) -> ProtectedRegisters {
        let list = |access: &str| {
            let prefix = format!("protect {table} {access} ");
            let rows = TABLE.lines().filter_map(|line| line.strip_prefix(prefix.as_str()));
            rows.filter_map(|row| ranges(row.split(' '))).flatten().collect()
        };
        ProtectedRegisters { readable: list("write"), hidden: list("all") }
    }

    /// Whether an access is refused.
    pub fn refuses(&self, reg: u32, read: bool) -> bool {
        let any = |list: &[RangeInclusive<u32>]| list.iter().any(|range| range.contains(&reg));
        any(&self.hidden) || !read && any(&self.readable)
    }
}

/// Everything that is read of a chip, in the order in which it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The chip.
    pub chip: KernelChip,
    /// Registers that command streams of processes have no access to.
    pub protected: ProtectedRegisters,
    /// `registers:`
    pub registers: Vec<RegisterList>,
    /// `indexed-registers:`
    pub indexed: Vec<IndexedBlock>,
    /// `shader-blocks:`
    pub shaders: Vec<ShaderMemory>,
    /// `clusters:`
    pub clusters: Vec<ClusterRegisters>,
}

fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 16).ok()
}

fn ranges<'t>(texts: impl Iterator<Item = &'t str>) -> Option<Vec<RangeInclusive<u32>>> {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(hex(first)?..=hex(last)?)
    };
    texts.map(range).collect()
}

/// A chip of the table with what its row says of lists.
struct ChipRow {
    chip: KernelChip,
    set: &'static str,
    bus: &'static str,
    protect: &'static str,
}

fn chips() -> impl Iterator<Item = ChipRow> {
    TABLE.lines().filter_map(|line| chip(line.strip_prefix("chip ")?))
}

fn chip(row: &'static str) -> Option<ChipRow> {
    let mut words = row.split(' ');
    let chip_id = ChipId(hex(words.next()?)?.into());
    let gpu_id = words.next()?.parse().ok()?;
    let set = words.next()?;
    let (set, more) = set.split_once('+').unwrap_or((set, ""));
    let bus = words.next()?;
    let (first, second) = words.next()?.split_once(':')?;
    let roq_thresholds = [hex(first)?, hex(second)?];
    let hang_threshold = hex(words.next()?)?;
    let has_gmu = words.next()? == "gmu";
    let protect = words.next()?;
    let has_privilege = words.next()? == "apriv";
    let is_a660 = more == "a660";
    let chip =
        KernelChip { chip_id, gpu_id, roq_thresholds, hang_threshold, has_gmu, has_privilege, is_a660 };
    Some(ChipRow { chip, set, bus, protect })
}

impl Snapshot {
    /// What is read of a GPU. A chip that this driver does not know is read as the first one of its generation, and keeps
    /// its own numbers. `None` for a GPU that is neither a6xx nor a7xx.
    pub fn of(adreno: &Adreno<'_>) -> Option<Snapshot> {
        let wanted = match adreno.generation {
            Generation::A6xx => "a6xx",
            Generation::A7xx => "gen7_2_0",
            _ => return None,
        };
        const PATCH: u64 = 0xff;
        let device = adreno.device;
        let gpu_id = device.and_then(|device| device.gpu_id());
        let chip_id = device.map(|device| device.chip_id().0 & 0xffff_ffff);
        let known = chips().find(|row| {
            let id = row.chip.chip_id.0;
            let by_chip = chip_id.is_some_and(|own| own & !PATCH == id & !PATCH);
            by_chip || row.chip.gpu_id != 0 && gpu_id == Some(row.chip.gpu_id)
        });
        let row = match known {
            Some(row) => row,
            None => {
                let mut row = chips().find(|row| row.set == wanted)?;
                row.chip.gpu_id = gpu_id.unwrap_or(0);
                row.chip.chip_id = chip_id.map_or(row.chip.chip_id, |id| ChipId(id & !PATCH));
                row
            }
        };
        let mut snapshot = Snapshot {
            chip: row.chip,
            protected: ProtectedRegisters::of(row.protect),
            registers: Vec::new(),
            indexed: Vec::new(),
            shaders: Vec::new(),
            clusters: Vec::new(),
        };
        let mut lines = TABLE.lines().skip_while(|line| line.strip_prefix("set ") != Some(row.set));
        lines.next();
        for line in lines.take_while(|line| !line.starts_with("set ")) {
            snapshot.add(line, row.bus);
        }
        Some(snapshot)
    }

    fn add(&mut self, line: &'static str, bus: &str) -> Option<()> {
        let roq = (self.chip.roq_thresholds[1] >> 16) * 4;
        let mut words = line.split(' ');
        match words.next()? {
            "registers" => {
                let list = words.next()?;
                let absent = match list {
                    "vbif" | "gbif" => list != bus,
                    "a660" => !self.chip.is_a660,
                    _ => false,
                };
                let reader = match words.next()? {
                    "cpu" => RegisterReader::Cpu,
                    "only" => RegisterReader::DumperOnly,
                    _ => RegisterReader::Dumper,
                };
                if !absent {
                    self.registers.push(RegisterList { reader, ranges: ranges(words)? });
                }
            }
            "indexed" => {
                let name = words.next()?;
                let dwords = words.next()?.parse().ok().map(|n| if n == 0 { roq } else { n })?;
                self.indexed.push(IndexedBlock { name, dwords });
            }
            "shader" => {
                let (ty, pipe) = (words.next()?, words.next()?);
                let mut number = || words.next()?.parse().ok();
                let (banks, parts, dwords) = (number()?, number()?, number()?);
                let pipe = Some(pipe).filter(|&pipe| pipe != "-");
                self.shaders.push(ShaderMemory { ty, pipe, banks, parts, dwords });
            }
            "cluster" => {
                let (name, pipe) = (words.next()?, words.next()?);
                let contexts = words.next()?;
                let (contexts, only) = contexts.split_once('+').unwrap_or((contexts, ""));
                if only == "a660" && !self.chip.is_a660 {
                    return Some(());
                }
                let of_shader = contexts.starts_with('=');
                let contexts = contexts
                    .trim_start_matches('=')
                    .split(',')
                    .map(|n| n.parse().ok())
                    .collect::<Option<_>>()?;
                let pipe = Some(pipe).filter(|&pipe| pipe != "-");
                self.clusters.push(ClusterRegisters {
                    name,
                    pipe,
                    contexts,
                    of_shader,
                    ranges: ranges(words)?,
                });
            }
            _ => {}
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Db;

    #[test]
    fn every_row_of_the_table_is_read() {
        let db = Db::builtin();
        let mut sets = Vec::new();
        for row in chips() {
            let adreno = db.identify(row.chip.gpu_id, row.chip.chip_id).expect("a GPU of the device table");
            let snapshot = Snapshot::of(&adreno).expect("a6xx or a7xx");
            assert_eq!(snapshot.chip.has_gmu, row.chip.has_gmu);
            let refuses = |reg: &str, read: bool| {
                let reg = db.gpu(adreno.generation).reg_offset(reg).expect(reg);
                snapshot.protected.refuses(reg, read)
            };
            assert!(refuses("CP_RB_BASE", false) && refuses("CP_RB_BASE", true));
            assert!(refuses("RBBM_STATUS", false) && !refuses("RBBM_STATUS", true));
            assert!(!refuses("CP_SCRATCH[0].REG", false) && !refuses("RB_CCU_CNTL", false));
            sets.push((row.set, snapshot));
        }
        let rows = TABLE.lines().filter(|line| line.starts_with("chip ")).count();
        assert_eq!(sets.len(), rows, "each chip");
        let mut set = "";
        for line in TABLE.lines() {
            let mut words = line.split(' ');
            let (kind, name) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            if kind == "set" {
                set = name;
            }
            let of_set = || sets.iter().filter(|(of, _)| *of == set).map(|(_, snapshot)| snapshot);
            let read = match kind {
                "indexed" => of_set().all(|s| s.indexed.iter().any(|i| i.name == name)),
                "shader" => of_set().all(|s| s.shaders.iter().any(|i| i.ty == name)),
                "cluster" => of_set().any(|s| {
                    let own = ranges(line.split(' ').skip(4)).expect("ranges");
                    s.clusters.iter().any(|c| c.name == name && c.ranges == own)
                }),
                "registers" => of_set().any(|s| {
                    let own = ranges(line.split(' ').skip(3)).expect("ranges");
                    s.registers.iter().any(|r| r.ranges == own)
                }),
                _ => continue,
            };
            assert!(read, "{set}: {line:.80}");
        }
    }

    #[test]
    fn an_a630_is_read_as_its_driver_does() {
        let db = Db::builtin();
        let snapshot = Snapshot::of(&db.identify(630, ChipId(0)).unwrap()).unwrap();
        assert_eq!(snapshot.chip.chip_id, ChipId::from_parts(6, 3, 0, 2));
        let roq = snapshot.indexed.iter().find(|block| block.name == "CP_ROQ").unwrap();
        assert_eq!(roq.dwords, 1024);
        assert!(
            snapshot.registers.iter().any(|list| list.ranges.iter().any(|r| r.contains(&0x3000))),
            "VBIF"
        );
        assert!(snapshot.clusters.iter().all(|cluster| cluster.contexts == [0, 1] && cluster.pipe.is_none()));
        let old = db.identify(530, ChipId(0)).unwrap();
        assert_eq!(Snapshot::of(&old), None);
    }
}
