//! `unwedge crashdec` as a program: what it prints for real dumps, its options, its exit status.
//!
//! The dumps and what Mesa's crashdec prints for them are taken from `UNWEDGE_DATA` (by default `../shared/data` beside
//! the workspace), every row of `adreno/devcoredump/index.csv`.

mod program;

use program::unwedge;
use std::fs;
use std::path::Path;
use std::process::Output;
use unwedge_testkit::data;
use unwedge_testkit::devcore::DevcoreBuilder;

fn crashdec(args: &[&str], input: &[u8]) -> Output {
    unwedge(&[&["crashdec"], args].concat(), input)
}

#[test]
fn prints_what_mesas_crashdec_prints() {
    let folder = data::root().join("adreno/devcoredump");
    let Ok(index) = fs::read_to_string(folder.join("index.csv")) else {
        println!("skipped: no {}", folder.join("index.csv").display());
        return;
    };
    for row in index.lines().skip(1).filter(|row| !row.is_empty()) {
        let [dump, options, expected] = row.split(',').collect::<Vec<_>>()[..] else { panic!("row {row}") };
        let input = Path::new(env!("CARGO_TARGET_TMPDIR")).join(dump.trim_end_matches(".gz"));
        fs::write(&input, data::read(&folder.join(dump))).expect("a temporary file");
        let input = input.to_str().expect("a path in UTF-8");
        let args: Vec<&str> = options.split(' ').chain([input]).collect();
        let output = crashdec(&args, b"");
        assert_eq!(output.status.code(), Some(0), "{dump}: {}", String::from_utf8_lossy(&output.stderr));

        let expected = data::read(&folder.join(expected));
        let mut wanted = expected.split(|&c| c == b'\n');
        for (number, line) in output.stdout.split(|&c| c == b'\n').enumerate() {
            let wanted =
                wanted.next().unwrap_or_else(|| panic!("{dump}: line {} is one too many", number + 1));
            let text = String::from_utf8_lossy;
            assert_eq!(text(line), text(wanted), "{dump}: line {}", number + 1);
        }
        assert_eq!(wanted.next(), None, "{dump}: ends early");
    }
}

#[test]
fn reads_standard_input_by_default() {
    let dump = DevcoreBuilder::a6xx().register(0x210, 5).text();
    let output = crashdec(&["-s"], &dump);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("\nGot chip_id=0x6"), "{shown}");
    assert!(shown.contains("\n\t00000005\tRBBM_STATUS: { "), "{shown}");
}

#[test]
fn exit_status_and_usage() {
    let usage = crashdec(&["-x"], b"");
    assert_eq!(usage.status.code(), Some(2));
    assert!(usage.stdout.is_empty());
    let told = String::from_utf8_lossy(&usage.stderr).into_owned();
    assert!(told.contains("\tcrashdec [-achmsv] [-f FILE]\n"), "{told}");
    assert_eq!(crashdec(&["-h"], b"").status.code(), Some(2));

    assert_eq!(crashdec(&[], b"nothing of the kind\n").status.code(), Some(1));
    assert_eq!(crashdec(&["-f", "/nonexistent/dump"], b"").status.code(), Some(1));
    let dump = DevcoreBuilder::a6xx().register(0x210, 5).text();
    let broken = crashdec(&[], &dump[..dump.len() - 2]);
    assert_eq!(broken.status.code(), Some(3));
    assert!(!broken.stderr.is_empty());
}

#[test]
fn the_usage_is_that_of_mesas_crashdec() {
    let path = data::root().join("adreno/usage/crashdec.txt");
    let Ok(expected) = fs::read_to_string(&path) else {
        println!("skipped: no {}", path.display());
        return;
    };
    let told = crashdec(&["-h"], b"").stderr;
    let told = String::from_utf8_lossy(&told);
    let from = told.find("Usage:").expect("a usage text");
    assert_eq!(told[from..].trim_end(), expected.trim_end());
}
