//! Primitive shaders that cull: which shaders may cull, in which two parts they run, and the words by which a driver says what is culled.
//!
//! The first part computes positions. Triangles that cannot be seen are dropped, together with vertices that no other triangle has. The second part computes the rest for the
//! vertices that are left, in lanes that differ from those of the first part. So nothing that depends on lanes, or that has an effect, may be in either part.

use crate::abi::Reads;
use crate::graphics::MemorySlots;
use crate::lower::geometry::{primitive_vertices, stored_components};
use crate::lower::keep_outputs;
use unwedge_shader::ir::{
    Builtin, Inst, Modes, Op, Payload, Primitive, Shader, SlotDir, Space, Stage, SystemValue, Traits,
};

/// Bits of the word of state.
pub(crate) const COUNTERCLOCKWISE: u32 = 1;
pub(crate) const CLOCKWISE: u32 = 2;
pub(crate) const DEGENERATE: u32 = 4;
pub(crate) const OUTSIDE: u32 = 8;
pub(crate) const SMALL: u32 = 16;
/// First bit and width of the exponent of the precision.
pub(crate) const PRECISION: (u32, u32) = (24, 8);

/// What is culled: [`Argument::CullState`](crate::abi::Argument::CullState) has it in one word.
///
/// Faces are those of the clip space with y up. A driver takes the front face, the modes, and the sign of the height of the viewport into account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CullState {
    /// Triangles whose vertices are counterclockwise.
    pub counterclockwise: bool,
    /// Triangles whose vertices are clockwise.
    pub clockwise: bool,
    /// Triangles of which two vertices have the same position.
    pub degenerate: bool,
    /// Triangles all of whose vertices are beyond one side of the view volume, left, right, above or below, or have no positive w.
    pub outside: bool,
    /// Triangles whose bounding box has no pixel centre in it. Not for multisampling.
    pub small: bool,
    /// Coordinates on the screen are exact to two to the power of this, in pixels.
    pub precision: i8,
}

impl CullState {
    /// The word that the program is given.
    pub fn word(self) -> u32 {
        let bits = [
            (self.counterclockwise, COUNTERCLOCKWISE),
            (self.clockwise, CLOCKWISE),
            (self.degenerate, DEGENERATE),
            (self.outside, OUTSIDE),
            (self.small, SMALL),
        ];
        let bits = bits.iter().filter(|(on, _)| *on).fold(0, |all, (_, bit)| all | bit);
        bits | u32::from(self.precision as u8) << PRECISION.0
    }
}

/// Whether a lowered shader may run in two parts: it is a vertex shader or an evaluation shader of triangles, stores a position, has no effects, and does not depend on which other lanes
/// are active. Each viewport has its own size, so with several of them nothing is culled. Transform feedback also captures invisible primitives.
pub(crate) fn may_cull(shader: &Shader, tessellation: Primitive) -> bool {
    use SystemValue as V;
    let func = shader.entry();
    let unmoved = |inst: Inst| match (func.op(inst), func.payload(inst)) {
        (Op::StoreSlot, Payload::Slot(access)) => {
            let slots = access.slot..access.slot.saturating_add(access.count);
            access.patch || slots.contains(&Builtin::ViewportIndex.slots().start)
        }
        // A part may lack the store whose value is loaded.
        (Op::LoadSlot, Payload::Slot(access)) => access.dir == SlotDir::Output,
        (Op::Store, Payload::Mem(mem)) => mem.space != Space::Scratch,
        (_, Payload::SysVal(value)) => matches!(
            value,
            V::SubgroupInvocation
                | V::SubgroupEqMask
                | V::SubgroupGeMask
                | V::SubgroupGtMask
                | V::SubgroupLeMask
                | V::SubgroupLtMask
        ),
        _ => {
            let traits = func.traits(inst);
            let effect = traits.has(Traits::EFFECT) && !traits.has(Traits::TERMINATOR);
            effect || traits.has(Traits::CONVERGENT)
        }
    };
    let triangles = match shader.info.stage {
        Stage::Vertex => true,
        Stage::TessEval => {
            shader.info.input_primitive.unwrap_or(tessellation) != Primitive::Isolines
                && !shader.info.modes.any(Modes::POINT_MODE)
        }
        _ => false,
    };
    triangles
        && !shader.info.modes.any(Modes::CAPTURES)
        && Reads::of(shader).outputs.contains(&POSITION)
        && !func.walk().any(unmoved)
}

/// Whether the triangles that a lowered geometry shader emits may be culled.
pub(crate) fn may_cull_emitted(shader: &Shader) -> bool {
    if shader.info.stage != Stage::Geometry || primitive_vertices(shader.info.output_primitive) != 3 {
        return false;
    }
    let stored = stored_components(shader.entry(), 0);
    let placed = stored.get(&POSITION).is_some_and(|components| components & POSITION_MASK == POSITION_MASK);
    placed && !stored.contains_key(&Builtin::ViewportIndex.slots().start)
}

/// x, y and w.
const POSITION_MASK: u32 = 0b1011;

const POSITION: u16 = Builtin::Position.slots().start;

/// The part that computes positions, and the one that computes the rest.
pub(crate) fn split(shader: &Shader) -> [Shader; 2] {
    let (position, rest) = Reads::of(shader).outputs.into_iter().partition(|slot| *slot == POSITION);
    [position, rest].map(|vertex| {
        let mut part = shader.clone();
        keep_outputs(&mut part, &MemorySlots { vertex, patch: Vec::new() });
        part
    })
}
