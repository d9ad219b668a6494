//! The IOMMU fault: which buffer it belongs to, and who holds that address.

use unwedge_base::Buffer;
use unwedge_capture::msm::Fault;

use crate::adreno::case::Case;
use crate::adreno::hang::Stop;
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};

/// Addresses below this are null pointers plus an offset.
const NULL_LIMIT: u64 = 0x1_0000;
/// An access this far behind a buffer still looks like an overrun of it.
const OVERRUN: u64 = 0x10_0000;
/// GPU virtual addresses have 49 bits at most.
const ADDRESS_BITS: u32 = 49;

/// Where a faulting address lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts<'m> {
    /// In the first pages: a null pointer with an offset.
    Null,
    /// More bits than addresses have.
    NotAnAddress,
    /// Where UCHE sends accesses it traps.
    Trap,
    /// Inside a buffer that the dump lists.
    Inside(&'m Buffer),
    /// Outside of every buffer; the nearest ones that end below and start above.
    Between(Option<&'m Buffer>, Option<&'m Buffer>),
    /// The dump lists no buffer.
    NoBuffers,
}

/// Where an address lies among the buffers of a dump.
pub fn whereabouts<'m>(case: &'m Case<'_>, iova: u64) -> Whereabouts<'m> {
    if let Some(buffer) = case.memory.find(iova) {
        return Whereabouts::Inside(buffer);
    }
    let trap = ["UCHE_TRAP_BASE", "UCHE_WRITE_THRU_BASE"].iter().filter_map(|name| case.regs.address(name));
    if trap.filter(|&base| base != 0).any(|base| base <= iova && iova - base < 0x1000) {
        return Whereabouts::Trap;
    }
    if iova < NULL_LIMIT {
        return Whereabouts::Null;
    }
    if iova >> ADDRESS_BITS != 0 {
        return Whereabouts::NotAnAddress;
    }
    if case.memory.buffers().is_empty() {
        return Whereabouts::NoBuffers;
    }
    let (below, above) = case.memory.neighbours(iova);
    // Rings lie in the kernel's part of the address space: no neighbours of a process's buffers.
    let of_process = |b: &&Buffer| case.dump.rings.iter().all(|r| r.iova != b.iova);
    Whereabouts::Between(below.filter(of_process), above.filter(of_process))
}

/// What the units that kernels name as a fault's source read or write. On a7xx their names start with a pipe.
const SOURCES: &[(&str, &str)] = &[
    ("TP", "texture fetch"),
    ("VFD", "vertex fetch"),
    ("SP", "shader load, store or instruction fetch"),
    ("PC", "index or visibility stream fetch"),
    ("VPC", "stream-out"),
    ("HLSQ", "constant or state load"),
    ("CCU", "render target"),
    ("RB", "render target"),
    ("LRZ", "LRZ buffer"),
    ("VSC", "visibility stream"),
    ("CP", "command stream or memory packet"),
    ("CDP", "prefetch of draw state or constants"),
    ("UCHE", "access through UCHE"),
    ("FLAG", "flag buffer of a compressed surface"),
    ("GMU", "the GMU's firmware, not the stream"),
];
/// Which thread of an a7xx a unit works for.
const PIPES: &[&str] = &["BR_", "BV_", "LPAC_"];

/// The fault, if the dump reports one.
pub fn finding(case: &Case<'_>, stop: Option<&Stop>) -> Option<Finding> {
    let fault = case.dump.fault.as_ref()?;
    let Some(iova) = fault.iova.filter(|&iova| iova != 0 || fault.dir.is_some() || fault.kind.is_some())
    else {
        return Some(Finding {
            kind: FindingKind::NotCaptured,
            trust: Trust::Certain,
            title: "fault-info is there, but names no fault".to_owned(),
            why: "An address of zero with no direction or type is no evidence of a page fault.".to_owned(),
            evidence: vec![evidence(fault, 0)],
        });
    };
    let mut evidence = vec![evidence(fault, iova)];
    evidence.extend(page_tables(case));
    let (place, why, trust) = judge(case, fault, iova, &mut evidence);
    let holders = holders(case, stop, iova);
    evidence.extend(holders.iter().map(|h| h.evidence.clone()));
    let mut why = why;
    if let Some(holder) = holders.first() {
        match holder.distance {
            0 => why.push_str(&format!(" {} holds exactly that address.", holder.name)),
            distance => why.push_str(&format!(" {} points {distance:#x} below it.", holder.name)),
        }
    }
    let access = match (&fault.dir, source_words(fault)) {
        (Some(dir), Some(unit)) => format!("{} by {unit}", dir.to_lowercase()),
        (Some(dir), None) => dir.to_lowercase(),
        (None, Some(unit)) => format!("access by {unit}"),
        (None, None) => "access".to_owned(),
    };
    let title = format!("IOMMU fault: {access} at {iova:#x}, {place}");
    Some(Finding { kind: FindingKind::Fault, trust, title, why, evidence })
}

/// The source as the kernel names it, and what those units access: `TP|VFD (texture fetch or vertex fetch)`.
fn source_words(fault: &Fault<'_>) -> Option<String> {
    let source = fault.source.as_deref()?;
    let source = source.split(" (").next().unwrap_or(source);
    let units = source.strip_prefix("UCHE: ").unwrap_or(source);
    let meaning = |unit: &str| {
        let unit = PIPES.iter().find_map(|pipe| unit.strip_prefix(pipe)).unwrap_or(unit);
        let unit = unit.split([' ', ',', '_']).next().unwrap_or(unit);
        SOURCES.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, meaning)| *meaning)
    };
    // A unit that is not known leaves the meaning open.
    let meanings: Option<Vec<&str>> = units.split('|').map(|unit| meaning(unit.trim())).collect();
    Some(match meanings {
        Some(meanings) => format!("{source} ({})", meanings.join(" or ")),
        None => source.to_owned(),
    })
}

fn buffer_words(buffer: &Buffer) -> String {
    let name = if buffer.name.is_empty() { String::new() } else { format!(" \"{}\"", buffer.name) };
    format!("buffer {:#x}…{:#x}{name}", buffer.iova, buffer.end())
}

/// Where, why, and how far to trust it.
fn judge(
    case: &Case<'_>,
    fault: &Fault<'_>,
    iova: u64,
    evidence: &mut Vec<Evidence>,
) -> (String, String, Trust) {
    let unmapped = last_unmap(case, iova);
    let history = unmapped.as_ref().map(|(line, e)| {
        evidence.push(e.clone());
        format!(" The VM log's last word on it: {line}.")
    });
    let history = history.unwrap_or_default();
    let freed = unmapped.is_some();
    match whereabouts(case, iova) {
        Whereabouts::Null => {
            let why =
                format!("An address this low is a null pointer plus {iova:#x}: an unset descriptor or base.");
            ("in the null page".to_owned(), why + &history, Trust::Likely)
        }
        Whereabouts::NotAnAddress => {
            let why = "It has more bits than GPU addresses have: garbage used as a pointer.".to_owned();
            ("which is no GPU address".to_owned(), why, Trust::Likely)
        }
        Whereabouts::Trap => {
            let why = "UCHE's trap range: an access out of bounds was sent there.".to_owned();
            ("in UCHE's trap range".to_owned(), why, Trust::Likely)
        }
        Whereabouts::Inside(buffer) => {
            evidence.push(buffer_evidence(buffer));
            let kind = fault.kind.as_deref().unwrap_or_default().to_ascii_uppercase();
            let why = match (kind.as_str(), freed) {
                (k, _) if k.contains("PERM") => "The buffer is mapped, but not for this kind of access.",
                (k, _) if k.contains("EXTERNAL") => {
                    "The translation succeeded and the memory behind it refused the access."
                }
                (_, true) => "The buffer is listed, but was unmapped.",
                (_, false) => {
                    "The submit lists this buffer: it was mapped too late, unmapped too early, or only in part."
                }
            };
            let place = format!("{:#x} into {}", iova - buffer.iova, buffer_words(buffer));
            (place, why.to_owned() + &history, Trust::Likely)
        }
        Whereabouts::Between(below, above) => {
            evidence.extend(below.into_iter().chain(above).map(buffer_evidence));
            between(iova, below, above, freed, &history)
        }
        Whereabouts::NoBuffers => {
            let why = "The dump lists no buffers: whose address it is cannot be said.".to_owned();
            ("in unknown memory".to_owned(), why + &history, Trust::Possible)
        }
    }
}

fn between(
    iova: u64,
    below: Option<&Buffer>,
    above: Option<&Buffer>,
    freed: bool,
    history: &str,
) -> (String, String, Trust) {
    let overrun = below.map(|b| (b, iova - b.end()));
    let underrun = above.map(|b| (b, b.iova - iova));
    if freed {
        let why = format!("It was mapped once: use after free.{history}");
        return ("in unmapped memory".to_owned(), why, Trust::Likely);
    }
    match (overrun, underrun) {
        (Some((b, by)), _) if by < OVERRUN.min(b.size.max(0x1000)) => {
            let place = format!("{by:#x} past the end of {}", buffer_words(b));
            (place, "Closest to the end of that buffer: an overrun of it.".to_owned(), Trust::Possible)
        }
        (_, Some((b, by))) if by < OVERRUN.min(b.size.max(0x1000)) => {
            let place = format!("{by:#x} below {}", buffer_words(b));
            (place, "Closest to the start of that buffer: an underrun of it.".to_owned(), Trust::Possible)
        }
        (Some(_), Some(_)) => {
            let why =
                "A hole between buffers: a freed buffer's address, or one that the submit does not list.";
            ("between the buffers of the submit".to_owned(), why.to_owned(), Trust::Possible)
        }
        _ => {
            let why =
                "Far from every listed buffer: a wild pointer, or a buffer that the submit does not list.";
            ("outside of all buffers".to_owned(), why.to_owned(), Trust::Possible)
        }
    }
}

fn evidence(fault: &Fault<'_>, iova: u64) -> Evidence {
    let mut what = format!("iova {iova:#x}");
    for (key, value) in [("dir", &fault.dir), ("type", &fault.kind), ("source", &fault.source)] {
        if let Some(value) = value {
            what.push_str(&format!(", {key} {value}"));
        }
    }
    Evidence { iova: Some(iova), span: Some(fault.span), ..Evidence::new("fault-info", what) }
}

fn buffer_evidence(buffer: &Buffer) -> Evidence {
    Evidence { iova: Some(buffer.iova), ..Evidence::new("bos", buffer_words(buffer)) }
}

/// How far the page tables led, where the kernel dumps them.
fn page_tables(case: &Case<'_>) -> Option<Evidence> {
    let tables = case.dump.page_tables.as_ref()?;
    let ptes = tables.ptes?;
    let what = match ptes.iter().position(|pte| pte & 1 == 0) {
        Some(level) => format!("page table entry of level {level} is {:#x}: not mapped", ptes[level]),
        None => "the address is mapped on every level of the page tables".to_owned(),
    };
    Some(Evidence { span: Some(tables.span), ..Evidence::new("pgtable-fault-info", what) })
}

/// The last entry of the VM log that covers the address, if it is an unmap.
fn last_unmap(case: &Case<'_>, iova: u64) -> Option<(String, Evidence)> {
    let line = case
        .dump
        .vm_log
        .iter()
        .rev()
        .find(|line| range_in(line).is_some_and(|(a, b)| a <= iova && iova < b))?;
    let line = line.trim().trim_start_matches("- ").to_owned();
    line.contains("unmap").then(|| (line.clone(), Evidence::new("vm-log", line)))
}

/// The first `0x…-0x…` of a line.
fn range_in(line: &str) -> Option<(u64, u64)> {
    line.split_whitespace().find_map(|word| {
        let (start, end) = word.split_once('-')?;
        Some((hex(start)?, hex(end.trim_end_matches([',', ':', ')']))?))
    })
}

fn hex(text: &str) -> Option<u64> {
    let text = text.rsplit(':').next().unwrap_or(text).trim_start_matches('(');
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// A register of the state in flight whose address explains the fault.
struct Holder {
    name: String,
    distance: u64,
    evidence: Evidence,
}

/// Registers that point closest below the faulting address, nearest first; those that share its buffer come first.
fn holders(case: &Case<'_>, stop: Option<&Stop>, iova: u64) -> Vec<Holder> {
    const REACH: u64 = 0x400_0000;
    let Some(stop) = stop else { return Vec::new() };
    let home = case.memory.find(iova);
    let mut found: Vec<_> = stop
        .scene
        .addresses
        .iter()
        .filter(|a| a.iova != 0)
        .filter_map(|a| Some((a, iova.checked_sub(a.iova)?)))
        .filter(|(a, distance)| *distance < REACH && home.is_none_or(|b| b.contains(a.iova)))
        .collect();
    found.sort_by_key(|(a, distance)| (*distance, a.reg));
    let holder = |(a, distance): (&crate::adreno::trace::HeldAddress, u64)| {
        let name = case.gpu.reg(a.reg).map_or_else(|| format!("{:#x}", a.reg), |r| r.name().to_owned());
        let what = format!("{name} = {:#x}, {distance:#x} below the fault", a.iova);
        Holder {
            name,
            distance,
            evidence: Evidence { iova: Some(a.iova), ..Evidence::new("state at the stop", what) },
        }
    };
    found.into_iter().take(3).map(holder).collect()
}
