//! Branches, ends, registers and single waits of small programs.

use unwedge_check::eu::facts::RULES;
use unwedge_check::eu::{CheckFinding, CheckOptions, CheckReport, Level, Rule, WaitNeed, check};
use unwedge_isa::eu::{Platform, program};

const END: &str = "mov(8) g120<1>UD g0<8,8,1>UD { align1 WE_all 1Q };\n\
                   send(8) nullUD g120UD nullUD 0x02080000 0x00000000\n thread_spawner MsgDesc: { align1 WE_all 1Q @1 $9 EOT };";

fn report(platform: &str, text: &str, options: CheckOptions) -> CheckReport {
    let platform = Platform::by_name(platform).unwrap();
    let bytes = program::assemble(platform, text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    check(platform, &bytes, options)
}

/// The rules of errors and warnings, with their places.
fn faults(platform: &str, text: &str) -> Vec<(Rule, u32)> {
    let report = report(platform, text, CheckOptions { whole: true, inputs: None });
    report.of_level(Level::Warning).map(|f| (f.rule, f.at)).collect()
}

fn notes(platform: &str, text: &str) -> Vec<CheckFinding> {
    let report = report(platform, &format!("{text}\n{END}"), CheckOptions { whole: true, inputs: Some(40) });
    report.findings.into_iter().filter(|f| f.level == Level::Note).collect()
}

const MOV: &str = "mov(8) g10<1>D g2<8,8,1>D { align1 1Q };";

#[test]
fn a_program_that_ends_is_silent() {
    assert_eq!(faults("tgl", &format!("{MOV}\n{END}")), []);
    assert_eq!(faults("dg2", &format!("{MOV}\n{END}")), []);
}

#[test]
fn the_end_of_the_thread_is_missed() {
    assert_eq!(faults("tgl", MOV), [(Rule::RunsOff, 0)]);
    // Alone it may be a part of a program.
    let part = report("tgl", MOV, CheckOptions::default());
    assert!(!part.whole);
    assert_eq!(
        part.findings.iter().map(|f| (f.rule, f.level)).collect::<Vec<_>>(),
        [(Rule::NoEnd, Level::Note)]
    );
    // One path ends, the other does not.
    let text = format!(
        "(+f0.0) if(8) JIP: LABEL0 UIP: LABEL0 {{ align1 1Q }};\n{END}\nLABEL0:\nendif(8) JIP: LABEL1 {{ align1 1Q }};\nLABEL1:\n{MOV}"
    );
    assert_eq!(faults("tgl", &text), [(Rule::RunsOff, 64)]);
}

#[test]
fn jumps_go_to_instructions_of_the_program() {
    let jump = |distance: u32| {
        let platform = Platform::by_name("tgl").unwrap();
        let text = format!("L:\nwhile(8) JIP: L {{ align1 1Q }};\n{END}");
        let mut bytes = program::assemble(platform, &text).unwrap();
        bytes[12..16].copy_from_slice(&distance.to_le_bytes());
        let report = check(platform, &bytes, CheckOptions::default());
        report.of_level(Level::Warning).map(|f| f.rule).collect::<Vec<_>>()
    };
    assert_eq!(jump(16), []);
    assert_eq!(jump(24), [Rule::JumpMiddle]);
    assert_eq!(jump(0x4000), [Rule::JumpOutside]);
    assert_eq!(jump(-16i32 as u32), [Rule::JumpOutside]);
}

#[test]
fn bytes_that_are_not_instructions_are_errors_where_they_are_reached() {
    let text = format!("{MOV}\n.raw ffffffffffffff5fffffffffffffffff\n{END}");
    assert_eq!(faults("tgl", &text), [(Rule::NotInstruction, 16)]);
    // After the end they are not reached.
    let text = format!("{END}\n.raw ffffffffffffff5fffffffffffffffff");
    assert_eq!(faults("tgl", &text), []);
    assert!(notes("tgl", MOV).is_empty());
}

#[test]
fn messages_fit_the_register_file() {
    let send = |register: u32| {
        format!(
            "send(8) g{register}UD g2UD nullUD 0x02480000 0x00000000\n data MsgDesc: {{ align1 1Q $0 }};\n{END}"
        )
    };
    assert_eq!(faults("tgl", &send(124)), []);
    assert_eq!(faults("tgl", &send(125)), [(Rule::MessageLength, 0)]);
}

#[test]
fn registers_that_nothing_has_written_are_noted() {
    let read = |register: u32| notes("tgl", &format!("mov(8) g10<1>D g{register}<8,8,1>D {{ align1 1Q }};"));
    assert!(read(39).is_empty());
    let found = read(41);
    assert_eq!((found[0].rule, found[0].registers), (Rule::NotWritten, Some((41, 1))));
}

#[test]
fn results_of_messages_wait_for_their_token() {
    let text = |wait: &str| {
        format!(
            "send(8) g20UD g2UD nullUD 0x02180000 0x00000000\n data MsgDesc: {{ align1 1Q $3 }};\n\
             mov(8) g10<1>D g20<8,8,1>D {{ align1 1Q {wait} }};\n{END}"
        )
    };
    assert_eq!(faults("tgl", &text("$3.dst")), []);
    for wait in ["", "$3.src", "$4.dst", "@1"] {
        assert_eq!(faults("tgl", &text(wait)), [(Rule::TokenRead, 16)], "{wait}");
    }
    let found = report("tgl", &text(""), CheckOptions::default()).findings;
    let found = found.iter().find(|f| f.rule == Rule::TokenRead).unwrap();
    assert_eq!((found.first, found.registers), (Some(0), Some((20, 1))));
    assert_eq!(found.need, Some(WaitNeed::Token(3, false)));
    // Without a token nothing can wait for it.
    let without = text("").replace(" $3", "");
    assert_eq!(faults("tgl", &without), [(Rule::TokenMissing, 16)]);
}

#[test]
fn payloads_stay_until_they_are_read() {
    let text = |wait: &str| {
        format!(
            "send(8) nullUD g20UD nullUD 0x02080000 0x00000000\n data MsgDesc: {{ align1 1Q $3 }};\n\
             mov(8) g20<1>D g2<8,8,1>D {{ align1 1Q {wait} }};\n{END}"
        )
    };
    assert_eq!(faults("tgl", &text("$3.src")), []);
    assert_eq!(faults("tgl", &text("$3.dst")), []);
    assert_eq!(faults("tgl", &text("")), [(Rule::TokenSource, 16)]);
}

#[test]
fn distances_count_in_their_pipe() {
    let text = |between: &str, wait: &str| {
        format!(
            "mov(8) g20<1>F g2<8,8,1>F {{ align1 1Q }};\n{between}\nadd(8) g21<1>F g20<8,8,1>F g20<8,8,1>F {{ align1 1Q {wait} }};\n{END}"
        )
    };
    assert_eq!(faults("dg2", &text("", "@1")), []);
    assert_eq!(faults("dg2", &text("", "F@1")), []);
    assert_eq!(faults("dg2", &text("", "A@1")), []);
    assert_eq!(faults("dg2", &text("", "I@1")), [(Rule::DistanceRead, 16)]);
    assert_eq!(faults("dg2", &text("", "F@2")), [(Rule::DistanceRead, 16)]);
    // An integer instruction is not counted in the float pipe, and is on gen12.
    assert_eq!(faults("dg2", &text(MOV, "F@2")), [(Rule::DistanceRead, 32)]);
    assert_eq!(faults("tgl", &text(MOV, "@2")), []);
    let found = report("dg2", &text(MOV, ""), CheckOptions::default()).findings;
    let found = found.iter().find(|f| f.rule == Rule::DistanceRead).unwrap();
    assert_eq!(found.need, Some(WaitNeed::Distance("F", 1)));
}

#[test]
fn another_pipe_does_not_overwrite_a_source() {
    let text = |wait: &str| {
        format!(
            "mov(8) g20<1>F g30<8,8,1>F {{ align1 1Q }};\nmov(8) g30<1>D g2<8,8,1>D {{ align1 1Q {wait} }};\n{END}"
        )
    };
    assert_eq!(faults("dg2", &text("F@1")), []);
    assert_eq!(faults("dg2", &text("")), [(Rule::DistanceSource, 16)]);
    assert_eq!(faults("tgl", &text("")), []);
}

#[test]
fn waits_for_nothing_are_notes() {
    let found = notes("tgl", "mov(8) g10<1>D g2<8,8,1>D { align1 1Q $5.dst };");
    assert_eq!((found[0].rule, found[0].at), (Rule::RedundantWait, 0));
    let needed = "send(8) g20UD g2UD nullUD 0x02180000 0x00000000\n data MsgDesc: { align1 1Q $3 };\n\
                  mov(8) g10<1>D g20<8,8,1>D { align1 1Q $3.dst };";
    assert_eq!(notes("tgl", needed), []);
}

#[test]
fn what_cannot_end_is_found() {
    let platform = Platform::by_name("tgl").unwrap();
    let mut bytes = program::assemble(platform, &format!("{MOV}\n{END}")).unwrap();
    // jmpi to itself.
    let mut jump = [0u8; 16];
    jump[0] = 32;
    jump[5] = 0x80;
    jump[12..16].copy_from_slice(&(-16i32).to_le_bytes());
    bytes.splice(0..0, jump);
    let report = check(platform, &bytes, CheckOptions { whole: true, inputs: None });
    let rules: Vec<Rule> = report.of_level(Level::Error).map(|f| f.rule).collect();
    assert!(rules.contains(&Rule::Endless), "{rules:?}");
}

/// A message with token 3 that writes g20 and reads g2.
const SEND: &str = "send(8) g20UD g2UD nullUD 0x02180000 0x00000000\n data MsgDesc: { align1 1Q $3 };";
/// A dword for each of 8 channels.
const LOAD: &str = "send(8) g20UD g2UD nullUD 0x02100500 0x00000000\n ugm MsgDesc: { align1 1Q $3 };";
const BYTES: &str = ".raw ffffffffffffff5fffffffffffffffff";

/// A program that breaks a rule of programs, and one that does not, for each of them.
fn pairs() -> Vec<(Rule, String, String)> {
    let float = "mov(8) g20<1>F g30<8,8,1>F { align1 1Q };";
    let pair = |rule, bad: &str, good: &str| (rule, format!("{bad}\n{END}"), format!("{good}\n{END}"));
    let after = |first: &str, second: &str| format!("{first}\n{second}");
    // `while` with a JIP of its own.
    let branch = |jip: &str| format!(".raw 270003010000000000000000{jip}");
    vec![
        pair(Rule::NotInstruction, BYTES, MOV),
        pair(Rule::JumpOutside, &branch("00400000"), &branch("10000000")),
        pair(Rule::JumpMiddle, &branch("08000000"), &branch("10000000")),
        (Rule::RunsOff, MOV.to_owned(), format!("{MOV}\n{END}")),
        (Rule::NoEnd, MOV.to_owned(), format!("{MOV}\n{END}")),
        pair(Rule::Endless, ".raw 200000000080000000000000f0ffffff", ".raw 20000000008000000000000000000000"),
        (Rule::NotReached, format!("{END}\n{MOV}"), format!("{MOV}\n{END}")),
        pair(Rule::MessageLength, &SEND.replace("g20UD", "g255UD").replace("0x0218", "0x0228"), SEND),
        pair(Rule::MessageSize, &LOAD.replace("0x0210", "0x0220"), LOAD),
        pair(Rule::NotWritten, "mov(8) g10<1>D g100<8,8,1>D { align1 1Q };", MOV),
        pair(
            Rule::TokenRead,
            &after(SEND, "mov(8) g10<1>D g20<8,8,1>D { align1 1Q };"),
            &after(SEND, "mov(8) g10<1>D g20<8,8,1>D { align1 1Q $3.dst };"),
        ),
        pair(
            Rule::TokenOverwrite,
            &after(SEND, "mov(8) g20<1>D g3<8,8,1>D { align1 1Q };"),
            &after(SEND, "mov(8) g20<1>D g3<8,8,1>D { align1 1Q $3.dst };"),
        ),
        pair(
            Rule::TokenSource,
            &after(SEND, "mov(8) g2<1>D g3<8,8,1>D { align1 1Q };"),
            &after(SEND, "mov(8) g2<1>D g3<8,8,1>D { align1 1Q $3.src };"),
        ),
        pair(
            Rule::TokenMissing,
            &after(&SEND.replace(" $3", ""), "mov(8) g10<1>D g20<8,8,1>D { align1 1Q };"),
            &after(SEND, "mov(8) g10<1>D g20<8,8,1>D { align1 1Q $3.dst };"),
        ),
        pair(
            Rule::DistanceRead,
            &after(float, "mov(8) g10<1>F g20<8,8,1>F { align1 1Q };"),
            &after(float, "mov(8) g10<1>F g20<8,8,1>F { align1 1Q F@1 };"),
        ),
        pair(
            Rule::DistanceOverwrite,
            &after(float, "mov(8) g20<1>D g3<8,8,1>D { align1 1Q };"),
            &after(float, "mov(8) g20<1>D g3<8,8,1>D { align1 1Q F@1 };"),
        ),
        pair(
            Rule::DistanceSource,
            &after(float, "mov(8) g30<1>D g3<8,8,1>D { align1 1Q };"),
            &after(float, "mov(8) g30<1>D g3<8,8,1>D { align1 1Q F@1 };"),
        ),
        pair(
            Rule::DistanceWrite,
            &after(float, "mov(8) g20<1>F g3<8,8,1>F { align1 1Q };"),
            &after(float, "mov(8) g20<1>F g3<8,8,1>F { align1 1Q F@1 };"),
        ),
        pair(Rule::RedundantWait, "mov(8) g10<1>D g2<8,8,1>D { align1 1Q $5.dst };", MOV),
    ]
}

#[test]
fn every_rule_of_programs_has_a_bad_and_a_good_one() {
    let pairs = pairs();
    let rules = |rule: Rule, text: &str| {
        let whole = rule != Rule::NoEnd;
        let report = report("dg2", text, CheckOptions { whole, inputs: None });
        report.findings.iter().map(|f| f.rule).collect::<Vec<_>>()
    };
    for (rule, bad, good) in &pairs {
        let (found, quiet) = (rules(*rule, bad), rules(*rule, good));
        assert!(found.contains(rule), "{} in {found:?}: {bad}", rule.info().name);
        assert!(!quiet.contains(rule), "{} in {quiet:?}: {good}", rule.info().name);
    }
    let of_programs = RULES.iter().filter(|info| info.rule >= Rule::NotInstruction);
    for info in of_programs {
        assert!(pairs.iter().any(|(rule, ..)| *rule == info.rule), "{} has no case", info.name);
    }
}
