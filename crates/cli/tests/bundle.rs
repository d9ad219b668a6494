//! `unwedge bundle`: the verdict stays the same, and nothing private is left.

mod program;

use program::Folder;
use std::io::Read;
use unwedge::base::Generation;
use unwedge::capture::{Dump, DumpPart, FileKind, sniff};
use unwedge::files::Input;
use unwedge::hw::Db;
use unwedge::postmortem::explain;
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::hangs::{HangRun, hangs};
use unwedge_testkit::rd::CaptureBuilder;
use unwedge_testkit::{amdgpu, data, i915, intel, mutate, pack, pm4, xe};
use unwedge_view::bundle::{Bundle, BundleFile, BundleOptions};

const LIMIT: u64 = 1 << 30;

fn bundled(parts: &[DumpPart<'_>], kind: FileKind, options: BundleOptions) -> (Vec<BundleFile>, String) {
    let db = Db::builtin();
    let mut bundle = Bundle::new(&db, options);
    bundle.dump(kind, parts).unwrap_or_else(|e| panic!("{}: {e}", parts[0].name));
    let files = bundle.finish("0");
    let mut list = Vec::new();
    bundle.list(&files, &mut list).expect("memory");
    (files, String::from_utf8(list).expect("text"))
}

fn signature(parts: &[DumpPart<'_>], kind: FileKind) -> String {
    let dump = Dump::read_as(kind, parts).expect("a dump");
    explain(&dump, &Db::builtin()).signature()
}

/// Names that must not be in a bundle.
fn private_names(parts: &[DumpPart<'_>], kind: FileKind) -> Vec<Vec<u8>> {
    let dump = Dump::read_as(kind, parts).expect("a dump");
    let mut names: Vec<Vec<u8>> = dump.origin().process.iter().map(|name| name.as_bytes().to_vec()).collect();
    if let Dump::Msm(dump) = &dump {
        names.extend(dump.cmdline.iter().map(|line| line.as_bytes().to_vec()));
    }
    if let Dump::I915(state) = &dump {
        names.extend(state.processes().map(|process| process.name.as_bytes().to_vec()));
    }
    names.retain(|name| name.len() > 3 && name != b"no process" && name != b"<unknown>");
    names
}

fn holds(bytes: &[u8], name: &[u8]) -> bool {
    bytes.windows(name.len()).any(|window| window == name)
}

/// Bundles a dump and checks what comes out; the bytes of the dump in it, and before.
fn check(name: &str, parts: &[DumpPart<'_>], kind: FileKind) -> (usize, usize) {
    let options = BundleOptions { max_size: LIMIT, ..BundleOptions::default() };
    let (files, list) = bundled(parts, kind, options);
    let dump = &files[0];
    assert_eq!(
        signature(&[DumpPart { name: "dump", bytes: &dump.bytes }], sniff(&dump.bytes)),
        signature(parts, kind),
        "{name}"
    );
    for private in private_names(parts, kind) {
        for file in &files {
            let shown = String::from_utf8_lossy(&private);
            assert!(!holds(&file.bytes, &private), "{name}: {shown} in {}", file.name);
        }
    }
    assert!(list.contains("README.txt") && !list.contains("still there"), "{name}: {list}");
    (dump.bytes.len(), parts.iter().map(|part| part.bytes.len()).sum())
}

fn check_file(name: &str, bytes: &[u8]) -> (usize, usize) {
    check(name, &[DumpPart { name, bytes }], sniff(bytes))
}

#[test]
fn dumps_of_the_data_keep_their_verdict() {
    for (name, dump) in data::dumps() {
        let (after, before) = check_file(&name, &dump);
        println!("{name}: {before} bytes, {after} in the bundle");
        assert!(after <= before, "{name}");
    }
}

#[test]
fn dumps_of_every_cause_keep_their_verdict() {
    let [run, _] = HangRun::BOTH;
    for dump in hangs(run) {
        let parts: Vec<DumpPart<'_>> =
            dump.files.iter().map(|(name, bytes)| DumpPart { name, bytes }).collect();
        let kind = if parts.len() > 1 { FileKind::Folder } else { sniff(parts[0].bytes) };
        check(&dump.name, &parts, kind);
    }
}

#[test]
fn dumps_of_intel_keep_their_verdict() {
    let platforms = intel::dump_of_every_platform().map(|(name, dump)| (name.to_owned(), dump));
    let all: Vec<(String, Vec<u8>)> = platforms.chain(i915::variety()).chain(xe::variety()).collect();
    // All of them take twenty seconds.
    let step = if std::env::var_os("UNWEDGE_ALL").is_some() { 1 } else { 4 };
    for (name, dump) in all.iter().step_by(step) {
        check_file(name, dump);
    }
}

#[test]
fn dumps_of_amd_keep_their_verdict() {
    for (name, text) in amdgpu::texts() {
        // Some are files of a folder, which are nothing by themselves.
        if Dump::read(&[DumpPart { name: &name, bytes: &text }]).is_ok() {
            check_file(&name, &text);
        }
    }
    let report = amdgpu::RadvBuilder::complete(amdgpu::Gfx::ALL[0]);
    let members = report.members();
    let mut parts: Vec<DumpPart<'_>> = members.iter().map(|(name, bytes)| DumpPart { name, bytes }).collect();
    parts.push(DumpPart {
        name: "0123456789abcdef0123456789abcdef01234567.spv",
        bytes: b"\x03\x02#\x07private",
    });
    check("folder of RADV", &parts, FileKind::Folder);
}

#[test]
fn contents_that_no_verdict_needs_are_cut_unless_asked_for() {
    let text = DevcoreBuilder::complete(Generation::A6xx)
        .process("secret-game", "/opt/secret-game --token 1")
        .bo(0x7_0000_0000, 64, "unused", &[0x7263_6573; 16])
        .text();
    let part = [DumpPart { name: "dump", bytes: &text }];
    let keep = |keep_names, keep_buffers| {
        let options = BundleOptions { keep_names, keep_buffers, max_size: LIMIT };
        bundled(&part, FileKind::MsmDevcore, options)
    };
    assert_eq!(keep(true, true).0[0].bytes, text, "--keep-all is the dump itself");
    let (files, list) = keep(false, true);
    assert!(!holds(&files[0].bytes, b"secret-game") && list.contains("process-1: secret-game"), "{list}");
    let readme = files.last().expect("files");
    assert!(readme.name.ends_with("README.txt") && !holds(&readme.bytes, b"secret-game"));
    let buffers = |text: &[u8]| text.windows(11).filter(|window| *window == b"!!ascii85 |").count();
    let (reduced, list) = keep(false, false);
    assert!(buffers(&reduced[0].bytes) < buffers(&files[0].bytes), "{list}");
    assert!(list.contains("the verdict is the same without them"), "{list}");
}

#[test]
fn a_process_may_be_named_after_a_word_of_the_format() {
    for name in ["registers", "ringbuffer", "offset", "size", "iova", "- { offset: 0x1, value: 0x2 }"] {
        let text = DevcoreBuilder::complete(Generation::A6xx).process(name, name).text();
        let part = [DumpPart { name: "dump", bytes: &text }];
        let options = BundleOptions { max_size: LIMIT, ..BundleOptions::default() };
        let (files, _) = bundled(&part, FileKind::MsmDevcore, options);
        let after = [DumpPart { name: "dump", bytes: &files[0].bytes }];
        assert_eq!(signature(&after, FileKind::MsmDevcore), signature(&part, FileKind::MsmDevcore), "{name}");
        let dump = Dump::read(&after).expect("a dump");
        assert_eq!(dump.origin().process, Some("process-1"), "{name}");
    }
}

#[test]
fn broken_dumps_have_bundles_of_the_same_verdict() {
    let runs = if std::env::var_os("UNWEDGE_ALL").is_some() { 400 } else { 24 };
    let whole = [
        DevcoreBuilder::complete(Generation::A6xx).process("secret-game", "/home/ada/secret-game").text(),
        i915::variety().remove(0).1,
        xe::variety().remove(0).1,
        amdgpu::variety().remove(0).1,
    ];
    let mut packed = 0;
    for seed in 0..runs {
        let text = mutate::mutate(&whole[seed as usize % whole.len()], seed);
        let part = [DumpPart { name: "dump", bytes: &text }];
        let kind = sniff(&text);
        if Dump::read_as(kind, &part).is_err() {
            continue;
        }
        let db = Db::builtin();
        let mut bundle = Bundle::new(&db, BundleOptions { max_size: LIMIT, ..BundleOptions::default() });
        // A name inside of something broken may change the verdict; then nothing is packed.
        if bundle.dump(kind, &part).is_err() {
            continue;
        }
        let files = bundle.finish("0");
        let after = [DumpPart { name: "dump", bytes: &files[0].bytes }];
        let same = signature(&after, sniff(&files[0].bytes));
        assert_eq!(same, signature(&part, kind), "seed {seed}");
        let bytes: usize = files.iter().map(|file| file.bytes.len()).sum();
        assert!(bytes < 64 * text.len() + (8 << 20), "seed {seed}: {bytes}");
        packed += 1;
    }
    assert!(2 * packed > runs, "{packed} of {runs}");
}

/// The files of an archive.
fn unpack(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(archive);
    let mut files = Vec::new();
    for entry in archive.entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let name = entry.path().expect("a name").to_string_lossy().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("its bytes");
        files.push((name, bytes));
    }
    files
}

#[test]
fn the_program_packs_and_reads_archives() {
    let text =
        DevcoreBuilder::complete(Generation::A6xx).process("chess-server", "/home/ada/chess-server").text();
    let log = b"Nov 27 12:00:01 tower kernel: offending task: chess-server (/home/ada/chess-server)\n";
    let folder = Folder::of(&[("a.devcore", text.clone()), ("kernel.log", log.to_vec())]);
    let (_, wanted, _) = folder.run(&["explain", "--signature", "a.devcore"], b"");
    let mut bare: Option<Vec<u8>> = None;
    for name in ["bug.tar", "bug.tar.gz", "bug.tar.xz", "bug.tar.zst"] {
        let (code, out, err) =
            folder.run(&["bundle", "--yes", "a.devcore", "--log", "kernel.log", "-o", name], b"");
        assert_eq!(code, Some(0), "{name}: {err}");
        assert!(out.contains("unwedge-bundle/kernel.log") && out.contains("host-1: tower"), "{out}");
        let stored = std::fs::read(folder.path(name)).expect("the archive");
        let archive = match name {
            "bug.tar" => stored,
            "bug.tar.gz" => pack::unpacked(stored),
            // The last layer of what is read is the bundle itself.
            _ => bare.clone().expect("bug.tar is first"),
        };
        let same = bare.get_or_insert_with(|| archive.clone());
        assert_eq!(&archive, same, "{name}: the same archive each time");
        for (file, bytes) in unpack(&archive) {
            for private in [&b"chess-server"[..], b"/home/ada", b"tower"] {
                assert!(!holds(&bytes, private), "{file}");
            }
        }
        let (_, signature, err) = folder.run(&["explain", "--signature", name], b"");
        assert_eq!(signature.split('\t').next(), wanted.split('\t').next(), "{name}: {err}");
        let (code, info, err) = folder.run(&["info", name], b"");
        assert!(code == Some(0) && info.contains("msm devcoredump"), "{name}: {info}{err}");
        let input = Input::open(folder.path(name).as_ref(), LIMIT).expect("an input");
        assert!(input.bytes.starts_with(b"---\n"), "{name}");
    }
    let (code, _, err) = folder.run(&["bundle", "a.devcore", "-o", "bug.zip"], b"");
    assert!(code == Some(2) && err.contains(".tar.zst"), "{err}");
    let (code, _, err) = folder.run(&["bundle", "kernel.log", "-o", "other.tar"], b"");
    assert!(code == Some(1) && !std::path::Path::new(&folder.path("other.tar")).exists(), "{err}");
}

fn bundled_capture(capture: &[u8]) -> Vec<BundleFile> {
    let db = Db::builtin();
    let mut bundle = Bundle::new(&db, BundleOptions { max_size: LIMIT, ..BundleOptions::default() });
    bundle.capture(capture).expect("a capture");
    bundle.finish("0")
}

#[test]
fn captures_go_in_with_what_their_submits_reach() {
    const REACHED: u32 = 0x6863_6572;
    const UNREACHED: u32 = 0x7263_6573;
    let frame = [pm4::pkt7(pm4::CP_NOP, &[REACHED; 2]), pm4::pkt7(pm4::CP_NOP, &[0])].concat();
    let stream = pm4::indirect_buffer(0x1000_0000, frame.len() as u32);
    let capture = CaptureBuilder::new(630, "secret-game/7: fence=1\0")
        .buffer(0x1000_0000, &frame)
        .buffer(0x2000_0000, &stream)
        .buffer(0x3000_0000, &[UNREACHED; 4])
        .submit(0x2000_0000, stream.len() as u32)
        .bytes();
    assert!(holds(&capture, b"secret-game") && holds(&capture, &UNREACHED.to_le_bytes()));
    let files = bundled_capture(&capture);
    assert!(
        holds(&files[0].bytes, &REACHED.to_le_bytes()) && holds(&files[0].bytes, b"process-1/7: fence=1")
    );
    for file in &files {
        assert!(!holds(&file.bytes, b"secret-game"), "{}", file.name);
        assert!(!holds(&file.bytes, &UNREACHED.to_le_bytes()), "{}", file.name);
    }
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let mut captures = data::files("adreno/captures", ".rd.gz");
    captures.sort_by_key(|path| path.metadata().map_or(0, |meta| meta.len()));
    for path in captures.iter().take(if all { captures.len() } else { 2 }) {
        let bytes = data::read(path);
        let files = bundled_capture(&bytes);
        assert_eq!(sniff(&files[0].bytes), FileKind::RdCapture, "{}", path.display());
        assert!(files[0].bytes.len() <= bytes.len() + 64, "{}", path.display());
        assert!(files[0].name.ends_with("capture.rd"));
    }
}
