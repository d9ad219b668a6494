//! rnndb XML in, answers out: each feature on XML made here, and broken XML.

use std::collections::HashMap;
use std::collections::HashSet;
use std::path::PathBuf;
use unwedge_base::Generation;
use unwedge_hw::rnndb::{ImportError, ROOTS, import};
use unwedge_hw::{Db, DecodedValue, FactsIssue, Palette, Reg, RegSpace, Variants, text, text_writer};
use unwedge_testkit::data;

const COMMON: &str = r#"<database><enum name="chip" bare="yes">
    <value name="A2XX"/><value name="A3XX"/><value name="A4XX"/><value name="A5XX"/><value name="A6XX"/><value name="A7XX"/>
</enum></database>"#;

/// A database of `a6xx.xml` with this content, in a flat folder.
fn load(content: &str) -> Result<(Db, Vec<FactsIssue>), ImportError> {
    let main = format!("<database><import file=\"adreno/adreno_common.xml\"/>{content}</database>");
    let files = HashMap::from([("a6xx.xml", main), ("adreno_common.xml", COMMON.to_string())]);
    Db::from_rnndb("a test", &mut |name| files.get(name).map(|text| text.clone().into_bytes()))
}

fn db(content: &str) -> Db {
    let (db, issues) = load(content).unwrap();
    assert_eq!(issues, [], "{content}");
    db
}

/// A database of the registers of a6xx.
fn registers(content: &str) -> Db {
    db(&format!("<domain name=\"A6XX\" width=\"32\" varset=\"chip\">{content}</domain>"))
}

fn names(db: &Db, generation: Generation) -> Vec<(u32, &str)> {
    db.gpu(generation).space(RegSpace::Gpu).iter().map(|r| (r.offset(), r.name())).collect()
}

fn written(reg: Reg<'_>, value: u64) -> String {
    let mut out = Vec::new();
    reg.ty().unwrap().write(value, &mut Variants::new(), &Palette::default(), &mut out);
    String::from_utf8(out).unwrap()
}

/// How a register's definition prints a value.
#[track_caller]
fn check(register: &str, value: u64, expected: &str) {
    let db = registers(register);
    assert_eq!(written(db.gpu(Generation::A6xx).reg(0).unwrap(), value), expected);
}

#[test]
fn registers_take_one_dword_or_two() {
    let db = registers(
        r#"<reg32 offset="0x10" name="A"/>
           <reg64 offset="0x12" name="ADDR" type="waddress"/>
           <reg64 offset="0x14" name="COUNT"/>"#,
    );
    let expected = [(0x10, "A"), (0x12, "ADDR"), (0x13, "ADDR_HI"), (0x14, "COUNT"), (0x15, "COUNT+0x1")];
    assert_eq!(names(&db, Generation::A6xx), expected);
    let high = db.gpu(Generation::A6xx).reg(0x13).unwrap();
    assert_eq!((high.dword(), high.width()), (1, 64));
    assert!(high.ty().unwrap().is_address());
    assert_eq!(db.gpu(Generation::A6xx).reg_offset("ADDR"), Some(0x12));
}

#[test]
fn arrays_own_their_holes_and_stripes_do_not() {
    let db = registers(
        r#"<array offset="0" name="ARR" stride="2" length="2"><reg32 offset="0" name="X"/></array>
           <stripe offset="0x10" stride="2" length="2"><reg32 offset="0" name="S"/></stripe>
           <reg32 offset="0x13" name="BETWEEN"/>
           <reg32 offset="1" name="SHADOWED"/>
           <reg32 offset="0x20" name="R" length="2"/>"#,
    );
    let expected = [
        (0, "ARR[0].X"),
        (1, "ARR[0]+0x1"),
        (2, "ARR[0x1].X"),
        (3, "ARR[0x1]+0x1"),
        (0x10, "S[0]"),
        (0x12, "S[0x1]"),
        (0x13, "BETWEEN"),
        (0x20, "R[0]"),
        (0x21, "R[0x1]"),
    ];
    assert_eq!(names(&db, Generation::A6xx), expected);
    let gpu = db.gpu(Generation::A6xx);
    assert!(gpu.reg(1).unwrap().ty().is_none());
    assert_eq!(gpu.reg(1).unwrap().width(), 0);
    assert_eq!(gpu.reg_offset("SHADOWED"), Some(1), "a name still leads to a shadowed register");
}

#[test]
fn arrays_may_be_irregular_and_have_named_instances() {
    let db = registers(
        r#"<enum name="who"><value name="VS" value="0"/><value name="FS" value="1"/></enum>
           <array offsets="0x30,0x8" name="A" stride="1" length="2"><reg32 offset="0" name="X"/></array>
           <array offset="0x40" name="B" stride="1" length="3" index="who"><reg32 offset="0" name="X"/></array>
           <array offset="0x50" stride="2" length="1"><reg32 offset="0" name="ONLY"/></array>"#,
    );
    let expected = [
        (0x8, "A[0x1].X"),
        (0x30, "A[0].X"),
        (0x40, "B[VS].X"),
        (0x41, "B[FS].X"),
        (0x42, "B[0x2].X"),
        (0x50, ".ONLY"),
        (0x51, "+0x1"),
    ];
    assert_eq!(names(&db, Generation::A6xx), expected);
}

#[test]
fn groups_stand_where_they_are_used() {
    let db = db(r#"<group name="g"><reg32 offset="1" name="G"/></group>
        <domain name="A6XX" width="32"><array offset="0" name="A" stride="2" length="2"><use-group ref="g"/></array></domain>"#);
    assert_eq!(db.gpu(Generation::A6xx).reg_offset("A[1].G"), Some(3));
}

#[test]
fn variants_of_the_chip_decide() {
    let db = registers(
        r#"<reg32 offset="1" name="BOTH"/>
           <reg32 offset="2" name="OLD" variants="A6XX"/>
           <reg32 offset="2" name="NEW" variants="A7XX-"/>
           <reg32 offset="3" name="LIST" variants="A2XX A7XX"/>
           <reg32 offset="4" name="RANGE" variants="A5XX-A6XX"/>
           <array offset="8" name="ARR" stride="1" length="1" variants="A7XX-"><reg32 offset="0" name="IN"/></array>"#,
    );
    assert_eq!(names(&db, Generation::A6xx), [(1, "BOTH"), (2, "OLD"), (4, "RANGE")]);
    assert_eq!(names(&db, Generation::A7xx), [(1, "BOTH"), (2, "NEW"), (3, "LIST"), (8, "ARR.IN")]);
    assert!(names(&db, Generation::A3xx).is_empty());
}

#[test]
fn enum_values_depend_on_the_chip() {
    let db = db(r#"<enum name="ev" varset="chip">
            <value name="OLD" value="1" variants="A2XX-A6XX"/><value name="NEW" value="1" variants="A7XX-"/>
            <value name="FAR" value="0x123456789"/><value name="UNNUMBERED"/>
        </enum><domain name="A6XX" width="32"><reg32 offset="0" name="E" type="ev"/></domain>"#);
    let name = |g| db.gpu(g).enumeration("ev").unwrap().name_of(1);
    assert_eq!((name(Generation::A6xx), name(Generation::A7xx)), (Some("OLD"), Some("NEW")));
    let ev = db.gpu(Generation::A6xx).enumeration("ev").unwrap();
    assert_eq!(ev.name_of(0x1_2345_6789), Some("FAR"));
    assert_eq!((ev.name_of(0), ev.name_of(u64::MAX)), (None, None));
    assert_eq!((ev.value_of("FAR"), ev.value_of("UNNUMBERED")), (Some(0x1_2345_6789), None));
    assert_eq!(written(db.gpu(Generation::A6xx).reg(0).unwrap(), 1), "OLD");
    assert_eq!(written(db.gpu(Generation::A6xx).reg(0).unwrap(), 7), "0x7");
}

#[test]
fn a_field_selects_what_follows() {
    let db = db(r#"<enum name="mode"><value name="RAM" value="0"/><value name="CHIP" value="5"/></enum>
        <domain name="CP_X" width="32">
          <reg32 offset="0" name="0">
            <bitfield name="ONLY_CHIP" pos="0" varset="mode" variants="CHIP"/>
            <bitfield name="MODE" low="4" high="7" type="mode" addvariant="yes"/>
          </reg32>
          <stripe varset="mode" variants="RAM"><reg64 offset="1" name="ADDR" type="address"/></stripe>
          <stripe varset="mode" variants="CHIP"><reg32 offset="1" name="SLOT"/></stripe>
        </domain>"#);
    let domain = db.gpu(Generation::A6xx).domain("CP_X").unwrap();
    let select = |value| {
        let mut selected = Variants::new();
        let mut out = Vec::new();
        let reg = domain.at(0, &selected).unwrap();
        reg.ty().unwrap().write(value, &mut selected, &Palette::default(), &mut out);
        (String::from_utf8(out).unwrap(), domain.at(1, &selected).map(Reg::name), selected)
    };
    let (text, name, _) = select(0x51);
    assert_eq!((text.as_str(), name), ("{ MODE = CHIP | ONLY_CHIP }", Some("SLOT")));
    let (text, name, ram) = select(0x01);
    assert_eq!((text.as_str(), name), ("{ MODE = RAM | 0x1 }", Some("ADDR")));
    assert_eq!((domain.index_of("ADDR", &ram), domain.index_of("SLOT", &ram)), (Some(1), None));
    let nothing = Variants::new();
    assert_eq!(domain.at(1, &nothing).unwrap().name(), "ADDR", "nothing selected rules nothing out");
}

#[test]
fn numbers_print_as_their_type_says() {
    check(r#"<reg32 offset="0" name="R"/>"#, 0, "0");
    check(r#"<reg32 offset="0" name="R"/>"#, 0xab, "0xab");
    check(r#"<reg32 offset="0" name="R" type="uint"/>"#, 12, "12");
    check(r#"<reg32 offset="0" name="R" type="int"/>"#, 0xffff_fffe, "-2");
    check(r#"<reg32 offset="0" name="R" low="4" high="7" type="int"/>"#, 0xf0, "-1");
    check(r#"<reg32 offset="0" name="R" low="0" high="3" type="uint"/>"#, 0x123, "3 | 0x120");
    check(r#"<reg32 offset="0" name="R" low="5" high="31" shr="5" type="uint"/>"#, 0x60, "96");
    check(r#"<reg32 offset="0" name="R" type="float"/>"#, 0x3fc0_0000, "1.500000");
    check(r#"<reg32 offset="0" name="R" type="float"/>"#, 0x7fc0_0000, "nan");
    check(r#"<reg32 offset="0" name="R" type="float"/>"#, 0xff80_0000, "-inf");
    check(r#"<reg64 offset="0" name="R" type="float"/>"#, 0.25f64.to_bits(), "0.250000");
    check(r#"<reg32 offset="0" name="R" low="0" high="15" type="float"/>"#, 0x3e00, "1.500000");
    check(r#"<reg32 offset="0" name="R" low="0" high="15" type="ufixed" radix="4"/>"#, 0x18, "1.500000");
    check(r#"<reg32 offset="0" name="R" low="0" high="15" type="fixed" radix="4"/>"#, 0xffe8, "-1.500000");
    check(r#"<reg32 offset="0" name="R" type="a3xx_regid"/>"#, 0xfd, "r63.y");
    check(r#"<reg32 offset="0" name="R" pos="0" type="boolean"/>"#, 1, "TRUE");
    check(r#"<reg32 offset="0" name="R" pos="0"/>"#, 2, "FALSE | 0x2");
    check(r#"<reg64 offset="0" name="R" type="address"/>"#, 0x1_0000_2000, "0x100002000");
}

#[test]
fn bitsets_print_their_fields() {
    let fields = r#"<reg32 offset="0" name="R">
        <bitfield name="ON" pos="0"/><bitfield name="N" low="4" high="7" type="uint"/>
        <bitfield name="UNK9" pos="9" type="boolean"/><bitfield name="UNK10" low="10" high="11"/>
        <bitfield name="ADDR" low="12" high="15" shr="12" type="address"/>
        <bitfield name="E" pos="16"><value name="LOW" value="0"/><value name="HIGH" value="1"/></bitfield>
    </reg32>"#;
    check(fields, 0, "{ N = 0 | ADDR = 0 | E = LOW }");
    check(fields, 0x1_1e31, "{ ON | N = 3 | UNK9 | UNK10 = 0x3 | ADDR = 0x1000 | E = HIGH }");
    check(fields, 0x8000_0000, "{ N = 0 | ADDR = 0 | E = LOW | 0x80000000 }");
    check(r#"<reg32 offset="0" name="R"><bitfield name="ON" pos="0"/></reg32>"#, 0, "{ 0 }");
    check(
        r#"<bitset name="b"><bitfield name="A" pos="0"/></bitset><reg32 offset="0" name="R" type="b"/>"#,
        3,
        "{ A | 0x2 }",
    );
    check(
        r#"<bitset name="b" inline="yes"><bitfield name="A" pos="0"/></bitset>
           <reg32 offset="0" name="R" type="b"><bitfield name="OWN" pos="1" type="boolean"/></reg32>"#,
        3,
        "{ OWN | A }",
    );
}

#[test]
fn colours_go_around_the_parts() {
    let palette =
        Palette { reset: "0", name: "N", number: "#", value: "V", flag: "F", packet: "P", error: "E" };
    let db = registers(
        r#"<array offset="0" name="ARR" stride="3" length="2"><reg32 offset="0" name="X">
             <bitfield name="on" pos="0"/><bitfield name="num" low="1" high="3"/></reg32>
             <reg64 offset="1" name="AD" type="address"/></array>"#,
    );
    let gpu = db.gpu(Generation::A6xx);
    let mut out = Vec::new();
    let reg = gpu.reg(0).unwrap();
    reg.ty().unwrap().write(0x13, &mut Variants::new(), &palette, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "{ Fon0 | Nnum0 = #0x10 | E0x100 }");
    let name = |offset| {
        let mut out = Vec::new();
        gpu.reg(offset).unwrap().write_name(&palette, &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(name(3), "NARR0[#0x10].NX0");
    assert_eq!(name(2), "NARR0[#00].NAD0_HI");
}

#[test]
fn values_decode_to_their_type() {
    let db = registers(
        r#"<enum name="e"><value name="ONE" value="1"/></enum>
           <reg32 offset="0" name="R"><bitfield name="ON" pos="0"/><bitfield name="I" low="1" high="4" type="int"/>
             <bitfield name="E" low="5" high="6" type="e"/><bitfield name="F" low="8" high="11" type="fixed" radix="1"/>
             <bitfield name="ID" low="12" high="19" type="a3xx_regid"/>
             <bitfield name="A" low="20" high="27" shr="12" type="address"/></reg32>"#,
    );
    let ty = db.gpu(Generation::A6xx).reg(0).unwrap().ty().unwrap();
    let value = 1 | 0xf << 1 | 1 << 5 | 0xd << 8 | 9 << 12 | 0x12 << 20 | 1 << 30;
    let DecodedValue::Fields(fields) = ty.decode(value, &mut Variants::new()) else { panic!("no fields") };
    let decoded: Vec<(&str, DecodedValue<'_>)> = fields.into_iter().map(|f| (f.name, f.value)).collect();
    let expected = [
        ("ON", DecodedValue::Bool(true)),
        ("I", DecodedValue::Int(-1)),
        ("E", DecodedValue::Enum(1, Some("ONE"))),
        ("F", DecodedValue::Float(-1.5)),
        ("ID", DecodedValue::RegId(2, 1)),
        ("A", DecodedValue::Address(0x12000)),
        ("", DecodedValue::Hex(1 << 30)),
    ];
    assert_eq!(decoded, expected);
    assert_eq!(ty.field(value, "A"), Some(0x12000));
    assert_eq!(ty.field(value, "I"), Some(0xf));
    assert_eq!(ty.field(value, "NONE"), None);
}

#[test]
fn half_floats_decode_right_and_print_as_the_tools_do() {
    let db = registers(r#"<reg32 offset="0" name="R" low="0" high="15" type="float"/>"#);
    let reg = db.gpu(Generation::A6xx).reg(0).unwrap();
    let decode = |bits| reg.ty().unwrap().decode(bits, &mut Variants::new());
    assert_eq!(decode(0x0200), DecodedValue::Float(2f64.powi(-15)));
    assert_eq!(decode(0x8001), DecodedValue::Float(-(2f64.powi(-24))));
    assert_eq!(decode(0x7c00), DecodedValue::Float(f64::INFINITY));
    assert_eq!(written(reg, 0x0200), "0.000015", "half of 2^-15");
    assert_eq!(written(reg, 0x0100), "0.000015", "2^-16 as it is");
}

#[test]
fn what_cannot_be_expressed_is_said() {
    let issue = |content: &str| {
        let (_, issues) = load(content).unwrap();
        issues.first().map(|i| i.to_string()).unwrap_or_default()
    };
    let inside = |content: &str| issue(&format!("<domain name=\"A6XX\" width=\"32\">{content}</domain>"));
    assert_eq!(issue("<mystery/>"), "adreno/a6xx.xml:1: <mystery> inside <database>");
    assert_eq!(issue("<import file=\"gone.xml\"/>"), "adreno/a6xx.xml: imports gone.xml, which is not there");
    assert_eq!(inside("<reg32 offset=\"0\"/>"), "adreno/a6xx.xml:1: <reg32> without a name");
    assert_eq!(inside("<reg32 offset=\"zero\" name=\"R\"/>"), "adreno/a6xx.xml:1: \"zero\" is not a number");
    assert_eq!(
        inside("<reg32 offset=\"0\" name=\"R\" colour=\"red\"/>"),
        "adreno/a6xx.xml:1: attribute colour of <reg32>"
    );
    assert_eq!(inside("<reg32 offset=\"0\" name=\"R\" type=\"odd\"/>"), "R: unknown type odd");
    assert_eq!(
        inside("<reg32 offset=\"0\" name=\"R\" varset=\"chip\" variants=\"A9XX\"/>"),
        "R: variant A9XX is not in enum chip"
    );
    assert_eq!(
        inside("<reg32 offset=\"0\" name=\"R\"><bitfield name=\"F\" low=\"60\" high=\"70\"/></reg32>"),
        "adreno/a6xx.xml:1: bitfield F without a place in 64 bits"
    );
    assert_eq!(
        inside("<array offset=\"0\" doffset=\"REG\" name=\"A\" stride=\"1\" length=\"1\"/>"),
        "A: its offset is known to the driver only: placed at 0"
    );
}

#[test]
fn no_database_is_an_error() {
    let nothing = Db::from_rnndb("x", &mut |_| None);
    assert!(matches!(nothing, Err(ImportError::NoFiles)));
    let with = |bytes: &'static [u8]| Db::from_rnndb("x", &mut |_| Some(bytes.to_vec())).err().unwrap();
    assert!(matches!(with(b"<database><enum"), ImportError::Xml { .. }));
    assert!(matches!(with(b"<html/>"), ImportError::NotDatabase { .. }));
    assert!(matches!(with(b"\xff\xfe"), ImportError::Encoding { .. }));
}

/// Definitions that refer to themselves or claim enormous sizes: bounded time and memory, and a word about it.
#[test]
fn contradictory_definitions_end() {
    let uses: String = "<use-group ref=\"g\"/>".repeat(50);
    let nested =
        format!("{}{}", "<array stride=\"1\" length=\"9\" offset=\"0\">".repeat(40), "</array>".repeat(40));
    let fields: String =
        (0..64).map(|i| format!("<bitfield name=\"f{i}\" pos=\"{i}\" type=\"a\"/>")).collect();
    for content in [
        format!("<group name=\"g\">{uses}</group><domain name=\"A6XX\" width=\"32\">{uses}</domain>"),
        r#"<domain name="A6XX" width="32"><array offset="0" name="A" stride="1" length="0xffffffffffffffff">
            <reg32 offset="0" name="X"/></array></domain>"#
            .to_string(),
        r#"<domain name="A6XX" width="32"><stripe offset="0" stride="1" length="0xffffffffffffffff"/></domain>"#
            .to_string(),
        r#"<domain name="A6XX" width="32"><reg32 offset="0xffffffffffffffff" name="X" stride="0xffffffffffffffff"
            length="3"/><array offset="0xfffffff0" name="A" stride="0xffffffff" length="9"/></domain>"#
            .to_string(),
        format!("<domain name=\"A6XX\" width=\"32\">{nested}</domain>"),
        format!(
            "<bitset name=\"a\" inline=\"yes\">{fields}</bitset>
             <domain name=\"A6XX\" width=\"32\"><reg32 offset=\"0\" name=\"R\" type=\"a\"/></domain>"
        ),
        r#"<spectype name="s" type="s"/><domain name="A6XX" width="32"><reg32 offset="0" name="R" type="s"/></domain>"#
            .to_string(),
        r#"<domain name="A6XX" width="0"><reg32 offset="0" name="R"/></domain>"#.to_string(),
    ] {
        let (db, issues) = load(&content).unwrap();
        assert!(!issues.is_empty() || content.contains("width=\"0\""), "{content}");
        for reg in db.gpu(Generation::A6xx).space(RegSpace::Gpu).iter().take(10) {
            if reg.ty().is_some() {
                written(reg, u64::MAX);
            }
        }
    }
}

#[test]
fn a_tree_s_xml_gives_the_built_in_tables() {
    let Some(folder) = data::path("adreno/registers") else { return };
    let mut fetch = |name: &str| std::fs::read(folder.join(name)).ok();
    let (db, issues) = Db::from_rnndb("a tree", &mut fetch).unwrap();
    assert_eq!(issues, []);
    let builtin = Db::builtin();
    for generation in Generation::ALL {
        for space in RegSpace::ALL {
            let of = |db: &'_ Db| -> Vec<(u32, String, Vec<String>)> {
                let registers = db.gpu(generation).space(space);
                let texts = |reg: Reg<'_>| match reg.ty() {
                    Some(_) => [0, 0x1234_5678, u64::MAX].map(|v| written(reg, v)).to_vec(),
                    None => Vec::new(),
                };
                registers.iter().map(|reg| (reg.offset(), reg.name().to_string(), texts(reg))).collect()
            };
            // Hand additions add to the tree's, and change nothing.
            let (tree, all) = (of(&db), of(&builtin).into_iter().collect::<HashSet<_>>());
            assert!(tree.iter().all(|reg| all.contains(reg)), "{generation} {space:?} differs");
        }
    }
    let (facts, _) = import(&mut fetch).unwrap();
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../data/adreno");
    for file in &facts.files {
        let text = std::fs::read_to_string(own.join(format!("{}.regs", file.name))).unwrap();
        let same = text::read_file(&file.name, &text).unwrap() == *file;
        assert!(same, "data/adreno/{}.regs is not what import-rnndb makes of the tree", file.name);
    }
}

#[test]
fn facts_survive_the_text_format() {
    let Some(folder) = data::path("adreno/registers") else { return };
    let (facts, _) = import(&mut |name| std::fs::read(folder.join(name)).ok()).unwrap();
    assert!(!facts.files.is_empty() && facts.files.len() >= ROOTS.len());
    for file in &facts.files {
        let back = text::read_file(&file.name, &text_writer::write_file(file)).unwrap();
        assert!(back == *file, "{}", file.name);
    }
}
