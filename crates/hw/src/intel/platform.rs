//! Platforms, the version of their graphics IP, and the engines they have.
//!
//! Facts are those of the Linux kernel drivers i915 and xe; they stand in `data/intel/platforms`. Never: what a driver does
//! with them.

pub use super::engine_class::EngineClass;
use super::engine_class::same;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

include!(concat!(env!("OUT_DIR"), "/intel_platforms.rs"));

/// The version of a graphics IP, as the kernel drivers count it: 8.00 is Broadwell, 12.70 the graphics of Meteor Lake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Major: 8, 9, 11, 12, 20, 30.
    pub major: u8,
    /// Release, of two decimal digits: 70 of 12.70.
    pub release: u8,
}

impl Version {
    /// Before every other.
    pub const MIN: Version = Version::new(0, 0);
    /// After every other.
    pub const MAX: Version = Version::new(u8::MAX, u8::MAX);

    /// `major.release`.
    pub const fn new(major: u8, release: u8) -> Version {
        Version { major, release }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.major, self.release)
    }
}

impl FromStr for Version {
    type Err = UnknownIntelName;

    /// `9`, `12.70`, `12.7` (the same as 12.70), `1270`.
    fn from_str(text: &str) -> Result<Version, UnknownIntelName> {
        let unknown = || UnknownIntelName { what: "graphics version", name: text.to_owned() };
        let digits =
            |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u8>().ok()).flatten();
        let parts = match text.split_once('.') {
            Some((major, release)) => (major, release),
            None if text.len() >= 3 => text.split_at_checked(text.len() - 2).ok_or_else(unknown)?,
            None => (text, "0"),
        };
        let major = digits(parts.0).ok_or_else(unknown)?;
        let release = digits(parts.1).filter(|_| parts.1.len() <= 2).ok_or_else(unknown)?;
        let release = if parts.1.len() == 1 { 10 * release } else { release };
        Ok(Version { major, release })
    }
}

/// A name that nothing has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no {what} has the name `{name}`")]
pub struct UnknownIntelName {
    what: &'static str,
    name: String,
}

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Engine {
    /// What it executes.
    pub class: EngineClass,
    /// Which one of its class, as the hardware counts: fused-off ones leave gaps.
    pub instance: u8,
}

impl Engine {
    /// Where its registers begin; none where the version has no such engine.
    pub fn base(self, version: Version) -> Option<u32> {
        let fitting = BASES.iter().filter(|b| b.engine == self && b.since <= version);
        fitting.max_by_key(|b| b.since).map(|b| b.base)
    }

    /// Those a version can have. What a chip of it has, its fuses say.
    pub fn all(version: Version) -> impl Iterator<Item = Engine> {
        EngineClass::ALL.into_iter().flat_map(move |class| {
            let instances = (0..=u8::MAX).map(move |instance| Engine { class, instance });
            instances.take_while(move |engine| {
                // Instances have no gaps in the table from the version on that has any of them.
                engine.base(version).is_some()
            })
        })
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.class.prefix(), self.instance)
    }
}

impl FromStr for Engine {
    type Err = UnknownIntelName;

    /// `rcs0`; `rcs` is the first one.
    fn from_str(text: &str) -> Result<Engine, UnknownIntelName> {
        let unknown = || UnknownIntelName { what: "engine", name: text.to_owned() };
        let name = text.trim_end_matches(|c: char| c.is_ascii_digit());
        let class = EngineClass::ALL.into_iter().find(|c| c.prefix().eq_ignore_ascii_case(name));
        let instance = match text.get(name.len()..).unwrap_or_default() {
            "" => 0,
            digits => digits.parse().map_err(|_| unknown())?,
        };
        Ok(Engine { class: class.ok_or_else(unknown)?, instance })
    }
}

/// A kernel driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IntelDriver {
    /// Up to Meteor Lake and Arrow Lake.
    I915,
    /// From Tiger Lake on; the only one from Lunar Lake on.
    Xe,
}

impl IntelDriver {
    /// Both.
    pub const ALL: [IntelDriver; 2] = [IntelDriver::I915, IntelDriver::Xe];

    /// Its name in the kernel.
    pub const fn name(self) -> &'static str {
        match self {
            IntelDriver::I915 => "i915",
            IntelDriver::Xe => "xe",
        }
    }

    /// The one of this name.
    pub const fn named(name: &str) -> Option<IntelDriver> {
        match name {
            _ if same(name, IntelDriver::I915.name()) => Some(IntelDriver::I915),
            _ if same(name, IntelDriver::Xe.name()) => Some(IntelDriver::Xe),
            _ => None,
        }
    }
}

impl fmt::Display for IntelDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for IntelDriver {
    type Err = UnknownIntelName;

    fn from_str(text: &str) -> Result<IntelDriver, UnknownIntelName> {
        let unknown = || UnknownIntelName { what: "driver", name: text.to_owned() };
        IntelDriver::named(text).ok_or_else(unknown)
    }
}

/// A platform: chips of one graphics version.
#[derive(Debug)]
pub struct Platform {
    names: &'static [&'static str],
    version: Version,
    drivers: &'static [IntelDriver],
    pci: &'static [u16],
}

impl Platform {
    /// All of them, the oldest first.
    pub fn all() -> &'static [Platform] {
        PLATFORMS
    }

    /// By one of its names.
    pub fn by_name(name: &str) -> Option<&'static Platform> {
        PLATFORMS.iter().find(|p| p.names.iter().any(|n| n.eq_ignore_ascii_case(name)))
    }

    /// By the PCI device id of one of its chips.
    pub fn by_pci_id(id: u16) -> Option<&'static Platform> {
        PLATFORMS.iter().find(|p| p.pci.contains(&id))
    }

    /// `tgl`.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    /// Every name it goes by, the short one first.
    pub fn names(&self) -> &'static [&'static str] {
        self.names
    }

    /// The version of its graphics. Where chips of the platform differ, that of the first of them.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The kernel drivers that know it, the usual one first.
    pub fn drivers(&self) -> &'static [IntelDriver] {
        self.drivers
    }

    /// PCI device ids.
    pub fn pci_ids(&self) -> &'static [u16] {
        self.pci
    }
}

struct EngineBase {
    engine: Engine,
    since: Version,
    base: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_every_spelling() {
        for (text, version) in [
            ("8", Version::new(8, 0)),
            ("12", Version::new(12, 0)),
            ("12.70", Version::new(12, 70)),
            ("12.7", Version::new(12, 70)),
            ("12.07", Version::new(12, 7)),
            ("1255", Version::new(12, 55)),
            ("900", Version::new(9, 0)),
            ("20.04", Version::new(20, 4)),
        ] {
            assert_eq!(text.parse(), Ok(version), "{text}");
        }
        for text in ["", ".", "12.", ".5", "12.700", "gen9", "-1", "+12", "99999", "1é2"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
        assert_eq!(Version::new(20, 4).to_string(), "20.04");
    }

    #[test]
    fn engines_by_name_and_base() {
        let base = |name: &str, version: &str| name.parse::<Engine>().unwrap().base(version.parse().unwrap());
        assert_eq!(base("rcs0", "8"), Some(0x2000));
        assert_eq!(base("vcs0", "9"), Some(0x12000));
        assert_eq!(base("vcs", "11"), Some(0x1c_0000));
        assert_eq!(base("VECS3", "20.04"), Some(0x1f_8000));
        assert_eq!(base("ccs0", "12.10"), None);
        assert_eq!(base("bcs8", "12.55"), None);
        for text in ["", "rcs0x", "xcs0", "rcs999", "0"] {
            assert!(text.parse::<Engine>().is_err(), "{text}");
        }
        let names: Vec<String> = Engine::all(Version::new(8, 0)).map(|e| e.to_string()).collect();
        assert_eq!(names, ["rcs0", "bcs0", "vcs0", "vcs1", "vecs0"]);
    }

    #[test]
    fn a_chip_is_of_one_platform() {
        for platform in Platform::all() {
            for &id in platform.pci_ids() {
                assert!(std::ptr::eq(Platform::by_pci_id(id).unwrap(), platform), "{id:#x}");
            }
            for name in platform.names() {
                assert!(std::ptr::eq(Platform::by_name(name).unwrap(), platform), "{name}");
            }
            assert!(!platform.drivers().is_empty() && !platform.pci_ids().is_empty(), "{}", platform.name());
        }
        assert_eq!(Platform::by_name("TGL").map(Platform::version), Some(Version::new(12, 0)));
        assert_eq!(Platform::by_pci_id(0x9a49).map(Platform::name), Some("tgl"));
    }
}
