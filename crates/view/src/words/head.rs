//! The words of a report's head: the GPU, the driver, the process and the register database.

use unwedge_base::Generation;
use unwedge_postmortem::{GpuIdentity, Report};

/// `Adreno 630 (a6xx, 6.3.0.2)`, `Navi 21 (gfx1030, GC 10.3.0, PCI 1002:73bf)`, `Intel Kaby Lake (graphics 9)`.
pub fn gpu(report: &Report) -> String {
    let own = own_gpu(report);
    match &report.taken_as {
        Some(name) => format!("{own}, taken as {name} (--chip)"),
        None => own,
    }
}

fn own_gpu(report: &Report) -> String {
    match &report.gpu {
        GpuIdentity::Adreno { gpu_id, chip, device, generation } => {
            let family = generation.map_or("unknown generation", Generation::name);
            format!("{} ({family}, {chip})", adreno_name(*gpu_id, device.as_deref()))
        }
        amd @ GpuIdentity::Amd { .. } => amd_gpu(amd),
        GpuIdentity::Intel { platform: Some(platform), version: Some(version) } => {
            format!("Intel {platform} (graphics {version})")
        }
        GpuIdentity::Intel { platform: None, version: Some(version) } => format!("Intel, graphics {version}"),
        GpuIdentity::Intel { .. } => "Intel, of an unknown generation".to_owned(),
        _ => "unknown GPU".to_owned(),
    }
}

fn adreno_name(gpu_id: u32, device: Option<&str>) -> String {
    match (gpu_id, device) {
        (0, Some(device)) => match device.strip_prefix("FD") {
            Some(number) => format!("Adreno {number}"),
            None => device.to_owned(),
        },
        (0, None) => "Adreno".to_owned(),
        (id, _) => format!("Adreno {id}"),
    }
}

/// The shortest name of a GPU: `Adreno 630`, `Navi 21`, `Kaby Lake`; empty where the dump does not tell.
pub fn gpu_name(gpu: &GpuIdentity) -> String {
    match gpu {
        GpuIdentity::Adreno { gpu_id, device, .. } => adreno_name(*gpu_id, device.as_deref()),
        GpuIdentity::Amd { chip: Some(chip), .. } => chip.clone(),
        GpuIdentity::Amd { target: Some(target), .. } => target.to_string(),
        GpuIdentity::Amd { gfx: Some(gfx), .. } => gfx.to_string(),
        GpuIdentity::Amd { gc: Some(gc), .. } => format!("GC {gc}"),
        GpuIdentity::Amd { .. } => "AMD".to_owned(),
        GpuIdentity::Intel { platform: Some(platform), .. } => (*platform).to_owned(),
        GpuIdentity::Intel { version: Some(version), .. } => format!("Intel {version}"),
        GpuIdentity::Intel { .. } => "Intel".to_owned(),
        _ => String::new(),
    }
}

/// `Van Gogh (gfx1033, GC 10.3.1, PCI 1002:163f), AMD Custom GPU 0405`. Of a chip that the table does not have: what the dump states,
/// and no target.
pub fn amd_gpu(identity: &GpuIdentity) -> String {
    let GpuIdentity::Amd { name, chip, target, gfx, gc, device_id, by_registers } = identity else {
        return "unknown GPU".to_owned();
    };
    let facts = [
        target.map(|target| target.to_string()),
        gc.map(|gc| format!("GC {gc}")),
        device_id.map(|id| format!("PCI 1002:{id:04x}")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    let generation = match (chip, gfx) {
        (Some(_), _) => String::new(),
        (None, Some(gfx)) if *by_registers => {
            format!(", taken as {gfx} by the registers of its waves (--chip NAME takes another)")
        }
        (None, Some(gfx)) => format!(" of the {gfx} generation"),
        (None, None) => " of unknown generation".to_owned(),
    };
    let chip = chip.as_deref().unwrap_or("AMD GPU");
    let name = name.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
    format!("{chip}{facts}{generation}{name}")
}

/// `msm, Linux 5.8.0-rc1-c630+`, `RADV, Mesa 25.0.7`.
pub fn driver(report: &Report) -> String {
    let driver = &report.driver;
    let name = driver.name.as_deref().unwrap_or("unknown driver");
    let linux = driver.linux.as_ref().map(|linux| format!(", Linux {linux}")).unwrap_or_default();
    let mesa = driver.mesa.as_ref().map(|mesa| format!(", Mesa {mesa}")).unwrap_or_default();
    format!("{name}{linux}{mesa}")
}

/// `crashit: ./crashit IB1 4 5`, `vkcube (PID 4711)`, `game [1234]`: as the driver's own messages write it.
pub fn process(report: &Report) -> String {
    let process = &report.process;
    let intel = matches!(report.gpu, GpuIdentity::Intel { .. });
    match (process.name.as_deref(), process.command_line.as_deref(), process.pid) {
        (None, None, _) if intel => String::new(),
        (None, None, _) => "unknown process".to_owned(),
        (Some(name), Some(line), _) => format!("{name}: {line}"),
        (None, Some(line), _) => line.to_owned(),
        (Some(name), None, Some(pid)) if intel => format!("{name} [{pid}]"),
        (Some(name), None, Some(pid)) => format!("{name} (PID {pid})"),
        (Some(name), None, None) => name.to_owned(),
    }
}

/// The register database: source, version and hash, as far as they are known.
pub fn database(report: &Report) -> String {
    let identity = &report.database;
    let parts = [&*identity.source, &*identity.version, &*identity.hash];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
