//! Gzip members are unpacked, and refused, as RFC 1952 says; `flate2` is the reference for corrupt members.

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::DeflateEncoder;
use std::io::{Read, Write};
use unwedge::files::{Input, InputError, InputStream};
use unwedge_testkit::pack::gzip;

/// Flags of a header with a checksum, an extra field, a name and a comment.
const ALL_FIELDS: u8 = 0x1e;
/// More than any of these members unpacks to.
const LIMIT: u64 = 1 << 24;

/// A member whose header has all optional fields.
fn member(contents: &[u8]) -> Vec<u8> {
    let mut member = vec![0x1f, 0x8b, 8, ALL_FIELDS, 0, 0, 0, 0, 0, 3];
    member.extend_from_slice(b"\x03\0abcname\0comment\0");
    let checksum = crc32fast::hash(&member) as u16;
    member.extend_from_slice(&checksum.to_le_bytes());
    let mut body = DeflateEncoder::new(member, Compression::best());
    body.write_all(contents).unwrap();
    let mut member = body.finish().unwrap();
    member.extend_from_slice(&crc32fast::hash(contents).to_le_bytes());
    member.extend_from_slice(&(contents.len() as u32).to_le_bytes());
    member
}

/// Text that does not pack well, zeros that do, and a match over them.
fn contents() -> Vec<u8> {
    let text = (0..300_u32).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes());
    text.chain([0; 1000]).chain(*b"the end of it, the end of it").collect()
}

/// What comes out, and whether the stream was whole.
fn unpack(packed: &[u8]) -> (Vec<u8>, bool) {
    match Input::read(packed, "packed".to_owned(), 0, LIMIT) {
        Ok(input) => (input.bytes, input.diagnostics.is_empty()),
        Err(InputError::Corrupt(..)) => (Vec::new(), false),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn members_in_a_row_with_and_without_names() {
    let contents = contents();
    let packed = [gzip(&contents), member(&contents), gzip(&[]), member(&contents)].concat();
    assert_eq!(unpack(&packed), (contents.repeat(3), true));
    for piece in [1, 7, 64, 5000] {
        let mut stream = InputStream::of(std::io::Cursor::new(packed.clone()), "packed").unwrap();
        let (mut unpacked, mut buffer) = (Vec::new(), vec![0; piece]);
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => break,
                got => unpacked.extend_from_slice(&buffer[..got]),
            }
        }
        assert_eq!(unpacked, contents.repeat(3), "pieces of {piece} bytes");
    }
}

#[test]
fn a_cut_member_gives_what_it_holds_and_fails() {
    let contents = contents();
    let packed = member(&contents);
    // A shorter one does not look like gzip.
    for cut in 3..packed.len() {
        let (unpacked, whole) = unpack(&packed[..cut]);
        assert!(!whole, "cut at {cut}");
        assert!(contents.starts_with(&unpacked));
        let holds_all = cut + 8 >= packed.len();
        assert!(!holds_all || unpacked == contents, "cut at {cut}: only the trailer is missing");
    }
}

#[test]
fn corrupt_members_are_accepted_and_refused_as_by_flate2() {
    let packed = [member(&contents()), gzip(b"more")].concat();
    let (mut accepted, mut refused) = (0, 0);
    // With other bytes at the start it does not look like gzip.
    for at in 3..packed.len() {
        for bit in [0, 3, 7] {
            let mut corrupt = packed.clone();
            corrupt[at] ^= 1 << bit;
            let mut expected = Vec::new();
            let expects_whole = MultiGzDecoder::new(&corrupt[..]).read_to_end(&mut expected).is_ok();
            let (unpacked, whole) = unpack(&corrupt);
            assert_eq!(whole, expects_whole, "bit {bit} of byte {at}");
            assert!(!whole || unpacked == expected, "bit {bit} of byte {at}");
            accepted += u32::from(whole);
            refused += u32::from(!whole);
        }
    }
    // The time in the header of the second member is not checked by anything.
    assert!(accepted > 0 && refused > 0, "{accepted} accepted, {refused} refused");
}
