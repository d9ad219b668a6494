//! The engine over a small instruction set: what a description says, and what decoding, printing and encoding make of it.

#![allow(clippy::unusual_byte_groupings, reason = "the groups are the fields of the toy instruction")]

use unwedge_isa::table::program::{OwnedPrograms, WriteOutcome};
use unwedge_isa::table::{CompileError, FieldEncodeError, OwnedTable, print, text};

const TOY: &str = r##"
enum cond
  0 ""
  1 ".ne"
  2 ".lt"
expr wide = {WIDE} == 1
bitset operand size=5
  when {IMM}
    show "#{VALUE}"
    field 3:0 VALUE int
  show "{HALF}r{REG}"
  field 3:0 REG uint
  bits 4 0
  derive HALF bool "h" = !{WIDE}
bitset instruction size=16 gens=1-
bitset two from=instruction
  show "{NAME}{COND} {DST}, {SRC}"
  field 4:0 SRC operand with=IS_IMM:IMM,WIDE
  field 9:5 DST operand with=ZERO:IMM,WIDE
  field 10 IS_IMM bool
  field 11 WIDE bool
  field 13:12 COND cond
  derive ZERO bool = 0
bitset add from=two
  bits 15:14 00
bitset sub from=two gens=2-
  when :wide
    show "{NAME}.wide {DST}"
    assert 10 0
  bits 15:14 01
bitset jump from=instruction gens=-1 title="jmp"
  show "{NAME} {:align=6}{TARGET}"
  field 11:0 TARGET branch
  bits 12 x
  bits 15:13 100
bitset odd from=instruction
  show "{NAME} {NOWHERE}"
  bits 15:0 1100000000000000
"##;

fn toy() -> OwnedTable {
    OwnedTable::new(&text::read(TOY).unwrap()).unwrap()
}

fn check(word: u128, generation: u32, expected: &str) {
    let owned = toy();
    let table = owned.table();
    let root = table.root("instruction").unwrap();
    let mut out = Vec::new();
    if let Some(decoded) = table.decode(root, word, generation) {
        print(&decoded, &mut (), &mut out).write(table.width(root), &mut out);
    }
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn operands_are_printed_as_the_instruction_says() {
    check(0b00_00_1_0_00001_00010, 1, "add r1, r2");
    check(0b00_01_0_0_00001_00010, 1, "add.ne hr1, hr2");
    check(0b00_10_1_1_00001_01110, 1, "add.lt r1, #-2");
    check(0b00_11_1_0_00001_00010, 1, "add3 r1, r2");
}

#[test]
fn an_override_counts_when_its_condition_holds() {
    check(0b01_00_0_0_00001_00010, 2, "sub hr1, hr2");
    check(0b01_00_1_0_00001_00010, 2, "sub.wide r1");
}

#[test]
fn generations_select() {
    check(0b01_00_0_0_00001_00010, 1, "");
    check(0b1000_111111111110, 1, "jmp   -2");
    check(0b1000_111111111110, 2, "");
}

#[test]
fn what_is_odd_is_said() {
    check(0b1001_000000000001, 1, "jmp   1\t; dontcare bits in jmp: 00001000");
    check(
        0b01_00_1_1_00001_00010,
        2,
        "sub.wide r1\t; WARNING: unexpected bits[10:10] in sub: 00000001 vs 00000000",
    );
    check(0b00_00_1_0_00001_10010, 1, "add r1, \t; no match: FIELD: 'add.SRC': 00000012");
    check(0b1100_000000000000, 1, "odd \t; no field 'NOWHERE'");
}

#[test]
fn fields_are_read_by_name() {
    let owned = toy();
    let table = owned.table();
    let root = table.root("instruction").unwrap();
    let decoded = table.decode(root, 0b00_01_1_0_00011_00010, 1).unwrap();
    assert_eq!((decoded.name(), decoded.field("COND"), decoded.field("DST")), ("add", Some(1), Some(3)));
    assert_eq!(decoded.field("NOWHERE"), None);
    let operand = decoded.nested("DST").unwrap();
    assert_eq!((operand.name(), operand.field("REG"), operand.field("HALF")), ("operand", Some(3), Some(0)));
}

#[test]
fn values_make_a_word() {
    let owned = toy();
    let table = owned.table();
    let leaf = |name| table.leaf(table.root("instruction").unwrap(), name, 1);
    let encode = |name, values: &[(&str, u64)]| {
        table.encode(leaf(name).unwrap(), 1, &|field| values.iter().find(|v| v.0 == field).map(|v| v.1))
    };
    let values = [("SRC", 2), ("DST", 1), ("IS_IMM", 0), ("WIDE", 1), ("COND", 0)];
    assert_eq!(encode("add", &values), Ok(0b00_00_1_0_00001_00010));
    assert_eq!(encode("jump", &[("TARGET", -2i64 as u64)]), Ok(0b1000_111111111110));
    let range = FieldEncodeError::Range { field: "TARGET".to_owned(), value: 4096, width: 12 };
    assert_eq!(encode("jump", &[("TARGET", 4096)]), Err(range));
    assert_eq!(encode("add", &values[1..]), Err(FieldEncodeError::Missing { field: "SRC".to_owned() }));
    let gone = FieldEncodeError::Generation { leaf: "jump".to_owned(), generation: 2 };
    assert_eq!(table.encode(leaf("jump").unwrap(), 2, &|_| Some(0)), Err(gone));
}

#[test]
fn a_description_reads_back_as_it_is_written() {
    let isa = text::read(TOY).unwrap();
    assert_eq!(text::read(&text::write(&isa)), Ok(isa));
}

#[test]
fn a_wrong_description_is_refused() {
    let line = |source: &str| text::read(source).unwrap_err().line;
    assert_eq!(line("bitset a size=8\n  field 8 X"), 2);
    assert_eq!(line("bitset a size=8\n  bits 3:0 01"), 2);
    assert_eq!(line("enum e\n  1 \"open"), 2);
    let compile = |source: &str| OwnedTable::new(&text::read(source).unwrap()).unwrap_err();
    assert!(matches!(compile("bitset a size=8\n  field 8 X uint"), CompileError::Size { .. }));
    assert!(matches!(compile("bitset a size=8\n  field 7 X nothing"), CompileError::Unknown { .. }));
    assert!(matches!(
        compile("bitset a size=8 \n  show \"{X}\"\n  field 7:0 X a"),
        CompileError::Depth { .. }
    ));
    assert!(matches!(compile("bitset a size=8\n  derive X uint = ({Y"), CompileError::Expr { .. }));
    assert!(matches!(compile("bitset a from=b\nbitset b from=a"), CompileError::Depth { .. }));
}

#[test]
fn programs_write_what_the_templates_do() {
    let owned = toy();
    let table = owned.table();
    let root = table.root("instruction").unwrap();
    let owned = OwnedPrograms::new(&table, root).unwrap();
    let programs = owned.programs();
    for generation in [0, 1, 2, u32::MAX] {
        for word in 0..=u16::MAX {
            let mut text = Vec::new();
            let written = programs.write(&table, word.into(), generation, &mut text);
            let Some(decoded) = table.decode(root, word.into(), generation) else {
                assert_eq!(written, WriteOutcome::Unknown);
                continue;
            };
            let mut expected = Vec::new();
            let faults = print(&decoded, &mut (), &mut expected);
            match written {
                WriteOutcome::Text { faults: found, .. } => assert_eq!((text, found), (expected, faults)),
                // A column to align to; a field that is not there.
                _ => assert!(["jump", "odd"].contains(&decoded.name()), "{word:#x} {written:?}"),
            }
        }
    }
}

#[test]
fn words_of_one_shape_differ_in_what_the_text_tells() {
    let owned = toy();
    let table = owned.table();
    let root = table.root("instruction").unwrap();
    let owned = OwnedPrograms::new(&table, root).unwrap();
    let shape = |word| match owned.programs().write(&table, word, 2, &mut Vec::new()) {
        WriteOutcome::Text { shape, .. } => shape,
        written => panic!("{written:?}"),
    };
    // The registers' numbers; but not whether the source is one, nor the precision, nor a condition without a name.
    let word = 0b00_01_1_0_00101_00011;
    assert_eq!(shape(word), shape(0b00_01_1_0_00000_01111));
    assert_ne!(shape(word), shape(0b00_01_1_1_00101_00011));
    assert_ne!(shape(word), shape(0b00_01_0_0_00101_00011));
    assert_ne!(shape(word), shape(0b00_11_1_0_00101_00011));
}
