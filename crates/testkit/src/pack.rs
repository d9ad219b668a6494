//! Words as bytes, and compressed inputs.

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzWriter};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::{Read, Write};

/// Packs bytes.
pub type Packer = fn(&[u8]) -> Vec<u8>;

/// Every packer.
pub const ALL: [Packer; 3] = [gzip, zstd, xz];

/// Words as they lie in memory, little-endian.
pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// One gzip member.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).and_then(|()| packer.finish()).expect("memory takes everything")
}

/// The contents of gzip; other bytes as they are.
///
/// # Panics
/// When they are broken.
pub fn unpacked(bytes: Vec<u8>) -> Vec<u8> {
    if !bytes.starts_with(b"\x1f\x8b") {
        return bytes;
    }
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).expect("whole gzip files");
    unpacked
}

/// One zstd frame.
pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// One .xz stream of one block.
pub fn xz(bytes: &[u8]) -> Vec<u8> {
    let packer = XzWriter::new(Vec::new(), XzOptions::with_preset(0));
    let packed = packer.and_then(|mut packer| packer.write_all(bytes).and_then(|()| packer.finish()));
    packed.expect("memory takes everything")
}
