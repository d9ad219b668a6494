//! The program as a shell sees it: exit statuses, standard input, compression, JSON, help.

mod program;

use program::{Folder, status, stderr, stdout};
use std::process::{Command, Output, Stdio};
use unwedge::base::Generation;
use unwedge_testkit::data;
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::pack::{gzip, xz, zstd};

const COMPLETE: i32 = 0;
const UNUSABLE: i32 = 1;
const USAGE: i32 = 2;
const LOST: i32 = 3;

fn command(args: &[&str]) -> Command {
    let mut command = program::command();
    command.args(args);
    command
}

fn run(args: &[&str]) -> Output {
    command(args).stdin(Stdio::null()).output().unwrap()
}

fn run_with_input(args: &[&str], input: &[u8]) -> Output {
    program::unwedge(args, input)
}

fn dump() -> Vec<u8> {
    DevcoreBuilder::complete(Generation::A6xx).text()
}

/// Every command that reads a dump.
const READERS: [&[&str]; 6] = [
    &["explain"],
    &["explain", "--json"],
    &["decode"],
    &["decode", "--json"],
    &["info"],
    &["crashdec", "-sf"],
];

#[test]
fn a_complete_dump_is_0_and_says_which_database_was_used() {
    let folder = Folder::new();
    let file = folder.file("dump", &dump());
    for reader in READERS {
        let output = run(&[reader, &[file.as_str()]].concat());
        assert_eq!(status(&output), COMPLETE, "{reader:?}: {}", stderr(&output));
        assert!(!output.stdout.is_empty(), "{reader:?}");
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert!(said.contains("built-in"), "{reader:?} does not name the database: {said}");
    }
}

#[test]
fn compression_and_standard_input_change_nothing() {
    let folder = Folder::new();
    let plain = dump();
    for reader in [&["explain", "--json"][..], &["decode"], &["decode", "--json"]] {
        let file = folder.file("dump", &plain);
        let expected = run(&[reader, &[file.as_str()]].concat());
        let (a, b) = plain.split_at(plain.len() / 2);
        let members = [gzip(a), gzip(b)].concat();
        for packed in [gzip(&plain), members, zstd(&plain), xz(&plain), xz(&gzip(&plain))] {
            folder.file("dump", &packed);
            assert_eq!(stdout(&run(&[reader, &[file.as_str()]].concat())), stdout(&expected));
            let piped = run_with_input(&[reader, &["-"]].concat(), &packed);
            // Advice names the file, where there is one.
            assert_eq!(stdout(&piped).replace("FILE", &file), stdout(&expected).replace("FILE", &file));
        }
    }
}

#[test]
fn what_cannot_be_used_is_1_and_says_what_it_is() {
    let folder = Folder::new();
    let noise: Vec<u8> = (0..4096u32).flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
    for (bytes, said) in [
        (&b""[..], "an empty file"),
        (b"hello, world\n", "some other text"),
        (&noise, "some other binary file"),
        (b"\x7fELF\x02\x01\x01\0", "an ELF file"),
        (&gzip(b"hello, world\n"), "a gzip of some other text"),
    ] {
        let file = folder.file("x", bytes);
        for reader in &READERS[..4] {
            let output = run(&[reader, &[file.as_str()][..]].concat());
            assert_eq!(status(&output), UNUSABLE, "{reader:?} {said}");
            assert!(stderr(&output).contains(said), "{reader:?}: {}", stderr(&output));
            assert!(output.stdout.is_empty(), "{reader:?} printed {}", stdout(&output));
        }
    }
    let output = run(&["explain", "/nowhere/at/all"]);
    assert_eq!(status(&output), UNUSABLE);
    assert!(stderr(&output).contains("/nowhere/at/all"));
}

#[test]
fn wrong_usage_is_2() {
    for args in [
        &["explain"][..],
        &["explode", "x"],
        &["decode", "--around", "lunch", "x"],
        &["explain", "--colour", "x"],
        &["regs", "mali", "X"],
        &["man", "explode"],
        &["crashdec", "--nonsense"],
    ] {
        let output = run(args);
        assert_eq!(status(&output), USAGE, "{args:?}: {}", stderr(&output));
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn a_truncated_dump_is_3_and_still_decoded() {
    let folder = Folder::new();
    let whole = dump();
    let registers = whole.windows(11).position(|w| w == b"\nregisters:").unwrap();
    let cut = folder.file("cut", &whole[..registers + 40]);
    let packed = gzip(&whole);
    let packed = folder.file("packed", &packed[..packed.len() * 9 / 10]);
    for file in [&cut, &packed] {
        for reader in READERS {
            let output = run(&[reader, &[file.as_str()]].concat());
            assert_eq!(status(&output), LOST, "{reader:?}: {}", stderr(&output));
            assert!(!output.stdout.is_empty() && !output.stderr.is_empty(), "{reader:?}");
        }
    }
}

#[test]
fn a_bomb_is_refused() {
    let folder = Folder::new();
    let mut text = dump();
    text.resize(4 << 20, b'\n');
    let bomb = folder.file("bomb", &gzip(&text));
    let output = run(&["info", "--max-size=1M", &bomb]);
    assert_eq!(status(&output), UNUSABLE);
    assert!(stderr(&output).contains("--max-size"), "{}", stderr(&output));
    assert_eq!(status(&run(&["info", "--max-size=8M", &bomb])), COMPLETE);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new();
    let file = folder.file("dump", &dump());
    for reader in READERS {
        let mut child = command(&[reader, &[file.as_str()]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(status(&output), COMPLETE, "{reader:?}: {}", stderr(&output));
    }
}

#[test]
fn two_dumps_at_once_give_what_each_gives_alone() {
    let folder = Folder::new();
    let texts = [Generation::A6xx, Generation::A7xx].map(|g| DevcoreBuilder::complete(g).text());
    let files = [folder.file("a", &texts[0]), folder.file("b", &texts[1])];
    let alone: Vec<Output> = files.iter().map(|f| run(&["decode", "--json", f])).collect();
    std::thread::scope(|scope| {
        let both: Vec<_> = files
            .iter()
            .flat_map(|f| [f, f])
            .map(|f| scope.spawn(move || run(&["decode", "--json", f])))
            .collect();
        for (i, one) in both.into_iter().enumerate() {
            assert_eq!(stdout(&one.join().unwrap()), stdout(&alone[i / 2]));
        }
    });
}

fn lines(output: &Output) -> Vec<serde_json::Value> {
    stdout(output).lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

/// The schema versions that docs/json-schema.md documents.
fn documented(schema: &str) -> u64 {
    let text = include_str!("../../../docs/json-schema.md");
    let phrase = format!("`{schema}` is at version ");
    let (_, rest) =
        text.split_once(&phrase).unwrap_or_else(|| panic!("docs/json-schema.md does not say: {phrase}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn json_is_of_the_documented_version() {
    let folder = Folder::new();
    let file = folder.file("dump", &dump());
    for (args, schema) in [
        (&["explain", "--json", &file][..], "unwedge.explain"),
        (&["decode", "--json", &file], "unwedge.decode"),
        (&["info", "--json", &file], "unwedge.info"),
        (&["regs", "--json", "a630", "RB_MRT[0].CONTROL"], "unwedge.regs"),
        (&["demo", "--json"], "unwedge.explain"),
        (&["query", "--format", "ndjson", &file], "unwedge.query"),
        (&["diff", "--json", &file, &file], "unwedge.diff"),
    ] {
        let output = run(args);
        assert_eq!(status(&output), COMPLETE, "{args:?}: {}", stderr(&output));
        let text = stdout(&output);
        let first: serde_json::Value = if schema == "unwedge.explain" {
            serde_json::from_str(text).unwrap()
        } else {
            lines(&output).swap_remove(0)
        };
        assert_eq!(first["schema"], schema, "{args:?}");
        assert_eq!(first["schema_version"], documented(schema), "{args:?}");
        assert!(text.contains("built-in"), "{args:?} does not name the database");
    }
}

#[test]
fn every_section_of_every_generation_is_in_the_json() {
    let folder = Folder::new();
    for generation in Generation::ALL {
        let file = folder.file("dump", &DevcoreBuilder::complete(generation).text());
        let output = run(&["decode", "--json", &file]);
        assert_eq!(status(&output), COMPLETE, "{generation}: {}", stderr(&output));
        let lines = lines(&output);
        let has = |ty: &str| lines.iter().any(|l| l["type"] == ty);
        for ty in ["header", "ring", "bo", "register", "ring-start", "packet", "end"] {
            assert!(has(ty), "{generation}: no {ty}");
        }
        if generation >= Generation::A6xx {
            for ty in ["indexed", "shader-block", "debugbus", "gmu-hfi"] {
                assert!(has(ty), "{generation}: no {ty}");
            }
        }
        assert_eq!(lines.last().unwrap()["lost"], false, "{generation}");
        let keys_once = stdout(&output).lines().all(|l| l.matches("\"type\":").count() <= 1);
        assert!(keys_once, "{generation}: a key twice in one object");
    }
}

#[test]
fn around_hang_marks_the_packet_that_explain_names() {
    let folder = Folder::new();
    let file = folder.0.join("demo").to_str().unwrap().to_owned();
    assert_eq!(status(&run(&["demo", "--save", &file])), COMPLETE);
    let output = run(&["decode", "--around", "hang", &file]);
    assert_eq!(status(&output), COMPLETE, "{}", stderr(&output));
    let marked: Vec<&str> = stdout(&output).lines().filter(|l| l.starts_with('>')).collect();
    assert_eq!(marked.len(), 1, "{}", stdout(&output));
    assert!(marked[0].ends_with("IB2+0x0040  CP_WAIT_REG_MEM"), "{marked:?}");
    let place = "IB2 0x100101000+0x40: CP_WAIT_REG_MEM";
    assert!(stdout(&run(&["explain", &file])).contains(place), "the same offset");
    let json = run(&["decode", "--json", "--around", "hang", &file]);
    assert!(lines(&json).iter().any(|l| l["name"] == "CP_WAIT_REG_MEM"));
}

#[test]
fn the_name_of_the_program_chooses_the_drop_in() {
    let folder = Folder::new();
    let file = folder.file("dump", &dump());
    let link = folder.0.join("crashdec");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_unwedge"), &link).unwrap();
    let linked = Command::new(&link).args(["-sf", &file]).output().unwrap();
    assert_eq!(stdout(&linked), stdout(&run(&["crashdec", "-sf", &file])));
    let usage = Command::new(&link).arg("-h").output().unwrap();
    assert_eq!(usage.status.code(), Some(USAGE));
    assert!(stderr(&usage).starts_with("Usage:"));
}

#[test]
fn colour_on_demand_only() {
    let folder = Folder::new();
    let file = folder.file("dump", &dump());
    let coloured = |args: &[&str]| run(args).stdout.contains(&0x1b);
    assert!(coloured(&["decode", "--color", "always", &file]));
    assert!(coloured(&["decode", "--color", &file]));
    assert!(!coloured(&["decode", &file]));
    assert!(!coloured(&["decode", "--color=always", "--no-color", &file]));
    assert!(!coloured(&["decode", "--color=never", &file]));
}

#[test]
fn decode_reads_what_crashdec_only_repeats() {
    let folder = Folder::new();
    let file = folder.file("a5xx", &DevcoreBuilder::complete(Generation::A5xx).text());
    let decoded = run(&["decode", &file]);
    assert!(stdout(&decoded).contains("\t00000001\tHLSQ_TIMEOUT_THRESHOLD_0: 0x1\n"), "{}", stdout(&decoded));
    let listed = run(&["crashdec", "-f", &file]);
    assert!(stdout(&listed).contains("registers-hlsq:\n  - { offset: 0x3800, value: 0x00000001 }\n"));
}

#[test]
fn a_gpu_of_the_future_is_3_and_shows_what_needs_no_register() {
    let folder = Folder::new();
    let dump = DevcoreBuilder::complete(Generation::A7xx).revision(0, [0x44, 5, 0, 1]).text();
    let file = folder.file("a8xx", &dump);
    for args in [
        &["explain", &file][..],
        &["explain", "--json", &file],
        &["decode", "--json", &file],
        &["decode", &file],
    ] {
        assert_eq!(status(&run(args)), LOST, "{args:?}");
    }
    let shown = run(&["explain", &file]);
    assert!(stdout(&shown).contains("IOMMU fault: read by TP|VFD"), "{}", stdout(&shown));
}

#[test]
fn registers_by_name_offset_and_pattern() {
    let output = run(&["regs", "a630", "0x8c17", "0x4b"]);
    assert_eq!(status(&output), COMPLETE, "{}", stderr(&output));
    assert!(stdout(&output).contains("RB_2D_DST_INFO"), "{}", stdout(&output));
    assert!(stdout(&output).contains("COLOR_FORMAT = FMT6_32_UINT"), "{}", stdout(&output));
    for chip in ["a630", "a6xx", "FD630", "6.3.0.2"] {
        let output = run(&["regs", chip, "RB_MRT[0].CONTROL"]);
        assert!(stdout(&output).contains("0x08820") && stdout(&output).contains("ROP_CODE"), "{chip}");
    }
    let elsewhere = run(&["regs", "a740", "GMU_AO_HOST_INTERRUPT_STATUS", "5"]);
    assert!(
        stdout(&elsewhere).contains("offset 0x09305 (gmu)"),
        "a name says its space: {}",
        stdout(&elsewhere)
    );
    assert!(stdout(&elsewhere).contains("= 0x5: { WDOG_BITE | VDROOP }"), "{}", stdout(&elsewhere));
    let too_wide = run(&["regs", "a630", "RBBM_STATUS", "0x100000000"]);
    assert_eq!(too_wide.status.code(), Some(2), "{}", stderr(&too_wide));
    assert!(stderr(&too_wide).contains("RBBM_STATUS has 32 bits"));
    let pattern = run(&["regs", "a630", "rb_mrt[1]*"]);
    assert!(stdout(&pattern).lines().count() > 4, "{}", stdout(&pattern));
    assert!(stdout(&run(&["regs", "a630", "CP_WAIT_REG_MEM"])).contains("DELAY_LOOP_CYCLES"));
    assert!(stdout(&run(&["regs", "a3xx", "pc_di_primtype"])).contains("DI_PT_TRILIST"));
    let unknown = run(&["regs", "a2xx", "CP_SQE_CNTL"]);
    assert_eq!(status(&unknown), UNUSABLE);
    assert!(stderr(&unknown).contains("a6xx"), "{}", stderr(&unknown));
}

#[test]
fn a_register_database_of_ones_own() {
    let folder = Folder::new();
    let xml = r#"<?xml version="1.0"?>
        <database xmlns="http://nouveau.freedesktop.org/">
          <enum name="chip"><value name="A2XX" value="2"/><value name="A3XX" value="3"/><value name="A4XX" value="4"/>
            <value name="A5XX" value="5"/><value name="A6XX" value="6"/><value name="A7XX" value="7"/></enum>
          <domain name="A6XX" width="32" prefix="variant" varset="chip">
            <reg32 offset="0x1234" name="MY_OWN_REGISTER"><bitfield name="FIELD" low="0" high="3" type="uint"/></reg32>
          </domain>
        </database>"#;
    std::fs::create_dir_all(folder.0.join("adreno")).unwrap();
    std::fs::write(folder.0.join("adreno/a6xx.xml.gz"), gzip(xml.as_bytes())).unwrap();
    let path = folder.0.to_str().unwrap();
    let by_option = run(&["regs", "--regdb", path, "a6xx", "MY_OWN_REGISTER", "5"]);
    assert!(stdout(&by_option).contains("FIELD = 5"), "{}{}", stdout(&by_option), stderr(&by_option));
    assert!(stdout(&by_option).contains(path), "the database is named");
    let list = format!("/nowhere:{path}");
    let by_environment = command(&["regs", "a6xx", "0x1234"]).env("RNN_PATH", &list).output().unwrap();
    assert!(stdout(&by_environment).contains("MY_OWN_REGISTER"), "{}", stderr(&by_environment));
    let nothing = run(&["regs", "--regdb", "/nowhere", "a6xx", "0x1234"]);
    assert_eq!(status(&nothing), UNUSABLE);
    assert!(stderr(&nothing).contains("/nowhere"), "{}", stderr(&nothing));
}

#[test]
fn help_man_and_completions_know_every_command() {
    let help = run(&["--help"]);
    assert_eq!(status(&help), COMPLETE);
    let commands = ["explain", "decode", "info", "regs", "demo", "crashdec", "man", "completions"];
    for name in commands {
        assert!(stdout(&help).contains(name), "{name}");
        if name != "crashdec" {
            let own = run(&[name, "--help"]);
            assert_eq!(status(&own), COMPLETE);
            assert!(stdout(&own).contains("Examples:"), "{name}");
        }
        let page = run(&["man", name]);
        assert_eq!(status(&page), COMPLETE);
        assert!(stdout(&page).contains(".TH"), "{name}");
    }
    assert!(stdout(&run(&["man"])).contains(".SH"));
    let nested = run(&["man", "ir3", "disasm"]);
    assert!(stdout(&nested).contains(".TH unwedge-ir3-disasm"), "{}", stdout(&nested));
    assert_eq!(nested.stdout, run(&["man", "ir3-disasm"]).stdout);
    assert_eq!(status(&run(&["man", "ir3", "explode"])), USAGE);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]);
        assert_eq!(status(&script), COMPLETE);
        assert!(commands.iter().all(|c| stdout(&script).contains(c)), "{shell}");
    }
}

#[test]
fn the_demo_explains_itself() {
    let output = run(&["demo"]);
    assert_eq!(status(&output), COMPLETE, "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("\nCAUSE ") && text.contains("IB2") && text.contains("CP_WAIT_REG_MEM"), "{text}");
}

#[test]
fn broken_dumps_end_orderly() {
    let whole = dump();
    let demo = Folder::new();
    let file = demo.0.join("demo").to_str().unwrap().to_owned();
    run(&["demo", "--save", &file]);
    let hung = std::fs::read(&file).unwrap();
    for seed in 0..150u64 {
        let broken = unwedge_testkit::mutate::mutate(if seed % 2 == 0 { &whole } else { &hung }, seed);
        for reader in
            [&["decode", "--json", "-"][..], &["decode", "--around", "hang", "-"], &["info", "--json", "-"]]
        {
            let output = run_with_input(reader, &broken);
            let status = status(&output);
            assert!(
                [COMPLETE, UNUSABLE, LOST].contains(&status),
                "seed {seed}, {reader:?}: {}",
                stderr(&output)
            );
            assert_eq!(status == UNUSABLE, output.stdout.is_empty(), "seed {seed}, {reader:?}");
            if reader.contains(&"--json") {
                lines(&output);
            }
        }
    }
}

/// Every dump of `adreno/devcoredump/index.csv` in the folder `UNWEDGE_DATA`.
fn real_dumps() -> Vec<String> {
    let folder = data::root().join("adreno/devcoredump");
    let path = |name: String| folder.join(name).to_str().expect("a path in UTF-8").to_owned();
    data::dump_names().into_iter().map(path).collect()
}

#[test]
fn real_dumps_decode_whole() {
    for file in real_dumps() {
        for reader in READERS {
            let output = run(&[reader, &[file.as_str()]].concat());
            assert_eq!(status(&output), COMPLETE, "{file}, {reader:?}: {}", stderr(&output));
        }
        let decoded = lines(&run(&["decode", "--json", &file]));
        let named = decoded.iter().filter(|l| l["type"] == "register" && l["name"].is_string()).count();
        assert!(named > 100, "{file}: {named} registers have names");
        let explained = run(&["explain", "--json", &file]);
        let explained: serde_json::Value = serde_json::from_str(stdout(&explained)).unwrap();
        if let Some(draw) = explained["hang"]["draw"].as_u64() {
            let numbers = decoded.iter().filter(|l| l["type"] == "draw").filter_map(|l| l["number"].as_u64());
            assert!(numbers.into_iter().any(|n| n == draw), "{file}: both count draws the same way");
        }
    }
}

/// Text is as wide as asked for, else as COLUMNS says, and a pipe has no width of its own.
#[test]
fn text_is_as_wide_as_asked_for() {
    let folder = Folder::new();
    let dump = folder.file("a.devcore", &DevcoreBuilder::complete(Generation::A6xx).text());
    let widest = |columns: Option<&str>, args: &[&str]| {
        let mut command = command(args);
        if let Some(columns) = columns {
            command.env("COLUMNS", columns);
        }
        let output = command.stdin(Stdio::null()).output().unwrap();
        // Commands to copy are never broken; the report has them last.
        let lines = stdout(&output).lines().take_while(|line| !line.starts_with("NEXT"));
        lines.map(|line| line.chars().count()).max().unwrap_or(0)
    };
    let explain = ["explain", dump.as_str()];
    let default = widest(None, &explain);
    assert!((81..=100).contains(&default), "{default}");
    assert!(widest(Some("80"), &explain) <= 80);
    assert!(widest(Some("132"), &explain) > 100);
    assert_eq!(widest(Some("many"), &explain), default);
    assert!(widest(Some("132"), &["explain", "--width", "80", dump.as_str()]) <= 80);
    assert!(widest(Some("80"), &["diff", "--width", "120", dump.as_str(), dump.as_str()]) > 80);
    assert_eq!(status(&run(&["explain", "--width", "0", dump.as_str()])), USAGE);
}
