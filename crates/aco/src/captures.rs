//! What transform feedback writes: the components of outputs that are captured, dword by dword.

use crate::compile::CompileError;
use crate::graphics::MemorySlots;
use std::collections::BTreeSet;
use unwedge_shader::ir::{Base, Modes, Shader, SlotLayout, Storage, TypeId, TypeNode, VarSlots};

/// Buffers that may be written.
pub const BUFFERS: usize = 4;
/// Components of a slot.
const COMPONENTS: u32 = 4;
/// The most dwords that are captured of a vertex.
const MAX_WORDS: usize = 512;
/// The largest stride of a buffer that primitive shaders write.
const MAX_PRIMITIVE_STRIDE: u32 = 0xffff;

/// A component of an output that is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapturedWord {
    /// The vertex stream.
    pub stream: u8,
    /// The buffer.
    pub buffer: u8,
    /// Bytes from the start of the vertex in the buffer.
    pub offset: u32,
    /// The slot of the output.
    pub slot: u16,
    /// The component.
    pub component: u8,
}

/// What is captured of a shader's outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captures {
    /// Bytes of a vertex in each buffer; zero if nothing is captured there.
    pub strides: [u32; BUFFERS],
    /// By stream, buffer and offset.
    pub words: Vec<CapturedWord>,
}

impl Captures {
    /// The captures of the last stage before the rasterizer.
    ///
    /// # Errors
    ///
    /// Outputs of another width than 32 bits, buffers that do not exist, or too many captures.
    pub fn of(shader: &Shader) -> Result<Captures, CompileError> {
        let mut captures = Captures::default();
        if !shader.info.modes.any(Modes::CAPTURES) {
            return Ok(captures);
        }
        let layout = SlotLayout::new(shader);
        for (var, data) in shader.vars.iter().filter(|(_, data)| data.storage == Storage::Output) {
            let Some((buffer, stride, offset)) = data.capture else { continue };
            let (Some(slots), Some(own)) = (layout.of(var), captures.strides.get_mut(usize::from(buffer)))
            else {
                return Err(CompileError::Interface("transform feedback of this output"));
            };
            *own = (*own).max(stride);
            let word = CapturedWord {
                stream: data.index,
                buffer,
                offset,
                slot: slots.first,
                component: slots.component,
            };
            captures.leaves(shader, &layout, &slots, slots.ty, word)?;
        }
        if captures.words.iter().any(|word| !word.offset.is_multiple_of(4)) {
            return Err(CompileError::Interface(
                "transform feedback at an offset that is not a multiple of 4",
            ));
        }
        captures.words.sort_unstable();
        Ok(captures)
    }

    /// Adds the components of a type, from a component on. Returns the offset after them.
    fn leaves(
        &mut self,
        shader: &Shader,
        layout: &SlotLayout<'_>,
        slots: &VarSlots,
        ty: TypeId,
        first: CapturedWord,
    ) -> Result<u32, CompileError> {
        let mut word = first;
        match &shader.types[ty] {
            TypeNode::Leaf(leaf) if leaf.base == Base::B32 => {
                for _ in 0..leaf.lanes {
                    if self.words.len() == MAX_WORDS {
                        return Err(CompileError::Interface("transform feedback of more than 512 dwords"));
                    }
                    self.words.push(word);
                    word.component += 1;
                    word.offset = word.offset.saturating_add(4);
                }
            }
            TypeNode::Array { element, len, .. } => {
                let size = layout.size(*element, slots.component);
                if size == 0 && *len > 0 {
                    return Err(CompileError::Interface("transform feedback of outputs without components"));
                }
                for number in 0..*len {
                    if slots.compact {
                        word.slot = first.slot.saturating_add((number / COMPONENTS) as u16);
                        word.component = (number % COMPONENTS) as u8;
                    } else {
                        word.slot = first.slot.saturating_add((number.saturating_mul(size)) as u16);
                    }
                    word.offset = self.leaves(shader, layout, slots, *element, word)?;
                }
            }
            _ => return Err(CompileError::Interface("transform feedback of outputs of this type")),
        }
        Ok(word.offset)
    }

    /// What is captured of a stream in a buffer.
    pub fn part(&self, stream: u8, buffer: u8) -> impl Iterator<Item = &CapturedWord> {
        self.words.iter().filter(move |word| word.stream == stream && word.buffer == buffer)
    }

    /// Whether anything of a stream is captured.
    pub fn has_stream(&self, stream: u8) -> bool {
        self.words.iter().any(|word| word.stream == stream)
    }

    /// The captured slots of a stream.
    pub(crate) fn slots(&self, stream: u8) -> MemorySlots {
        let own = self.words.iter().filter(|word| word.stream == stream);
        MemorySlots::of(&own.map(|word| word.slot).collect(), &BTreeSet::new())
    }

    /// The buffers to which outputs of a stream are captured.
    pub(crate) fn buffers(&self, stream: u8) -> Vec<u8> {
        (0..BUFFERS as u8).filter(|buffer| self.part(stream, *buffer).next().is_some()).collect()
    }

    /// Refuses captures that primitive shaders, which count the bytes of buffers themselves, do not support.
    pub(crate) fn check_primitives(&self) -> Result<(), CompileError> {
        for (buffer, stride) in (0..).zip(self.strides) {
            let streams: BTreeSet<u8> =
                self.words.iter().filter(|word| word.buffer == buffer).map(|word| word.stream).collect();
            if streams.len() > 1 {
                return Err(CompileError::Interface("transform feedback of several streams in one buffer"));
            }
            if !streams.is_empty() && !(1..=MAX_PRIMITIVE_STRIDE).contains(&stride) {
                return Err(CompileError::Interface(
                    "transform feedback with a stride of zero or more than 65,535 bytes",
                ));
            }
        }
        Ok(())
    }
}
