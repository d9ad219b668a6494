//! `unwedge rddecompile`, `rdcompile` and `replay --override` with a text: what users edit, and what that changes.

mod program;

use program::{text, unwedge_in};
use std::path::{Path, PathBuf};
use std::process::Command;
use unwedge::hw::Db;
use unwedge_testkit::data;

/// Where the example stores its results, and how many bytes of them are looked at.
const OUTPUT: &str = "0x100003000:128=out";
/// The shader's, and the stream's, addresses in the example.
const SHADER: u64 = 0x1_0000_1000;
const STREAM: u64 = 0x1_0000_4000;

/// A folder for the files of a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("unwedge-rdtext-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }

    /// Runs the program, which has to succeed.
    fn run(&self, args: &[&str]) -> String {
        let output = unwedge_in(&self.0, args, b"");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{args:?}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
        text(&output.stdout)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The example of docs/editing.md.
fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/editing.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (_, after) = document.split_once("```text\n").expect("an example");
    after.split_once("```").expect("its end").0.to_owned()
}

/// The example as a capture, and the text of its submit.
fn decompiled(folder: &Folder) -> String {
    folder.write("example.txt", example());
    folder.run(&["rdcompile", "example.txt", "-o", "example.rd"]);
    folder.run(&["rddecompile", "-s", "0", "example.rd"])
}

/// Results of a replay of the example with a text in the place of its submit.
fn replayed(folder: &Folder, edited: &str) -> Vec<u32> {
    folder.write("edited.txt", edited);
    let over = ["replay", "--override", "0", "--generator", "edited.txt", "--dump-mem", OUTPUT, "example.rd"];
    folder.run(&over);
    words(&folder.read("out"))
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Address and contents of a buffer.
type Contents = (u64, Vec<u8>);

/// Buffers of a capture, and its submit.
fn buffers(capture: &[u8]) -> (Vec<Contents>, (u64, u32)) {
    use unwedge::capture::rd::{RdReader, RdSectionKind};
    let mut reader = RdReader::new(capture);
    let (mut found, mut iova, mut submit) = (Vec::new(), 0, (0, 0));
    while let Some(section) = reader.next() {
        match section.kind {
            RdSectionKind::GpuAddr => iova = section.range().unwrap().iova,
            RdSectionKind::BufferContents => found.push((iova, section.payload.to_vec())),
            RdSectionKind::CmdStreamAddr => {
                let range = section.range().unwrap();
                submit = (range.iova, range.size);
            }
            _ => {}
        }
    }
    (found, submit)
}

/// Dwords that an edit changes, by address; buffers that are new; and the submit.
fn changes(folder: &Folder, edited: &str) -> (Vec<u64>, Vec<Contents>, (u64, u32)) {
    folder.write("edited.txt", edited);
    folder.run(&["rdcompile", "edited.txt", "-o", "edited.rd"]);
    let (before, _) = buffers(&folder.read("example.rd"));
    let (after, submit) = buffers(&folder.read("edited.rd"));
    let mut changed = Vec::new();
    for (old, new) in before.iter().zip(&after) {
        assert_eq!((old.0, old.1.len()), (new.0, new.1.len()));
        let words = words(&old.1).into_iter().zip(words(&new.1)).enumerate();
        changed.extend(words.filter(|(_, (old, new))| old != new).map(|(i, _)| old.0 + i as u64 * 4));
    }
    (changed, after[before.len()..].to_vec(), submit)
}

fn edited(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from} in\n{text}");
    text.replace(from, to)
}

#[test]
fn a_text_that_nobody_changed_is_the_submit() {
    let folder = Folder::new("same");
    let text = decompiled(&folder);
    folder.write("again.txt", &text);
    folder.run(&["rdcompile", "again.txt", "-o", "again.rd"]);
    assert_eq!(folder.read("again.rd"), folder.read("example.rd"));
    assert_eq!(replayed(&folder, &text)[..6], [77, 77, 77, 77, 7, 7]);
    assert!(text.contains("stib.b.untyped.1d.u32.1.imm r1.x, r0.x, 0"), "{text}");
    assert!(text.contains("SP_CS_OBJ_START = &shader_100001000"), "{text}");
    assert!(text.contains("SP_CS_INSTRLEN = units(shader_100001000)"), "{text}");
    assert!(text.contains("submit &ib_100004000 size(ib_100004000)"), "{text}");
    assert!(text.contains("quad &data_100003000"), "{text}");
    // The drop-in, by its own name.
    assert_eq!(folder.run(&["rddecompiler", "--submit=0", "example.rd"]), text);
    let link = folder.0.join("rddecompiler");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_unwedge"), &link).unwrap();
        let output =
            Command::new(&link).current_dir(&folder.0).args(["-s", "0", "example.rd"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), text);
    }
    let misused = unwedge_in(&folder.0, &["rddecompiler", "example.rd"], b"");
    assert_eq!(misused.status.code(), Some(2));
}

#[test]
fn a_field_of_a_register() {
    let folder = Folder::new("field");
    let text = edited(&decompiled(&folder), "LOCALSIZEX = 3", "LOCALSIZEX = 1");
    let (changed, new, _) = changes(&folder, &text);
    assert_eq!((changed.len(), new.len()), (1, 0));
    assert!((STREAM..STREAM + 0x100).contains(&changed[0]));
    assert_eq!(replayed(&folder, &text)[..4], [77, 77, 7, 7]);
}

#[test]
fn an_instruction_of_a_shader() {
    let folder = Folder::new("instruction");
    let text = edited(&decompiled(&folder), "(sy)(ss)nop", "(sy)(ss)add.u r1.x, r1.x, 1");
    let (changed, new, _) = changes(&folder, &text);
    assert!(changed.iter().all(|at| (SHADER + 8..SHADER + 16).contains(at)), "{changed:x?}");
    assert!(!changed.is_empty() && new.is_empty());
    assert_eq!(replayed(&folder, &text)[..5], [78, 78, 78, 78, 7]);
}

#[test]
fn the_size_of_a_dispatch() {
    let folder = Folder::new("dispatch");
    let text = edited(&decompiled(&folder), "NGROUPS_X = 1", "NGROUPS_X = 0");
    let (changed, new, _) = changes(&folder, &text);
    assert_eq!((changed.len(), new.len()), (1, 0));
    assert_eq!(replayed(&folder, &text)[..4], [7; 4]);
}

#[test]
fn one_packet_more() {
    let folder = Folder::new("packet");
    let text = decompiled(&folder);
    let at = text.rfind("    pkt7 CP_EXEC_CS").expect("a dispatch");
    let end = at + text[at..].find("\n}\n").expect("the end of the stream") + 1;
    let (before, after) = text.split_at(end);
    let packet =
        "    pkt7 CP_MEM_WRITE {\n        dword lo(&data_100003000+0x40) hi(&data_100003000+0x40) 9\n    }\n";
    let text = format!("{before}{packet}{after}");
    let (_, (_, original)) = buffers(&folder.read("example.rd"));
    let (changed, new, submit) = changes(&folder, &text);
    // The stream is in a new buffer, and its place is empty.
    assert!(changed.iter().all(|at| (STREAM..STREAM + u64::from(original) * 4).contains(at)), "{changed:x?}");
    assert_eq!((new.len(), submit.0, submit.1), (1, new[0].0, original + 4));
    let (old, _) = buffers(&folder.read("example.rd"));
    let old_stream = &old.iter().find(|(iova, _)| *iova == STREAM).unwrap().1[..original as usize * 4];
    assert_eq!(&new[0].1[..old_stream.len()], old_stream);
    let results = replayed(&folder, &text);
    assert_eq!((&results[..5], results[16], results[17]), (&[77, 77, 77, 77, 7][..], 9, 7));
}

#[test]
fn a_longer_shader() {
    let folder = Folder::new("longer");
    let more = format!("{}    stib.b", "    add.u r1.x, r1.x, 1\n".repeat(16));
    let text = edited(&decompiled(&folder), "    stib.b", &more);
    let (changed, new, submit) = changes(&folder, &text);
    assert_eq!((new.len(), submit.0), (1, STREAM));
    // The old code, the address of the shader, and its length.
    let in_stream: Vec<u64> = changed.iter().copied().filter(|&at| at >= STREAM).collect();
    assert_eq!(in_stream.len(), 2, "{in_stream:x?}");
    assert!(changed.iter().all(|&at| at >= STREAM || (SHADER..SHADER + 0x80).contains(&at)), "{changed:x?}");
    assert_eq!(replayed(&folder, &text)[..5], [93, 93, 93, 93, 7]);
}

#[test]
fn every_register_by_a_packet_of_its_own() {
    let folder = Folder::new("bunch");
    decompiled(&folder);
    let text = folder.run(&["rddecompile", "-s", "0", "--no-reg-bunch", "example.rd"]);
    assert!(text.contains("pkt4 { SP_CS_OBJ_START = &shader_100001000 }"), "{text}");
    assert_eq!(replayed(&folder, &text)[..5], [77, 77, 77, 77, 7]);
}

#[test]
fn errors_say_where_and_what() {
    let folder = Folder::new("errors");
    let text = example();
    for (from, to, message) in [
        (
            "SP_CS_INSTRLEN = units(cs)",
            "SP_CS_INSTRLEM = 1",
            "`SP_CS_INSTRLEM` is not a register of a6xx; similar: `SP_CS_INSTRLEN`",
        ),
        ("LOCALSIZEX = 3", "LOCALSIZE = 3", "`LOCALSIZE` is not a field of"),
        ("LOCALSIZEX = 3", "LOCALSIZEX = 3000000", "does not fit"),
        ("pkt7 CP_EXEC_CS", "pkt7 CP_EXEC_SC", "`CP_EXEC_SC` is not a packet of a6xx; similar: `CP_EXEC_CS`"),
        ("submit &main", "submit &mein", "`mein` is not a label; similar: `main`"),
        ("    end\n", "    ned\n", "not an instruction"),
        ("room 0x110000000 size", "room 0x110000000 bytes", "expected `size`"),
        ("unwedge-submit 1", "unwedge-submit 2", "not the text of a submit"),
    ] {
        assert!(text.contains(from), "{from}");
        folder.write("broken.txt", text.replacen(from, to, 1));
        let output = unwedge_in(&folder.0, &["rdcompile", "broken.txt", "-o", "broken.rd"], b"");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("broken.txt:") && stderr.contains(message), "{message}: {stderr}");
        assert!(!folder.0.join("broken.rd").exists());
    }
}

/// Whether a compiler can be started.
fn has(compiler: &str) -> bool {
    let found = Command::new(compiler).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: there is no {compiler}");
    }
    found
}

#[test]
fn programs_write_the_same_capture() {
    let folder = Folder::new("programs");
    let text = decompiled(&folder);
    let more = format!("{}    stib.b", "    add.u r1.x, r1.x, 1\n".repeat(16));
    let grown = edited(&text, "    stib.b", &more);
    folder.write("grown.txt", &grown);
    folder.run(&[
        "rdcompile",
        "grown.txt",
        "-o",
        "grown.rd",
        "--vastart",
        "0x140000000",
        "--vasize",
        "0x100000",
    ]);
    let db = Db::builtin();
    let module = unwedge::edit::text::read(&grown, &db, 1 << 24).unwrap();
    for (lang, compiler, source, args) in [
        ("rust", "rustc", "generate_rd.rs", &["--edition", "2021"][..]),
        (
            "c",
            "cc",
            "generate_rd.c",
            &["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"][..],
        ),
    ] {
        if !has(compiler) {
            continue;
        }
        let language = match lang {
            "rust" => unwedge::edit::text::Language::Rust,
            _ => unwedge::edit::text::Language::C,
        };
        let program = folder.run(&["rddecompile", "-s", "0", "--lang", lang, "example.rd"]);
        for (program, expected) in [(program, "example.rd"), (module.program(language).unwrap(), "grown.rd")]
        {
            folder.write(source, &program);
            let mut build = Command::new(compiler);
            build.current_dir(&folder.0).args(args).args(["-o", "generate_rd", source]);
            let output = build.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let vas = ["--vastart=5368709120", "--vasize=1048576", "made.rd"];
            let made =
                Command::new(folder.0.join("generate_rd")).current_dir(&folder.0).args(vas).status().unwrap();
            assert!(made.success());
            assert!(folder.read("made.rd") == folder.read(expected), "{lang}: {expected}");
        }
        let over =
            ["replay", "--override", "0", "--generator", "./generate_rd", "--dump-mem", OUTPUT, "example.rd"];
        folder.run(&over);
        assert_eq!(words(&folder.read("out"))[..5], [93, 93, 93, 93, 7]);
    }
}

/// Draws of real captures with nothing to draw leave another image, and change only their counts.
#[test]
fn the_count_of_a_draw() {
    let folder = Folder::new("draws");
    let mut tried = 0;
    let size = |path: &PathBuf| path.metadata().map_or(u64::MAX, |meta| meta.len());
    let mut files = data::files("adreno/graphics/captures", ".rd.gz");
    files.sort_by_key(size);
    if std::env::var_os("UNWEDGE_ALL").is_some() {
        files = data::files("adreno/renders", ".rd.gz");
    }
    let is_drawn = |line: &&str| line.contains("{ NUM_INDICES = ") && !line.contains("{ NUM_INDICES = 0 }");
    for path in files {
        folder.write("whole.rd", data::read(&path));
        for submit in 0..12 {
            let submit = submit.to_string();
            let output = unwedge_in(&folder.0, &["rddecompile", "-s", &submit, "whole.rd"], b"");
            if output.status.code() == Some(1) {
                break;
            }
            let original = text(&output.stdout);
            let counts = original.lines().filter(is_drawn).count();
            if counts == 0 {
                continue;
            }
            let without = |line: &str| match line.split_once("{ NUM_INDICES = ").filter(|_| is_drawn(&line)) {
                Some((before, rest)) => {
                    let after = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
                    format!("{before}{{ NUM_INDICES = 0{after}\n")
                }
                None => format!("{line}\n"),
            };
            let none: String = original.lines().map(without).collect();
            let draw = |text: &str| {
                folder.write("draw.txt", text);
                folder.run(&["rdcompile", "draw.txt", "-o", "draw.rd"]);
                let over = ["replay", "--override", &submit, "--generator", "draw.txt"];
                let over = [&over[..], &["--first", &submit, "--last", &submit, "whole.rd"]].concat();
                let report = text_of(&unwedge_in(&folder.0, &over, b""));
                (buffers(&folder.read("draw.rd")), report)
            };
            let ((before, _), shown) = draw(&original);
            let ((after, _), shown_without) = draw(&none);
            let differing: usize = before
                .iter()
                .zip(&after)
                .map(|(a, b)| words(&a.1).iter().zip(words(&b.1)).filter(|(a, b)| **a != *b).count())
                .sum();
            assert_eq!((before.len(), differing), (after.len(), counts), "{}", path.display());
            assert_ne!(shown, shown_without, "{}", path.display());
            tried += 1;
            break;
        }
        if tried == 1 {
            return;
        }
    }
    assert!(tried > 0 || data::root().join("adreno/renders").read_dir().is_err(), "no draws");
}

fn text_of(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
