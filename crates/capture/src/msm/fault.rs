//! What the words of a kernel about a fault mean: its cause, the units it came from, what was mapped and unmapped.
//!
//! Never: whose fault it was. Facts: `msm_fault_handler` and its users in `a6xx_gpu.c`, `msm_gem_vma.c`, Linux 5.14 to 6.17.

use super::{Devcore, Fault};

/// Why an access faulted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultCause {
    /// The page may not be accessed in this way.
    Permission,
    /// The page is mapped, and the memory it maps to answered with an error.
    External,
    /// Any other reason; mostly the page is not mapped.
    Other,
}

/// A map or unmap of the VM log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmOperation<'d> {
    /// Its line, without the marker of the list.
    pub line: &'d str,
    /// Addresses from the first up to, and without, the second.
    pub range: Option<(u64, u64)>,
    /// Whether it is an unmap.
    pub unmaps: bool,
}

/// Which thread of an a7xx a unit works for.
const PIPES: [&str; 3] = ["BR_", "BV_", "LPAC_"];

impl Fault<'_> {
    /// Why the access faulted, where the kernel says it.
    pub fn cause(&self) -> Option<FaultCause> {
        let kind = self.kind.as_deref()?.to_ascii_uppercase();
        Some(match () {
            () if kind.contains("PERM") => FaultCause::Permission,
            () if kind.contains("EXTERNAL") => FaultCause::External,
            () => FaultCause::Other,
        })
    }

    /// The source without the kernel's remarks: `UCHE: TP|VFD`.
    pub fn source_name(&self) -> Option<&str> {
        let source = self.source.as_deref()?;
        Some(source.split(" (").next().unwrap_or(source))
    }

    /// The units that the kernel names as the source: `TP`, `VFD`. `None` where it names none.
    pub fn units(&self) -> Option<Vec<String>> {
        let source = self.source_name()?;
        let units = source.strip_prefix("UCHE: ").unwrap_or(source);
        let unit = |unit: &str| {
            let unit = unit.trim();
            let unit = PIPES.iter().find_map(|pipe| unit.strip_prefix(pipe)).unwrap_or(unit);
            unit.split([' ', ',', '_']).next().unwrap_or(unit).to_ascii_uppercase()
        };
        Some(units.split('|').map(unit).collect())
    }
}

impl Devcore<'_> {
    /// The maps and unmaps of `vm-log`, in their order.
    pub fn vm_operations(&self) -> impl DoubleEndedIterator<Item = VmOperation<'_>> {
        self.vm_log.iter().map(|line| VmOperation::new(line))
    }
}

impl<'d> VmOperation<'d> {
    /// `map:3: 0x0000000100000000-0x0000000100001000`.
    fn new(line: &'d str) -> VmOperation<'d> {
        let line = line.trim().trim_start_matches("- ");
        let range = line.split_whitespace().find_map(|word| {
            let (start, end) = word.split_once('-')?;
            Some((address(start)?, address(end.trim_end_matches([',', ':', ')']))?))
        });
        VmOperation { line, range, unmaps: line.contains("unmap") }
    }
}

fn address(text: &str) -> Option<u64> {
    let text = text.rsplit(':').next().unwrap_or(text).trim_start_matches('(');
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_the_log() {
        let read = |line| {
            let found = VmOperation::new(line);
            (found.unmaps, found.range)
        };
        let range = Some((0x1_0000_0000, 0x1_0000_1000));
        assert_eq!(read("map:3: 0x0000000100000000-0x0000000100001000"), (false, range));
        assert_eq!(read(" - unmap:3: 0x0000000100000000-0x0000000100001000"), (true, range));
        assert_eq!(read("unmap:3: everything"), (true, None));
    }

    #[test]
    fn sources_and_causes() {
        let fault = |source: &'static str, kind: &'static str| Fault {
            source: Some(source.into()),
            kind: Some(kind.into()),
            ..Fault::default()
        };
        let found = fault("UCHE: BV_TP|VFD (0x1)", "PERMISSION");
        assert_eq!(found.units(), Some(vec!["TP".to_owned(), "VFD".to_owned()]));
        assert_eq!(
            (found.source_name(), found.cause()),
            (Some("UCHE: BV_TP|VFD"), Some(FaultCause::Permission))
        );
        assert_eq!(fault("CP", "TRANSLATION").cause(), Some(FaultCause::Other));
        assert_eq!((Fault::default().cause(), Fault::default().units()), (None, None));
    }
}
