//! Layouts and the values of their fields.
//!
//! A layout is a list of fields and groups; a field may be a structure with a layout of its own. [`FieldLayout::values`] walks
//! all of it over dwords as they lie in memory, without allocating. Bits are counted from bit 0 of the first dword.

use super::layout::{item, kind};
use super::{IntelEnum, string, word};

/// Fields of a command, structure or register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldLayout {
    at: u32,
}

/// A part of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutItem {
    /// A field.
    Field {
        /// Its name; empty for bits that must have one value.
        name: &'static str,
        /// Lowest bit.
        start: u32,
        /// Bits.
        width: u32,
        /// How they read.
        ty: IntelType,
    },
    /// Elements of one layout, one behind the other.
    Group {
        /// Lowest bit of the first.
        start: u32,
        /// How many; `None`: to the end of the command.
        count: Option<u32>,
        /// Bits of each.
        bits: u32,
        /// What is in each.
        layout: FieldLayout,
    },
}

impl FieldLayout {
    pub(super) fn at(at: u32) -> FieldLayout {
        FieldLayout { at }
    }

    fn len(self) -> u32 {
        if self.at == 0 { 0 } else { word(self.at) }
    }

    fn slot(self, index: u32, slot: u32) -> u32 {
        word(self.at + 1 + index * item::SIZE + slot)
    }

    fn item(self, index: u32) -> LayoutItem {
        let (start, width) = (self.slot(index, item::START), self.slot(index, item::WIDTH));
        let ty = IntelType { bits: self.slot(index, item::KIND), payload: self.slot(index, item::PAYLOAD) };
        if ty.kind() == kind::GROUP {
            let count = Some(word(ty.payload)).filter(|&count| count != 0);
            return LayoutItem::Group {
                start,
                count,
                bits: width,
                layout: FieldLayout { at: word(ty.payload + 1) },
            };
        }
        LayoutItem::Field { name: string(self.slot(index, item::NAME)), start, width, ty }
    }

    /// Fields and groups, as the tables order them.
    pub fn items(self) -> LayoutItems {
        LayoutItems { layout: self, next: 0 }
    }

    /// Its own fields, without groups and what is in them.
    pub fn fields(self) -> LayoutFields {
        LayoutFields { items: self.items() }
    }

    /// Every field with its value, structures before their fields. `length` is how many dwords it really has: what lies
    /// behind is left out. `words` is what is known of them; a field with bits behind its end is unknown.
    pub fn values(self, words: &[u32], length: u32) -> LayoutValues<'_> {
        let mut values = LayoutValues { words, frames: [LayoutFrame::EMPTY; MAX_FRAMES], depth: 1 };
        if let Some(frame) = values.frames.first_mut() {
            *frame = LayoutFrame { layout: self, limit: length.saturating_mul(32), ..LayoutFrame::EMPTY };
        }
        values
    }

    /// The value of one of its own fields: `layout.value("Base Address", words)`. `None` when there is no such field, or
    /// the words do not reach so far.
    pub fn value(self, name: &str, words: &[u32]) -> Option<IntelValue> {
        self.items().find_map(|item| match item {
            LayoutItem::Field { name: found, start, width, ty } if found == name => {
                read(words, start, width).map(|raw| ty.value(raw, start, width))
            }
            _ => None,
        })
    }
}

/// Iterator over a layout's items.
#[derive(Clone, Debug)]
pub struct LayoutItems {
    layout: FieldLayout,
    next: u32,
}

impl Iterator for LayoutItems {
    type Item = LayoutItem;

    fn next(&mut self) -> Option<LayoutItem> {
        let index = self.next;
        (index < self.layout.len()).then(|| {
            self.next += 1;
            self.layout.item(index)
        })
    }
}

/// Iterator over the fields a layout has itself: name, lowest bit, bits, type.
#[derive(Clone, Debug)]
pub struct LayoutFields {
    items: LayoutItems,
}

impl Iterator for LayoutFields {
    type Item = (&'static str, u32, u32, IntelType);

    fn next(&mut self) -> Option<Self::Item> {
        self.items.find_map(|item| match item {
            LayoutItem::Field { name, start, width, ty } => Some((name, start, width, ty)),
            LayoutItem::Group { .. } => None,
        })
    }
}

/// How bits read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntelType {
    bits: u32,
    payload: u32,
}

/// A decoded value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IntelValue {
    /// A number without a sign.
    Uint(u64),
    /// A number with one.
    Int(i64),
    /// A flag.
    Bool(bool),
    /// A number whose value has a name.
    Enum(u64, &'static str),
    /// Fixed or floating point.
    Float(f64),
    /// An address: the bits in place, those below the field zero.
    Address(u64),
    /// An offset from a base address, as an address.
    Offset(u64),
    /// Bits that must be zero, and are not.
    NotZero(u64),
    /// Bits that must be one, and are not all.
    NotOne(u64),
    /// Bits that are as they must be.
    AsRequired,
    /// Fields, which follow.
    Struct,
    /// More than 64 bits without a structure.
    Wide,
}

impl IntelValue {
    /// The bits of a value that is a number, address or flag.
    pub fn number(self) -> Option<u64> {
        match self {
            IntelValue::Uint(n) | IntelValue::Enum(n, _) | IntelValue::Address(n) | IntelValue::Offset(n) => {
                Some(n)
            }
            IntelValue::Int(n) => Some(n as u64),
            IntelValue::Bool(b) => Some(u64::from(b)),
            _ => None,
        }
    }
}

impl IntelType {
    fn kind(self) -> u32 {
        self.bits & 0xff
    }

    /// The names of its values.
    pub fn enumeration(self) -> Option<IntelEnum> {
        let named = !matches!(self.kind(), kind::STRUCT | kind::GROUP) && self.payload != 0;
        named.then_some(IntelEnum { at: self.payload })
    }

    /// The layout of a structure.
    pub fn structure(self) -> Option<FieldLayout> {
        (self.kind() == kind::STRUCT).then_some(FieldLayout { at: self.payload })
    }

    /// It is an address.
    pub fn is_address(self) -> bool {
        self.kind() == kind::ADDRESS
    }

    /// It is an offset from a base address.
    pub fn is_offset(self) -> bool {
        self.kind() == kind::OFFSET
    }

    /// It is a flag.
    pub fn is_bool(self) -> bool {
        self.kind() == kind::BOOL
    }

    /// Bits that must have one value.
    pub fn is_required(self) -> bool {
        matches!(self.kind(), kind::ZERO | kind::ONE)
    }

    /// The meaning of `width` bits that start at bit `start`.
    pub fn value(self, raw: u64, start: u32, width: u32) -> IntelValue {
        if let Some(name) = self.enumeration().and_then(|names| names.name_of(raw)) {
            return IntelValue::Enum(raw, name);
        }
        let ones = ones(width);
        let signed = || {
            let shift = 64 - width.clamp(1, 64);
            (raw << shift) as i64 >> shift
        };
        let fraction = || 2f64.powi(-((self.bits >> 8 & 0xff) as i32));
        match self.kind() {
            kind::STRUCT => IntelValue::Struct,
            _ if width > 64 => IntelValue::Wide,
            kind::INT => IntelValue::Int(signed()),
            kind::BOOL if width == 1 => IntelValue::Bool(raw != 0),
            kind::FLOAT if width == 32 => IntelValue::Float(f64::from(f32::from_bits(raw as u32))),
            kind::UFIXED => IntelValue::Float(raw as f64 * fraction()),
            kind::SFIXED => IntelValue::Float(signed() as f64 * fraction()),
            kind::ADDRESS => IntelValue::Address(raw << (start % 32)),
            kind::OFFSET => IntelValue::Offset(raw << (start % 32)),
            kind::ZERO if raw != 0 => IntelValue::NotZero(raw),
            kind::ONE if raw != ones => IntelValue::NotOne(raw),
            kind::ZERO | kind::ONE => IntelValue::AsRequired,
            _ => IntelValue::Uint(raw),
        }
    }
}

fn ones(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// Up to 64 bits; `None` where the words do not reach so far. Of wider fields, the lowest.
fn read(words: &[u32], start: u32, width: u32) -> Option<u64> {
    let last = start.checked_add(width)?.checked_sub(1)? / 32;
    let first = start / 32;
    let words = words.get(first as usize..=last as usize)?;
    let all = words.iter().take(3).rev().fold(0u128, |all, &word| all << 32 | u128::from(word));
    Some((all >> (start % 32)) as u64 & ones(width))
}

/// A field and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FieldValue {
    /// Its name; empty for bits that must have one value.
    pub name: &'static str,
    /// Structures it lies in.
    pub depth: u32,
    /// Lowest bit, from the start of it all.
    pub start: u32,
    /// Bits.
    pub width: u32,
    /// How they read.
    pub ty: IntelType,
    /// The bits, shifted down; `None` when they are not known. The lowest 64 of a wider field.
    pub raw: Option<u64>,
    indices: [u32; MAX_INDICES],
    index_count: u32,
}

impl FieldValue {
    /// What it means; `None` when its bits are not known.
    pub fn value(&self) -> Option<IntelValue> {
        if self.ty.structure().is_some() {
            return Some(IntelValue::Struct);
        }
        self.raw.map(|raw| self.ty.value(raw, self.start, self.width))
    }

    /// Which elements of the groups it lies in, within the structure it lies in.
    pub fn indices(&self) -> &[u32] {
        self.indices.get(..self.index_count as usize).unwrap_or_default()
    }
}

/// Structures and groups nest less deeply than this; building the tables sees to it.
const MAX_FRAMES: usize = 12;
const MAX_INDICES: usize = 4;

#[derive(Clone, Copy, Debug)]
struct LayoutFrame {
    layout: FieldLayout,
    next: u32,
    base: u32,
    /// Bits from here on do not belong to it.
    limit: u32,
    /// Bits of an element when this is a group; 0 for a structure.
    stride: u32,
    element: u32,
    elements: u32,
}

impl LayoutFrame {
    const EMPTY: LayoutFrame = LayoutFrame {
        layout: FieldLayout { at: 0 },
        next: 0,
        base: 0,
        limit: 0,
        stride: 0,
        element: 0,
        elements: 0,
    };
}

/// Iterator over all fields with their values.
#[derive(Clone, Debug)]
pub struct LayoutValues<'w> {
    words: &'w [u32],
    frames: [LayoutFrame; MAX_FRAMES],
    depth: usize,
}

impl LayoutValues<'_> {
    /// Of no layout.
    pub fn none() -> Self {
        LayoutValues { words: &[], frames: [LayoutFrame::EMPTY; MAX_FRAMES], depth: 0 }
    }

    fn push(&mut self, frame: LayoutFrame) {
        if let Some(slot) = self.frames.get_mut(self.depth) {
            *slot = frame;
            self.depth += 1;
        }
    }

    /// The next element of a group begins; false when there is none.
    fn advance(frame: &mut LayoutFrame) -> bool {
        let next = frame.element + 1;
        let base = frame.base.saturating_add(frame.stride);
        let more = frame.stride != 0 && (frame.elements == 0 || next < frame.elements) && base < frame.limit;
        if more {
            (frame.element, frame.base, frame.next) = (next, base, 0);
        }
        more
    }
}

impl Iterator for LayoutValues<'_> {
    type Item = FieldValue;

    fn next(&mut self) -> Option<FieldValue> {
        loop {
            let top = self.depth.checked_sub(1)?;
            let frame = self.frames.get_mut(top)?;
            if frame.next >= frame.layout.len() {
                // A group of nothing has no further elements worth visiting.
                if frame.layout.len() == 0 || !Self::advance(frame) {
                    self.depth = top;
                }
                continue;
            }
            let (layout, index, base, limit) = (frame.layout, frame.next, frame.base, frame.limit);
            frame.next += 1;
            match layout.item(index) {
                LayoutItem::Group { start, count, bits, layout } => {
                    let base = base.saturating_add(start);
                    if base < limit {
                        let elements = count.unwrap_or(0);
                        self.push(LayoutFrame {
                            layout,
                            base,
                            limit,
                            stride: bits,
                            elements,
                            ..LayoutFrame::EMPTY
                        });
                    }
                }
                LayoutItem::Field { name, start, width, ty } => {
                    let start = base.saturating_add(start);
                    if start >= limit {
                        continue;
                    }
                    // A short form of a command may end within a field: MI_STORE_DATA_IMM of one dword.
                    let width = width.min(limit - start);
                    let (mut indices, mut index_count) = ([0; MAX_INDICES], 0);
                    let open = self.frames.get(..self.depth).unwrap_or_default();
                    let own = open.iter().rposition(|f| f.stride == 0).map_or(0, |at| at + 1);
                    for (slot, group) in indices.iter_mut().zip(open.iter().skip(own)) {
                        *slot = group.element;
                        index_count += 1;
                    }
                    let depth = open.iter().filter(|f| f.stride == 0).count() as u32 - 1;
                    let raw = read(self.words, start, width);
                    if let Some(layout) = ty.structure() {
                        self.push(LayoutFrame {
                            layout,
                            base: start,
                            limit: start + width,
                            ..LayoutFrame::EMPTY
                        });
                    }
                    return Some(FieldValue { name, depth, start, width, ty, raw, indices, index_count });
                }
            }
        }
    }
}
