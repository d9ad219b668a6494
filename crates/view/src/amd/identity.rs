//! The GPU that AMD's part of a dump is of, as fields of JSON. Fields that are not known are left out.

use serde::Serialize;
use unwedge_postmortem::GpuIdentity;

/// An AMD GPU.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AmdGpuFields {
    vendor: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gc_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pci_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

impl AmdGpuFields {
    /// Those of an identity that is of an AMD GPU.
    pub fn of(identity: &GpuIdentity) -> Option<AmdGpuFields> {
        let GpuIdentity::Amd { name, chip, target, gfx, gc, device_id, .. } = identity else { return None };
        Some(AmdGpuFields {
            vendor: "AMD",
            code_name: chip.clone(),
            target: target.map(|target| target.to_string()),
            gc_version: gc.map(|gc| gc.to_string()),
            generation: gfx.map(|gfx| gfx.name()),
            pci_id: device_id.map(|id| format!("1002:{id:04x}")),
            name: name.clone(),
        })
    }
}
