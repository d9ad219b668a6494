//! Texels of a level copied to rows, and back.

use super::Addresser;
use thiserror::Error;

/// A part of one layer of a level, in texels or blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rect {
    /// The first column.
    pub x: u32,
    /// The first row.
    pub y: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// Why nothing was copied, or not all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CopyError {
    /// The part is not inside the level.
    #[error("the part to copy is not inside the level")]
    Outside,
    /// The rows overlap.
    #[error("rows of {row} bytes do not fit in a pitch of {pitch}")]
    Pitch {
        /// Bytes of a row.
        row: u64,
        /// Bytes from a row to the next.
        pitch: u64,
    },
    /// The rows do not fit in their memory.
    #[error("the rows have {needed} bytes, their memory {available}")]
    Rows {
        /// Bytes of all rows.
        needed: u64,
        /// Bytes there are.
        available: u64,
    },
    /// The memory of the image ends before a texel.
    #[error("the memory of the image ends before the texel at {offset:#x}")]
    Image {
        /// Where the texel is.
        offset: u64,
    },
}

impl Addresser {
    /// Copies texels, all their samples together, out of an image to rows that are `pitch` bytes apart.
    ///
    /// # Errors
    /// When the part is not inside the level, or one of the memories is too small. Rows before the missing texel are copied then.
    pub fn read_rows(
        &self,
        image: &[u8],
        layer: u32,
        part: Rect,
        rows: &mut [u8],
        pitch: usize,
    ) -> Result<(), CopyError> {
        self.check_rows(layer, part, rows.len(), pitch)?;
        self.each(layer, part, pitch, |from, to, bytes| {
            let missing = CopyError::Image { offset: from as u64 };
            let texel = image.get(from..).and_then(|image| image.get(..bytes)).ok_or(missing)?;
            rows[to..to + bytes].copy_from_slice(texel);
            Ok(())
        })
    }

    /// Copies texels, all their samples together, from rows that are `pitch` bytes apart into an image.
    ///
    /// # Errors
    /// When the part is not inside the level, or one of the memories is too small. Rows before the missing texel are copied then.
    pub fn write_rows(
        &self,
        image: &mut [u8],
        layer: u32,
        part: Rect,
        rows: &[u8],
        pitch: usize,
    ) -> Result<(), CopyError> {
        self.check_rows(layer, part, rows.len(), pitch)?;
        self.each(layer, part, pitch, |to, from, bytes| {
            let missing = CopyError::Image { offset: to as u64 };
            let place = image.get_mut(to..).and_then(|image| image.get_mut(..bytes)).ok_or(missing)?;
            place.copy_from_slice(&rows[from..from + bytes]);
            Ok(())
        })
    }

    fn check_rows(&self, layer: u32, part: Rect, available: usize, pitch: usize) -> Result<(), CopyError> {
        let (width, height) = self.size();
        let inside =
            |start: u32, length: u32, size: u32| start.checked_add(length).is_some_and(|end| end <= size);
        if !inside(part.x, part.width, width)
            || !inside(part.y, part.height, height)
            || layer >= self.layers()
        {
            return Err(CopyError::Outside);
        }
        let (pitch, available) = (pitch as u64, available as u64);
        let row = u64::from(part.width) * u64::from(self.texel_bytes());
        if pitch < row {
            return Err(CopyError::Pitch { row, pitch });
        }
        let before = u64::from(part.height.saturating_sub(1)).saturating_mul(pitch);
        let needed = if part.height == 0 { 0 } else { before.saturating_add(row) };
        if needed > available { Err(CopyError::Rows { needed, available }) } else { Ok(()) }
    }

    /// Calls `copy` with the place in the image, the place in the rows, and bytes, for each texel of a part that was checked.
    fn each(
        &self,
        layer: u32,
        part: Rect,
        pitch: usize,
        mut copy: impl FnMut(usize, usize, usize) -> Result<(), CopyError>,
    ) -> Result<(), CopyError> {
        let texel = self.texel_bytes() as usize;
        for down in 0..part.height {
            let row = down as usize * pitch;
            for across in 0..part.width {
                let offset = self.offset(part.x + across, part.y + down, layer, 0);
                let place = usize::try_from(offset).map_err(|_| CopyError::Image { offset })?;
                let to = row + across as usize * texel;
                match self.second_byte() {
                    None => copy(place, to, texel)?,
                    Some(second) => {
                        copy(place, to, 1)?;
                        copy(place.saturating_add(second as usize), to + 1, 1)?;
                    }
                }
            }
        }
        Ok(())
    }
}
