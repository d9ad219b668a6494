//! Interface slots: which slots an input or output has. A slot is four components of 32 bits.
//!
//! Slots depend on built-ins and locations alone, so the slots of two linked stages agree. Built-ins have the slots of
//! [`Builtin::slots`]; a location has the slot [`FIRST_LOCATION_SLOT`] plus its number. Slots of the patch are counted apart from those
//! of vertices. Facts: "Location and Component Assignment" of the Vulkan specification.

use super::entities::{TypeId, Var};
use super::shader::{Builtin, Shader, SystemValue, VarData, VarFlags};
use super::types::{Base, Type, TypeNode};
use std::ops::Range;
use unwedge_base::entity::SecondaryMap;

/// The slot of location 0.
pub const FIRST_LOCATION_SLOT: u16 = 32;

/// The most slots of a variable, and the most that an access chooses from. Stages have far fewer between them.
pub const MAX_ACCESS_SLOTS: u16 = 256;

/// The greatest index of a slot: there are two sources of blending and four streams.
pub const MAX_SLOT_INDEX: u8 = 3;

/// Components of a slot.
pub const SLOT_COMPONENTS: u32 = 4;

impl Builtin {
    /// The slots of a built-in input or output.
    pub const fn slots(self) -> Range<u16> {
        match self {
            Builtin::Position => 0..1,
            Builtin::PointSize => 1..2,
            Builtin::ClipDistance => 2..4,
            Builtin::CullDistance => 4..6,
            Builtin::PrimitiveId => 6..7,
            Builtin::Layer => 7..8,
            Builtin::ViewportIndex => 8..9,
            Builtin::PrimitiveShadingRate => 9..10,
            Builtin::TessLevelOuter => 10..11,
            Builtin::TessLevelInner => 11..12,
            Builtin::FragDepth => 12..13,
            Builtin::FragStencilRef => 13..14,
            Builtin::SampleMask => 14..15,
        }
    }

    /// Whether it is an integer. Integers are never interpolated.
    pub const fn is_integer(self) -> bool {
        use Builtin::*;
        matches!(
            self,
            PrimitiveId | Layer | ViewportIndex | PrimitiveShadingRate | FragStencilRef | SampleMask
        )
    }
}

impl SystemValue {
    /// The slot of an output that a fragment shader reads as a system value. If the stage before does not store it, the machine gives
    /// the value.
    pub const fn fragment_slot(self) -> Option<u16> {
        let builtin = match self {
            SystemValue::PrimitiveId => Builtin::PrimitiveId,
            SystemValue::Layer => Builtin::Layer,
            SystemValue::ViewportIndex => Builtin::ViewportIndex,
            _ => return None,
        };
        Some(builtin.slots().start)
    }
}

impl Type {
    /// Components of a slot that a lane takes: two of 64 bits, one of every other width.
    pub const fn lane_components(self) -> u32 {
        if matches!(self.base, Base::B64) { 2 } else { 1 }
    }
}

/// The slots of an input or output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VarSlots {
    /// The first slot.
    pub first: u16,
    /// How many slots there are, of one vertex.
    pub count: u16,
    /// The first component of every leaf.
    pub component: u8,
    /// Whether the elements of the array follow each other by component, as those of clip distances and tessellation levels do. The
    /// elements of other arrays start at a slot each.
    pub compact: bool,
    /// The type of one vertex.
    pub ty: TypeId,
}

/// The slots of all types and variables of a shader.
#[derive(Debug)]
pub struct SlotLayout<'a> {
    shader: &'a Shader,
    /// Slots of each type by the first component of its leaves; empty if no variable starts at that component.
    sizes: [SecondaryMap<TypeId, u32>; SLOT_COMPONENTS as usize],
    known: [bool; SLOT_COMPONENTS as usize],
}

impl<'a> SlotLayout<'a> {
    /// Lays out a valid shader.
    pub fn new(shader: &'a Shader) -> SlotLayout<'a> {
        let mut layout = SlotLayout { shader, sizes: Default::default(), known: [false; 4] };
        for data in shader.vars.values() {
            let component = usize::from(component(data));
            if data.storage.is_interface() && !layout.known[component] {
                layout.known[component] = true;
                layout.sizes[component] = sizes(shader, component as u32);
            }
        }
        layout
    }

    /// The slots of an input or output; `None` of other variables, and of one that has neither a location nor a built-in with so many
    /// slots, whose slots do not fit into 16 bits, or that has more than [`MAX_ACCESS_SLOTS`] slots.
    pub fn of(&self, var: Var) -> Option<VarSlots> {
        let data = &self.shader.vars[var];
        if !data.storage.is_interface() {
            return None;
        }
        let ty = match self.shader.types[data.ty] {
            TypeNode::Array { element, .. } if data.flags.has(VarFlags::ARRAYED) => element,
            _ if data.flags.has(VarFlags::ARRAYED) => return None,
            _ => data.ty,
        };
        let component = component(data);
        let compact = data.builtin.is_some() && is_compact(self.shader, ty);
        let count = if compact {
            let TypeNode::Array { len, .. } = self.shader.types[ty] else { return None };
            len.div_ceil(SLOT_COMPONENTS)
        } else {
            self.size(ty, component)
        };
        let range = match (data.builtin, data.location) {
            (Some(builtin), _) => builtin.slots(),
            (None, Some(location)) => {
                let first = u16::try_from(location).ok()?.checked_add(FIRST_LOCATION_SLOT)?;
                first..u16::MAX
            }
            (None, None) => return None,
        };
        let most = MAX_ACCESS_SLOTS.min(range.end - range.start);
        let count = u16::try_from(count).ok().filter(|count| *count <= most)?;
        Some(VarSlots { first: range.start, count, component, compact, ty })
    }

    /// How many slots a type has whose leaves start at a component; 0 if no variable starts at that component.
    pub fn size(&self, ty: TypeId, component: u8) -> u32 {
        self.sizes.get(usize::from(component)).map_or(0, |sizes| sizes[ty])
    }
}

/// The first component. Built-ins have none, and a valid shader has no more than four.
fn component(data: &VarData) -> u8 {
    if data.builtin.is_some() { 0 } else { data.component % SLOT_COMPONENTS as u8 }
}

fn is_compact(shader: &Shader, ty: TypeId) -> bool {
    match shader.types[ty] {
        TypeNode::Array { element, .. } => shader.types[element] == TypeNode::Leaf(Type::B32),
        _ => false,
    }
}

/// Slots of each type. Children come before parents.
fn sizes(shader: &Shader, component: u32) -> SecondaryMap<TypeId, u32> {
    let mut sizes = SecondaryMap::<TypeId, u32>::default();
    for (id, node) in shader.types.iter() {
        sizes[id] = match node {
            TypeNode::Leaf(ty) => {
                (component + u32::from(ty.lanes) * ty.lane_components()).div_ceil(SLOT_COMPONENTS)
            }
            TypeNode::Array { element, len } => sizes[*element].saturating_mul(*len),
            TypeNode::Struct(members) => {
                members.iter().fold(0, |sum: u32, member| sum.saturating_add(sizes[*member]))
            }
        };
    }
    sizes
}
