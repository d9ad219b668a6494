//! The emulated SQE, as lines of text: what goes in, what is shown.

use unwedge_hw::Db;
use unwedge_isa::afuc::Firmware;
use unwedge_view::asm::{sqe_log, sqe_session::Session};

#[path = "../../sim/tests/sqe_rig/mod.rs"]
mod rig;
use rig::*;

#[test]
fn a_log_reads_as_lines() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let mut emulator = boot("", &names);
    for _ in 0..5 {
        emulator.step().expect("a step");
    }
    let (log, _) = emulator.take_log();
    let lines: Vec<String> = sqe_log::changes(&log)
        .into_iter()
        .map(|(place, value)| sqe_log::line(place, value, Firmware::A630, &names))
        .collect();
    let expected = [
        "              GPR:  $01: 00000830",
        "              GPR:  $02: 00000002",
        "              CTRL: @REG_READ_ADDR: 00000830",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_session_is_driven_by_lines() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let handlers = "CP_NOP:\nmov $02, $data\nmov $addr, 0x883\nmov $data, $02\nwaitin\nmov $01, $data\n";
    let mut session = Session::new(boot(handlers, &names));
    let mut say = |line: &str| {
        let mut out = String::new();
        assert!(session.command(line, &mut out), "{line}");
        out
    };
    assert_eq!(say("s 2"), "\t0000: 016ee001  [016ee001]\n\t0001: 01000018  [01000018]\n");
    assert_eq!(
        say("s"),
        "\t0002: 88010830  mov $01, 0x830\t; CP_SQE_INSTR_BASE\n              GPR:  $01: 00000830\n"
    );
    assert_eq!(say("r"), "stopped: packet done\n\t0012: 981f0806  mov $01, $data\n");
    assert_eq!(say("r"), "stopped: waiting for a packet\n\t0012: 981f0806  mov $01, $data\n");
    assert_eq!(say("b CP_NOP"), "set breakpoint at 0x13\n");
    assert_eq!(say("p CP_NOP 0xbeef"), "");
    assert_eq!(say("r"), "stopped: breakpoint at 0x13\n\t0013: 981f1006  mov $02, $data\n");
    assert_eq!(say(""), "stopped: packet done\n\t0017: 981f0806  mov $01, $data\n");
    assert_eq!(say("d g CP_SCRATCH[0].REG"), "              GPU:  CP_SCRATCH[0].REG: 0000beef\n");
    assert_eq!(say("w m 0x1000 1 2"), "");
    assert_eq!(say("d m 0x1004 1"), "              MEM:  0x0000000000001004: 0x00000002\n");
    assert_eq!(say("w r $03 0x77"), "");
    assert!(say("d r").contains("$03: 00000077\n"));
    assert_eq!(say("d t"), "              TABLE: CP_NOP: 00000013\n");
    assert_eq!(say("x"), "error: no command `x`: h for help\n");
    assert_eq!(say("d c NO_SUCH"), "error: no register `NO_SUCH`\n");
    assert_eq!(say("w c 0xffff 1"), "error: register 0xffff does not exist\n");
    assert!(say("h").starts_with("s [N] "));
    assert!(!session.command("q", &mut String::new()));
}
