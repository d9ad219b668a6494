//! Bundles as inputs: the dump in them comes out, whatever else the archive holds or claims.

use std::io::Cursor;
use unwedge::files::{Compression, Input, InputError, InputStream};
use unwedge_testkit::pack;

const DUMP: &[u8] = b"---\nkernel: 6.6\nmodule: msm\n";
const LIMIT: u64 = 1 << 20;

/// An archive of these files.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, *bytes).expect("memory");
    }
    archive.into_inner().expect("memory")
}

fn bundle() -> Vec<u8> {
    archive(&[("unwedge-bundle/dump.devcore", DUMP), ("unwedge-bundle/README.txt", b"about")])
}

/// Read at once and bit by bit, which must give the same.
fn read(bytes: &[u8]) -> Result<Input, InputError> {
    let whole = Input::read(bytes, "x".into(), 0, LIMIT);
    let stream = InputStream::of(Cursor::new(bytes.to_vec()), "x").and_then(|s| Input::of_stream(s, LIMIT));
    match (&whole, &stream) {
        (Ok(a), Ok(b)) => {
            assert_eq!((&a.bytes, &a.compression), (&b.bytes, &b.compression));
            assert_eq!(a.diagnostics, b.diagnostics);
        }
        (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string()),
        (a, b) => panic!("{a:?}\n{b:?}"),
    }
    whole
}

#[test]
fn the_dump_of_a_bundle_is_the_input() {
    for (packed, outer) in [
        (bundle(), None),
        (pack::gzip(&bundle()), Some(Compression::Gzip)),
        (pack::zstd(&bundle()), Some(Compression::Zstd)),
        (pack::xz(&bundle()), Some(Compression::Xz)),
    ] {
        let input = read(&packed).expect("a bundle");
        assert_eq!(input.bytes, DUMP);
        let layers: Vec<Compression> = outer.into_iter().chain([Compression::Bundle]).collect();
        assert_eq!(input.compression, layers);
        assert!(input.diagnostics.is_empty());
    }
}

#[test]
fn files_may_be_in_another_order_and_several_dumps_give_the_first() {
    let repacked = archive(&[
        ("unwedge-bundle/README.txt", b"about"),
        ("unwedge-bundle/1-of-2/dump.devcore", DUMP),
        ("unwedge-bundle/2-of-2/dump.devcore", b"another"),
    ]);
    assert_eq!(read(&repacked).expect("a bundle").bytes, DUMP);
}

#[test]
fn other_archives_are_not_bundles() {
    for name in ["dump.devcore", "other/dump.devcore", "../unwedge-bundle"] {
        let mut bytes = archive(&[("some-other-name/dump.devcore", DUMP)]);
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        assert!(read(&bytes).expect("a file").compression.is_empty(), "{name}");
    }
    // The checksum of the header is wrong.
    let mut bytes = bundle();
    bytes[30] ^= 1;
    assert!(read(&bytes).expect("a file").compression.is_empty());
}

#[test]
fn a_bundle_without_a_dump_is_refused() {
    let bytes = archive(&[("unwedge-bundle/README.txt", b"about")]);
    let error = read(&bytes).expect_err("no dump").to_string();
    assert!(error.contains("there is no dump in it"), "{error}");
    // A folder or link of that name is none.
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    archive.append_link(&mut header, "unwedge-bundle/dump.devcore", "/etc/passwd").expect("memory");
    let bytes = archive.into_inner().expect("memory");
    assert!(read(&bytes).is_err());
}

#[test]
fn what_a_header_claims_is_not_believed() {
    // A dump of 8 GiB by its header, in an archive of a kilobyte.
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_path("unwedge-bundle/dump.devcore").expect("a name");
    header.set_size(8 << 30);
    header.set_cksum();
    archive.append(&header, DUMP).expect("memory");
    let bytes = archive.into_inner().expect("memory");
    // The padding of the archive follows the dump.
    let input = read(&bytes).expect("what is there");
    assert!(input.bytes.starts_with(DUMP) && input.bytes.len() < bytes.len());
    assert_eq!(input.diagnostics.len(), 1, "{:?}", input.diagnostics);
    // Files before the dump that claim too much, and cut archives.
    let mut header = tar::Header::new_ustar();
    header.set_path("unwedge-bundle/README.txt").expect("a name");
    header.set_size(u64::MAX / 2);
    header.set_cksum();
    assert!(read(header.as_bytes()).is_err());
    let whole = bundle();
    for len in (8..whole.len().min(1100)).step_by(7) {
        if let Ok(input) = read(&whole[..len]) {
            let bundled = input.compression == [Compression::Bundle];
            assert!(!bundled || DUMP.starts_with(&input.bytes), "{len}");
        }
    }
}
