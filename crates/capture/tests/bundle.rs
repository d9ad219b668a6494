//! Files that hold several code objects: what is in them is found in every form and one in another, and cut or broken ones give
//! what is whole.

use unwedge_capture::bundle::{Bundle, BundleContents};
use unwedge_capture::{FileKind, sniff};
use unwedge_testkit::bundle::{archive, bundle, code_object, compressed, host, offload_binary, windows};
use unwedge_testkit::check;
use unwedge_testkit::mutate::Rng;

/// More than any test unpacks.
const LIMIT: u64 = 1 << 24;

const HOST: &str = "host-x86_64-unknown-linux-gnu-";
const GFX906: &str = "hipv4-amdgcn-amd-amdhsa--gfx906:sramecc+:xnack-";
const GFX1030: &str = "hipv4-amdgcn-amd-amdhsa--gfx1030";

/// An entry for the host without bytes, and two code objects.
fn two() -> Vec<u8> {
    bundle(&[(HOST, &[]), (GFX906, &code_object("gfx906")), (GFX1030, &code_object("gfx1030"))])
}

/// Names and processors of the code objects in a file, and how many diagnostics there are.
fn objects(file: &[u8]) -> (Vec<(String, String)>, usize) {
    let Some(bundle) = Bundle::read(file, LIMIT) else { return (Vec::new(), 0) };
    let of = |entry| {
        let object = unwedge_capture::elf::read(Bundle::bytes(&bundle, entry)).expect("a code object");
        (entry.name(), object.processor().unwrap_or_default().to_owned())
    };
    (bundle.code_objects().map(of).collect(), bundle.diagnostics.len())
}

fn pair(name: &str, processor: &str) -> (String, String) {
    (name.to_owned(), processor.to_owned())
}

#[test]
fn a_bundle() {
    let file = two();
    assert_eq!(sniff(&file), FileKind::Bundle);
    assert_eq!(objects(&file), (vec![pair(GFX906, "gfx906"), pair(GFX1030, "gfx1030")], 0));
    let bundle = Bundle::read(&file, LIMIT).expect("a bundle");
    let targets: Vec<_> = bundle.entries.iter().map(|entry| (entry.target(), entry.compressed)).collect();
    assert_eq!(targets, [(Some("gfx906:sramecc+:xnack-"), false), (Some("gfx1030"), false)]);
}

#[test]
fn a_compressed_bundle_of_every_version_and_method() {
    for version in 1..=3 {
        for method in [0, 1] {
            let file = compressed(&two(), version, method);
            assert_eq!(sniff(&file), FileKind::Bundle);
            let expected = vec![pair(GFX906, "gfx906"), pair(GFX1030, "gfx1030")];
            assert_eq!(objects(&file), (expected, 0), "version {version}, method {method}");
            let bundle = Bundle::read(&file, LIMIT).expect("a bundle");
            assert!(bundle.entries.iter().all(|entry| entry.compressed));
        }
    }
}

#[test]
fn programs_hold_one_bundle_after_the_other() {
    for version in 1..=3 {
        let mut section = two();
        section.resize(section.len().next_multiple_of(4096), 0);
        section.extend(compressed(&two(), version, 1));
        section.resize(section.len().next_multiple_of(4096), 0);
        section.extend(bundle(&[(GFX1030, &code_object("gfx1030"))]));
        let file = host(&[(".text", b"\x90\x90"), (".hip_fatbin", &section)]);
        assert_eq!(sniff(&file), FileKind::Elf);
        let (found, lost) = objects(&file);
        let processors: Vec<_> = found.iter().map(|(_, processor)| processor.as_str()).collect();
        assert_eq!(processors, ["gfx906", "gfx1030", "gfx906", "gfx1030", "gfx1030"], "version {version}");
        assert!(found.iter().all(|(name, _)| name.starts_with(".hip_fatbin > ")), "{found:?}");
        assert_eq!(lost, 0);
    }
}

#[test]
fn an_offload_binary_in_a_program() {
    let image = offload_binary("amdgcn-amd-amdhsa", "gfx1030", &code_object("gfx1030"));
    let file = host(&[(".llvm.offloading", &[image.clone(), image].concat())]);
    let name = ".llvm.offloading > amdgcn-amd-amdhsa-gfx1030";
    assert_eq!(objects(&file), (vec![pair(name, "gfx1030"); 2], 0));
}

#[test]
fn an_archive_of_all() {
    let fat = host(&[(".hip_fatbin", &two())]);
    let long = "a_name_that_is_longer_than_the_sixteen_bytes_of_the_header.o";
    let file =
        archive(&[("fat.o", &fat), (long, &code_object("gfx900")), ("plain.o", &host(&[])), ("odd", b"x")]);
    assert_eq!(sniff(&file), FileKind::Bundle);
    let expected = vec![
        pair(&format!("fat.o > .hip_fatbin > {GFX906}"), "gfx906"),
        pair(&format!("fat.o > .hip_fatbin > {GFX1030}"), "gfx1030"),
        pair(long, "gfx900"),
    ];
    assert_eq!(objects(&file), (expected, 0));
    let bundle = Bundle::read(&file, LIMIT).expect("an archive");
    let others: Vec<_> = bundle.entries.iter().map(|entry| entry.contents).collect();
    assert_eq!(others[3..], [BundleContents::Host, BundleContents::Other]);
}

#[test]
fn objects_and_programs_of_windows() {
    let named = |section: &str| {
        [pair(&format!("{section} > {GFX906}"), "gfx906"), pair(&format!("{section} > {GFX1030}"), "gfx1030")]
    };
    // Programs cut the names of sections, and objects do not.
    let program =
        windows(&[(".text", b"code"), (".hipFatBinSegment", &[0; 24]), (".hip_fatbin", &two())], true);
    assert_eq!(objects(&program), (named(".hip_fat").to_vec(), 0));
    let object = windows(&[(".text", b"code"), (".hipFatBinSegment", &two())], false);
    assert_eq!(objects(&object), (named(".hipFatBinSegment").to_vec(), 0));
    assert_eq!((sniff(&program), sniff(&object)), (FileKind::Bundle, FileKind::Bundle));
    assert!(Bundle::read(&windows(&[(".text", b"code")], true), LIMIT).is_none());
    // A section that the file does not have whole.
    let (found, lost) = objects(&program[..program.len() - 10]);
    assert!(lost > 0 && found.len() <= 2);
}

#[test]
fn archives_of_microsoft_and_thin_ones() {
    let formats = unwedge_testkit::bundle::formats();
    let of = |name: &str| &formats.iter().find(|(format, _)| *format == name).expect("a format").1;
    let (found, lost) = objects(of("microsoft-archive"));
    let names: Vec<&str> = found.iter().map(|(name, _)| name.split(" > ").next().unwrap()).collect();
    let long = "a_name_that_is_longer_than_the_header_has.obj";
    assert_eq!((names, lost), (vec!["fat.obj", "fat.obj", long, long], 0));
    let bundle = Bundle::read(of("thin"), LIMIT).expect("an archive");
    let message = bundle.diagnostics.iter().map(ToString::to_string).collect::<String>();
    assert!(
        bundle.entries.is_empty() && message.contains("names 2") && message.contains("fat.o, plain.o"),
        "{message}"
    );
}

/// Any byte of any format may be wrong.
#[test]
fn broken_bundles_do_no_harm() {
    let rounds = if std::env::var_os("UNWEDGE_ALL").is_some() { 20_000 } else { 400 };
    for (name, file) in unwedge_testkit::bundle::formats() {
        for seed in 0..rounds {
            let broken = unwedge_testkit::mutate::mutate(&file, seed);
            check::bundle(&broken);
        }
        for cut in 0..file.len().min(600) {
            check::bundle(&file[..cut]);
        }
        assert!(Bundle::read(&file, LIMIT).is_some(), "{name}");
    }
}

/// Sections whose names have no end are not searched for it again and again.
#[test]
fn names_of_sections_are_bounded() {
    let mut file = host(&[(".hip_fatbin", &two())]);
    // Every section has the same long name.
    let names = file.len();
    file.resize(names + (4 << 20), b'x');
    let table = file.len();
    for _ in 0..60_000 {
        for number in [1u64 << 32, 0, 0, 0, 0, 0, 1, 0] {
            file.extend(number.to_le_bytes());
        }
    }
    let at = table + 64;
    file[at + 24..at + 32].copy_from_slice(&(names as u64).to_le_bytes());
    file[at + 32..at + 40].copy_from_slice(&(4u64 << 20).to_le_bytes());
    file[at..at + 8].copy_from_slice(&(3u64 << 32).to_le_bytes());
    file[40..48].copy_from_slice(&(table as u64).to_le_bytes());
    file[60..62].copy_from_slice(&60_000_u16.to_le_bytes());
    file[62..64].copy_from_slice(&1_u16.to_le_bytes());
    check::bundle(&file);
}

#[test]
fn other_files_hold_none() {
    for file in
        [&b""[..], b"CCOB", b"CCOB\x09\0\0\0", b"__CLANG_OFFLOAD_BUNDL", &code_object("gfx900"), &host(&[])]
    {
        assert!(Bundle::read(file, LIMIT).is_none(), "{file:?}");
    }
}

#[test]
fn what_is_lost_is_reported() {
    // Cut in the last entry, in the table, in the header.
    let whole = two();
    for cut in [whole.len() - 1, 60, 28] {
        let (found, lost) = objects(&whole[..cut]);
        assert!(lost > 0 && found.len() <= 2, "{cut}: {found:?}");
    }
    let packed = compressed(&whole, 2, 1);
    let bundle = Bundle::read(&packed[..packed.len() - 9], LIMIT).expect("a bundle");
    assert!(!bundle.diagnostics.is_empty());
    let message = |file: &[u8], limit| {
        let bundle = Bundle::read(file, limit).expect("a bundle");
        bundle.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    assert!(message(&packed, 100).contains("more than the 100 bytes"), "{}", message(&packed, 100));
    let mut wrong = packed.clone();
    wrong[6] = 9;
    assert!(message(&wrong, LIMIT).contains("unknown method 9"));
    wrong = packed;
    wrong[12] ^= 1;
    assert!(message(&wrong, LIMIT).contains("its header says"));
    assert!(message(b"!<thin>\n", LIMIT).contains("thin archive"));
    assert!(message(b"!<arch>\nnonsense", LIMIT).contains("no valid header"));
}

/// Entries that all name the same bytes are not read again and again.
#[test]
fn entries_that_overlap_do_not_multiply_the_work() {
    let object = code_object("gfx900");
    let mut file = bundle(&[(GFX1030, &object[..]); 100]);
    let first = file[32..40].to_vec();
    for entry in 0..100 {
        let at = 32 + entry * (24 + GFX1030.len());
        file[at..at + 8].copy_from_slice(&first);
        file[at + 8..at + 16].copy_from_slice(&(8 * object.len() as u64).to_le_bytes());
    }
    let bundle = Bundle::read(&file, LIMIT).expect("a bundle");
    assert!(bundle.entries.len() < 20 && !bundle.diagnostics.is_empty(), "{}", bundle.entries.len());
}

/// Offload binaries that all claim entries up to the end of the section are read within their own sizes: the work would be
/// quadratic.
#[test]
fn offload_binaries_are_read_within_their_size() {
    const BINARIES: u64 = 1 << 15;
    let mut section = Vec::new();
    for _ in 0..BINARIES {
        section.extend(0xad10_ff10_u32.to_le_bytes());
        section.extend(2_u32.to_le_bytes());
        // Its size, the offset of its entries, which is in the zeros, and how many it claims.
        for number in [32, 32 * BINARIES, u64::MAX] {
            section.extend(number.to_le_bytes());
        }
    }
    section.resize(2 * section.len(), 0);
    let file = host(&[(".llvm.offloading", &section)]);
    let bundle = Bundle::read(&file, LIMIT).expect("something is lost");
    assert!(bundle.entries.is_empty() && !bundle.diagnostics.is_empty());
}

/// A bundle in a bundle in a bundle …
#[test]
fn nesting_is_bounded() {
    let mut file = two();
    for _ in 0..50 {
        file = compressed(&bundle(&[(GFX906, &file)]), 3, 1);
    }
    let bundle = Bundle::read(&file, LIMIT).expect("a bundle");
    assert!(bundle.entries.is_empty() && !bundle.diagnostics.is_empty());
}

#[test]
fn broken_files_do_no_harm() {
    let fat = host(&[(".hip_fatbin", &[two(), compressed(&two(), 2, 0)].concat())]);
    let image = offload_binary("amdgcn-amd-amdhsa", "gfx906", &code_object("gfx906"));
    let whole =
        archive(&[("fat.o", &fat), ("image.o", &host(&[(".llvm.offloading", &image)])), ("b", &two())]);
    let mut rng = Rng::new(1);
    let mut next = move || rng.next_u64() as usize;
    for _ in 0..3_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + next() % 6 {
            let at = next() % bytes.len();
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff, next() as u8][next() % 6];
        }
        bytes.truncate(bytes.len() - next() % 3 * (next() % 400));
        check::bundle(&bytes);
    }
}
