//! Compressed inputs.

use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzWriter};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::Write;

/// Packs bytes.
pub type Packer = fn(&[u8]) -> Vec<u8>;

/// Every packer.
pub const ALL: [Packer; 3] = [gzip, zstd, xz];

/// One gzip member.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).and_then(|()| packer.finish()).expect("memory takes everything")
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
