//! Lines of `decode --json` about what AMD GPUs leave. Fields that are not known are left out.

use crate::json::{Hex, HexWords};
use serde::Serialize;
use std::borrow::Cow;

/// A line.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum AmdLine<'a> {
    /// The system on chip.
    Soc {
        #[serde(skip_serializing_if = "Option::is_none")]
        device_id: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pci_revision: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        family: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        revision: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        external_revision: Option<u32>,
    },
    /// Sizes of memory in bytes.
    Memory {
        #[serde(skip_serializing_if = "Option::is_none")]
        vram: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        visible_vram: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        gtt: Option<u64>,
    },
    /// Global data share.
    Gds {
        #[serde(skip_serializing_if = "Option::is_none")]
        total_size: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        compute_partition_size: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        gws: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        oa: Option<u32>,
    },
    /// A hardware block and its version.
    Hwip { name: &'a str, kind: u32, instance: u32, version: &'a [u32] },
    /// The list of hardware blocks as the kernel prints it.
    Discovery { text: &'a str },
    /// A firmware.
    Firmware {
        name: &'a str,
        feature: u32,
        version: Hex,
        #[serde(skip_serializing_if = "Option::is_none")]
        program: Option<u32>,
    },
    /// The video BIOS.
    Vbios {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        part_number: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        version_string: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        date: Option<&'a str>,
    },
    /// The ring that timed out.
    Timeout {
        ring: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        ip_type: Option<u32>,
    },
    /// A page fault, as the kernel or RADV reports it.
    PageFault {
        #[serde(skip_serializing_if = "Option::is_none")]
        hub: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        iova: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status_name: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status_fields: Option<Vec<RegisterField<'a>>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        recorded: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        use_after_free: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        not_found: Option<bool>,
    },
    /// What became of the contents of VRAM.
    Vram { state: &'a str },
    /// A number that a block reports.
    Count { ip: &'a str, name: &'a str, number: u32 },
    /// An instance of a video block.
    VideoInstance { ip: &'a str, unit: &'a str, instance: u32, power: &'a str },
    /// A ring.
    Ring {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        rptr: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        wptr: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        driver_wptr: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        mask: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        dwords: Option<u32>,
        contents: Vec<Run<'a>>,
    },
    /// An indirect buffer.
    Ib {
        #[serde(skip_serializing_if = "Option::is_none")]
        number: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        vmid: Option<u32>,
        iova: Hex,
        #[serde(skip_serializing_if = "Option::is_none")]
        dwords: Option<u32>,
        contents: Vec<Run<'a>>,
    },
    /// A file of a report.
    File { name: &'a str, size: u64, known: bool },
    /// A line of a report about the application or the GPU.
    Entry { section: &'a str, name: &'a str, value: &'a str },
    /// A timeout in the kernel's log.
    KernelTimeout {
        ring: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        signaled: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        emitted: Option<u64>,
    },
    /// A page fault in the kernel's log.
    KernelFault {
        hub: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        vmid: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        iova: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        process: Option<&'a str>,
    },
    /// The trace of a submission.
    Trace {
        #[serde(skip_serializing_if = "Option::is_none")]
        last_trace_point: Option<u32>,
    },
    /// A command stream of the trace.
    Stream {
        number: u64,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        ip: Option<&'a str>,
        depth: u32,
        cut: bool,
        contents: Vec<Run<'a>>,
    },
    /// A packet as RADV prints it.
    StreamPacket {
        stream: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        index: Option<u64>,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        trace_point: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reached: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        bad_addresses: Vec<BadAddress<'a>>,
    },
    /// What the trap handler saved.
    Trap {
        #[serde(skip_serializing_if = "Option::is_none")]
        pc: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        trap: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        exec: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        m0: Option<Hex>,
        sgprs: Vec<Run<'a>>,
        lds: Vec<Run<'a>>,
    },
    /// A buffer.
    Bo {
        iova: Hex,
        end: Hex,
        #[serde(skip_serializing_if = "Option::is_none")]
        handle: Option<u32>,
    },
    /// Something that happened to a buffer.
    BoEvent {
        timestamp: u64,
        iova: Hex,
        end: Hex,
        action: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<Hex>,
        #[serde(rename = "virtual")]
        is_virtual: bool,
    },
    /// An address range bound to an object of Vulkan, or unbound.
    Binding { timestamp: u64, iova: Hex, end: Hex, bound: bool, object_type: &'a str, object: Hex },
    /// The bound pipeline.
    Pipeline {
        #[serde(skip_serializing_if = "Option::is_none")]
        ip: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        hash: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        active_waves: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        indirect_dispatch: Option<[u32; 3]>,
    },
    /// A vertex buffer.
    VertexBuffer {
        number: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        iova: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        stride: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        records: Option<u32>,
    },
    /// A descriptor.
    Descriptor {
        set: u32,
        binding: u32,
        offset: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<&'a str>,
    },
    /// A shader.
    Shader {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        iova: Option<Hex>,
        bytes: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        spirv: Option<&'a str>,
    },
    /// An instruction of a shader.
    Instruction {
        offset: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        pc: Option<Hex>,
        words: HexWords<'a>,
        text: &'a str,
    },
    /// What umr complains of.
    UmrComplaint { message: &'a str },
    /// A register.
    Register(Box<RegisterLine<'a>>),
    /// A wave at an instruction of a shader.
    ShaderWave(ShaderWave),
    /// A wave as umr prints it.
    Wave(Box<WaveLine<'a>>),
    /// umr found no waves.
    NoWaves,
    /// A shader that umr listed. The registers that were set follow.
    UmrShader {
        vmid: u32,
        iova: Hex,
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        stage: Option<&'a str>,
        code: Vec<WaveWord<'a>>,
    },
    /// A block that umr listed.
    UmrBlock { chip: &'a str, name: &'a str },
    /// Memory that umr read.
    UmrMemory { vmid: u32, iova: Hex, contents: Vec<Run<'a>> },
    /// A packet.
    Packet(Box<PacketLine<'a>>),
}

/// Dwords without a gap.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run<'a> {
    pub offset: u64,
    pub data: HexWords<'a>,
}

/// An address of a packet that RADV finds wrong.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BadAddress<'a> {
    pub name: &'a str,
    pub iova: Hex,
    pub problem: &'a str,
}

/// A field of a register: as the tool printed it, else by the register tables.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegisterField<'a> {
    pub name: &'a str,
    pub text: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<Hex>,
}

/// A register of a wave.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaveRegister<'a> {
    pub name: &'a str,
    pub value: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<RegisterField<'a>>>,
}

/// A field of a register of a wave.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaveField<'a> {
    pub register: &'a str,
    pub name: &'a str,
    pub value: u32,
}

/// A vector register of a wave.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaveVgpr<'a> {
    pub number: u32,
    pub lanes: HexWords<'a>,
}

/// The shader that a wave runs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaveShader {
    pub vmid: u32,
    pub iova: Hex,
    pub bytes: u32,
}

/// A word of code around a wave's PC.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaveWord<'a> {
    pub iova: Hex,
    pub word: Hex,
    pub text: Cow<'a, str>,
    pub at_pc: bool,
}

/// A field of a packet.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PacketField<'a> {
    pub name: &'a str,
    pub dword: u64,
    pub value: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A register that a packet writes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PacketRegister<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    pub register: Hex,
    pub value: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A register, with where it is from.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegisterLine<'a> {
    pub section: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xcc: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mec: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub me: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipe: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<RegisterField<'a>>>,
    /// The packet whose header it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<&'a str>,
}

/// Where a wave runs.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaveLocation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub se: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sa: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wgp: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simd: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<u32>,
}

/// A wave at an instruction of a shader.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShaderWave {
    #[serde(flatten)]
    pub place: WaveLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pc: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inst_dw0: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inst_dw1: Option<Hex>,
}

/// A wave as umr prints it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaveLine<'a> {
    #[serde(flatten)]
    pub place: WaveLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pc: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<Hex>,
    pub tainted: bool,
    pub registers: Vec<WaveRegister<'a>>,
    pub fields: Vec<WaveField<'a>>,
    pub sgprs: Vec<Run<'a>>,
    pub ttmps: Vec<Run<'a>>,
    pub vgprs: Vec<WaveVgpr<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shader: Option<WaveShader>,
    pub code: Vec<WaveWord<'a>>,
}

/// The buffer that a packet is in.
#[derive(Clone, Copy, Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PacketBuffer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<u64>,
}

/// A packet, padding, or dwords that are not a packet.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PacketLine<'a> {
    #[serde(flatten)]
    pub of: PacketBuffer<'a>,
    pub offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Hex>,
    pub name: String,
    pub dwords: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_point: Option<u16>,
    pub valid: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<PacketField<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub registers: Vec<PacketRegister<'a>>,
}

crate::schema::shapes!(lines: AmdLine<'_>);
