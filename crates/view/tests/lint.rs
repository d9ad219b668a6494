//! Lint as text, JSON, SARIF and pages, of captures made here.

use serde_json::Value;
use unwedge_capture::rd::RdSectionKind;
use unwedge_check::Level;
use unwedge_hw::Db;
use unwedge_postmortem::lint::{LINT_RULES, LintOptions, LintReport, lint};
use unwedge_testkit::pm4::{pkt4, pkt7};
use unwedge_testkit::rd::CaptureBuilder;
use unwedge_view::Style;
use unwedge_view::lint::{Linted, lint_rules};

const STREAM: u64 = 0x1_0000_0000;
const DATA: u64 = 0x1_0010_0000;

/// A capture of a630 with these streams, one set each.
fn capture(streams: &[Vec<u32>]) -> Vec<u8> {
    let mut builder = CaptureBuilder::new(630, "test");
    for stream in streams {
        builder = builder
            .section(RdSectionKind::Cmd, b"test")
            .buffer(DATA, &[0; 1024])
            .buffer(STREAM, stream)
            .submit(STREAM, stream.len() as u32);
    }
    builder.bytes()
}

fn linted(streams: &[Vec<u32>]) -> LintReport {
    let db = Db::builtin();
    lint(&capture(streams)[..], &LintOptions::new(1 << 20), &db, 1 << 30).0
}

fn op(name: &str, payload: &[u32]) -> Vec<u32> {
    let db = Db::builtin();
    let gpu = db.gpu(unwedge_base::Generation::A6xx);
    let opcode = (0..128).find(|&opcode| gpu.packet_name(opcode) == Some(name)).expect("a packet");
    pkt7(opcode.into(), payload)
}

fn set(name: &str, values: &[u32]) -> Vec<u32> {
    let db = Db::builtin();
    let reg = db.gpu(unwedge_base::Generation::A6xx).reg_offset(name).expect("a register");
    pkt4(reg, values)
}

/// The CP writes and reads without waiting, and a blit reads registers that nothing sets.
fn faulty() -> Vec<u32> {
    let (low, high) = (DATA as u32, (DATA >> 32) as u32);
    [
        op("CP_MEM_WRITE", &[low, high, 7]),
        op("CP_MEM_TO_MEM", &[0, low + 64, high, low, high]),
        set("RB_2D_BLIT_CNTL", &[1 << 7 | 0x30 << 8 | 0xf << 20 | 0x10 << 24]),
        op("CP_BLIT", &[3]),
    ]
    .concat()
}

fn ids(report: &LintReport, level: Level) -> Vec<&'static str> {
    let mut ids: Vec<&str> = report.of_level(level).map(|finding| finding.rule.row().id).collect();
    ids.dedup();
    ids
}

#[test]
fn registers_and_waits_are_found_with_their_packets() {
    let stream = faulty();
    let report = linted(std::slice::from_ref(&stream));
    assert_eq!(ids(&report, Level::Warning), ["unset-register", "missing-wait"]);
    let blit = STREAM + 4 * (stream.len() as u64 - 2);
    for finding in report.of_level(Level::Warning) {
        let reader = finding.reader.as_ref().expect("a packet");
        match finding.rule.row().id {
            "unset-register" => {
                assert_eq!((reader.iova, reader.name.as_str(), reader.set), (blit, "CP_BLIT", 0));
                assert_eq!(finding.writer, None);
                assert_ne!(finding.args.text("register"), Some("RB_2D_BLIT_CNTL"), "it is set");
            }
            _ => {
                assert_eq!((reader.iova, reader.name.as_str()), (STREAM + 16, "CP_MEM_TO_MEM"));
                assert_eq!(finding.writer.as_ref().map(|writer| writer.iova), Some(STREAM));
            }
        }
    }
    let registers: Vec<&str> = report.findings.iter().filter_map(|f| f.args.text("register")).collect();
    assert!(
        registers.contains(&"GRAS_2D_DST_TL") && !registers.contains(&"SP_PS_2D_SRC_INFO"),
        "{registers:?}"
    );
}

/// What an earlier submit has set is still there, and is named.
#[test]
fn what_an_earlier_submit_has_set_is_stale() {
    let first = set("GRAS_2D_DST_TL", &[0x20, 0x30]);
    let report = linted(&[first, faulty()]);
    let stale: Vec<_> = report.findings.iter().filter(|f| f.rule.row().id == "stale-register").collect();
    let names: Vec<_> = stale.iter().filter_map(|f| f.args.text("register")).collect();
    assert_eq!(names, ["GRAS_2D_DST_TL", "GRAS_2D_DST_BR"]);
    let writer = stale[0].writer.as_ref().expect("the first submit");
    assert_eq!((writer.set, writer.iova, stale[0].reader.as_ref().map(|p| p.set)), (0, STREAM, Some(1)));
    assert_eq!(stale[1].args.number("value"), Some(0x30));
}

#[test]
fn waits_and_writes_that_nothing_needs_are_notes() {
    let wait = op("CP_WAIT_FOR_IDLE", &[]);
    let again: Vec<u32> = (0..32).flat_map(|_| set("RB_STENCILREF", &[5])).collect();
    let flush = op("CP_EVENT_WRITE", &[4, DATA as u32, (DATA >> 32) as u32, 1]);
    let report = linted(&[[wait.clone(), wait, again, flush].concat()]);
    assert_eq!(ids(&report, Level::Note), ["redundant-state", "needless-flush", "needless-wait"]);
    assert_eq!(report.of_level(Level::Warning).count(), 0);
    let count = |name| report.findings.iter().find_map(|f| f.args.number(name));
    assert_eq!(count("redundant"), Some(31));
}

/// The 2D engine fills 16 texels at the start of the data.
fn fill() -> Vec<u32> {
    let (low, high) = (DATA as u32, (DATA >> 32) as u32);
    [
        set("GRAS_2D_DST_TL", &[0, 15]),
        set("RB_2D_DST_INFO", &[0x30, low, high, 1]),
        set("RB_2D_BLIT_CNTL", &[1 << 7 | 0x30 << 8 | 0xf << 20 | 0x10 << 24]),
        set("RB_2D_SRC_SOLID_C0", &[1, 2, 3, 4]),
        op("CP_BLIT", &[3]),
    ]
    .concat()
}

/// The colour cache is written back, and that is waited for.
fn flush() -> Vec<u32> {
    let db = Db::builtin();
    let events = db.gpu(unwedge_base::Generation::A6xx).enumeration("vgt_event_type").expect("events");
    let event = events.value_of("PC_CCU_FLUSH_COLOR_TS").expect("an event") as u32;
    [op("CP_EVENT_WRITE", &[event]), op("CP_WAIT_FOR_IDLE", &[])].concat()
}

/// The errors of a stream: rules, with what is missing.
fn errors(stream: Vec<u32>) -> Vec<(&'static str, String)> {
    let report = linted(&[stream]);
    let errors = report.of_level(Level::Error);
    errors.map(|f| (f.rule.row().id, format!("{:?}", f.args.get("missing")))).collect()
}

/// The colour cache holds the whole row as dirty when the CP writes a dword of it, and writes it back later.
#[test]
fn writes_that_a_cache_undoes_are_lost() {
    let write = op("CP_MEM_WRITE", &[DATA as u32 + 4, (DATA >> 32) as u32, 7]);
    let wait = op("CP_WAIT_MEM_WRITES", &[]);
    let bad = errors([fill(), write.clone(), wait.clone(), flush()].concat());
    assert_eq!(bad.len(), 1, "{bad:?}");
    assert!(bad[0].0 == "lost-write" && bad[0].1.contains("PC_CCU_FLUSH_COLOR_TS"), "{bad:?}");
    assert_eq!(errors([fill(), flush(), write, wait, flush()].concat()), []);
}

fn event(name: &str) -> Vec<u32> {
    let db = Db::builtin();
    let events = db.gpu(unwedge_base::Generation::A6xx).enumeration("vgt_event_type").expect("events");
    op("CP_EVENT_WRITE", &[events.value_of(name).expect("an event") as u32])
}

/// The 2D engine copies 16 texels from an offset of the data to its middle, through UCHE.
fn copy(from: u32) -> Vec<u32> {
    let (low, high) = (DATA as u32, (DATA >> 32) as u32);
    [
        set("GRAS_2D_DST_TL", &[0, 15]),
        set("RB_2D_DST_INFO", &[0x30, low + 0x800, high, 1]),
        set("RB_2D_BLIT_CNTL", &[0x30 << 8 | 0xf << 20 | 0x10 << 24]),
        set("GRAS_2D_SRC_TL_X", &[0, 15 << 8, 0, 0]),
        set("SP_PS_2D_SRC_INFO", &[0x30, 16 | 1 << 15, low + from, high, 64 << 3]),
        op("CP_BLIT", &[3]),
    ]
    .concat()
}

/// A copy of what the 2D engine filled, which it has copied before, needs the colour cache written back, UCHE invalidated and a wait.
#[test]
fn copies_need_a_flush_an_invalidate_and_a_wait() {
    let (clean, drop) = (event("PC_CCU_FLUSH_COLOR_TS"), event("CACHE_INVALIDATE"));
    let wait = op("CP_WAIT_FOR_IDLE", &[]);
    let found = |between: &[&Vec<u32>]| {
        let between = between.iter().flat_map(|part| part.iter().copied()).collect();
        errors([copy(0), fill(), between, copy(0)].concat())
    };
    for (between, rule, packet) in [
        (&[&drop, &wait][..], "missing-flush", "PC_CCU_FLUSH_COLOR_TS"),
        (&[&clean, &wait], "missing-invalidate", "CACHE_INVALIDATE"),
        (&[&clean, &drop], "missing-wait", "CP_WAIT_FOR_IDLE"),
        (&[&wait, &clean, &drop], "missing-wait", "CP_WAIT_FOR_IDLE"),
    ] {
        let errors = found(between);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].0 == rule && errors[0].1.contains(packet), "{errors:?}");
    }
    assert_eq!(found(&[&clean, &drop, &wait]), []);
}

/// What nothing has written is a note, with the packet that reads and the one that wrote it later.
#[test]
fn a_copy_of_what_nothing_has_written() {
    let unwritten = |stream: Vec<u32>| {
        let report = linted(&[stream]);
        report.findings.into_iter().filter(|f| f.rule.row().id == "unwritten-read").collect::<Vec<_>>()
    };
    let found = unwritten([copy(0), op("CP_WAIT_FOR_IDLE", &[]), fill()].concat());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].reader.as_ref().map(|p| p.name.as_str()), Some("CP_BLIT"));
    assert_eq!(found[0].args.number("address"), Some(DATA));
    assert!(found[0].writer.is_some(), "who wrote it too late");
    assert_eq!(unwritten([fill(), flush(), copy(0)].concat()), []);
}

/// What the CPU wrote near zeros tells that it wrote them, too, but not where another buffer begins.
#[test]
fn contents_of_the_buffer_before_say_nothing_of_zeros() {
    let stream = copy(0);
    let unwritten = |buffers: &[(u64, &[u32])]| -> Vec<Option<u64>> {
        let mut builder = CaptureBuilder::new(630, "test").section(RdSectionKind::Cmd, b"test");
        for (iova, words) in buffers {
            builder = builder.buffer(*iova, words);
        }
        let bytes = builder.buffer(STREAM, &stream).submit(STREAM, stream.len() as u32).bytes();
        let report = lint(&bytes[..], &LintOptions::new(1 << 20), &Db::builtin(), 1 << 30).0;
        let found = report.findings.iter().filter(|f| f.rule.row().id == "unwritten-read");
        found.map(|f| f.args.number("address")).collect()
    };
    let before = DATA - 0x1000;
    assert_eq!(unwritten(&[(before, &[7; 1024]), (DATA, &[0; 1024])]), [Some(DATA)]);
    assert_eq!(unwritten(&[(before, &[[7; 1024], [0; 1024]].concat())]), []);
}

/// RB_CCU_CNTL moves the CCU, so that its lines must have been written back and work must be done.
#[test]
fn a_ccu_in_use_must_not_be_moved() {
    let [first, second] = [1u32 << 23, 2 << 23].map(|value| set("RB_CCU_CNTL", &[value]));
    let wait = op("CP_WAIT_FOR_IDLE", &[]);
    let begin = [first, wait.clone(), fill()].concat();
    let dirty = errors([begin.clone(), wait, second.clone()].concat());
    assert_eq!(dirty.len(), 1, "{dirty:?}");
    assert!(dirty[0].0 == "ccu-in-use" && dirty[0].1.contains("PC_CCU_FLUSH_COLOR_TS"), "{dirty:?}");
    let event = flush()[..2].to_vec();
    let busy = errors([begin.clone(), event, second.clone()].concat());
    assert_eq!(busy.len(), 1, "{busy:?}");
    assert!(busy[0].0 == "ccu-in-use" && busy[0].1.contains("CP_WAIT_FOR_IDLE"), "{busy:?}");
    assert_eq!(errors([begin, flush(), second].concat()), []);
}

fn shown(report: &LintReport, write: impl Fn(&Linted<'_>, &mut Vec<u8>)) -> String {
    let linted = Linted { name: "a capture.rd", report, shown: Level::Note, all: true };
    let mut out = Vec::new();
    write(&linted, &mut out);
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn text_has_the_packets_and_a_summary() {
    let report = linted(&[faulty()]);
    let text = shown(&report, |linted, out| linted.text(Style::default(), out).unwrap());
    assert!(text.contains("error[missing-wait]"), "{text}");
    assert!(text.contains("Missing between the two: CP_WAIT_MEM_WRITES."), "{text}");
    assert!(text.contains("GRAS_2D_DST_TL is used and never set"), "{text}");
    assert!(text.contains("looked at 1 submit, 1 draw, dispatch or blit, 0 shaders"), "{text}");
    // The kernel's own ring is none of the capture's memory.
    assert!(!text.contains("unwritten"), "{text}");
    let mut rules = Vec::new();
    lint_rules(&mut rules).unwrap();
    let rules = String::from_utf8(rules).unwrap();
    assert!(LINT_RULES.iter().all(|row| rules.contains(row.id) && rules.contains(row.source)));
}

/// The page names each rule once, with a link to its findings, and has the packets, the words and the values of each.
#[test]
fn the_page_has_every_finding() {
    let (report, db) = (linted(&[faulty()]), Db::builtin());
    let page = shown(&report, |linted, out| linted.html(db.identity(), out).unwrap());
    assert_eq!(page.matches("class=\"finding\"").count(), report.findings.len(), "{page}");
    for finding in &report.findings {
        let id = finding.rule.row().id;
        assert!(page.contains(&format!("<a href=\"#{id}\">{id}</a>")), "{id}");
        assert_eq!(page.matches(&format!("<h3 id=\"{id}\">")).count(), 1, "{id}");
        for packet in finding.reader.iter().chain(&finding.writer) {
            assert!(page.contains(&format!("<td>{:#x}<td>{}<td>", packet.iova, packet.name)), "{packet:?}");
        }
    }
    assert!(page.contains("Missing between the two: CP_WAIT_MEM_WRITES."), "{page}");
    assert!(page.contains("<dd>GRAS_2D_DST_TL</dd>"), "{page}");
    for loads in [" src=", "url(", "http:", "https:"] {
        assert!(!page.contains(loads), "it loads nothing: {loads}");
    }
}

/// A capture without findings, in a file whose name is markup.
#[test]
fn the_page_of_a_clean_capture_says_so() {
    let (report, db) = (linted(&[op("CP_NOP", &[0])]), Db::builtin());
    assert_eq!(report.findings, []);
    let linted = Linted { name: "<b>.rd", report: &report, shown: Level::Note, all: true };
    let mut page = Vec::new();
    linted.html(db.identity(), &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("Lint of &lt;b&gt;.rd: 0 errors, 0 warnings, 0 notes"), "{page}");
    assert!(page.contains("Nothing that lint has a rule for was found.") && !page.contains("<b>"), "{page}");
}

#[test]
fn json_has_every_finding() {
    let report = linted(&[faulty()]);
    let db = Db::builtin();
    let json = shown(&report, |linted, out| linted.json(db.identity(), out).unwrap());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["schema"], "unwedge.lint");
    assert_eq!(json["findings"].as_array().map(Vec::len), Some(report.findings.len()));
    let wait = json["findings"].as_array().unwrap().iter().find(|f| f["rule"] == "missing-wait").unwrap();
    assert_eq!(wait["args"]["missing"], serde_json::json!(["CP_WAIT_MEM_WRITES"]));
    assert_eq!(wait["writer"]["name"], "CP_MEM_WRITE");
}

/// Checks an object by what the schema of SARIF 2.1.0 says of it: properties that it must have, and that it may.
fn check(value: &Value, path: &str, required: &[&str], allowed: &[&str]) {
    let object = value.as_object().unwrap_or_else(|| panic!("{path} is not an object"));
    for name in required {
        assert!(object.contains_key(*name), "{path} has no {name}");
    }
    for name in object.keys() {
        assert!(required.contains(&name.as_str()) || allowed.contains(&name.as_str()), "{path} has {name}");
    }
}

fn check_message(value: &Value, path: &str) {
    check(value, path, &["text"], &["markdown", "id", "arguments", "properties"]);
    assert!(value["text"].as_str().is_some_and(|text| !text.is_empty()), "{path}");
}

/// A relative reference or a URI: no characters that have to be escaped.
fn check_uri(value: &Value, path: &str) {
    let uri = value.as_str().unwrap_or_else(|| panic!("{path} is not a string"));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
    assert!(uri.bytes().all(plain), "{path}: {uri}");
}

fn check_location(value: &Value, path: &str) {
    let allowed = [
        "id",
        "physicalLocation",
        "logicalLocations",
        "message",
        "annotations",
        "relationships",
        "properties",
    ];
    check(value, path, &[], &allowed);
    assert!(value["id"].is_null() || value["id"].as_i64().is_some_and(|id| id >= -1), "{path}");
    let physical = &value["physicalLocation"];
    check(physical, path, &[], &["artifactLocation", "address", "region", "contextRegion", "properties"]);
    assert!(!physical["artifactLocation"].is_null() || !physical["address"].is_null(), "{path}: anyOf");
    check(
        &physical["artifactLocation"],
        path,
        &[],
        &["uri", "uriBaseId", "index", "description", "properties"],
    );
    check_uri(&physical["artifactLocation"]["uri"], path);
    if !physical["address"].is_null() {
        check(
            &physical["address"],
            path,
            &[],
            &["absoluteAddress", "relativeAddress", "length", "kind", "name"],
        );
        assert!(physical["address"]["absoluteAddress"].as_i64().is_some_and(|at| at >= -1), "{path}");
    }
    for logical in value["logicalLocations"].as_array().into_iter().flatten() {
        let allowed =
            ["name", "index", "fullyQualifiedName", "decoratedName", "parentIndex", "kind", "properties"];
        check(logical, path, &[], &allowed);
    }
}

#[test]
fn sarif_keeps_the_rules_of_its_schema() {
    let report = linted(&[set("GRAS_2D_DST_TL", &[1, 2]), faulty()]);
    let log = shown(&report, |linted, out| linted.sarif(out).unwrap());
    let log: Value = serde_json::from_str(&log).unwrap();
    check(&log, "log", &["version", "runs"], &["$schema", "inlineExternalProperties", "properties"]);
    assert_eq!(log["version"], "2.1.0");
    check_uri(&log["$schema"], "$schema");
    let run = &log["runs"][0];
    check(run, "run", &["tool"], &["results", "artifacts", "columnKind", "invocations"]);
    assert!(["utf16CodeUnits", "unicodeCodePoints"].contains(&run["columnKind"].as_str().unwrap()));
    check(&run["tool"], "tool", &["driver"], &["extensions", "properties"]);
    let driver = &run["tool"]["driver"];
    check(driver, "driver", &["name"], &["semanticVersion", "version", "rules", "informationUri"]);
    let rules = driver["rules"].as_array().unwrap();
    for rule in rules {
        let allowed =
            ["shortDescription", "fullDescription", "defaultConfiguration", "help", "helpUri", "name"];
        check(rule, "rule", &["id"], &allowed);
        check_message(&rule["shortDescription"], "shortDescription");
        check_message(&rule["fullDescription"], "fullDescription");
        let level = rule["defaultConfiguration"]["level"].as_str().unwrap();
        assert!(["none", "note", "warning", "error"].contains(&level));
    }
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), report.findings.len());
    for result in results {
        let allowed = ["ruleId", "ruleIndex", "level", "locations", "relatedLocations", "kind", "properties"];
        check(result, "result", &["message"], &allowed);
        check_message(&result["message"], "message");
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(result["ruleId"], rules[index]["id"]);
        assert!(["none", "note", "warning", "error"].contains(&result["level"].as_str().unwrap()));
        let mut ids = Vec::new();
        for (name, least) in [("locations", 1), ("relatedLocations", 0)] {
            let locations = result[name].as_array().map_or(&[][..], Vec::as_slice);
            assert!(locations.len() >= least);
            locations.iter().for_each(|location| check_location(location, name));
            ids.extend(locations.iter().filter_map(|location| location["id"].as_i64()));
        }
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count, "identifiers of locations are unique");
    }
}
