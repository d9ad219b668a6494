//! Which device a dump of i915 or xe is of.

use unwedge_capture::i915::ErrorState;
use unwedge_capture::intel::{Class, Engine};
use unwedge_capture::xe::Devcore;
use unwedge_intel::platform::{self, Driver, EngineClass, Platform, Version};

/// A device, as far as a dump tells it.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Whose dump it is.
    pub driver: Driver,
    /// The platform, by the PCI id or the platform's name.
    pub platform: Option<&'static Platform>,
    /// The version of its graphics.
    pub version: Option<Version>,
}

impl Device {
    /// The device of an error state.
    pub fn of_i915(dump: &ErrorState<'_>) -> Device {
        let by_name = || {
            let name = dump.field("Platform").or_else(|| dump.field("platform"))?;
            Platform::by_name(&name.trim().replace('_', "-"))
        };
        let platform = dump.pci_id().and_then(Platform::by_pci_id).or_else(by_name);
        let told = || {
            let text = dump.field("graphics version").or_else(|| dump.field("gen"))?.trim();
            text.parse().ok()
        };
        let by_code = || Some(Version::new(u8::try_from(dump.hang()?.generation).ok()?, 0));
        let version = platform.map(Platform::version).or_else(told).or_else(by_code);
        Device { driver: Driver::I915, platform, version }
    }

    /// The device of a devcoredump.
    pub fn of_xe(dump: &Devcore<'_>) -> Device {
        let platform = dump.pci_id().and_then(Platform::by_pci_id);
        let told = || {
            let (major, release, _) = dump.this_gt().or(dump.gts.first())?.ip_version()?;
            let version = Version::new(u8::try_from(major).ok()?, u8::try_from(release).ok()?);
            // What has no register for its version (before Meteor Lake) reads as 0.
            (version.major > 0).then_some(version)
        };
        let version = told().or_else(|| platform.map(Platform::version));
        Device { driver: Driver::Xe, platform, version }
    }
}

/// An engine of a dump, as the platform tables call it.
pub fn engine_of(engine: &Engine<'_>) -> Option<platform::Engine> {
    let id = engine.id()?;
    let class = match id.class {
        Class::Render => EngineClass::Render,
        Class::Copy => EngineClass::Copy,
        Class::Video => EngineClass::VideoDecode,
        Class::VideoEnhance => EngineClass::VideoEnhance,
        Class::Compute => EngineClass::Compute,
        Class::Gsc => EngineClass::Gsc,
    };
    Some(platform::Engine { class, instance: id.instance })
}
