//! Error states of i915 and dumps of xe through `info` and `decode`: what they say.

mod program;

use program::{text, unwedge};
use unwedge::capture::intel::RingRegister;
use unwedge_testkit::i915::{self, ErrorStateBuilder};
use unwedge_testkit::intel::{EngineState, TestDevice, cut_in_lines, dump_of_every_platform};
use unwedge_testkit::xe::{self, DevcoreBuilder};

fn error_state() -> Vec<u8> {
    ErrorStateBuilder::complete(TestDevice::named("tgl"), i915::I915Era::V6_12).text()
}

fn xe_dump() -> Vec<u8> {
    DevcoreBuilder::complete(TestDevice::named("lnl"), xe::XeEra::V6_14).text()
}

/// What is printed for a file that is fine.
fn printed(args: &[&str], input: &[u8]) -> String {
    let output = unwedge(&[args, &["-"]].concat(), input);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.contains(line), "not there: {line}\nin\n{text}");
}

#[test]
fn info_names_device_engines_and_memory() {
    let said = printed(&["info"], &error_state());
    has(&said, "an i915 error state\n");
    has(&said, "TIGERLAKE, PCI 8086:9a49, revision 0x01");
    has(&said, "game [1234]");
    has(&said, "rcs0     hung");
    has(&said, "0x000000010010003c  0x7b000005");
    has(&said, "rcs0 batch                ppgtt  0x0000000100100000");
    let said = printed(&["info"], &xe_dump());
    has(&said, "a xe devcoredump\n");
    has(&said, "graphics 20.04, PCI 8086:64a0, revision 0x04");
    has(&said, "not readable: error -14");
    has(&said, "HW Engines");
    let json: serde_json::Value = serde_json::from_str(&printed(&["info", "--json"], &xe_dump())).unwrap();
    assert_eq!(json["kind"], "xe-devcoredump");
    assert_eq!(json["dump"]["process"], "game");
    assert_eq!(json["dump"]["engines"][0]["acthd"], "0x000000000030001c");
}

#[test]
fn decode_lists_registers_and_memory() {
    for era in i915::I915Era::ALL {
        let said = printed(&["decode"], &ErrorStateBuilder::complete(TestDevice::named("skl"), era).text());
        has(&said, "engine rcs0\n");
        has(&said, "IPEHR                        0x7b000005    3DPRIMITIVE\n");
        has(&said, " at 0x0000000100100000 (ppgtt), 4096 bytes\n  0x000100100000: 7a000004 00100000");
    }
    let said = printed(&["decode"], &xe_dump());
    has(&said, "queue 8\n  Name: rcs8\n");
    has(&said, "context 0x00900000\n");
    has(&said, "  batch 0: 0x0000000000200000\n");
    has(&said, "memory 500000 at 0x0000000000500000 (ppgtt), 4096 bytes, not captured: error -14\n");
}

/// A file without a dump in it, and one cut in its first line: every command takes it alike.
#[test]
fn what_holds_no_dump_is_said_by_all() {
    for text in ["No error state collected\n", "no error state collected\n"] {
        for command in ["info", "explain", "decode"] {
            let output = unwedge(&[command, "-"], text.as_bytes());
            assert_eq!(output.status.code(), Some(1), "{command}");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            has(&said, "the error file of i915 while it holds no error state");
        }
    }
    let state = error_state();
    for cut in [16, 30, 60] {
        for command in ["info", "explain", "decode"] {
            let output = unwedge(&[command, "-"], &state[..cut]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(3), "{command} {cut}: {said}");
            has(&said, "the dump ends inside a line");
        }
    }
    for command in ["info", "explain"] {
        let output = unwedge(&[command, "-"], b"PCI ID: 0x9a49\nEIR: 0x00000000\n");
        assert_eq!(output.status.code(), Some(1), "{command}");
    }
}

/// Before 6.9 a dump of xe has no version of the graphics: the PCI id tells it.
#[test]
fn the_version_follows_from_the_pci_id() {
    let dump = b"**** Xe Device Coredump ****\nkernel: 6.8.0\nPCI ID: 0x9a49\nPCI revision: 0x04\n";
    has(&printed(&["info"], dump), "graphics 12.00, PCI 8086:9a49, revision 0x04");
}

#[test]
fn the_fields_of_a_memory_copy() {
    let copy = [0x5680_0008, 0xfff, 2, 0x1fff, 0x2fff, 0x1000, 1, 0x2000, 2, 6 | 8 << 25, 0x0500_0000];
    let engine = EngineState::new("bcs0")
        .batch(0x1_0010_0000, &copy)
        .set(RingRegister::Acthd, 0x1_0010_0000)
        .set(RingRegister::Ipehr, copy[0].into())
        .hung(1);
    let said = printed(&["decode"], &ErrorStateBuilder::new(TestDevice::named("dg2")).engine(engine).text());
    for field in [
        "Copy Width - 1: 4095\n",
        "Copy Height - 1: 2\n",
        "Source Pitch - 1: 8191\n",
        "Destination Pitch - 1: 12287\n",
        "Source Address: 0x100001000\n",
        "Destination Address: 0x200002000\n",
        "Destination MOCS: 6\n",
        "Source MOCS: 8\n",
    ] {
        has(&said, field);
    }
}

#[test]
fn json_lines_say_what_the_text_says() {
    let lines = |dump: &[u8]| -> Vec<serde_json::Value> {
        let said = printed(&["decode", "--json"], dump);
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let state = lines(&error_state());
    assert_eq!((&state[0]["type"], &state[0]["kind"]), (&"header".into(), &"i915-error-state".into()));
    assert_eq!((&state[0]["process"], &state[0]["pid"]), (&"game".into(), &1234.into()));
    let find = |name: &str| state.iter().find(|l| l["type"] == "register" && l["name"] == name).unwrap();
    assert_eq!(find("ACTHD")["value"], "0x000000010010003c");
    assert_eq!(find("SAMPLER_INSTDONE")["index"], serde_json::json!([0, 0]));
    let batch = state.iter().find(|l| l["type"] == "memory" && l["kind"] == "batch").unwrap();
    assert_eq!(find("INSTDONE")["not_done"], serde_json::json!(["CS"]));
    assert_eq!(find("FAULT_TLB_DATA")["address"], "0x0000000010010000");
    let marked = state.iter().find(|l| l["marks"] == serde_json::json!(["ACTHD", "IPEHR"])).unwrap();
    assert_eq!((&marked["type"], &marked["name"]), (&"command".into(), &"3DPRIMITIVE".into()));
    assert_eq!((&marked["fields"][0]["enum"], &marked["stream"]), (&"TRILIST".into(), &"batch".into()));
    let stands = state.iter().find(|l| l["type"] == "state").unwrap();
    assert_eq!((&stands["agreement"], &stands["commands"]), (&"here".into(), &3.into()));
    assert_eq!(stands["registers"][0]["name"], "CS_CHICKEN1");
    assert_eq!((&batch["space"], &batch["size"]), (&"ppgtt".into(), &4096.into()));
    assert!(batch["data"].as_str().unwrap().starts_with("7a000004 00100000"));
    assert_eq!(state.last().unwrap()["lost"], false);
    let dump = lines(&xe_dump());
    assert!(dump.iter().any(|l| l["type"] == "queue" && l["number"] == 8));
    assert!(dump.iter().any(|l| l["type"] == "memory" && l["error"] == -14));
}

#[test]
fn commands_are_listed_with_where_the_engine_stands() {
    let said = printed(&["decode"], &error_state());
    has(&said, "commands of rcs0: ring\n");
    has(&said, "0x000000100014: 00000000 MI_NOOP  <- HEAD\n");
    has(&said, "commands of rcs0: WA context\n  0x000000400000: 11000001 MI_LOAD_REGISTER_IMM\n");
    has(&said, "Register Offset: 0x000020c0 (INSTPM)\n");
    has(
        &said,
        "commands of rcs0: batch\n  the command at ACTHD is the one of IPEHR\n  batch at 0x000100100000\n",
    );
    has(&said, "0x000100100034: 7b000005 3DPRIMITIVE  <- ACTHD, IPEHR\n");
    has(&said, "Primitive Topology Type: 4 (TRILIST)\n");
    has(&said, "state of rcs0 where it stands\n  3 commands before it: 0 draws");
    has(&said, "  register 0x02580 CS_CHICKEN1: 0x00010001, written at 0x000100100018\n");
    let said = printed(&["decode"], &xe_dump());
    has(&said, "  batch at 0x000000300000, called, level 1\n");
    has(&said, "0x000000300008: 0e009003 MI_SEMAPHORE_WAIT  <- IPEHR\n");
}

/// The GuC captures the address of a fault in halves: the first says it as a whole.
#[test]
fn the_address_of_a_captured_fault_is_said() {
    let state = ErrorStateBuilder::complete(TestDevice::named("adlp"), i915::I915Era::V6_12);
    let said = printed(&["decode"], &state.fault(0xfff1_2345, 0x17).guc_capture().text());
    for line in [
        "GEN8_FAULT_TLB_DATA0         0x00000000\n",
        "GEN12_FAULT_TLB_DATA0        0xfff12345    address 0x7fff12345000 (ggtt)\n",
        "GEN12_FAULT_TLB_DATA1        0x00000017    Fault Address 47:44: 7, Address Space: 1 (GGTT)\n",
    ] {
        has(&said, line);
    }
}

#[test]
fn registers_say_what_their_bits_mean() {
    let said = printed(&["decode"], &error_state());
    for line in [
        "FAULT_TLB_DATA               0x00000000  0x00010010  address 0x000010010000 (ppgtt)\n",
        "IPEHR                        0x7b000005    3DPRIMITIVE\n",
        "INSTDONE                     0xffdffffe    not done: CS\n",
        "CTL                          0x00000001    ENABLE\n",
    ] {
        has(&said, line);
    }
}

#[test]
fn registers_and_commands_are_looked_up() {
    let regs = |args: &[&str]| {
        let output = unwedge(&[&["regs"], args].concat(), b"");
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    for (args, line) in [
        (&["tgl", "HEAD", "0x600124"][..], "       20:2  OFFSET                           0x00000124\n"),
        (&["0x9a49", "0x22034"], "RING_BUFFER_HEAD  offset 0x00034 from the base of bcs0\n"),
        (&["tigerlake", "IPEHR", "0x7a000004"], "  = 0x7a000004: PIPE_CONTROL\n"),
        (&["12.70", "*INSTDONE*"], " 0x07100  SC_INSTDONE\n"),
        (&["lnl", "MI_SEMAPHORE_WAIT"], "MI_SEMAPHORE_WAIT  opcode 0x0e000000"),
    ] {
        let (status, said) = regs(args);
        assert_eq!(status, Some(0), "{said}");
        has(&said, line);
    }
    for (args, status, line) in [
        (&["tgl", "NOTHING"][..], 1, "NOTHING: not on graphics 12.00"),
        (&["tgl", "HEAD", "0x123456789"], 2, "RING_BUFFER_HEAD has 32 bits"),
        (&["tgl", "HEAD", "--space", "gmu"], 2, "--space is for Adreno"),
    ] {
        let (found, said) = regs(args);
        assert_eq!(found, Some(status), "{said}");
        has(&said, line);
    }
    let (_, json) = regs(&["skl", "FAULT_REG", "0x23", "--json"]);
    let json: serde_json::Value = serde_json::from_str(json.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&json["type"], &json["offset"]), (&"register".into(), &"0x04094".into()));
    assert_eq!(json["meaning"][1]["enum"], "Invalid PDE Fault");
}

#[test]
fn a_cut_dump_is_shown_and_said_to_be_cut() {
    for dump in [error_state(), xe_dump()] {
        let cut = &dump[..dump.len() * 2 / 3];
        for command in [&["decode"][..], &["decode", "--json"], &["info"]] {
            let output = unwedge(&[command, &["-"]].concat(), cut);
            assert_eq!(output.status.code(), Some(3), "{command:?}: {}", text(&output.stderr));
            assert!(text(&output.stderr).contains("the dump ends"), "{}", text(&output.stderr));
            assert!(!output.stdout.is_empty());
        }
    }
}

#[test]
fn a_cut_dump_of_any_platform_is_exit_status_3() {
    const COMMANDS: [&[&str]; 4] = [&["explain"], &["info"], &["decode"], &["explain", "--json"]];
    for (i, (platform, dump)) in dump_of_every_platform().enumerate() {
        let cuts = cut_in_lines(&dump);
        for part in 0..3 {
            let cut = cuts[(2 * part + 1) * cuts.len() / 6];
            let command = COMMANDS[(i + part) % COMMANDS.len()];
            let output = unwedge(&[command, &["-"]].concat(), cut);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{platform}, {command:?}, part {part}: {said}");
            assert!(!output.stdout.is_empty() && !said.is_empty(), "{platform}, {command:?}, part {part}");
        }
    }
}

#[test]
fn memory_that_does_not_unpack_is_said() {
    let whole = ErrorStateBuilder::new(TestDevice::named("tgl"))
        .engine(EngineState::new("rcs0").set(RingRegister::Head, 4).batch(0x1000, &[1, 2, 3]))
        .text();
    let line = whole.windows(2).position(|w| w == b"\n:").unwrap() + 2;
    let mut broken = whole.clone();
    broken[line..line + 5].copy_from_slice(b"!!!!!");
    let output = unwedge(&["decode", "-"], &broken);
    assert_eq!(output.status.code(), Some(3));
    has(&text(&output.stderr), "the packed contents of batch are broken");
}

#[test]
fn empty_error_states_are_no_dumps() {
    let output = unwedge(&["decode", "-"], b"No error state collected\n");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}
