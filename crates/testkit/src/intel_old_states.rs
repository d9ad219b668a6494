//! Work of gen4 to gen7.5 with its states, where drivers of that time put them: behind the commands, in the buffer of the batch.
//! Kernels of before 4.10 capture no other memory.

use crate::i915_old::{BATCH, OldEra, OldErrorState};
use crate::intel::{MI_BATCH_BUFFER_END, TestDevice, stream};
use crate::intel_states::{command, command_of, structure};

/// Where a state is, in bytes from the start of the batch.
pub mod at {
    /// VS_STATE, up to gen5.
    pub const VS_STATE: u64 = 0x400;
    /// GS_STATE, up to gen5.
    pub const GS_STATE: u64 = 0x440;
    /// CLIP_STATE, up to gen5.
    pub const CLIP_STATE: u64 = 0x480;
    /// SF_STATE, up to gen5.
    pub const SF_STATE: u64 = 0x4c0;
    /// WM_STATE, up to gen5.
    pub const WM_STATE: u64 = 0x500;
    /// COLOR_CALC_STATE.
    pub const COLOR_CALC: u64 = 0x540;
    /// CC_VIEWPORT.
    pub const CC_VIEWPORT: u64 = 0x580;
    /// CLIP_VIEWPORT, up to gen6.
    pub const CLIP_VIEWPORT: u64 = 0x5a0;
    /// SF_VIEWPORT, from gen7 on SF_CLIP_VIEWPORT.
    pub const SF_VIEWPORT: u64 = 0x5c0;
    /// SAMPLER_STATE.
    pub const SAMPLER: u64 = 0x600;
    /// SAMPLER_BORDER_COLOR_STATE.
    pub const BORDER: u64 = 0x640;
    /// SCISSOR_RECT.
    pub const SCISSOR: u64 = 0x6a0;
    /// BLEND_STATE, from gen6 on.
    pub const BLEND: u64 = 0x6c0;
    /// DEPTH_STENCIL_STATE, from gen6 on.
    pub const DEPTH_STENCIL: u64 = 0x700;
    /// The binding table.
    pub const TABLE: u64 = 0x740;
    /// RENDER_SURFACE_STATE.
    pub const SURFACE: u64 = 0x780;
    /// Constants.
    pub const CONSTANTS: u64 = 0x800;
    /// The interface descriptor that dispatches use. Up to gen5 it is the second of the table at [`DESCRIPTORS`].
    pub const DESCRIPTOR: u64 = 0x900;
    /// The table of interface descriptors, up to gen5.
    pub const DESCRIPTORS: u64 = 0x8f0;
    /// VFE_STATE, up to gen5.
    pub const VFE_STATE: u64 = 0x940;
    /// VLD_STATE or VFE_STATE_EX, up to gen5.
    pub const VLD_STATE: u64 = 0x960;
    /// Vertices.
    pub const VERTICES: u64 = 0xa00;
    /// Indices.
    pub const INDICES: u64 = 0xb00;
    /// Kernels: Instruction Base Address from gen5 on.
    pub const KERNELS: u64 = 0x1000;
    /// The vertex shader, from the first kernel on.
    pub const VERTEX: u64 = 0;
    /// The fragment shader of 8 pixels.
    pub const PIXEL_8: u64 = 0x100;
    /// The fragment shader of 16 pixels.
    pub const PIXEL_16: u64 = 0x200;
    /// The clip thread, up to gen5.
    pub const CLIP: u64 = 0x300;
    /// The strips and fans thread, up to gen5.
    pub const STRIPS_FANS: u64 = 0x400;
    /// The compute shader.
    pub const COMPUTE: u64 = 0x500;
    /// Bytes of the batch.
    pub const END: u64 = 0x2000;
}

/// The memory of the surface, which no dump holds.
pub const SURFACE_MEMORY: u64 = 0x0200_0000;
/// Bytes of the buffer that has it, and the scratch space.
pub const SURFACE_BYTES: u64 = 0x20_0000;
/// The dwords of kernels.
pub const CODE: u32 = 0x0060_0001;

/// A batch with its states.
#[derive(Clone, Debug)]
pub struct OldWorkStates {
    device: TestDevice,
    /// The batch.
    pub batch: Vec<u32>,
    /// The dword of it that draws or dispatches.
    pub work: usize,
}

impl OldWorkStates {
    /// A draw.
    pub fn draw(device: TestDevice) -> OldWorkStates {
        let before = match device.version.0 {
            ..6 => units(device),
            6 => stages_of_gen6(device),
            _ => stages_of_gen7(device),
        };
        OldWorkStates::new(device, &[before, buffers(device)].concat(), &command(device, "3DPRIMITIVE", &[]))
    }

    /// A dispatch; up to gen5 in generic mode.
    pub fn dispatch(device: TestDevice) -> OldWorkStates {
        if device.version.0 < 6 {
            return OldWorkStates::media(device, 0);
        }
        let before = stream(&[
            &command(
                device,
                "MEDIA_CURBE_LOAD",
                &[("CURBE Total Data Length", 64), ("CURBE Data Start Address", at::CONSTANTS)],
            ),
            &command(
                device,
                "MEDIA_INTERFACE_DESCRIPTOR_LOAD",
                &[
                    ("Interface Descriptor Total Length", 32),
                    ("Interface Descriptor Data Start Address", at::DESCRIPTOR),
                ],
            ),
        ]);
        let work = match device.version.0 {
            6 => command_of(device, "MEDIA_OBJECT", 6, &[]),
            _ => command(device, "GPGPU_WALKER", &[("SIMD Size", 1)]),
        };
        OldWorkStates::new(device, &before, &work)
    }

    /// Media work of gen4 and gen5, in a VFE Mode.
    pub fn media(device: TestDevice, mode: u64) -> OldWorkStates {
        let before = stream(&[
            &command(
                device,
                "MEDIA_STATE_POINTERS",
                &[
                    ("VLD Enable", u64::from(mode != 0)),
                    ("Pointer to VLD State", BATCH + at::VLD_STATE),
                    ("Pointer to VFE State", BATCH + at::VFE_STATE),
                ],
            ),
            &constants_of_gen4(device),
        ]);
        let work = command_of(device, "MEDIA_OBJECT", 6, &[("Interface Descriptor Offset", 1)]);
        let mut media = OldWorkStates::new(device, &before, &work);
        let vfe = structure(
            device,
            "VFE_STATE",
            &[("VFE Mode", mode), ("Interface Descriptor Base Pointer", BATCH + at::DESCRIPTORS)],
        );
        let from = at::VFE_STATE as usize / 4;
        media.batch[from..from + vfe.len()].copy_from_slice(&vfe);
        // Both structures have their table in dwords 2 and 3: here of the descriptors 0 and 1.
        media.batch[at::VLD_STATE as usize / 4 + 3] = 0x1000_0000;
        media
    }

    fn new(device: TestDevice, before: &[u32], work: &[u32]) -> OldWorkStates {
        let instruction = if device.version.0 >= 5 { BATCH + at::KERNELS } else { 0 };
        let bases = command(
            device,
            "STATE_BASE_ADDRESS",
            &[
                ("General State Base Address Modify Enable", 1),
                ("Surface State Base Address", BATCH),
                ("Surface State Base Address Modify Enable", 1),
                ("Dynamic State Base Address", BATCH),
                ("Dynamic State Base Address Modify Enable", 1),
                ("Instruction Base Address", instruction),
                ("Instruction Base Address Modify Enable", 1),
            ],
        );
        let head = [bases, before.to_vec()].concat();
        let mut batch = stream(&[&head, work, &[MI_BATCH_BUFFER_END]]);
        assert!(batch.len() as u64 * 4 <= at::VS_STATE, "the commands end before the states");
        batch.resize(at::END as usize / 4, 0);
        for (offset, words) in states(device) {
            let from = offset as usize / 4;
            batch[from..from + words.len()].copy_from_slice(&words);
        }
        OldWorkStates { device, batch, work: head.len() }
    }

    /// The error state of a hang in the work.
    pub fn error_state(&self, era: OldEra) -> OldErrorState {
        self.error_state_without_surface(era).listed(SURFACE_MEMORY, SURFACE_BYTES)
    }

    /// The same; the buffer of the surface is not among those in use.
    pub fn error_state_without_surface(&self, era: OldEra) -> OldErrorState {
        OldErrorState::in_batch(self.device, era, &self.batch, self.work)
    }
}

/// What a field holds that points to a kernel.
fn kernel(device: TestDevice, offset: u64) -> u64 {
    if device.version.0 >= 5 { offset } else { BATCH + at::KERNELS + offset }
}

/// What a field holds that points to a state: an address up to gen5, later an offset.
fn state(device: TestDevice, offset: u64) -> u64 {
    if device.version.0 >= 6 { offset } else { BATCH + offset }
}

/// Pointers to the states of all units, for gen4 and gen5.
fn units(device: TestDevice) -> Vec<u32> {
    stream(&[
        &command(
            device,
            "3DSTATE_PIPELINED_POINTERS",
            &[
                ("Pointer to VS State", BATCH + at::VS_STATE),
                ("Pointer to GS State", BATCH + at::GS_STATE),
                ("Clip Enable", 1),
                ("Pointer to CLIP State", BATCH + at::CLIP_STATE),
                ("Pointer to SF State", BATCH + at::SF_STATE),
                ("Pointer to WM State", BATCH + at::WM_STATE),
                ("Pointer to Color Calc State", BATCH + at::COLOR_CALC),
            ],
        ),
        &command(
            device,
            "3DSTATE_BINDING_TABLE_POINTERS",
            &[("Pointer to VS Binding Table", at::TABLE), ("Pointer to PS Binding Table", at::TABLE)],
        ),
        &constants_of_gen4(device),
    ])
}

fn constants_of_gen4(device: TestDevice) -> Vec<u32> {
    command(
        device,
        "CONSTANT_BUFFER",
        &[("Valid", 1), ("Buffer Length", 1), ("Buffer Starting Address", BATCH + at::CONSTANTS)],
    )
}

/// The fields of a stage's command, or of its unit's state.
fn of_stage(device: TestDevice, start: u64) -> [(&'static str, u64); 10] {
    [
        ("Kernel Start Pointer", kernel(device, start)),
        ("Enable", 1),
        ("Function Enable", 1),
        ("Sampler Count", 1),
        ("Sampler State Pointer", state(device, at::SAMPLER)),
        ("Binding Table Entry Count", 1),
        ("Dispatch GRF Start Register For URB Data", 2),
        ("Per-Thread Scratch Space", 2),
        ("Scratch Space Base Pointer", SURFACE_MEMORY + 0x10_0000),
        ("Clipper Viewport State Pointer", BATCH + at::CLIP_VIEWPORT),
    ]
}

/// The fields of the fragment shader: both kernels where the generation has two pointers.
fn of_pixel(device: TestDevice) -> Vec<(&'static str, u64)> {
    let two = device.version.0 >= 5;
    let mut fields = of_stage(device, at::PIXEL_8).to_vec();
    fields.extend([
        ("Kernel Start Pointer 0", kernel(device, at::PIXEL_8)),
        ("Kernel Start Pointer 2", kernel(device, at::PIXEL_16)),
        ("8 Pixel Dispatch Enable", 1),
        ("16 Pixel Dispatch Enable", u64::from(two)),
        ("Thread Dispatch Enable", 1),
        ("Dispatch GRF Start Register For Constant/Setup Data 0", 3),
    ]);
    fields
}

/// Gen6. The second command of tables and viewports leaves what the first one set of the vertex shader and of clipping.
fn stages_of_gen6(device: TestDevice) -> Vec<u32> {
    stream(&[
        &command(device, "3DSTATE_VS", &of_stage(device, at::VERTEX)),
        &command(device, "3DSTATE_WM", &of_pixel(device)),
        &command(
            device,
            "3DSTATE_BINDING_TABLE_POINTERS",
            &[("VS Binding Table Change", 1), ("Pointer to VS Binding Table", at::TABLE)],
        ),
        &command(
            device,
            "3DSTATE_BINDING_TABLE_POINTERS",
            &[("PS Binding Table Change", 1), ("Pointer to PS Binding Table", at::TABLE)],
        ),
        &command(
            device,
            "3DSTATE_SAMPLER_STATE_POINTERS",
            &[("PS Sampler State Change", 1), ("Pointer to PS Sampler State", at::SAMPLER)],
        ),
        &command(
            device,
            "3DSTATE_VIEWPORT_STATE_POINTERS",
            &[
                ("CLIP Viewport State Change", 1),
                ("SF Viewport State Change", 1),
                ("Pointer to CLIP_VIEWPORT", at::CLIP_VIEWPORT),
                ("Pointer to SF_VIEWPORT", at::SF_VIEWPORT),
            ],
        ),
        &command(
            device,
            "3DSTATE_VIEWPORT_STATE_POINTERS",
            &[("CC Viewport State Change", 1), ("Pointer to CC_VIEWPORT", at::CC_VIEWPORT)],
        ),
        &command(
            device,
            "3DSTATE_CC_STATE_POINTERS",
            &[
                ("BLEND_STATE Change", 1),
                ("Pointer to BLEND_STATE", at::BLEND),
                ("DEPTH_STENCIL_STATE Change", 1),
                ("Pointer to DEPTH_STENCIL_STATE", at::DEPTH_STENCIL),
                ("Color Calc State Pointer Valid", 1),
                ("Color Calc State Pointer", at::COLOR_CALC),
            ],
        ),
        &command(device, "3DSTATE_SCISSOR_STATE_POINTERS", &[("Scissor Rect Pointer", at::SCISSOR)]),
        &command(
            device,
            "3DSTATE_CONSTANT_VS",
            &[
                ("Buffer 0 Valid", 1),
                ("Constant Buffer 0 Read Length", 3),
                ("Pointer to Constant Buffer 0", at::CONSTANTS),
            ],
        ),
    ])
}

/// Gen7 and gen7.5.
fn stages_of_gen7(device: TestDevice) -> Vec<u32> {
    let point = |name: &str, field: &str, offset| command(device, name, &[(field, offset)]);
    stream(&[
        &command(device, "3DSTATE_VS", &of_stage(device, at::VERTEX)),
        &command(device, "3DSTATE_PS", &of_pixel(device)),
        &point("3DSTATE_BINDING_TABLE_POINTERS_VS", "Pointer to VS Binding Table", at::TABLE),
        &point("3DSTATE_BINDING_TABLE_POINTERS_PS", "Pointer to PS Binding Table", at::TABLE),
        &point("3DSTATE_SAMPLER_STATE_POINTERS_PS", "Pointer to PS Sampler State", at::SAMPLER),
        &point("3DSTATE_VIEWPORT_STATE_POINTERS_CC", "CC Viewport Pointer", at::CC_VIEWPORT),
        &point("3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP", "SF Clip Viewport Pointer", at::SF_VIEWPORT),
        &point("3DSTATE_BLEND_STATE_POINTERS", "Blend State Pointer", at::BLEND),
        &point("3DSTATE_CC_STATE_POINTERS", "Color Calc State Pointer", at::COLOR_CALC),
        &point("3DSTATE_DEPTH_STENCIL_STATE_POINTERS", "Pointer to DEPTH_STENCIL_STATE", at::DEPTH_STENCIL),
        &point("3DSTATE_SCISSOR_STATE_POINTERS", "Scissor Rect Pointer", at::SCISSOR),
        &command(device, "3DSTATE_CONSTANT_VS", &[("Read Length", 4), ("Buffer", at::CONSTANTS)]),
    ])
}

/// Vertices and indices.
fn buffers(device: TestDevice) -> Vec<u32> {
    stream(&[
        &command_of(
            device,
            "3DSTATE_VERTEX_BUFFERS",
            5,
            &[
                ("Buffer Pitch", 16),
                ("Buffer Starting Address", BATCH + at::VERTICES),
                (if device.version.0 >= 5 { "End Address" } else { "Max Index" }, last_vertex(device)),
            ],
        ),
        &command(
            device,
            "3DSTATE_INDEX_BUFFER",
            &[
                ("Buffer Starting Address", BATCH + at::INDICES),
                ("Buffer Ending Address", BATCH + at::INDICES + 11),
            ],
        ),
    ])
}

/// Three vertices of 16 bytes.
fn last_vertex(device: TestDevice) -> u64 {
    if device.version.0 >= 5 { BATCH + at::VERTICES + 47 } else { 2 }
}

/// The states, and where they are.
fn states(device: TestDevice) -> Vec<(u64, Vec<u32>)> {
    let of = |name: &str, fields: &[(&str, u64)]| structure(device, name, fields);
    let one = u64::from(1.0f32.to_bits());
    let surface = [
        ("Surface Type", 1),
        ("Surface Format", 0xc0),
        ("Surface Base Address", SURFACE_MEMORY),
        ("Width", 63),
        ("Height", 31),
        ("Surface Pitch", 255),
    ];
    let mut all = vec![
        (at::CC_VIEWPORT, of("CC_VIEWPORT", &[("Maximum Depth", one)])),
        (at::SAMPLER, of("SAMPLER_STATE", &[("Border Color Pointer", state(device, at::BORDER))])),
        (at::SCISSOR, of("SCISSOR_RECT", &[("Scissor Rectangle X Max", 639)])),
        (at::TABLE, vec![at::SURFACE as u32]),
        (at::SURFACE, of("RENDER_SURFACE_STATE", &surface)),
        (at::CONSTANTS, vec![0x3f80_0000; 16]),
        (at::VERTICES, vec![0x3f00_0000; 12]),
        (at::INDICES, vec![0x0001_0000, 2, 1]),
        (at::KERNELS, vec![CODE; 0x600 / 4]),
    ];
    let border =
        of("SAMPLER_BORDER_COLOR_STATE", &[("Border Color Red", one), ("Border Color Float Red", one)]);
    all.push((at::BORDER, border));
    let mut compute = of_stage(device, at::COMPUTE).to_vec();
    compute.push(("Binding Table Pointer", at::TABLE));
    all.push((at::DESCRIPTOR, of("INTERFACE_DESCRIPTOR_DATA", &compute)));
    let color_calc = match device.version.0 {
        ..6 => vec![("CC Viewport State Pointer", BATCH + at::CC_VIEWPORT), ("Depth Test Enable", 1)],
        _ => vec![("Blend Constant Color Red", one)],
    };
    all.push((at::COLOR_CALC, of("COLOR_CALC_STATE", &color_calc)));
    if device.version.0 >= 7 {
        all.push((at::SF_VIEWPORT, of("SF_CLIP_VIEWPORT", &[("Viewport Matrix Element m00", one)])));
    } else {
        all.push((at::SF_VIEWPORT, of("SF_VIEWPORT", &[("Viewport Matrix Element m00", one)])));
        all.push((at::CLIP_VIEWPORT, of("CLIP_VIEWPORT", &[("XMax Clip Guardband", one)])));
    }
    if device.version.0 >= 6 {
        let entry = of("BLEND_STATE_ENTRY", &[("Color Buffer Blend Enable", 1)]);
        all.push((at::BLEND, [vec![0, 0], entry].concat()));
        all.push((at::DEPTH_STENCIL, of("DEPTH_STENCIL_STATE", &[("Depth Test Enable", 1)])));
    } else {
        all.push((at::VS_STATE, of("VS_STATE", &of_stage(device, at::VERTEX))));
        all.push((at::GS_STATE, of("GS_STATE", &of_stage(device, at::VERTEX))));
        all.push((at::CLIP_STATE, of("CLIP_STATE", &of_stage(device, at::CLIP))));
        let mut strips = of_stage(device, at::STRIPS_FANS).to_vec();
        strips.push(("Setup Viewport State Offset", BATCH + at::SF_VIEWPORT));
        all.push((at::SF_STATE, of("SF_STATE", &strips)));
        all.push((at::WM_STATE, of("WM_STATE", &of_pixel(device))));
    }
    all
}

/// Error states of every device with a draw and with a dispatch, under the first and the last kernel that captures memory.
pub fn variety() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for device in crate::i915_old::DEVICES {
        for era in [OldEra::V2_6_35, OldEra::V3_16] {
            let draw = OldWorkStates::draw(device).error_state(era).text();
            all.push((format!("{} {era:?} draw", device.name), draw));
            let dispatch = OldWorkStates::dispatch(device).error_state(era).text();
            all.push((format!("{} {era:?} dispatch", device.name), dispatch));
            if device.version.0 < 6 {
                let media = OldWorkStates::media(device, 1).error_state(era).text();
                all.push((format!("{} {era:?} media", device.name), media));
            }
        }
    }
    all
}
