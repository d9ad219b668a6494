//! PNG files: what pictures are written as, and read from for comparisons.
//!
//! Never: files; a picture is bytes for the caller.

use png::{BitDepth, ColorType, Decoder, Encoder, Limits, Transformations};
use std::io::Cursor;

/// Bytes that the decoder of a picture may take.
const MOST_BYTES: usize = 1 << 30;

/// What the samples of a picture are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pixels {
    /// Red, green, blue and alpha of 8 bits.
    Rgba8,
    /// Grey of 8 bits.
    Grey8,
    /// Grey of 16 bits, the high byte first.
    Grey16,
    /// Grey and alpha of 8 bits.
    GreyAlpha8,
    /// Grey and alpha of 16 bits, the high bytes first.
    GreyAlpha16,
}

/// The PNG file of rows of samples.
pub(super) fn encode(width: u32, height: u32, pixels: Pixels, samples: &[u8]) -> Result<Vec<u8>, String> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height);
    let (colour, depth) = match pixels {
        Pixels::Rgba8 => (ColorType::Rgba, BitDepth::Eight),
        Pixels::Grey8 => (ColorType::Grayscale, BitDepth::Eight),
        Pixels::Grey16 => (ColorType::Grayscale, BitDepth::Sixteen),
        Pixels::GreyAlpha8 => (ColorType::GrayscaleAlpha, BitDepth::Eight),
        Pixels::GreyAlpha16 => (ColorType::GrayscaleAlpha, BitDepth::Sixteen),
    };
    encoder.set_color(colour);
    encoder.set_depth(depth);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(samples)?;
        writer.finish()
    });
    written.map_err(|e| format!("the picture cannot be written: {e}"))?;
    Ok(file)
}

/// A picture that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DecodedPicture {
    pub(super) width: u32,
    pub(super) height: u32,
    /// Bits of a channel: 8 or 16.
    pub(super) bits: u8,
    /// Red, green, blue, alpha of each pixel, row by row.
    pub(super) pixels: Vec<[u16; 4]>,
}

/// Whether bytes begin as a PNG file does.
pub fn is_png(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n")
}

/// Reads a PNG file of any kind. Grey is the same red, green and blue; without alpha a pixel is opaque.
pub(super) fn decode(file: &[u8]) -> Result<DecodedPicture, String> {
    let said = |e: png::DecodingError| format!("the picture cannot be read: {e}");
    let mut decoder = Decoder::new_with_limits(Cursor::new(file), Limits { bytes: MOST_BYTES });
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(said)?;
    let size = reader.output_buffer_size().filter(|size| *size <= MOST_BYTES);
    let mut samples = vec![0; size.ok_or("the picture is too large")?];
    let info = reader.next_frame(&mut samples).map_err(said)?;
    samples.truncate(info.buffer_size());
    let wide = info.bit_depth == BitDepth::Sixteen;
    let channels = info.color_type.samples();
    let bytes = channels * if wide { 2 } else { 1 };
    let opaque = if wide { u16::MAX } else { 255 };
    let pixel = |pixel: &[u8]| {
        let at = |channel: usize| match (wide, pixel) {
            (true, pixel) => u16::from_be_bytes([pixel[2 * channel], pixel[2 * channel + 1]]),
            (false, pixel) => pixel[channel].into(),
        };
        match channels {
            1 => [at(0), at(0), at(0), opaque],
            2 => [at(0), at(0), at(0), at(1)],
            3 => [at(0), at(1), at(2), opaque],
            _ => [at(0), at(1), at(2), at(3)],
        }
    };
    Ok(DecodedPicture {
        width: info.width,
        height: info.height,
        bits: if wide { 16 } else { 8 },
        pixels: samples.chunks_exact(bytes.max(1)).map(pixel).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_read_as_they_were_written() {
        let rgba = encode(2, 1, Pixels::Rgba8, &[1, 2, 3, 4, 255, 0, 9, 8]).unwrap();
        assert!(is_png(&rgba));
        let read = decode(&rgba).unwrap();
        assert_eq!((read.width, read.height, read.bits), (2, 1, 8));
        assert_eq!(read.pixels, [[1, 2, 3, 4], [255, 0, 9, 8]]);
        let grey = decode(&encode(1, 2, Pixels::Grey16, &[0x12, 0x34, 0xff, 0xff]).unwrap()).unwrap();
        assert_eq!(grey.pixels, [[0x1234, 0x1234, 0x1234, 0xffff], [0xffff; 4]]);
        assert!(encode(2, 2, Pixels::Grey8, &[0]).is_err());
        let data = rgba.windows(4).position(|name| name == b"IDAT").unwrap();
        assert!((0..data + 8).all(|end| decode(&rgba[..end]).is_err()), "without its pixels");
    }
}
