//! Work of Intel GPUs with its states: a batch that draws or dispatches, the kernel that it runs, a binding table with a
//! surface, and the buffers that hold them. Commands and structures are composed by the names of the tables.

use crate::intel::{EngineState, MI_BATCH_BUFFER_END, TestDevice, batch_buffer_start, stream};
use unwedge_capture::intel::RingRegister;
use unwedge_hw::intel::{FieldLayout, IntelGpu, LayoutItem};
use unwedge_isa::eu::{Field, Generation, Instruction, Platform, program};

/// A stage that runs a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestStage {
    /// 3DSTATE_VS
    Vertex,
    /// 3DSTATE_HS
    Hull,
    /// 3DSTATE_DS
    Domain,
    /// 3DSTATE_GS
    Geometry,
    /// 3DSTATE_PS
    Pixel,
    /// 3DSTATE_TASK_SHADER, from gen12.5 on
    Task,
    /// 3DSTATE_MESH_SHADER, from gen12.5 on
    Mesh,
    /// A walker
    Compute,
}

impl TestStage {
    /// Every one.
    pub const ALL: [TestStage; 8] = [
        TestStage::Vertex,
        TestStage::Hull,
        TestStage::Domain,
        TestStage::Geometry,
        TestStage::Pixel,
        TestStage::Task,
        TestStage::Mesh,
        TestStage::Compute,
    ];

    /// The letters that commands have for it.
    fn letters(self) -> &'static str {
        match self {
            TestStage::Vertex => "VS",
            TestStage::Hull => "HS",
            TestStage::Domain => "DS",
            TestStage::Geometry => "GS",
            TestStage::Pixel => "PS",
            TestStage::Task => "TASK_SHADER",
            TestStage::Mesh => "MESH_SHADER",
            TestStage::Compute => "CS",
        }
    }

    /// Whether a device has it.
    pub fn is_of(self, device: TestDevice) -> bool {
        let mesh = matches!(self, TestStage::Task | TestStage::Mesh);
        let no_3d = device.name == "pvc";
        self == TestStage::Compute || !no_3d && (!mesh || gpu(device).number() >= 125)
    }
}

/// Where the states of some work are, from a base address on.
#[derive(Clone, Copy, Debug)]
pub struct StateAddresses {
    /// The kernel: Instruction Base Address is its page.
    pub kernel: u64,
    /// Binding table and surface states: Surface State Base Address.
    pub surface: u64,
    /// Descriptors: Dynamic State Base Address.
    pub dynamic: u64,
    /// The memory of the surface.
    pub memory: u64,
}

impl StateAddresses {
    /// The kernel's offset from Instruction Base Address.
    pub const KERNEL: u64 = 0x40;
    /// The surface state's offset from Surface State Base Address.
    pub const SURFACE: u64 = 0x80;
    /// The sampler's offset from Dynamic State Base Address.
    pub const SAMPLER: u64 = 0x400;
    /// The offset of constants from Dynamic State Base Address.
    pub const CONSTANTS: u64 = 0x800;

    /// In four buffers from a page on.
    pub fn from(base: u64) -> StateAddresses {
        let page = |n: u64| base + n * 0x10_0000;
        StateAddresses { kernel: page(0) + Self::KERNEL, surface: page(1), dynamic: page(2), memory: page(3) }
    }
}

fn gpu(device: TestDevice) -> IntelGpu {
    IntelGpu::of(device.version.0, device.version.1)
}

/// The instruction set of a device; `None` where the tables do not have it.
pub fn eu_platform(device: TestDevice) -> Option<Platform> {
    Platform::by_name(if device.name == "adlp" { "adl" } else { device.name }).ok()
}

/// A kernel of so many moves, and the end of its thread; without it where `ends` is false. Where the tables do not have the
/// instruction set it is some dwords that are not zero.
pub fn kernel(device: TestDevice, moves: usize, ends: bool) -> Vec<u32> {
    let moves: String =
        (0..moves).map(|n| format!("mov(8) g{}<1>UD g1<8,8,1>UD {{ align1 1Q }};", 20 + n % 64)).collect();
    code(device, &moves, ends).unwrap_or_else(|| vec![0x61; 16])
}

/// A kernel of a text, and the end of its thread if it `ends`. `None` where the tables do not have the instruction set, or it
/// does not have an instruction of the text.
pub fn code(device: TestDevice, text: &str, ends: bool) -> Option<Vec<u32>> {
    let platform = eu_platform(device)?;
    let end = match platform.generation() < Generation::Gen12 {
        true => {
            "send(8) null<1>UW g127<8,8,1>UD 0x82000010 thread_spawner MsgDesc: { align1 WE_all 1Q EOT };"
        }
        false => {
            "send(8) nullUD g126UD nullUD 0x02000000 0x00000000 thread_spawner MsgDesc: { align1 WE_all 1Q EOT };"
        }
    };
    let bytes = program::assemble(platform, &format!("{text}{}", if ends { end } else { "" })).ok()?;
    Some(bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

/// A kernel that jumps out of its code before its end.
pub fn kernel_that_jumps_out(device: TestDevice) -> Option<Vec<u32>> {
    let mut words = code(device, "L: while(8) JIP: L { align1 1Q };", true)?;
    let jump = words.get(..4)?.iter().rev().fold(0, |bits, word| bits << 32 | u128::from(*word));
    let mut inst = Instruction { bits: jump, platform: eu_platform(device)? };
    inst.set(Field::BranchJIP, 0x10000);
    for (word, bytes) in words.iter_mut().zip(inst.encode().chunks_exact(4)) {
        *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    Some(words)
}

/// A kernel that uses a result before it is there; `None` where the hardware waits by itself.
pub fn kernel_without_wait(device: TestDevice) -> Option<Vec<u32>> {
    eu_platform(device).filter(|platform| platform.generation() >= Generation::Gen12)?;
    let load = "send(8) g20UD g2UD nullUD 0x02180000 0x00000000 urb MsgDesc: { align1 1Q $3 };";
    code(device, &format!("{load} mov(8) g10<1>UD g20<8,8,1>UD {{ align1 1Q }};"), true)
}

/// Sets a field of a layout, also in the structures within and in the first element of groups. A field that points has the address; others have the number.
fn set(layout: FieldLayout, base: u32, words: &mut [u32], name: &str, value: u64) -> bool {
    layout.items().any(|item| match item {
        LayoutItem::Field { name: found, start, width, ty } if found == name && ty.structure().is_none() => {
            let (start, pointer) = (base + start, ty.is_address() || ty.is_offset());
            let raw = if pointer { value >> (start % 32) } else { value };
            for bit in 0..width.min(64) {
                let at = start + bit;
                if let Some(word) = words.get_mut(at as usize / 32) {
                    *word = *word & !(1 << (at % 32)) | ((raw >> bit & 1) as u32) << (at % 32);
                }
            }
            true
        }
        LayoutItem::Field { start, ty, .. } => {
            ty.structure().is_some_and(|inner| set(inner, base + start, words, name, value))
        }
        LayoutItem::Group { start, layout, .. } => set(layout, base + start, words, name, value),
    })
}

/// A command with its fields; nothing where the generation does not have it. Fields that it does not have are left out.
pub fn command(device: TestDevice, name: &str, fields: &[(&str, u64)]) -> Vec<u32> {
    let length = gpu(device).instruction_named(name).and_then(|found| found.usual_length());
    command_of(device, name, length.unwrap_or(1), fields)
}

/// A command of so many dwords with its fields, like [`command`].
pub fn command_of(device: TestDevice, name: &str, length: u32, fields: &[(&str, u64)]) -> Vec<u32> {
    let Some(found) = gpu(device).instruction_named(name) else { return Vec::new() };
    let mut words = vec![0; length as usize];
    words[0] = found.header(length).unwrap_or_default();
    for (field, value) in fields {
        set(found.layout(), 0, &mut words, field, *value);
    }
    words
}

/// A structure with its fields.
pub fn structure(device: TestDevice, name: &str, fields: &[(&str, u64)]) -> Vec<u32> {
    let Some(found) = gpu(device).structure(name) else { return Vec::new() };
    let mut words = vec![0; found.dwords() as usize];
    for (field, value) in fields {
        set(found.layout(), 0, &mut words, field, *value);
    }
    words
}

/// Work of one stage, and the memory that it uses.
#[derive(Clone, Debug)]
pub struct WorkStates {
    /// Where its states are.
    pub at: StateAddresses,
    /// The batch.
    pub batch: Vec<u32>,
    /// The dword of the batch that draws or dispatches.
    pub work: usize,
    /// The kernel.
    pub kernel: Vec<u32>,
    /// Binding table and surface state.
    pub surface: Vec<u32>,
    /// Descriptors, a sampler, constants.
    pub dynamic: Vec<u32>,
}

impl WorkStates {
    /// Of a stage of a device, its states from `base` on. The surface is a buffer of `bytes`.
    pub fn new(device: TestDevice, stage: TestStage, base: u64, bytes: u64) -> WorkStates {
        let at = StateAddresses::from(base);
        let bases = command(
            device,
            "STATE_BASE_ADDRESS",
            &[
                ("Surface State Base Address", at.surface),
                ("Surface State Base Address Modify Enable", 1),
                ("General State Base Address", at.dynamic),
                ("General State Base Address Modify Enable", 1),
                ("Dynamic State Base Address", at.dynamic),
                ("Dynamic State Base Address Modify Enable", 1),
                ("Instruction Base Address", at.kernel & !0xfff),
                ("Instruction Base Address Modify Enable", 1),
            ],
        );
        let of_stage = [
            ("Kernel Start Pointer", StateAddresses::KERNEL),
            ("Kernel Start Pointer 0", StateAddresses::KERNEL),
            ("Enable", 1),
            ("Function Enable", 1),
            ("Kernel 0 Enable", 1),
            ("16 Pixel Dispatch Enable", 1),
            ("SIMD8 Dispatch Enable", 1),
            ("SIMD Size", 1),
            ("Binding Table Entry Count", 1),
            ("Sampler Count", 1),
            ("Sampler State Pointer", StateAddresses::SAMPLER),
            ("Indirect Data Start Address", StateAddresses::CONSTANTS),
            ("Indirect Data Length", 64),
        ];
        let mut dynamic = Vec::new();
        let before;
        let work;
        if stage == TestStage::Compute && gpu(device).number() < 125 {
            dynamic = structure(device, "INTERFACE_DESCRIPTOR_DATA", &of_stage);
            let descriptors = command(
                device,
                "MEDIA_INTERFACE_DESCRIPTOR_LOAD",
                &[("Interface Descriptor Total Length", 32), ("Interface Descriptor Data Start Address", 0)],
            );
            let constants =
                [("CURBE Total Data Length", 64), ("CURBE Data Start Address", StateAddresses::CONSTANTS)];
            before = [command(device, "MEDIA_CURBE_LOAD", &constants), descriptors].concat();
            work = command(device, "GPGPU_WALKER", &[("SIMD Size", 1)]);
        } else if stage == TestStage::Compute {
            before = Vec::new();
            work = command(device, "COMPUTE_WALKER", &of_stage);
        } else {
            let letters = stage.letters();
            let table = format!("3DSTATE_BINDING_TABLE_POINTERS_{letters}");
            let pointers = command(device, &table, &[]);
            let samplers = format!("3DSTATE_SAMPLER_STATE_POINTERS_{letters}");
            let sampler = format!("Pointer to {letters} Sampler State");
            let samplers = command(device, &samplers, &[(&sampler, StateAddresses::SAMPLER)]);
            let constants = [("Read Length", 2), ("Buffer", at.dynamic + StateAddresses::CONSTANTS)];
            let constants = command(device, &format!("3DSTATE_CONSTANT_{letters}"), &constants);
            let shader = command(device, &format!("3DSTATE_{letters}"), &of_stage);
            before = [shader, pointers, samplers, constants].concat();
            work = command(device, "3DPRIMITIVE", &[]);
        }
        dynamic.resize(StateAddresses::SAMPLER as usize / 4, 0);
        let border = [("Border Color Pointer", 0x600), ("Min LOD", 1 << 8)];
        dynamic.extend(structure(device, "SAMPLER_STATE", &border));
        dynamic.resize(StateAddresses::CONSTANTS as usize / 4, 0);
        dynamic.extend([0x3f80_0000; 16]);
        let entries = bytes.saturating_sub(1);
        let surface_state = structure(
            device,
            "RENDER_SURFACE_STATE",
            &[
                ("Surface Type", 4),
                ("Surface Format", 0x1ff),
                ("Width", entries & 0x7f),
                ("Height", entries >> 7 & 0x3fff),
                ("Depth", entries >> 21),
                ("Surface Base Address", at.memory),
            ],
        );
        let mut surface = vec![0; StateAddresses::SURFACE as usize / 4];
        surface[0] = StateAddresses::SURFACE as u32;
        surface.extend(surface_state);
        let head = stream(&[&bases, &before]);
        let batch = stream(&[&head, &work, &[MI_BATCH_BUFFER_END]]);
        WorkStates { at, batch, work: head.len(), kernel: kernel(device, 3, true), surface, dynamic }
    }

    /// With other code.
    pub fn kernel(mut self, code: Vec<u32>) -> WorkStates {
        self.kernel = code;
        self
    }

    /// The render or compute engine of a dump at the command that works, with its batch at an address, and all memory but that
    /// of the surface.
    pub fn engine(&self, batch: u64) -> EngineState {
        let ring = stream(&[&[0, 0], &batch_buffer_start(batch), &[0, 0, 0]]);
        let code = [vec![0; StateAddresses::KERNEL as usize / 4], self.kernel.clone()].concat();
        EngineState::new("rcs0")
            .ring(0x10_0000, &ring, 0x14, 0x20)
            .set(RingRegister::Acthd, batch + 4 * self.work as u64)
            .set(RingRegister::Ipehr, self.batch[self.work].into())
            .set(RingRegister::Instdone, 0xffff_fffe)
            .batch(batch, &self.batch)
            .user(self.at.kernel & !0xfff, &code)
            .user(self.at.surface, &self.surface)
            .user(self.at.dynamic, &self.dynamic)
            .hung(1)
    }
}
