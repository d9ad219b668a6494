//! `unwedge eu check`: text, JSON, lines, levels and exit statuses.

mod program;

use program::{text, unwedge};
use serde_json::Value;

/// A message whose result is read at once, and one that waits.
const BAD: &str = "send(8) g20UD g2UD nullUD 0x02180000 0x00000000\n data MsgDesc: { align1 1Q $3 };\n\
                   mov(8) g10<1>D g20<8,8,1>D { align1 1Q };\n";
const END: &str =
    "send(8) nullUD g120UD nullUD 0x02080000 0x00000000\n data MsgDesc: { align1 WE_all 1Q $9 EOT };\n";

fn run(args: &[&str], input: &[u8], status: i32) -> String {
    let args = [&["eu"], args, &["--platform", "tgl", "-"]].concat();
    let output = unwedge(&args, input);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
    text(&output.stdout)
}

fn assembled(source: &str) -> Vec<u8> {
    unwedge(&["eu", "asm", "--platform", "tgl", "-"], source.as_bytes()).stdout
}

#[test]
fn findings_are_shown_as_compilers_show_them() {
    let bad = assembled(&format!("{BAD}{END}"));
    assert_eq!(bad.len(), 48);
    let shown = run(&["check"], &bad, 4);
    for expected in [
        "error[token-read]: ",
        "(g20)\n",
        " --> standard input:+0x10\n",
        "   >     0x10  mov(8) g10<1>D",
        "  = help: add $3.dst to its options",
    ] {
        assert!(shown.contains(expected), "{expected} in\n{shown}");
    }
    let good = BAD.replace("D { align1 1Q };", "D { align1 1Q $3.dst };");
    assert_eq!(run(&["check"], &assembled(&format!("{good}{END}")), 0), "");
}

#[test]
fn json_says_the_same() {
    let report: Value =
        serde_json::from_str(&run(&["check", "--json"], &assembled(&format!("{BAD}{END}")), 4)).unwrap();
    assert_eq!(
        (&report["schema"], &report["platform"], &report["whole"]),
        (&"unwedge.eu-check".into(), &"tgl".into(), &true.into())
    );
    let finding = &report["findings"][0];
    assert_eq!(
        (&finding["rule"], &finding["wait"], &finding["registers"]),
        (&"token-read".into(), &"$3.dst".into(), &"g20".into())
    );
    assert_eq!(
        (&finding["at"], &finding["first"]),
        (&"0x0000000000000010".into(), &"0x0000000000000000".into())
    );
}

#[test]
fn levels_decide_what_is_shown_and_what_counts() {
    let part = assembled("mov(8) g10<1>D g20<8,8,1>D { align1 1Q };");
    assert_eq!(run(&["check"], &part, 0), "");
    assert!(run(&["check", "--all"], &part, 0).starts_with("note[no-end]: "));
    assert!(run(&["check", "--deny", "note"], &part, 4).starts_with("note[no-end]: "));
    assert!(run(&["check", "--whole"], &part, 4).starts_with("error[runs-off]: "));
    run(&["check", "--deny", "all"], &part, 2);
}

#[test]
fn lines_are_checked_each_by_itself() {
    let hex = |source: &str| assembled(source).iter().map(|b| format!("{b:02x}")).collect::<String>();
    let good = hex("mov(8) g10<1>D g20<8,8,1>D { align1 1Q };");
    let bad = hex("mov(8) g10<1>D g20<8,8,1>D { align1 1Q };").replacen("0300", "0700", 1);
    let shown = run(&["check", "--hex"], format!("{good}\n{good}\n").as_bytes(), 0);
    assert_eq!(shown, "");
    let shown = run(&["check", "--hex"], format!("{good}\n{bad}\n").as_bytes(), 4);
    assert!(shown.contains("standard input:2\n"), "{shown}");
    run(&["check", "--hex"], b"12345\n", 3);
}
