//! Which device a dump of i915 or xe is of.

use unwedge_capture::i915::ErrorState;
use unwedge_capture::intel::{DumpEngine, RingRegister};
use unwedge_capture::xe::{XeDevcore, XeQueue};
use unwedge_hw::intel::platform::{self, IntelDriver, Platform, Version};
use unwedge_hw::intel::ring as bits;
use unwedge_hw::{ChipOverride, OverrideGpu};
use unwedge_isa::eu;
use unwedge_stream::intel::position::{self, RingState};
use unwedge_stream::intel::walk::canonical;

/// A device, as far as a dump tells it.
#[derive(Clone, Copy, Debug)]
pub struct IntelDevice {
    /// Whose dump it is.
    pub driver: IntelDriver,
    /// The platform, by the PCI id or the platform's name.
    pub platform: Option<&'static Platform>,
    /// The version of its graphics.
    pub version: Option<Version>,
}

impl IntelDevice {
    /// The device of an error state.
    pub fn of_i915(dump: &ErrorState<'_>) -> IntelDevice {
        IntelDevice { driver: IntelDriver::I915, platform: dump.platform(), version: dump.version() }
    }

    /// The device of a devcoredump.
    pub fn of_xe(dump: &XeDevcore<'_>) -> IntelDevice {
        if let Some(device) = taken_as(dump.taken_as.as_ref(), IntelDriver::Xe) {
            return device;
        }
        let platform = dump.pci_id().and_then(Platform::by_pci_id);
        let told = || {
            let (major, release, _) = dump.this_gt().or(dump.gts.first())?.ip_version()?;
            let version = Version::new(u8::try_from(major).ok()?, u8::try_from(release).ok()?);
            // What has no register for its version (before Meteor Lake) reads as 0.
            (version.major > 0).then_some(version)
        };
        let version = told().or_else(|| platform.map(Platform::version));
        IntelDevice { driver: IntelDriver::Xe, platform, version }
    }
}

impl IntelDevice {
    /// The instruction set of its shaders: by a name of the platform, else that of the first platform of its version. `None`
    /// where the tables do not have it.
    pub fn eu_platform(&self) -> Option<eu::Platform> {
        let by_name =
            |platform: &Platform| platform.names().iter().find_map(|n| eu::Platform::by_name(n).ok());
        let version = self.version.or_else(|| self.platform.map(Platform::version))?;
        let same = || Platform::all().iter().filter(|other| other.version() == version).find_map(by_name);
        self.platform.and_then(by_name).or_else(same)
    }
}

/// The device that a dump is taken to be of.
fn taken_as(chip: Option<&ChipOverride>, driver: IntelDriver) -> Option<IntelDevice> {
    match chip?.gpu {
        OverrideGpu::Intel { platform, version } => {
            Some(IntelDevice { driver, platform, version: Some(version) })
        }
        OverrideGpu::Adreno { .. } | OverrideGpu::Amd { .. } => None,
    }
}

/// Where an engine reads, as an address: `ring` is where its ring was captured and how many bytes of it, `is_batch` tells whether
/// the dump holds something at an address of the context.
pub fn active_head(
    engine: &DumpEngine<'_>,
    ring: Option<(u64, u64)>,
    is_batch: impl Fn(u64) -> bool,
) -> Option<u64> {
    let acthd = canonical(engine.ring(RingRegister::Acthd)?);
    let low = |register| engine.ring(register).map(|v| v as u32);
    let enabled = |ctl: u32| if ctl & bits::CTL_ENABLE == 0 { 0 } else { bits::size(ctl) };
    let captured = || ring.map_or(0, |(_, size)| size.min(u64::from(bits::MAX_SIZE)) as u32);
    let size = low(RingRegister::Ctl).map_or_else(captured, enabled);
    let is_batch = is_batch(acthd);
    // Kernels up to 3.1 do not print HEAD: what is no batch can only be the ring.
    let head = low(RingRegister::Head).unwrap_or(if is_batch { 0 } else { acthd as u32 });
    let named = engine.ring(RingRegister::Start).filter(|&start| start != 0);
    let start = named.or(ring.map(|(start, _)| start)).unwrap_or(0) & !0xfff;
    Some(position::active_head(acthd, RingState { start, head, size }, is_batch))
}

/// The engine that the contexts of a dump of xe are of: the first that its queue may run on.
pub fn queue_engine(dump: &XeDevcore<'_>) -> Option<platform::Engine> {
    let class = dump.queues.first().and_then(XeQueue::class);
    let first = dump.engines.iter().filter_map(DumpEngine::id).find(|id| class.is_none_or(|c| c == id.class));
    first.or(class.map(|class| platform::Engine { class, instance: 0 }))
}
