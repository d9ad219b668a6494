//! afuc on sources and bytes made here: the language, its errors, the emulator, and bytes of any kind.

use unwedge_hw::Db;
use unwedge_isa::afuc::asm::{self, AfucProblem};
use unwedge_isa::afuc::disasm::{self, DisasmError, ListingForm};
use unwedge_isa::afuc::{AfucNames, Firmware, FirmwareBlob, Processor, assemble, text};
use unwedge_sim::adreno::sqe::{SqeEmulator, SqeFault, SqeLocation, SqeStop, disassemble, sections};
use unwedge_sim::{MemoryAccess, MemoryFault, MemoryFaultCause};
use unwedge_testkit::pm4::{pkt4, pkt7};

#[path = "sqe_rig/mod.rs"]
mod rig;
use rig::*;

/// A packet of an opcode.
fn operation(opcode: u8, payload: &[u32]) -> Vec<u32> {
    pkt7(opcode.into(), payload)
}

/// The problems of a source, with their lines and columns.
fn problems(source: &str, names: &dyn AfucNames) -> Vec<(usize, usize, AfucProblem)> {
    match assemble(source, &asm::AfucAsmOptions::default(), names) {
        Ok(_) => Vec::new(),
        Err(errors) => {
            errors.list.into_iter().map(|error| (error.line, error.column, error.problem)).collect()
        }
    }
}

/// Runs a firmware over packets in memory until it waits for more.
fn run<'n>(handlers: &str, packets: &[u32], names: &'n dyn AfucNames) -> SqeEmulator<'n> {
    let mut emulator = boot(handlers, names);
    let address = 0x1_0000_0000;
    for (i, &word) in (0u64..).zip(packets) {
        emulator.memory_mut().write(address + 4 * i, word).expect("memory");
    }
    emulator.submit(address, packets.len() as u32);
    loop {
        match emulator.run(10_000) {
            SqeStop::PacketDone => {}
            SqeStop::NeedsData => return emulator,
            stop => panic!("{stop} at {:#x}", emulator.pc()),
        }
    }
}

#[test]
fn the_file_begins_with_the_dword_the_kernel_strips() {
    let bytes = build("[016ee001]\nnop\nmov $02, 0x1234 << 16\n", &());
    assert_eq!(bytes, [0, 0, 0, 0, 0x01, 0xe0, 0x6e, 0x01, 0, 0, 0, 1, 0x34, 0x12, 0x02, 0x8a]);
}

#[test]
fn every_form_of_operand_assembles_and_reads_back() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let common = "\
mov $02, $data
mov $addr, 0xa0 << 24	; |NRT_ADDR
(rep)(xmov3)mov $data, $data
add $02, $03, $memdata
sub $02, $02, 0x1
not $02, $03
not $02, 0xff
msb $02, $03
setbit $02, $03, b31
clrbit $02, $03, b0
(rep)store $memdata, [$02 + 0x4]!
load $07, [$02 + 0xfff]
(rep)(sds2)cwrite $data, [$00 + @DRAW_STATE_SET_HDR]
cread $02, [$05 + @IB1_BASE+0x1]
cread $02, [$05 + 0x101]!
sread $02, [$00 + %SP]
swrite $sp, [$lr + 0x020]
brne $02, 0x1f, #l2
breq $02, b4, #l2
jump #l2
call #fxn3
bl #fxn3
setsecure $02, #l27
ret
iret
l27:
waitin
nop
";
    let seven = "\
bic $02, $02, $regdata
bfi $02, $03, b1, b2
ubfx $03, $02, b5, b6
setbit $02, $02, $03
(xmov2)(peek)xor $rem, $regdata, $data
jumpa #l2
jump $lr
sret
";
    let common = common.replacen("mov $addr", "fxn3:\nmov $addr", 1);
    for (version, more) in [(A6XX, ""), ("01730001", seven)] {
        let source = format!("[{version}]\n[00000000]\nl2:\n{common}{more}");
        let bytes = build(&source, &names);
        let options =
            disasm::AfucDisasmOptions { form: ListingForm::Exact, ..disasm::AfucDisasmOptions::default() };
        let text = disassemble(&bytes, &options, &names).expect("known");
        let lines = |text: &str| -> Vec<String> {
            // No packet table is loaded: every packet is a label of offset 0.
            let instructions = text.lines().skip_while(|line| !line.starts_with('['));
            instructions.filter(|line| !line.is_empty()).map(str::to_owned).collect()
        };
        assert_eq!(lines(&text), lines(&source), "{version}");
    }
}

#[test]
fn mistakes_are_told_up_to_a_limit_that_is_told() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let source = |mistakes| format!("[016ee001]\n{}", "frob\n".repeat(mistakes));
    assert_eq!(problems(&source(1000), &names).len(), 1000);
    let many = problems(&source(5000), &names);
    assert_eq!(many.len(), 1001);
    assert_eq!(many[1000].2, AfucProblem::TooMany);
}

#[test]
fn all_mistakes_are_reported_with_their_places() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let source = "\
[016ee001]
    frob $01, $02
add $01, $02
mov $01, #nowhere
cwrite $01, [$00 + @NO_SUCH]
add $01, $02, 0x10000
(rep)ret
bic $01, $02, $03
here:
here:
mov $77, $01
shl $01, $02, $03 nop ?
.align 7
";
    let found = problems(source, &names);
    let places: Vec<(usize, usize)> = found.iter().map(|&(line, column, _)| (line, column)).collect();
    let expected =
        [(2, 5), (3, 13), (4, 10), (5, 20), (6, 1), (7, 1), (8, 1), (10, 1), (11, 5), (12, 23), (13, 8)];
    assert_eq!(places, expected, "{found:#?}");
    assert_eq!(found[0].2, AfucProblem::NoMnemonic("frob".into()));
    assert!(matches!(&found[1].2, AfucProblem::Expected { expected: "`,`", .. }));
    assert_eq!(found[2].2, AfucProblem::NoLabel("nowhere".into()));
    assert_eq!(found[3].2, AfucProblem::NoControlRegister("NO_SUCH".into()));
    assert_eq!(found[7].2, AfucProblem::LabelTwice { label: "here".into(), line: 9 });
}

#[test]
fn an_error_shows_its_line() {
    let options = asm::AfucAsmOptions { file: "fw.asm".into(), firmware: None };
    let errors = assemble("[016ee001]\n\tadd $01, $02,\n", &options, &()).expect_err("an operand is missing");
    let expected = "fw.asm:2:15: error: expected a register or an immediate, found the end of the line
    \tadd $01, $02,
    \t             ^";
    assert_eq!(errors.to_string(), expected);
}

#[test]
fn a_source_must_say_which_firmware_it_is() {
    assert_eq!(problems("nop\n", &()), [(1, 1, AfucProblem::NoVersion)]);
    assert_eq!(problems("[0abcd001]\n", &()), [(1, 1, AfucProblem::UnknownFirmware(0xbcd))]);
    let options = asm::AfucAsmOptions { file: String::new(), firmware: Some(Firmware::A530) };
    assert_eq!(assemble("nop\n", &options, &()), Ok(vec![0; 8]));
}

#[test]
fn labels_belong_to_their_section_and_sections_are_aligned() {
    let source = "[01730001]\n[#end]\nmov $02, #end\nend:\n.section BV\n[01000001]\n[#end]\nnop\nend:\nnop\n";
    let words = words(source, &());
    assert_eq!(words[1], 0x0100_0003);
    assert_eq!(words[3..8], [0x0100_0000; 5]);
    assert_eq!(words[8..10], [0x0100_0001, 0x0100_0003]);
}

#[test]
fn packets_run_their_handlers() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    // The handler writes its payload to successive GPU registers.
    let handlers = "CP_NOP:
mov $02, $data
mov $addr, $02
(rep)(xmov1)mov $data, $data
waitin
mov $01, $data
PKT4:
ushr $02, $01, 8
mov $usraddr, $02
(rep)mov $data, $data
waitin
mov $01, $data
";
    let nop = names.opcode("CP_NOP").expect("CP_NOP");
    let mut packets = operation(nop, &[0x900, 1, 2, 3, 4, 5]);
    packets.extend(pkt4(0xa00, &[6, 7]));
    let emulator = run(handlers, &packets, &names);
    let values =
        |first: u32, count: u32| -> Vec<u32> { (first..first + count).map(|r| emulator.gpu(r)).collect() };
    assert_eq!(values(0x900, 6), [1, 2, 3, 4, 5, 0]);
    assert_eq!(values(0xa00, 3), [6, 7, 0]);
}

#[test]
fn the_packet_table_is_what_the_bootstrap_routine_loads() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let mut emulator = boot("CP_NOP:\nwaitin\nmov $01, $data\n", &names);
    assert_eq!(emulator.run_bootstrap(10_000), SqeStop::Booted);
    let nop = usize::from(names.opcode("CP_NOP").expect("CP_NOP"));
    let set: Vec<(usize, u32)> =
        emulator.packet_table().iter().copied().enumerate().filter(|&(_, offset)| offset != 0).collect();
    assert_eq!(set, [(nop, 19)]);
}

#[test]
fn memory_is_copied_and_unknown_memory_is_said_to_be() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let handlers = "CP_MEM_TO_MEM:
cwrite $data, [$00 + @MEM_READ_ADDR]
cwrite $data, [$00 + @MEM_READ_ADDR+1]
mov $02, $data
cwrite $data, [$00 + @LOAD_STORE_HI]
mov $rem, $data
cwrite $rem, [$00 + @MEM_READ_DWORDS]
(rep)store $memdata, [$02 + 4]!
waitin
mov $01, $data
";
    let copy = names.opcode("CP_MEM_TO_MEM").expect("CP_MEM_TO_MEM");
    let mut emulator = boot(handlers, &names);
    emulator.memory_mut().write(0x2_0000_0100, 77).expect("memory");
    emulator.push(&operation(copy, &[0x100, 2, 0x200 - 4, 3, 2]));
    while emulator.run(10_000) == SqeStop::PacketDone {}
    assert_eq!(emulator.memory().read(0x3_0000_0200), Ok(Some(77)));
    let (log, dropped) = emulator.take_log();
    assert_eq!(dropped, 0);
    let unknown: Vec<SqeLocation> =
        log.iter().filter(|a| !a.write && a.value.is_none()).map(|access| access.location).collect();
    assert_eq!(unknown, [SqeLocation::Memory(0x2_0000_0104)]);
    assert!(log.iter().any(|access| access.location == SqeLocation::Memory(0x3_0000_0200) && access.write));
}

#[test]
fn pipe_registers_write_memory() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let handlers = "CP_MEM_WRITE:
mov $addr, 0xa0 << 24
mov $data, $data
mov $data, $data
mov $addr, 0xa204 << 16
(rep)(xmov1)mov $data, $data
mov $addr, 0x84 << 24
waitin
mov $01, $data
";
    let write = names.opcode("CP_MEM_WRITE").expect("CP_MEM_WRITE");
    let mut emulator = run(handlers, &operation(write, &[0x100, 5, 11, 22, 33]), &names);
    let read = |i: u64| emulator.memory().read(0x5_0000_0100 + 4 * i);
    assert_eq!([read(0), read(1), read(2), read(3)], [Ok(Some(11)), Ok(Some(22)), Ok(Some(33)), Ok(None)]);
    let (log, _) = emulator.take_log();
    assert!(
        log.iter().any(|access| access.location == SqeLocation::Pipe(0x84)),
        "a register without payload"
    );
}

#[test]
fn draw_states_keep_what_sds_writes() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let handlers = "CP_SET_DRAW_STATE:
(rep)(sds2)cwrite $data, [$00 + @DRAW_STATE_SET_HDR]
mov $02, 3
cwrite $02, [$00 + @DRAW_STATE_SEL]
cread $03, [$00 + @DRAW_STATE_BASE]
cread $04, [$00 + @DRAW_STATE_BASE+1]
cread $05, [$00 + @DRAW_STATE_HDR]
cread $06, [$00 + @DRAW_STATE_ACTIVE_BITMASK]
waitin
mov $01, $data
";
    let set = names.opcode("CP_SET_DRAW_STATE").expect("CP_SET_DRAW_STATE");
    let packet = operation(set, &[0x0370_0010, 0x1000, 1, 0x0410_0020, 0x2000, 2]);
    let emulator = run(handlers, &packet, &names);
    assert_eq!([3, 4, 5, 6].map(|r| emulator.gpr(r)), [0x1000, 1, 0x7_0010, 0x18]);
}

#[test]
fn indirect_buffers_are_read_and_left() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let handlers = "CP_INDIRECT_BUFFER:
cwrite $data, [$00 + @IB1_BASE]
cwrite $data, [$00 + @IB1_BASE+1]
cwrite $data, [$00 + @IB1_DWORDS]
mov $02, 1
cwrite $02, [$00 + @IB_LEVEL]
waitin
mov $01, $data
CP_NOP:
add $12, $12, $data
waitin
mov $01, $data
IN_IB_END:
add $13, $13, 1
cwrite $00, [$00 + @IB_LEVEL]
waitin
mov $01, $data
";
    let opcode = |name| names.opcode(name).expect("a packet");
    let mut emulator = boot(handlers, &names);
    let inner = [operation(opcode("CP_NOP"), &[1]), operation(opcode("CP_NOP"), &[2])].concat();
    for (i, &word) in (0u64..).zip(&inner) {
        emulator.memory_mut().write(0x8000 + 4 * i, word).expect("memory");
    }
    emulator.push(&operation(opcode("CP_INDIRECT_BUFFER"), &[0x8000, 0, inner.len() as u32]));
    emulator.push(&operation(opcode("CP_NOP"), &[4]));
    while emulator.run(1_000) == SqeStop::PacketDone {}
    assert_eq!((emulator.gpr(0x12), emulator.gpr(0x13)), (7, 1));
}

#[test]
fn calls_return_behind_their_delay_slot() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let handlers = "double:
ret
add $02, $02, $02
CP_NOP:
mov $02, $data
call #double
add $02, $02, 1
cmp $03, $02, 8
breq $03, b0, #equal
nop
mov $04, 1
equal:
waitin
mov $01, $data
";
    let nop = names.opcode("CP_NOP").expect("CP_NOP");
    let emulator = run(handlers, &operation(nop, &[3]), &names);
    assert_eq!([2, 3, 4].map(|r| emulator.gpr(r)), [8, 0x2b, 0]);
    assert!(emulator.call_stack().is_empty());
}

#[test]
fn an_interrupt_resumes_what_it_interrupted() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let handlers = "IN_PREEMPT:
add $12, $12, 1
iret
nop
";
    let mut emulator = boot(handlers, &names);
    emulator.write_sqe(4, 19).expect("PREEMPT_INSTR");
    for _ in 0..10 {
        emulator.step().expect("a step");
    }
    let here = emulator.pc();
    assert!(emulator.interrupt());
    assert!(!emulator.interrupt());
    assert_eq!(emulator.pc(), 19);
    emulator.step().expect("a step");
    emulator.step().expect("iret");
    assert_eq!((emulator.pc(), emulator.gpr(0x12)), (here, 1));
}

#[test]
fn what_cannot_go_on_is_a_fault() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let stop = |handler: &str, packet: &[u32]| {
        let mut emulator = boot(&format!("CP_NOP:\n{handler}\n"), &names);
        emulator.push(packet);
        loop {
            match emulator.run(1_000) {
                SqeStop::PacketDone => {}
                stop => return stop,
            }
        }
    };
    let nop = operation(names.opcode("CP_NOP").expect("CP_NOP"), &[0]);
    assert_eq!(stop("ret\nnop", &nop), SqeStop::Fault(SqeFault::StackEmpty));
    assert_eq!(stop("again:\ncall #again\nnop", &nop), SqeStop::Fault(SqeFault::StackFull));
    assert_eq!(stop("iret", &nop), SqeStop::Fault(SqeFault::NoInterrupt));
    assert_eq!(stop("[ffffffff]", &nop), SqeStop::Fault(SqeFault::Unknown { pc: 19, word: !0 }));
    assert_eq!(stop("here:\njump #here\nnop", &nop), SqeStop::Steps);
    let unaligned =
        MemoryFault { address: 2, access: MemoryAccess::Read, cause: MemoryFaultCause::Unaligned(4) };
    assert_eq!(stop("mov $02, 2\nload $03, [$02 + 0]", &nop), SqeStop::Fault(SqeFault::Memory(unaligned)));
    assert_eq!(
        stop("mov $02, 0xfff\ncread $03, [$02 + 0xfff]", &nop),
        SqeStop::Fault(SqeFault::NoRegister(0x1ffe))
    );
    assert_eq!(stop("nop", &[0x1234_5678]), SqeStop::Fault(SqeFault::BadHeader(0x1234_5678)));
}

#[test]
fn breakpoints_stop_before_their_instruction() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let mut emulator = boot("", &names);
    assert!(emulator.add_breakpoint(6));
    assert_eq!(emulator.run(1_000), SqeStop::Breakpoint(6));
    assert_eq!(
        text::instruction(emulator.code(), emulator.pc(), emulator.firmware(), &names)
            .map(|(_, text)| text)
            .as_deref(),
        Some("mov $01, $regdata")
    );
    assert!(emulator.remove_breakpoint(6));
    assert_eq!(emulator.run(1_000), SqeStop::PacketDone);
}

#[test]
fn the_handler_of_an_offset_is_the_one_before_it() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let handlers = "CP_NOP:\nnop\nnop\nCP_WAIT_REG_MEM:\nnop\nwaitin\nmov $01, $data\n";
    let words = words(&firmware(A6XX, handlers), &names);
    let sections = sections(&words, Firmware::A630, &names);
    let section = &sections[0];
    let wait = names.opcode("CP_WAIT_REG_MEM").expect("CP_WAIT_REG_MEM");
    assert_eq!(section.handler(22), Some((wait, 21)));
    assert_eq!(section.handler(18), None);
    let lines = disasm::around(&words, section, Firmware::A630, &names, 22, 1);
    let shown: Vec<(u32, &str)> = lines.iter().map(|line| (line.offset, line.text.as_str())).collect();
    assert_eq!(shown, [(21, "nop"), (22, "waitin"), (23, "mov $01, $data")]);
    assert_eq!(lines[0].handlers, ["CP_WAIT_REG_MEM"]);
}

#[test]
fn what_a_processor_waits_for_is_read_from_its_code() {
    use unwedge_isa::afuc::wait::{SqeWait, waits_for};
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let handlers = "CP_NOP:
cread $02, [$00 + @THREAD_SYNC]
breq $02, b0, #gone
jump #CP_NOP
nop
gone:
mov $addr, 0x80 << 24
mov $03, $memdata
mov $04, $regdata
mov $05, $data
nop
nop
waitin
mov $01, $data
";
    let words = words(&firmware(A6XX, handlers), &names);
    let section = &sections(&words, Firmware::A630, &names)[0];
    let at = |offset| waits_for(&words, section, Firmware::A630, offset);
    for offset in 19..=22 {
        assert_eq!(at(offset), Some(SqeWait::Control(0x200)), "{offset}");
    }
    assert_eq!(at(23), Some(SqeWait::Pipe(0x80)));
    assert_eq!(at(24), Some(SqeWait::Memory));
    assert_eq!(at(25), Some(SqeWait::Registers));
    assert_eq!([at(26), at(27)], [Some(SqeWait::PacketData); 2]);
    assert_eq!(at(28), None);
    assert_eq!([at(29), at(30)], [Some(SqeWait::Packet); 2]);
    assert_eq!(at(5000), None);
    let said = SqeWait::Control(0x200).describe(Firmware::A630, &names);
    assert_eq!(said, "spins on control register @THREAD_SYNC");
}

/// The sections of a firmware file: which processor, and where its handler of CP_NOP is.
fn handlers_of_nop(bytes: &[u8], names: &DbNames<'_>) -> Vec<(Processor, u32)> {
    let blob = FirmwareBlob::new(bytes);
    let firmware = blob.firmware().expect("a known firmware");
    let nop = usize::from(names.opcode("CP_NOP").expect("CP_NOP"));
    let sections = sections(&blob.words, firmware, names);
    sections.iter().map(|section| (section.processor, section.table[nop])).collect()
}

/// The bootstrap routine of a further processor, whose base is in two control registers.
fn second(base: &str, handlers: &str) -> String {
    format!(
        "[01000001]
[#jumptbl]
cread $01, [$00 + @{base}]
cread $02, [$00 + @{base}+1]
mov $03, #jumptbl << 2
add $01, $01, $03
addhi $02, $02, 0
mov $rem, 0x80
cwrite $01, [$00 + @MEM_READ_ADDR]
cwrite $02, [$00 + @MEM_READ_ADDR+1]
cwrite $rem, [$00 + @MEM_READ_DWORDS]
(rep)cwrite $memdata, [$00 + @PACKET_TABLE_WRITE]
{handlers}
waitin
mov $01, $data
.align 32
jumptbl:
.jumptbl
"
    )
}

#[test]
fn each_processor_of_an_a7xx_has_its_section() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    // The bootstrap routine starts the others, and waits for them to say that they run.
    let start = "CP_NOP:
mov $01, 0x1000
mov $02, #jumptbl << 2
add $01, $01, $02
add $01, $01, 0x200
mov $04, 0x7
cwrite $04, [$00 + @THREAD_SYNC]
cwrite $01, [$00 + @BV_INSTR_BASE]
cwrite $04, [$00 + @BV_CNTL]
add $01, $01, 0x280
cwrite $01, [$00 + @LPAC_INSTR_BASE]
cwrite $04, [$00 + @LPAC_CNTL]
wait:
cread $04, [$00 + @THREAD_SYNC]
brne $04, 1, #wait
nop
waitin
mov $01, $data
.align 32";
    let main = firmware("01730001", start).replace("waitin\nmov $01, $data\nCP_NOP:", "CP_NOP:");
    let source = format!(
        "{main}.section BV\n{}.section LPAC\n{}",
        second("BV_INSTR_BASE", "nop\nCP_NOP:\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop"),
        second("LPAC_INSTR_BASE", "nop\nnop\nCP_NOP:")
    );
    let bytes = build(&source, &names);
    let expected = [(Processor::Sqe, 17), (Processor::Bv, 13), (Processor::Lpac, 14)];
    assert_eq!(handlers_of_nop(&bytes, &names), expected);
    let text = disassemble(&bytes, &disasm::AfucDisasmOptions::default(), &names).expect("a known firmware");
    assert_eq!(build(&text, &names), bytes);
    assert_eq!(text.matches("\n.section ").count(), 2);
}

#[test]
fn lpac_of_an_a660_has_its_section() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let base = names.offset(Firmware::A660, unwedge_isa::afuc::SqeSpace::Gpu, "CP_LPAC_SQE_INSTR_BASE");
    let start = format!(
        "CP_NOP:
mov $01, 0x1000
mov $02, #jumptbl << 2
add $01, $01, $02
add $01, $01, 0x200
mov $02, {:#x}
cwrite $02, [$00 + @REG_WRITE_ADDR]
cwrite $01, [$00 + @REG_WRITE]
cwrite $00, [$00 + @REG_WRITE]
waitin
mov $01, $data
.align 32",
        base.expect("the register")
    );
    let main = firmware("016dd001", &start).replace("waitin\nmov $01, $data\nCP_NOP:", "CP_NOP:");
    let other = second("MARKER", "CP_NOP:").replace(
        "cread $01, [$00 + @MARKER]\ncread $02, [$00 + @MARKER+1]",
        &format!(
            "mov $01, {:#x}\nmov $02, 2\ncwrite $02, [$00 + @REG_READ_DWORDS]\ncwrite $01, [$00 + @REG_READ_ADDR]\n\
             mov $01, $regdata\nmov $02, $regdata",
            base.expect("the register")
        ),
    );
    let bytes = build(&format!("{main}.section LPAC\n{other}"), &names);
    assert_eq!(handlers_of_nop(&bytes, &names), [(Processor::Sqe, 17), (Processor::Lpac, 16)]);
    let options =
        disasm::AfucDisasmOptions { form: ListingForm::Exact, ..disasm::AfucDisasmOptions::default() };
    let text = disassemble(&bytes, &options, &names).expect("a known firmware");
    assert!(text.contains("\n.section LPAC\n"));
    assert_eq!(build(&text, &names), bytes);
}

#[test]
fn an_a5xx_firmware_names_its_handlers_from_its_table() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let source = "[005ff001]\n[#jumptbl]\nnop\nCP_NOP:\nwaitin\nmov $01, $data\njumptbl:\n.jumptbl\n";
    let bytes = build(source, &names);
    let text = disassemble(&bytes, &disasm::AfucDisasmOptions::default(), &names).expect("a known firmware");
    assert!(text.starts_with("; a5xx microcode\n; Version: 005ff001\n\n"));
    assert!(text.contains("\nCP_NOP:\nwaitin\nmov $01, $data\n"));
    assert_eq!(build(&text, &names), bytes);
    let verbose = disasm::AfucDisasmOptions { verbose: true, ..disasm::AfucDisasmOptions::default() };
    let text = disassemble(&bytes, &verbose, &names).expect("a known firmware");
    assert!(text.contains("; JUMP TABLE\n  0 00: 0000   ; "));
    assert!(text.contains("\n 16 10: 0003   ; CP_NOP\n"));
}

/// A generator of the same numbers each time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn any_bytes_disassemble_to_text_that_gives_them_back() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let mut numbers = Numbers(0x5eed);
    let versions = Firmware::ALL.map(|firmware| firmware.id() << 12 | 1);
    for round in 0..120usize {
        let len = (numbers.next() % 900) as usize;
        let mut bytes: Vec<u8> = (0..len).map(|_| numbers.next() as u8).collect();
        if let Some(version) = bytes.get_mut(4..8).filter(|_| round % 4 != 0) {
            version.copy_from_slice(&versions[round % versions.len()].to_le_bytes());
        }
        for form in [ListingForm::Mesa, ListingForm::Exact] {
            for (verbose, raw) in [(false, false), (true, false), (false, true)] {
                let options =
                    disasm::AfucDisasmOptions { verbose, raw, form, ..disasm::AfucDisasmOptions::default() };
                let text = disassemble(&bytes, &options, &names);
                if form == ListingForm::Exact && !verbose && !raw {
                    let text = text.expect("any bytes have text");
                    assert_eq!(build(&text, &names), bytes, "{text}");
                }
            }
        }
    }
}

#[test]
fn damaged_firmware_disassembles_and_runs_within_bounds() {
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let mut numbers = Numbers(0xfee1);
    let handlers = "CP_NOP:\ncall #f\nnop\nf:\nret\nnop\n.align 32\n";
    for (version, firmware_id) in [(A6XX, Firmware::A630), ("01730001", Firmware::A730)] {
        let whole = build(&firmware(version, handlers), &names);
        for _ in 0..80 {
            let mut bytes = whole.clone();
            for _ in 0..=numbers.next() % 8 {
                let at = 8 + (numbers.next() as usize) % (bytes.len() - 8);
                bytes[at] = numbers.next() as u8;
            }
            bytes.truncate(bytes.len() - (numbers.next() % 40) as usize);
            let options = disasm::AfucDisasmOptions {
                form: ListingForm::Exact,
                ..disasm::AfucDisasmOptions::default()
            };
            let text = disassemble(&bytes, &options, &names).expect("any bytes have text");
            assert_eq!(build(&text, &names), bytes);
            let mut emulator =
                SqeEmulator::new(firmware_id, &FirmwareBlob::new(&bytes).words, Processor::Sqe, &names);
            emulator.set_log_limit(1000);
            emulator.push(&[numbers.next() as u32; 64]);
            while emulator.steps() < 20_000 && emulator.run(20_000) == SqeStop::PacketDone {}
            assert!(emulator.take_log().0.len() <= 1000);
        }
    }
}

#[test]
fn any_text_assembles_or_says_why_not() {
    let pieces = [
        "mov",
        "add",
        "$01",
        "$data",
        ",",
        "0x10",
        "#a",
        "a:",
        "[",
        "]",
        "+",
        "!",
        "(rep)",
        "(xmov3)",
        "b3",
        "\n",
        "\n",
        ".align 32",
        ".jumptbl",
        ".section",
        "BV",
        "[016ee001]",
        "[#a]",
        "<<",
        "@SP",
        "%SP",
        "é",
        "setbit",
        "cwrite",
        "breq",
        ".stripped",
        ".empty",
        ".byte",
        "99999999999",
        ";",
        "UNKN999:",
        "setsecure",
        "jump",
        "ubfx",
    ];
    let db = Db::builtin();
    let names = DbNames::new(&db);
    let mut numbers = Numbers(0xa5);
    for _ in 0..3000 {
        let count = numbers.next() % 40;
        let mut source = String::from("[016ee001]\n");
        for _ in 0..count {
            source.push_str(pieces[(numbers.next() % pieces.len() as u64) as usize]);
            source.push(' ');
        }
        if let Err(errors) = assemble(&source, &asm::AfucAsmOptions::default(), &names) {
            assert!(!errors.list.is_empty());
            assert!(!errors.to_string().is_empty());
        }
    }
}

#[test]
fn too_little_or_unknown_firmware_is_refused_unless_exact() {
    let options = disasm::AfucDisasmOptions::default();
    assert_eq!(disassemble(&[1, 2, 3], &options, &()), Err(DisasmError::TooShort(3)));
    let unknown = [0, 0, 0, 0, 0, 0xd0, 0xbc, 0x0a];
    assert_eq!(disassemble(&unknown, &options, &()), Err(DisasmError::UnknownFirmware(0xbcd)));
}
