//! `unwedge ir3 check`: text, JSON, levels and exit statuses.

mod program;

use program::{text, unwedge};
use serde_json::Value;

const BAD: &str = "rcp r1.x, r0.x\nadd.f r2.x, r1.x, r1.x\nend\n";
const GOOD: &str = "rcp r1.x, r0.x\n(ss)add.f r2.x, r1.x, r1.x\nend\n";

fn assembled(source: &str) -> Vec<u8> {
    unwedge(&["ir3", "asm", "--gen", "630", "-"], source.as_bytes()).stdout
}

fn run(args: &[&str], source: &str, status: i32) -> String {
    let args = [&["ir3", "check"], args, &["--gpu", "a630", "-"]].concat();
    let output = unwedge(&args, &assembled(source));
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
    text(&output.stdout)
}

#[test]
fn findings_are_shown_as_compilers_show_them() {
    let shown = run(&[], BAD, 4);
    for expected in [
        "error[ss-read]: a register is read before its result is there (r1.x)\n",
        " --> standard input: instruction 1\n",
        "          0  rcp r1.x, r0.x\n",
        "   >      1  add.f r2.x, r1.x, r1.x\n",
        "  = help: set (ss) on it, or on a nop before it\n",
    ] {
        assert!(shown.contains(expected), "{expected} in\n{shown}");
    }
    assert_eq!(run(&[], GOOD, 0), "");
}

#[test]
fn json_says_the_same() {
    let report: Value = serde_json::from_str(&run(&["--json"], BAD, 4)).unwrap();
    assert_eq!((&report["schema"], &report["gpu"]), (&"unwedge.ir3-check".into(), &630.into()));
    assert_eq!(report["inputs"], serde_json::json!(["r0.x"]));
    let finding = &report["findings"][0];
    assert_eq!(
        (&finding["rule"], &finding["at"], &finding["first"]),
        (&"ss-read".into(), &1.into(), &0.into())
    );
}

#[test]
fn levels_and_inputs() {
    let spare = GOOD.replace("end", "(ss)nop\nend");
    assert_eq!(run(&[], &spare, 0), "");
    assert!(run(&["--all"], &spare, 0).contains("note[redundant-ss]"));
    assert!(run(&["--deny", "note"], &spare, 4).contains("note[redundant-ss]"));
    assert_eq!(run(&["--inputs", "r0.x-r0.z,hr5.y"], GOOD, 0), "");
    assert!(run(&["--inputs", "r0.y"], GOOD, 4).contains("error[not-written]"));
    assert!(run(&["--constlen", "1"], "mov.f32f32 r0.x, c1.x\nend\n", 4).contains("error[constant-limit]"));
    let output = unwedge(&["ir3", "check", "--inputs", "r0", "-"], b"");
    assert_eq!(output.status.code(), Some(2));
}
