//! Elements of buffers: which scalars they have and where, for types and for structures.

use super::AmberReason;
use super::values::{Component, DataType, Layout};
use std::collections::BTreeMap;

/// The most scalars of an element.
const MAX_SCALARS: usize = 1 << 16;

/// Where the scalars of an element are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElementType {
    /// Offset and type of each scalar, in the order in which scripts write them.
    scalars: Vec<(usize, Component)>,
    /// Bytes from an element to the next one.
    stride: usize,
    /// The format of elements that are read as texels.
    format: Option<String>,
}

impl From<DataType> for ElementType {
    fn from(ty: DataType) -> ElementType {
        let size = ty.component.bytes();
        let place = |number: usize| number / ty.rows * ty.column_stride() + number % ty.rows * size;
        let scalars = (0..ty.components()).map(|number| (place(number), ty.component)).collect();
        ElementType { scalars, stride: ty.stride(), format: ty.format() }
    }
}

impl ElementType {
    /// Scalars of an element.
    pub fn components(&self) -> usize {
        self.scalars.len()
    }

    /// Bytes from an element to the next one.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The format of its elements as texels, as Vulkan names it; `None` if they have none.
    pub fn format(&self) -> Option<&str> {
        self.format.as_deref()
    }

    pub(super) fn with_format(self, format: &str) -> ElementType {
        ElementType { format: Some(format.to_owned()), ..self }
    }

    /// The type of the scalar with a number, counted over all elements.
    pub(super) fn component(&self, number: usize) -> Component {
        self.scalars[number % self.scalars.len()].1
    }

    /// Places and types of the scalars that follow each other from a byte on. Where that byte is in a scalar, all places are as far
    /// from the start of theirs.
    pub fn positions(&self, offset: usize) -> impl Iterator<Item = (usize, Component)> + '_ {
        let (element, inner) = (offset / self.stride.max(1), offset % self.stride.max(1));
        let ends_after = |(at, component): &(usize, Component)| at + component.bytes() > inner;
        let first = self.scalars.iter().position(ends_after).unwrap_or(self.scalars.len());
        let shift = self.scalars.get(first).map_or(0, |(at, _)| inner.saturating_sub(*at));
        (first..).map(move |number| {
            let (at, component) = self.scalars[number % self.scalars.len()];
            let element = element.saturating_add(number / self.scalars.len());
            (element.saturating_mul(self.stride).saturating_add(at + shift), component)
        })
    }

    /// The bytes of elements that are filled with values, one for each scalar.
    pub(super) fn bytes_of(&self, values: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![0; values.len().div_ceil(self.components()) * self.stride];
        for (value, (at, _)) in values.iter().zip(self.positions(0)) {
            bytes[at..at + value.len()].copy_from_slice(value);
        }
        bytes
    }
}

/// A member of a structure.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub ty: MemberType,
    /// Elements, if it is an array.
    pub count: Option<usize>,
    pub offset: Option<usize>,
    pub array_stride: Option<usize>,
    pub matrix_stride: Option<usize>,
}

#[derive(Debug, Clone)]
pub(super) enum MemberType {
    Data(DataType),
    Structure(Structure),
}

impl MemberType {
    pub(super) fn parse(name: &str, structures: &BTreeMap<String, Structure>) -> Option<MemberType> {
        match structures.get(name) {
            Some(structure) => Some(MemberType::Structure(structure.clone())),
            None => DataType::parse(name).map(MemberType::Data),
        }
    }
}

/// A structure of a script.
#[derive(Debug, Clone, Default)]
pub(super) struct Structure {
    pub members: Vec<Member>,
    pub stride: Option<usize>,
}

/// What takes place in memory: scalars, bytes and alignment.
struct Laid {
    scalars: Vec<(usize, Component)>,
    size: usize,
    align: usize,
}

impl Laid {
    fn data(ty: &DataType, matrix_stride: Option<usize>, layout: Layout) -> Laid {
        let size = ty.component.bytes();
        let align = size * if ty.rows == 3 { 4 } else { ty.rows };
        let matrix = ty.columns > 1;
        let align = if matrix && layout == Layout::Std140 { align.next_multiple_of(16) } else { align };
        let column = matrix_stride.unwrap_or(align);
        let scalars = (0..ty.columns)
            .flat_map(|at| (0..ty.rows).map(move |row| (at * column + row * size, ty.component)))
            .collect();
        Laid { scalars, size: if matrix { ty.columns * column } else { ty.rows * size }, align }
    }

    /// So many of it.
    fn repeated(self, count: usize, stride: Option<usize>, layout: Layout) -> Option<Laid> {
        let align = if layout == Layout::Std140 { self.align.next_multiple_of(16) } else { self.align };
        let stride = stride.unwrap_or(self.size.next_multiple_of(align));
        if count.checked_mul(self.scalars.len())? > MAX_SCALARS {
            return None;
        }
        let all = (0..count).flat_map(|number| {
            self.scalars.iter().map(move |(at, component)| (number * stride + at, *component))
        });
        Some(Laid { scalars: all.collect(), size: count.checked_mul(stride)?, align })
    }
}

impl Structure {
    fn laid(&self, layout: Layout) -> Option<Laid> {
        let mut all = Laid { scalars: Vec::new(), size: 0, align: 1 };
        for member in &self.members {
            let mut laid = match &member.ty {
                MemberType::Data(ty) => Laid::data(ty, member.matrix_stride, layout),
                MemberType::Structure(structure) => structure.laid(layout)?,
            };
            if let Some(count) = member.count {
                laid = laid.repeated(count, member.array_stride, layout)?;
            }
            let start = member.offset.unwrap_or(all.size.next_multiple_of(laid.align));
            all.scalars.extend(laid.scalars.iter().map(|(at, component)| (start + at, *component)));
            if all.scalars.len() > MAX_SCALARS {
                return None;
            }
            all.size = start.checked_add(laid.size).filter(|size| *size <= super::MAX_BYTES)?;
            all.align = all.align.max(laid.align);
        }
        if layout == Layout::Std140 {
            all.align = all.align.next_multiple_of(16);
        }
        all.size = self.stride.unwrap_or(all.size.next_multiple_of(all.align));
        Some(all)
    }

    /// The layout of its elements in a buffer.
    pub(super) fn elements(&self, layout: Layout) -> Result<ElementType, AmberReason> {
        let laid = self.laid(layout).filter(|laid| !laid.scalars.is_empty() && laid.size > 0);
        let fits =
            |laid: &Laid| laid.scalars.iter().all(|(at, component)| at + component.bytes() <= laid.size);
        match laid.filter(fits) {
            Some(laid) => Ok(ElementType { scalars: laid.scalars, stride: laid.size, format: None }),
            None => Err(AmberReason::Unsupported("the layout of the structure".to_owned())),
        }
    }
}
