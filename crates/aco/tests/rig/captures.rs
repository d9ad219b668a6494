//! Transform feedback in tests: buffers that it writes, and what has to be in them.

use super::recorded::Problem;
use unwedge_aco::Options;
use unwedge_aco::abi::{Argument, Interface};
use unwedge_shader::interp::{InterfaceSlot, Slots};
use unwedge_shader::ir::{Base, Modes, Shader, Storage, TypeId, TypeNode, VarFlags};
use unwedge_sim::amdgcn::SimMemory;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::pack::bytes;

const BUFFERS: u32 = 4;
pub(super) const TABLE: u64 = 0x000c_0000;
/// The counters of primitive shaders in memory.
pub(super) const STATE: u64 = 0x000c_8000;
pub(super) const MEMORY: u64 = 0x6000_0000;
pub(super) const STRIDE: u64 = 0x0100_0000;
pub(super) const BYTES: usize = 1 << 16;
pub(super) const NOTHING: u32 = 0xcdcd_cdcd;
/// The vertex that is captured first, and the dword at which a buffer begins.
const INDEX: u32 = 3;
const OFFSET: u32 = 5;

/// Dwords of a type; `None` if it is not made of 32 bits and arrays.
fn dwords(shader: &Shader, ty: TypeId) -> Option<u32> {
    match &shader.types[ty] {
        TypeNode::Leaf(leaf) => (leaf.base == Base::B32).then_some(leaf.lanes.into()),
        TypeNode::Array { element, len } => Some(dwords(shader, *element)? * len),
        TypeNode::Struct(_) => None,
    }
}

/// An output that is captured: from an offset in a buffer on, so many dwords.
#[derive(Debug, Clone, Copy)]
pub struct CapturedOutput {
    pub buffer: u8,
    pub offset: u32,
    pub stride: u32,
    pub dwords: u32,
    pub stream: u8,
    pub location: Option<u32>,
}

/// Captures outputs of a shader, those of a stream in a buffer of its own.
pub fn capture_outputs(shader: &mut Shader, rng: &mut Rng) -> Vec<CapturedOutput> {
    let sizes: Vec<_> = shader
        .vars
        .iter()
        .filter(|(_, data)| data.storage == Storage::Output)
        .filter_map(|(var, data)| Some((var, dwords(shader, data.ty)?)))
        .collect();
    let mut ends = [0; BUFFERS as usize];
    for (var, size) in &sizes {
        let data = &mut shader.vars[*var];
        // Streams have the buffers of even and odd numbers.
        let buffer = data.index + 2 * rng.below(2) as u8;
        let end = &mut ends[usize::from(buffer)];
        *end += rng.below(2) as u32;
        data.capture = Some((buffer, 0, *end * 4));
        data.flags = data.flags.or(VarFlags::CAPTURED);
        *end += size;
    }
    shader.info.modes = shader.info.modes.or(Modes::CAPTURES);
    let mut outputs = Vec::new();
    for (var, dwords) in sizes {
        let data = &mut shader.vars[var];
        let Some((buffer, stride, offset)) = &mut data.capture else { continue };
        *stride = (ends[usize::from(*buffer)] + 1) * 4;
        let (buffer, stride, offset) = (*buffer, *stride, *offset);
        outputs.push(CapturedOutput {
            buffer,
            offset,
            stride,
            dwords,
            stream: data.index,
            location: data.location,
        });
    }
    outputs
}

/// A scalar register of a program that captures so many vertices of a stream, after so many.
pub(super) fn word(argument: Argument, count: usize, stream: u8, before: usize) -> Option<u32> {
    Some(match argument {
        Argument::CaptureBuffers => TABLE as u32,
        Argument::CaptureState => STATE as u32,
        Argument::CaptureConfig => (count as u32) << 16 | u32::from(stream) << 24 | 0x8000,
        Argument::CaptureIndex => INDEX + before as u32,
        Argument::CaptureOffset(buffer) => OFFSET + u32::from(buffer),
        _ => return None,
    })
}

/// Maps the buffers.
pub(super) fn map(memory: &mut SimMemory, options: &Options) {
    let generation = options.gpu.generation();
    let high = u64::from(options.address_high) << 32;
    let mut table = Vec::new();
    for buffer in 0..u64::from(BUFFERS) {
        let base = MEMORY + buffer * STRIDE;
        table.extend(super::descriptor(base, BYTES, generation));
        memory.map(base, bytes(&[NOTHING; BYTES / 4])).expect("free");
    }
    memory.map(high | TABLE, bytes(&table)).expect("free");
}

/// Compares buffers with the vertices that had to be captured, by stream.
pub(super) fn compare<'s>(
    memory: &SimMemory,
    interface: &Interface,
    vertices: impl Fn(u8) -> Vec<&'s Slots>,
    same: &dyn Fn(&InterfaceSlot, usize, u32, u32) -> bool,
) -> Result<(), Problem> {
    let captures = &interface.captures;
    if captures.words.is_empty() {
        return Ok(());
    }
    for buffer in 0..BUFFERS as u8 {
        // A dword that is undefined may be anything.
        let mut wanted: Vec<Option<(u32, InterfaceSlot, usize)>> = Vec::new();
        let none = InterfaceSlot { slot: 0, vertex: 0, patch: false, index: 0 };
        wanted.resize(BYTES / 4, Some((NOTHING, none, 0)));
        for word in captures.words.iter().filter(|word| word.buffer == buffer) {
            for (number, slots) in (0..).zip(vertices(word.stream)) {
                let begin = (OFFSET + u32::from(buffer)) * 4;
                let at = begin + (INDEX + number) * captures.strides[usize::from(buffer)] + word.offset;
                let key = InterfaceSlot { slot: word.slot.into(), index: word.stream, ..none };
                let component = usize::from(word.component);
                let value = slots.get(&key).and_then(|words| words[component]);
                wanted[at as usize / 4] = value.map(|value| (value, key, component));
            }
        }
        let base = MEMORY + u64::from(buffer) * STRIDE;
        let content = memory.get(base, BYTES).unwrap_or_default();
        for (at, (own, wanted)) in content.chunks_exact(4).zip(&wanted).enumerate() {
            let found = u32::from_le_bytes([own[0], own[1], own[2], own[3]]);
            if let Some((value, key, component)) = wanted
                && found != *value
                && (*value == NOTHING || !same(key, *component, found, *value))
            {
                return Err(("capture", format!("buffer {buffer}, dword {at}: {found:#x}, not {value:#x}")));
            }
        }
    }
    Ok(())
}
