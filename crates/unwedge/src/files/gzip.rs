//! Gzip members in a row (RFC 1952), unpacked while they are read. The deflate streams inside are undone by `zlib-rs` straight into
//! the reader's buffer, and `crc32fast` computes checksums: captures unpack to hundreds of megabytes, most of them zeros.
//!
//! Never: keeps names, comments or times of a member.

use crc32fast::Hasher;
use std::io::{self, BufRead, ErrorKind, Read};
use zlib_rs::{Inflate, InflateFlush, Status};

/// The largest window of deflate, as the logarithm of its bytes.
const WINDOW_BITS: u8 = 15;
/// Bytes of a header before the fields that its flags announce.
const HEADER: usize = 10;

/// Flags of a header.
const FHCRC: u8 = 1 << 1;
const FEXTRA: u8 = 1 << 2;
const FNAME: u8 = 1 << 3;
const FCOMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0xe0;

/// The part of a member that comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberPart {
    Header,
    Body,
    Trailer,
}

/// Members of gzip in a row. A truncated one gives all that it holds before it fails.
pub(super) struct Gzip<R> {
    packed: R,
    inflate: Inflate,
    next: MemberPart,
    /// A member has ended, so the input may end.
    complete: bool,
    /// The checksum of what the member has unpacked to so far.
    checksum: Hasher,
    /// The length of the same, modulo 2^32.
    length: u32,
}

impl<R: BufRead> Gzip<R> {
    pub(super) fn new(packed: R) -> Gzip<R> {
        Gzip {
            packed,
            inflate: Inflate::new(false, WINDOW_BITS),
            next: MemberPart::Header,
            complete: false,
            checksum: Hasher::new(),
            length: 0,
        }
    }

    /// Begins the next member; `false` at the end.
    fn header(&mut self) -> io::Result<bool> {
        if self.complete && self.packed.fill_buf()?.is_empty() {
            return Ok(false);
        }
        read_header(&mut self.packed)?;
        self.inflate.reset(false);
        self.checksum.reset();
        self.length = 0;
        Ok(true)
    }

    /// Unpacks into a buffer as much as the packed bytes at hand give. Returns how many bytes.
    fn unpack(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let packed = self.packed.fill_buf()?;
        let flush = if packed.is_empty() { InflateFlush::Finish } else { InflateFlush::NoFlush };
        let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(packed, buffer, flush);
        let read = (self.inflate.total_in() - read) as usize;
        let written = (self.inflate.total_out() - written) as usize;
        self.packed.consume(read);
        let unpacked = buffer.get(..written).unwrap_or(buffer);
        self.checksum.update(unpacked);
        self.length = self.length.wrapping_add(written as u32);
        match status {
            Ok(Status::StreamEnd) => self.next = MemberPart::Trailer,
            Ok(_) if read == 0 && written == 0 => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            // Bytes before an error are returned first. The next call meets the error again.
            Err(_) if written > 0 => {}
            Err(_) => return Err(invalid("corrupt deflate stream")),
        }
        Ok(written)
    }

    fn trailer(&mut self) -> io::Result<()> {
        let [checksum, length] = [read_array(&mut self.packed)?, read_array(&mut self.packed)?];
        let found = std::mem::take(&mut self.checksum).finalize();
        if (u32::from_le_bytes(checksum), u32::from_le_bytes(length)) != (found, self.length) {
            return Err(invalid("corrupt gzip stream does not have a matching checksum"));
        }
        self.complete = true;
        Ok(())
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match self.next {
                MemberPart::Header => {
                    if !self.header()? {
                        return Ok(0);
                    }
                    self.next = MemberPart::Body;
                }
                MemberPart::Body => {
                    let written = self.unpack(buffer)?;
                    if written > 0 {
                        return Ok(written);
                    }
                }
                MemberPart::Trailer => {
                    self.trailer()?;
                    self.next = MemberPart::Header;
                }
            }
        }
    }
}

/// Skips the header of a member.
fn read_header(packed: &mut impl BufRead) -> io::Result<()> {
    let mut packed = CheckedRead { packed, checksum: Hasher::new() };
    let start: [u8; HEADER] = read_array(&mut packed)?;
    let [0x1f, 0x8b, 8, flags, ..] = start else { return Err(invalid("invalid gzip header")) };
    if flags & RESERVED != 0 {
        return Err(invalid("invalid gzip header"));
    }
    if flags & FEXTRA != 0 {
        let length = u16::from_le_bytes(read_array(&mut packed)?);
        for _ in 0..length {
            read_array::<1>(&mut packed)?;
        }
    }
    for text in [FNAME, FCOMMENT] {
        while flags & text != 0 && read_array(&mut packed)? != [0] {}
    }
    let CheckedRead { packed, checksum } = packed;
    // That of a header is the lower half of its CRC-32.
    if flags & FHCRC != 0 && u16::from_le_bytes(read_array(packed)?) != checksum.finalize() as u16 {
        return Err(invalid("corrupt gzip stream does not have a matching checksum"));
    }
    Ok(())
}

/// A reader that computes the checksum of what it reads.
struct CheckedRead<'r, R> {
    packed: &'r mut R,
    checksum: Hasher,
}

impl<R: Read> Read for CheckedRead<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.packed.read(buffer)?;
        self.checksum.update(buffer.get(..got).unwrap_or(buffer));
        Ok(got)
    }
}

fn read_array<const N: usize>(packed: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    packed.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn invalid(message: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, message)
}
