//! How a kernel of HSA starts: registers by its descriptor, arguments by its metadata, memory as a runtime lays it out.
//!
//! Never: files. Facts: LLVM's `AMDGPUUsage`, "Code Object Metadata" and "Kernel Dispatch".

use crate::amdgcn::{
    Dispatch, Initial, MapError, PRIVATE_APERTURE, SCRATCH_BUFFER, SHARED_APERTURE, SimMemory,
};
use std::fmt;
use unwedge_capture::elf::metadata::KernelArgument;
use unwedge_capture::elf::{CodeObject, ElfSectionKind};
use unwedge_isa::amdgcn::entry::{KernelEntry, SgprPreset};
use unwedge_isa::amdgcn::{Gfx, Gpu};

/// What a launch takes from its caller rather than from the kernel.
#[derive(Debug, Clone, Default)]
pub struct LaunchOptions<'a> {
    /// The bytes of the arguments; the rest, up to what the kernel reads, is zero.
    pub kernarg: Option<Vec<u8>>,
    /// Explicit arguments in their order as text: whole numbers (decimal, or hexadecimal after `0x`) fill up to eight
    /// bytes, those with a point are floats of the argument's size.
    pub values: &'a [String],
    /// The dispatch says how much LDS there is, not the kernel.
    pub keep_lds: bool,
    /// The dispatch says what MODE is, not the kernel.
    pub keep_mode: bool,
}

/// Why a kernel cannot be launched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// Something is mapped already where a part of the kernel's surroundings belongs.
    #[error(transparent)]
    Map(#[from] MapError),
    /// More values than arguments.
    #[error("{kernel} has no argument for --arg {value}")]
    NoArgument {
        /// The kernel.
        kernel: String,
        /// The first value too many.
        value: String,
    },
    /// The object has no metadata about the kernel's arguments.
    #[error("where {0} has its arguments is not known: give their bytes with --kernarg")]
    NoMetadata(String),
    /// A number is too large for its argument.
    #[error("{value} does not fit into an argument of {size} bytes")]
    TooLarge {
        /// The value.
        value: String,
        /// Bytes of the argument.
        size: usize,
    },
    /// An argument of this size cannot be written as a number.
    #[error("an argument of {size} bytes cannot be `{value}`: give all with --kernarg")]
    NotThisSize {
        /// The value.
        value: String,
        /// Bytes of the argument.
        size: usize,
    },
    /// A value that is not a number.
    #[error("`{0}` is not a number")]
    NotANumber(String),
}

/// What a launched kernel may miss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchWarning {
    /// The kernel asks for the wave's position in its workgroup, which is not emulated; this scalar register is not set.
    WorkgroupInfo {
        /// The kernel.
        kernel: String,
        /// Number of the scalar register.
        register: u16,
    },
    /// An argument was not given, and is zero.
    ZeroArgument {
        /// The kernel.
        kernel: String,
        /// Its number, from 1.
        number: usize,
        /// Its name, if the metadata has one.
        name: String,
        /// Its bytes.
        size: u32,
    },
}

impl fmt::Display for LaunchWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchWarning::WorkgroupInfo { kernel, register } => {
                write!(f, "{kernel} asks for the wave's place in its workgroup: s{register} holds nothing")
            }
            LaunchWarning::ZeroArgument { kernel, number, name, size } => {
                write!(f, "{kernel}: argument {number}")?;
                if !name.is_empty() {
                    write!(f, " ({name})")?;
                }
                write!(f, ", of {size} bytes, is not given: it is zero")
            }
        }
    }
}

/// Where the arguments are.
const ARGUMENTS: u64 = 0x7e00_0000_0000;
/// Where the packet is that asks for the dispatch.
const PACKET: u64 = 0x7e10_0000_0000;
/// Where the queue is.
const QUEUE: u64 = 0x7e20_0000_0000;
/// Bytes of arguments a kernel may have.
pub const MAX_KERNARG: usize = 1 << 20;

/// Maps what a linked object holds, `base` bytes after the addresses it was linked for.
///
/// # Errors
///
/// [`MapError`] where something is mapped already.
pub fn map(object: &CodeObject<'_>, base: u64, memory: &mut SimMemory) -> Result<(), MapError> {
    for (index, section) in object.sections.iter().enumerate() {
        let kinds = [ElfSectionKind::Code, ElfSectionKind::ReadOnly, ElfSectionKind::Data];
        if !kinds.contains(&section.kind) || section.address == 0 || section.bytes.is_empty() {
            continue;
        }
        let mut bytes = section.bytes.to_vec();
        for pointer in object.pointers.iter().filter(|p| p.section == index) {
            let at = usize::try_from(pointer.offset).ok();
            let place = at.and_then(|at| bytes.get_mut(at..)).and_then(|rest| rest.first_chunk_mut::<8>());
            if let Some(place) = place {
                *place = base.wrapping_add(pointer.address).to_le_bytes();
            }
        }
        memory.map(base.wrapping_add(section.address), bytes)?;
    }
    Ok(())
}

/// Sets up what a kernel finds when it starts, and says what it will miss.
///
/// # Errors
///
/// [`LaunchError`] where memory is taken, or where the arguments do not fit the kernel.
pub fn prepare(
    object: &CodeObject<'_>,
    kernel: &str,
    entry: &KernelEntry,
    gpu: &Gpu,
    options: &LaunchOptions<'_>,
    made: &mut Dispatch,
    memory: &mut SimMemory,
) -> Result<Vec<LaunchWarning>, LaunchError> {
    let (arguments, mut warnings) = arguments(object, kernel, entry, options, made)?;
    if !arguments.is_empty() {
        memory.map(ARGUMENTS, arguments)?;
    }
    if !options.keep_lds {
        made.lds = entry.lds;
    }
    made.scratch = made.scratch.max(entry.scratch);
    if !options.keep_mode {
        made.mode = entry.mode;
    }
    made.group_id_in_ttmp = entry.place_in_ttmp;
    for &(first, count, given) in &entry.scalars {
        let mut set = |value: u64| {
            made.scalars
                .extend((0..u16::from(count).min(2)).map(|i| (first.0 + i, (value >> (32 * i)) as u32)));
        };
        match given {
            SgprPreset::KernargSegmentPtr => set(ARGUMENTS),
            SgprPreset::DispatchPtr => set(PACKET),
            SgprPreset::DispatchId => set(0),
            SgprPreset::PrivateSegmentSize => set(entry.scratch.into()),
            // A wave has scratch of its own, wherever that of others lies.
            SgprPreset::FlatScratchInit | SgprPreset::ScratchOffset => set(0),
            SgprPreset::PrivateSegmentBuffer => {
                made.scalars.extend((first.0..).zip(scratch_buffer(made.scratch, gpu)));
            }
            SgprPreset::QueuePtr => set(QUEUE),
            SgprPreset::WorkgroupId(axis) => made.group_id[usize::from(axis % 3)] = Some(first.0),
            SgprPreset::WorkgroupInfo => {
                warnings.push(LaunchWarning::WorkgroupInfo { kernel: kernel.to_owned(), register: first.0 });
            }
        }
    }
    memory.map(PACKET, packet(entry, made))?;
    memory.map(QUEUE, queue())?;
    if entry.packed {
        made.vectors.push((0, Initial::PackedLocalIds));
    } else {
        made.vectors.extend((0..entry.axes).map(|axis| (axis, Initial::LocalId(axis))));
    }
    Ok(warnings)
}

/// The descriptor of scratch: raw, each lane's dwords a wave apart.
fn scratch_buffer(bytes: u32, gpu: &Gpu) -> [u32; 4] {
    let (lanes, index_stride) = if gpu.wave64() { (64, 3) } else { (32, 2) };
    let swizzle = 1 << 31;
    let add_tid = 1 << 23;
    let element_of_4 = if gpu.generation() <= Gfx::Gfx8 { 1 << 19 } else { 0 };
    let raw = if gpu.generation() >= Gfx::Gfx10 { 3 << 28 } else { 0 };
    [
        SCRATCH_BUFFER as u32,
        (SCRATCH_BUFFER >> 32) as u32 | swizzle,
        bytes.saturating_mul(lanes),
        index_stride << 21 | add_tid | element_of_4 | raw,
    ]
}

/// What kernels read of a queue: the upper dwords of LDS and scratch as flat addresses.
fn queue() -> Vec<u8> {
    let mut queue = vec![0; 128];
    queue[64..68].copy_from_slice(&((SHARED_APERTURE >> 32) as u32).to_le_bytes());
    queue[68..72].copy_from_slice(&((PRIVATE_APERTURE >> 32) as u32).to_le_bytes());
    queue
}

/// The packet of a dispatch.
fn packet(entry: &KernelEntry, made: &Dispatch) -> Vec<u8> {
    let mut packet = vec![0; 64];
    let mut put = |at: usize, bytes: &[u8]| packet[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &[2]);
    put(2, &[dimensions(made) as u8]);
    for axis in 0..3 {
        put(4 + 2 * axis, &(made.size[axis] as u16).to_le_bytes());
        put(12 + 4 * axis, &made.size[axis].wrapping_mul(made.groups[axis]).to_le_bytes());
    }
    put(24, &entry.scratch.to_le_bytes());
    put(28, &made.lds.to_le_bytes());
    put(40, &ARGUMENTS.to_le_bytes());
    packet
}

fn dimensions(made: &Dispatch) -> u16 {
    let beyond = |axis: usize| made.groups[axis] > 1 || made.size[axis] > 1;
    1 + u16::from(beyond(1) || beyond(2)) + u16::from(beyond(2))
}

/// The bytes of the arguments, and which of them nobody gave.
fn arguments(
    object: &CodeObject<'_>,
    kernel: &str,
    entry: &KernelEntry,
    options: &LaunchOptions<'_>,
    made: &Dispatch,
) -> Result<(Vec<u8>, Vec<LaunchWarning>), LaunchError> {
    let known = object.arguments(kernel);
    let mut bytes = options.kernarg.clone().unwrap_or_default();
    let ends = known.iter().flatten().map(|a| a.offset.saturating_add(a.size)).max().unwrap_or(0);
    let least = (ends.max(entry.arguments) as usize).min(MAX_KERNARG);
    if bytes.len() < least {
        bytes.resize(least, 0);
    }
    let mut put = |argument: &KernelArgument, value: &[u8]| {
        let at = argument.offset as usize;
        let place = at.checked_add(argument.size as usize).and_then(|end| bytes.get_mut(at..end));
        place.into_iter().flatten().zip(value).for_each(|(place, byte)| *place = *byte);
    };
    let hidden = |argument: &&KernelArgument| argument.kind.starts_with("hidden_");
    for argument in known.iter().flatten().filter(hidden) {
        put(argument, &implicit(&argument.kind, made).to_le_bytes());
    }
    let mut explicit = known.iter().flatten().filter(|a| !hidden(a));
    for text in options.values {
        let Some(argument) = explicit.next() else {
            return Err(match known {
                Some(_) => LaunchError::NoArgument { kernel: kernel.to_owned(), value: text.clone() },
                None => LaunchError::NoMetadata(kernel.to_owned()),
            });
        };
        put(argument, &value(text, argument)?);
    }
    let mut warnings = Vec::new();
    if let (Some(argument), None) = (explicit.next(), &options.kernarg) {
        warnings.push(LaunchWarning::ZeroArgument {
            kernel: kernel.to_owned(),
            number: options.values.len() + 1,
            name: argument.name.clone(),
            size: argument.size,
        });
    }
    Ok((bytes, warnings))
}

/// What a runtime passes without being asked; 0 for what there is not here.
fn implicit(kind: &str, made: &Dispatch) -> u64 {
    let axis = match kind.as_bytes() {
        [.., b'_', axis @ b'x'..=b'z'] => usize::from(axis - b'x'),
        _ => 0,
    };
    match kind {
        "hidden_block_count_x" | "hidden_block_count_y" | "hidden_block_count_z" => made.groups[axis].into(),
        "hidden_group_size_x" | "hidden_group_size_y" | "hidden_group_size_z" => made.size[axis].into(),
        "hidden_grid_dims" => dimensions(made).into(),
        "hidden_shared_base" => SHARED_APERTURE >> 32,
        "hidden_private_base" => PRIVATE_APERTURE >> 32,
        "hidden_queue_ptr" => QUEUE,
        _ => 0,
    }
}

/// The bytes of a value: whole numbers fill up to eight bytes, those with a point are floats of the argument's size.
fn value(text: &str, argument: &KernelArgument) -> Result<Vec<u8>, LaunchError> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let whole = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    };
    let size = argument.size as usize;
    if let Some(whole) = whole.filter(|_| size <= 8) {
        let value = if negative { whole.wrapping_neg() } else { whole };
        let held = value.to_le_bytes();
        let sign = if negative { 0xff } else { 0 };
        return match held.get(size..).is_none_or(|rest| rest.iter().all(|byte| *byte == sign)) {
            true => Ok(held[..size].to_vec()),
            false => Err(LaunchError::TooLarge { value: text.to_owned(), size }),
        };
    }
    match (text.parse::<f64>(), size) {
        (Ok(float), 4) => Ok((float as f32).to_le_bytes().to_vec()),
        (Ok(float), 8) => Ok(float.to_le_bytes().to_vec()),
        (Ok(_), _) => Err(LaunchError::NotThisSize { value: text.to_owned(), size }),
        (Err(_), _) => Err(LaunchError::NotANumber(text.to_owned())),
    }
}
