//! The format of `data/adreno`: what reads, what does not and where, and that writing it loses nothing.

use unwedge_hw::model::{DbFacts, DomainElem, FactsItem};
use unwedge_hw::rnndb::import;
use unwedge_hw::text::{read_devices, read_file};
use unwedge_hw::text_writer::{write_devices, write_file};

const EVERYTHING: &str = "\
import adreno_common
enum a3xx_mode inline=yes bare=yes varset=chip variants=A3XX- prefix=none
  LINEAR = 0
  TILED = 0x20 varset=chip variants=A4XX-
  \"ODD NAME\" = -
bitset flags inline=yes
  0 ON
  7:4 MODE a3xx_mode addvariant=yes
  15:8 BASE address shr=8 align=256 min=1 max=9
  16 PLACE
    A = 0
    B = 1
group shared
  reg32 0x1 X uint
type fix ufixed bits=15:0 radix=4
domain A3XX width=32 size=0x100 bare=yes varset=chip variants=A3XX prefix=chip
  reg32 0x0 R usage=cmd
  reg32 0x1 BITS uint bits=7:4
  reg32 0x2 PLACE bits=3
    3 ON boolean
  reg64 0x4 ADDR waddress length=2 stride=0x2 access=rw variants=\"A3XX A5XX\"
  array 0x10 MRT stride=0x4 length=4 index=a3xx_mode usage=rp_blit
    reg32 0x0 CONTROL
    use shared
  array 0x0 IRREGULAR offsets=0x20,0x28 stride=0x8 length=2
  array 0x0 DRIVER doffset=BASE doffsets=A,B stride=0x1
  stripe 0x40 variants=A3XX
    reg32 0x0 S
";

/// The example of docs/regs-format.md.
fn documented() -> &'static str {
    let page = include_str!("../../../docs/regs-format.md");
    page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example")
}

#[test]
fn the_documented_example_reads() {
    let file = read_file("example", documented()).unwrap();
    assert_eq!(read_file("example", &write_file(&file)).unwrap(), file);
    let Some(FactsItem::Domain(domain)) = file.items.last() else { panic!("{:?}", file.items.last()) };
    assert_eq!(domain.elems.len(), 6);
    let DomainElem::Reg(status) = &domain.elems[0] else { panic!("{:?}", domain.elems[0]) };
    assert_eq!((status.offset, status.ty.fields.len()), (0x210, 2));
}

#[test]
fn writing_gives_back_what_was_read() {
    let file = read_file("all", EVERYTHING).unwrap();
    assert_eq!(write_file(&file), EVERYTHING);
}

#[test]
fn comments_and_empty_lines_do_not_count() {
    let text = "# a file\n\ndomain D width=32 # so it is\n  # first\n  reg32 0x0 R\n";
    let file = read_file("d", text).unwrap();
    assert_eq!(write_file(&file), "domain D width=32\n  reg32 0x0 R\n");
}

#[test]
fn devices_read_and_write() {
    let text = "device \"Adreno 8c Gen 3\" gpu=0 chip=0xbe06030500 gen=6 num_ccu=3 magic=\"\"\n";
    let rows = read_devices("devices", text).unwrap();
    assert_eq!(
        (rows[0].name.as_str(), rows[0].chip_id, rows[0].generation),
        ("Adreno 8c Gen 3", 0xbe06030500, 6)
    );
    assert_eq!(rows[0].properties[0], ("num_ccu".to_string(), "3".to_string()));
    assert_eq!(write_devices(&rows), text);
}

#[test]
fn errors_say_where_and_what_was_expected() {
    let error = |text: &str| read_file("f", text).unwrap_err().to_string();
    assert_eq!(error("wall"), "f:1:1: expected one of import, enum, bitset, group, type, domain");
    assert_eq!(error("enum"), "f:1:6: expected a name");
    assert_eq!(error("enum e\n  A 1"), "f:2:5: expected =");
    assert_eq!(error("enum e\n  A = x"), "f:2:7: expected a number");
    assert_eq!(error("enum e\n    A = 1"), "f:2:5: expected at most 2 spaces before it");
    assert_eq!(error("enum e\n A = 1"), "f:2:2: expected at most 2 spaces before it");
    assert_eq!(error("enum e bare=maybe"), "f:1:8: expected yes or no");
    assert_eq!(error("bitset b\n  4:7 F"), "f:2:3: expected bits, as 3 or 7:4");
    assert_eq!(error("bitset b\n  64 F"), "f:2:3: expected bits, as 3 or 7:4");
    assert_eq!(error("bitset b\n  1 F uint 7"), "f:2:12: expected key=value");
    assert_eq!(
        error("bitset b\n  1 F colour=red"),
        "f:2:7: expected one of shr, radix, align, min, max, addvariant, varset, variants"
    );
    assert_eq!(error("domain D width=32\n  reg32 R 0"), "f:2:9: expected a number");
    assert_eq!(error("domain D width=99999999999"), "f:1:10: expected a number of at most 32 bits");
    assert_eq!(error("import a\n  enum e"), "f:2:3: expected nothing inside this line");
    assert_eq!(error("enum \"e"), "f:1:8: expected a closing quote");
    let deep: String = (0..40).map(|i| format!("{}array 0x0 A\n", " ".repeat(i * 2))).collect();
    assert_eq!(error(&deep), "f:17:33: expected shallower nesting");
}

/// A small deterministic generator: the same mutations in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    const SPLICES: [&str; 8] = ["0xffffffffffffffff", "=", "\"", "  ", "-1", "\n", "length=0", "<array>"];
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(4) {
            0 => bytes.truncate(at),
            1 => bytes[at] = random.below(256) as u8,
            2 => {
                bytes.splice(at..at, SPLICES[random.below(SPLICES.len())].bytes());
            }
            _ => {
                let end = (at + random.below(40)).min(bytes.len());
                bytes.drain(at..end);
            }
        }
        if bytes.is_empty() {
            return;
        }
    }
}

#[test]
fn broken_facts_are_errors_not_panics() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut read = 0;
    for _ in 0..4_000 {
        let mut bytes = EVERYTHING.as_bytes().to_vec();
        mutate(&mut bytes, &mut random);
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(file) = read_file("mutant", &text) {
            read += 1;
            let again = read_file("mutant", &write_file(&file)).unwrap();
            assert_eq!(again, file, "{text}");
        }
        let _ = read_devices("mutant", &text);
    }
    assert!(read > 100, "only {read} mutants read at all");
}

#[test]
fn broken_xml_is_an_error_or_a_smaller_database() {
    const XML: &str = r#"<database><enum name="chip"><value name="A6XX" value="1"/><value name="A7XX"/></enum>
        <bitset name="b" inline="yes"><bitfield name="F" low="0" high="3" type="uint"/></bitset>
        <domain name="A6XX" width="32" varset="chip"><reg32 offset="0x10" name="R" type="b" variants="A6XX-"/>
        <array offset="0x20" name="A" stride="4" length="3"><reg64 offset="1" name="X" type="address"/></array>
        <stripe variants="A7XX"><reg32 offset="0" name="S" length="2" stride="1"/></stripe></domain></database>"#;
    const WORDS: [&str; 12] = [
        "0",
        "0xffffffff",
        "0xffffffffffffffff",
        "-1",
        "7",
        "64",
        "",
        "A6XX",
        "b",
        "chip",
        "yes",
        "A7XX-A6XX",
    ];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut loaded = 0;
    for _ in 0..120 {
        let mut bytes = XML.as_bytes().to_vec();
        // Most mutations would only break the XML: the words between the quotes are the interesting ones.
        for _ in 0..3 {
            let quotes: Vec<usize> = (0..bytes.len()).filter(|&i| bytes[i] == b'"').collect();
            let pair = random.below(quotes.len() / 2) * 2;
            let (start, end) = (quotes[pair] + 1, quotes[pair + 1]);
            let word = WORDS[random.below(WORDS.len())];
            bytes.splice(start..end, word.bytes());
        }
        if random.below(4) == 0 {
            mutate(&mut bytes, &mut random);
        }
        let mut fetch = |name: &str| (name == "a6xx.xml").then(|| bytes.clone());
        loaded += usize::from(unwedge_hw::Db::from_rnndb("mutant", &mut fetch).is_ok());
    }
    assert!(loaded > 60, "only {loaded} mutants loaded at all");
}

#[test]
fn an_import_keeps_order_and_hoists_nested_definitions() {
    const XML: &str = r#"<database><import file="freedreno_copyright.xml"/>
        <domain name="D" width="32"><enum name="inner"><value name="V" value="3"/></enum><doc>prose</doc>
        <reg32 offset="0" name="R" type="inner"/></domain></database>"#;
    let (facts, issues) = import(&mut |name| (name == "ocmem.xml").then(|| XML.as_bytes().to_vec())).unwrap();
    assert_eq!(issues, []);
    let DbFacts { files, .. } = facts;
    let [FactsItem::Enum(inner), FactsItem::Domain(domain)] = &files[0].items[..] else {
        panic!("{files:?}")
    };
    assert_eq!((files[0].name.as_str(), inner.name.as_str()), ("ocmem", "inner"));
    assert!(matches!(&domain.elems[..], [DomainElem::Reg(reg)] if reg.name == "R"));
}
