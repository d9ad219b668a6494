//! What commands write as JSON is as their schemas say: every field is named in them and has the type that they give. A command with
//! `--json` but without a schema, and a schema whose command is not tried here, fail a test.

mod program;

use program::{Folder, outcome, unwedge};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::process::Stdio;
use std::time::SystemTime;
use unwedge::base::Generation;
use unwedge::hw::intel::platform::Platform;
use unwedge::intel::lrc::{LrcLayout, LrcOwner, PAGE};
use unwedge_args::groups;
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::rd::CaptureBuilder;
use unwedge_testkit::{amdgpu, captures, data, i915, intel, pm4, xe};
use unwedge_view::schema::{PUBLISHED, published};

/// Validators that know no fields but those of the schemas, which themselves allow any.
struct Schemas {
    by_verb: BTreeMap<&'static str, jsonschema::Validator>,
    seen: BTreeMap<&'static str, usize>,
}

impl Schemas {
    fn new() -> Schemas {
        let validator = |text: &str| {
            let mut schema: Value = serde_json::from_str(text).expect("JSON");
            let mut extended = BTreeSet::new();
            extended_shapes(&schema, &mut extended);
            for (name, shape) in schema["$defs"].as_object_mut().expect("definitions") {
                let open = extended.contains(&format!("#/$defs/{name}"));
                close(shape, open);
            }
            jsonschema::validator_for(&schema).expect("a schema")
        };
        let by_verb = PUBLISHED.iter().map(|(verb, text)| (*verb, validator(text))).collect();
        Schemas { by_verb, seen: BTreeMap::new() }
    }

    /// Checks every object of an output.
    fn check(&mut self, verb: &str, output: &str) {
        let (verb, validator) = self.by_verb.get_key_value(verb).expect("a schema of the command");
        for object in serde_json::Deserializer::from_str(output).into_iter::<Value>() {
            let object = object.unwrap_or_else(|e| panic!("{verb}: {e}"));
            if !validator.is_valid(&object) {
                let errors: Vec<String> = validator
                    .iter_errors(&object)
                    .map(|e| format!("{} at {}", e, e.instance_path()))
                    .collect();
                panic!("{verb}: not as its schema: {object:#}\n{}", errors.join("\n"));
            }
            *self.seen.entry(verb).or_default() += 1;
        }
    }

    /// Runs a command and checks what it prints, whatever its exit status.
    fn run(&mut self, verb: &str, args: &[&str], input: &[u8]) {
        let (_, out, err) = outcome(args, input);
        assert!(!out.is_empty(), "{args:?}: {err}");
        self.check(verb, &out);
    }
}

/// Shapes that others add fields to: what these may have is for the others to say.
fn extended_shapes(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            let reference =
                map.get("$ref").and_then(Value::as_str).filter(|_| map.contains_key("properties"));
            out.extend(reference.map(str::to_owned));
            let parts = map.get("allOf").and_then(Value::as_array).into_iter().flatten();
            out.extend(parts.filter_map(|part| part["$ref"].as_str().map(str::to_owned)));
            map.values().for_each(|value| extended_shapes(value, out));
        }
        Value::Array(values) => values.iter().for_each(|value| extended_shapes(value, out)),
        _ => {}
    }
}

/// Objects whose fields a schema names have no other fields, unless the outermost is `open`.
fn close(value: &mut Value, open: bool) {
    match value {
        Value::Object(map) => {
            if map.contains_key("properties") && !map.contains_key("additionalProperties") && !open {
                map.insert("unevaluatedProperties".to_owned(), json!(false));
            }
            let adds = map.contains_key("properties");
            for (key, value) in map {
                match value {
                    // Variants that have the fields of the object beside their own.
                    Value::Array(variants) if adds && matches!(key.as_str(), "anyOf" | "allOf") => {
                        variants.iter_mut().for_each(|variant| close(variant, true));
                    }
                    value => close(value, false),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| close(value, false)),
        _ => {}
    }
}

fn dumps() -> Vec<(String, Vec<u8>)> {
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let step = if all { 1 } else { 5 };
    let mut dumps: Vec<(String, Vec<u8>)> =
        i915::variety().into_iter().chain(xe::variety()).step_by(step).collect();
    dumps.extend(amdgpu::texts().into_iter().step_by(step));
    dumps.extend(intel::dump_of_every_platform().step_by(step).map(|(name, text)| (name.to_owned(), text)));
    for generation in [Generation::A3xx, Generation::A5xx, Generation::A6xx, Generation::A7xx] {
        dumps.push((format!("{generation:?}"), DevcoreBuilder::complete(generation).text()));
    }
    dumps
}

/// Commands that are chosen by an option, and one that has no option for its JSON: it writes it to files.
const BESIDE_OPTIONS: [&str; 3] = ["query pixel", "layout formats", "watch"];

/// The commands below one that print JSON.
fn commands_with_json(command: &clap::Command, words: &str, out: &mut BTreeSet<String>) {
    for command in command.get_subcommands() {
        let verb = format!("{words} {}", command.get_name()).trim_start().to_owned();
        let prints = command.get_arguments().any(|arg| {
            let format = |value: &clap::builder::PossibleValue| value.get_name() == "ndjson";
            arg.get_long() == Some("json") || arg.get_possible_values().iter().any(format)
        });
        commands_with_json(command, &verb, out);
        out.extend(prints.then_some(verb));
    }
}

#[test]
fn every_command_that_prints_json_has_a_schema() {
    let mut commands = BESIDE_OPTIONS.map(str::to_owned).into();
    commands_with_json(&groups::command(), "", &mut commands);
    let schemas: BTreeSet<String> = PUBLISHED.iter().map(|(verb, _)| (*verb).to_owned()).collect();
    assert_eq!(commands, schemas, "commands with JSON on the left, with a schema on the right");
}

#[test]
fn commands_write_what_their_schemas_say() {
    let mut schemas = Schemas::new();
    dumps_and_captures(&mut schemas);
    several_dumps_and_differences(&mut schemas);
    registers_layouts_and_contexts(&mut schemas);
    code_and_shaders(&mut schemas);
    kept_dumps(&mut schemas);
    breadcrumbs(&mut schemas);
    for (verb, _) in PUBLISHED {
        assert!(schemas.seen.contains_key(verb), "no output of {verb} was checked");
    }
}

fn dumps_and_captures(schemas: &mut Schemas) {
    for (_, dump) in dumps() {
        for (verb, args) in [
            ("explain", &["explain", "--json", "-"][..]),
            ("info", &["info", "--json", "-"]),
            ("decode", &["decode", "--json", "-"]),
            ("decode", &["decode", "--json", "--around", "hang", "-"]),
        ] {
            let out = unwedge(args, &dump).stdout;
            schemas.check(verb, std::str::from_utf8(&out).expect("UTF-8"));
        }
    }
    let mut hung = data::dumps();
    let folder = Folder::new();
    let (_, explained, _) = folder.run(&["demo", "--json", "--save", "demo.devcore"], b"");
    schemas.check("demo", &explained);
    hung.push(("demo".to_owned(), fs::read(folder.path("demo.devcore")).expect("the demo")));
    for (_, dump) in &hung {
        schemas.run("explain", &["explain", "--json", "-"], dump);
        schemas.run("decode", &["decode", "--json", "--around", "hang", "-"], dump);
    }
    for capture in captures::variety() {
        schemas.run("info", &["info", "--json", "-"], &capture);
        schemas.run("decode", &["decode", "--json", "-"], &capture);
        schemas.run("rd info", &["rd", "info", "--json", "-"], &capture);
        schemas.run("rd cat", &["rd", "cat", "--json", "-"], &capture);
        schemas.run("query", &["query", "--format", "ndjson", "-"], &capture);
    }
    // The CP reads what it wrote without waiting for the write.
    let write = pm4::pkt7(pm4::CP_MEM_WRITE, &[0x3000_0000, 0, 7]);
    let stream = [write, pm4::pkt7(pm4::CP_MEM_TO_MEM, &[0, 0x3000_0040, 0, 0x3000_0000, 0])].concat();
    let capture = CaptureBuilder::new(630, "synthetic\0").buffer(0x3000_0000, &[0; 64]);
    let capture = capture.buffer(0x2000_0000, &stream).submit(0x2000_0000, stream.len() as u32).bytes();
    let (_, linted, err) = outcome(&["lint", "--all", "--json", "-"], &capture);
    let report: Value = serde_json::from_str(&linted).unwrap_or_else(|e| panic!("{e}: {err}"));
    let findings = report["findings"].as_array().expect("findings");
    assert!(findings.iter().any(|finding| finding["reader"].is_object()), "{linted}");
    schemas.check("lint", &linted);
    schemas.run("query pixel", &["query", "--pixel", "1,1", "--json", "-"], &capture);
    for verb in ["explain", "info", "decode", "rd info", "rd cat", "query"] {
        assert!(schemas.seen.get(verb).is_some_and(|&seen| seen > 5), "{verb}: {:?}", schemas.seen);
    }
}

fn several_dumps_and_differences(schemas: &mut Schemas) {
    let dump = |process: &str| DevcoreBuilder::complete(Generation::A6xx).process(process, process).text();
    let i915 = &i915::variety()[0].1;
    let mut captures = captures::variety();
    let a6xx = captures.remove(4);
    let folder = Folder::of(&[
        ("a.devcore", dump("a")),
        ("b.devcore", dump("b")),
        ("i915", i915.clone()),
        ("notes.txt", b"notes".to_vec()),
        ("a.rd", a6xx),
    ]);
    let mut run = |verb: &str, args: &[&str]| {
        let (_, out, err) = folder.run(args, b"");
        assert!(!out.is_empty(), "{args:?}: {err}");
        schemas.check(verb, &out);
    };
    run("explain", &["explain", "--json", "a.devcore", "b.devcore", "i915", "notes.txt"]);
    run("explain", &["explain", "--json", "."]);
    run("diff", &["diff", "--json", "a.devcore", "b.devcore"]);
    run("diff", &["diff", "--json", "a.devcore", "i915"]);
    run("diff", &["diff", "--json", "--draws", "a.devcore", "b.devcore"]);
    run("diff", &["diff", "--json", "a.rd:.0", ":.1"]);
    run("diff", &["diff", "--json", "a.rd", "a.rd"]);
    run("query", &["query", "--format", "ndjson", "a.devcore", "RB_CCU_CNTL"]);
    run("replay", &["replay", "--json", "a.rd"]);
}

/// An error state of Tiger Lake with the context of its hung engine.
fn dump_with_a_context() -> Vec<u8> {
    let platform = Platform::by_name("tgl").expect("a platform");
    let owner = LrcOwner {
        driver: platform.drivers()[0],
        version: platform.version(),
        engine: "rcs0".parse().expect("an engine"),
    };
    let image = [vec![0; PAGE], LrcLayout::of(owner).expect("a layout").expand()].concat();
    let engine = intel::EngineState::new("rcs0").context(0x20_0000, &image).hung(1);
    i915::ErrorStateBuilder::new(intel::TestDevice::named("tgl")).engine(engine).text()
}

fn registers_layouts_and_contexts(schemas: &mut Schemas) {
    for args in [
        &["regs", "--json", "a630", "RB_MRT[0].CONTROL", "CP_WAIT_REG_MEM", "pc_di_primtype"][..],
        &["regs", "--json", "a6xx", "0x8c17", "0x4b"],
        &["regs", "--json", "gfx1030", "GRBM_STATUS", "0xa0000000", "WAIT_REG_MEM"],
        &["regs", "--json", "tgl", "INSTDONE", "0xffdffffe"],
        &["regs", "--json", "lnl", "MI_SEMAPHORE*"],
    ] {
        schemas.run("regs", args, b"");
    }
    let size = ["layout", "--gpu", "a630", "--format", "R8G8B8A8_UNORM", "--size", "64x64"];
    schemas.run("layout", &[&size[..], &["--json"]].concat(), b"");
    schemas.run("layout", &[&size[..], &["--ubwc", "--json", "--texel", "1,1,0,0"]].concat(), b"");
    schemas.run("layout formats", &["layout", "--formats", "--json"], b"");
    let context = dump_with_a_context();
    for command in ["show", "verify"] {
        schemas.run(&format!("lrc {command}"), &["lrc", command, "--json", "-"], &context);
    }
    let folder = Folder::of(&[("a", context.clone()), ("b", context.clone())]);
    let (_, out, err) = folder.run(&["lrc", "diff", "--json", "a", "b"], b"");
    assert!(!out.is_empty(), "{err}");
    schemas.check("lrc diff", &out);
}

fn code_and_shaders(schemas: &mut Schemas) {
    const BAD: &[u8] = b"s_mov_b32 vcc_lo, 0\nv_div_fmas_f32 v0, v1, v2, v3\ns_endpgm\n";
    for gpu in ["gfx900", "gfx1100"] {
        let args = ["amd", "check", "--json", "--gpu", gpu, "-"];
        schemas.run("amd check", &args, BAD);
    }
    schemas.run("amd run", &["amd", "run", "--json", "--gpu", "gfx900", "-"], b"s_endpgm\n");
    schemas.run(
        "ir3 check",
        &["ir3", "check", "--json", "--gpu", "a630", "-"],
        &0x0300_0000_0000_0000_u64.to_le_bytes(),
    );
    schemas.run(
        "eu check",
        &["eu", "check", "--json", "--platform", "tgl", "--hex", "-"],
        b"60000000000000000000000000000000",
    );
    // Invocations 2 and 3 store past the end of the buffer.
    for args in [&["run", "--buffer", "0.5=8"][..], &["validate"], &["opt", "--print-changed"]] {
        let verb = format!("shader {}", args[0]);
        schemas.run(&verb, &[&["shader"], args, &["--json", "-"]].concat(), SHADER);
    }
    schemas.run("shader validate", &["shader", "validate", "--json", "-"], b"shader compute \"main\"\nno\n");
    for buffer in ["0.5=16", "0.5=8"] {
        let args =
            ["aco", "compile", "--gpu", "gfx1030", "--json", "--run", "--compare", "--buffer", buffer, "-"];
        schemas.run("aco compile", &args, SHADER);
    }
    let vertex = String::from_utf8_lossy(SHADER)
        .replace("compute", "vertex")
        .replace("workgroup_size 4", "workgroup_size 1");
    let empty = vertex
        .split("resource")
        .next()
        .map(|head| format!("{head}fn f0 \"main\" () -> () {{\n  return\n}}\n"));
    let args = ["aco", "compile", "--gpu", "gfx1030", "--json", "--pipeline", "-"];
    schemas.run("aco compile", &args, empty.unwrap_or_default().as_bytes());
}

/// Each of four invocations stores five times its number.
const SHADER: &[u8] = br#"shader compute "main"
workgroup_size 4 1 1
sizes shared 0 scratch 0 push 0
floats 16 nearest any
floats 32 nearest any
floats 64 nearest any
type t0 = b32
resource r0 "" storage_buffer set 0 binding 5 count 1 size 0 dim buffer access restrict
fn f0 "main" () -> () {
  %0: b32 = const<0x5>
  %1: b32 = const<0x0>
  %2: b32 = const<0x1>
  %3: b32 = const<0x4>
  %4: b32 = sysval<local_invocation_index>
  %5: b32 = imul %4, %0
  %6: handle = descriptor<r0> %1
  %7: b32 = imul %4, %3
  store<storage align 4 access restrict> %5, %6, %7
  return
}
"#;

/// `watch` writes the JSON of each dump that it keeps to a file.
fn kept_dumps(schemas: &mut Schemas) {
    let dump = DevcoreBuilder::complete(Generation::A6xx).text();
    let folder = Folder::of(&[("in/a.devcore", dump), ("in/b", i915::variety().remove(0).1)]);
    for name in ["in/a.devcore", "in/b"] {
        // A file that changed a moment ago is still being written.
        let file = File::options().append(true).open(folder.path(name)).expect("the file");
        file.set_modified(SystemTime::UNIX_EPOCH).expect("a time");
    }
    let (_, _, err) = folder.run(&["watch", "--once", "--store", "kept", "in"], b"");
    let kept = Folder::names_of(&folder.0.join("kept"));
    let objects: Vec<&String> = kept.iter().filter(|name| name.ends_with(".json")).collect();
    assert_eq!(objects.len(), 2, "{kept:?} {err}");
    for name in objects {
        schemas.check("watch", &fs::read_to_string(folder.0.join("kept").join(name)).expect("the file"));
    }
}

fn breadcrumbs(schemas: &mut Schemas) {
    let draws = pm4::pkt7(pm4::CP_DRAW_INDX_OFFSET, &[0x8004, 1, 3]).repeat(4);
    let capture = CaptureBuilder::new(630, "synthetic\0").buffer(0x2000_0000, &draws);
    let capture = capture.submit(0x2000_0000, draws.len() as u32).bytes();
    let folder = Folder::of(&[("a.rd", capture)]);
    let mut command = program::command();
    command.args(["breadcrumbs", "listen", "--port", "0", "--json", "--idle", "1s", "--capture"]);
    command.arg(folder.path("a.rd")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut line = String::new();
    BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let port = line.trim().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let address = SocketAddr::from(([127, 0, 0, 1], port.unwrap_or_else(|| panic!("{line}"))));
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    for number in [1_u32, 4] {
        socket.send_to(&number.to_be_bytes(), address).expect("a datagram");
    }
    let out = program::text(&child.wait_with_output().expect("it ends").stdout);
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
    assert!(report["packet"].is_object() && report["gaps"][0].is_array(), "{out}");
    schemas.check("breadcrumbs listen", &out);
}

#[test]
fn the_command_prints_its_schemas() {
    let (code, list, _) = outcome(&["schema"], b"");
    assert_eq!(code, Some(0));
    assert_eq!(list.lines().count(), PUBLISHED.len());
    for verb in list.lines() {
        let words: Vec<&str> = ["schema"].into_iter().chain(verb.split(' ')).collect();
        let (code, text, _) = outcome(&words, b"");
        assert_eq!((code, Some(text.as_str())), (Some(0), published(verb)), "{verb}");
        let schema: Value = serde_json::from_str(&text).expect("JSON");
        assert!(!text.contains("\"required\"") && schema["$defs"].is_object(), "{verb}");
        // Every schema is one by its own meta-schema.
        assert!(jsonschema::meta::is_valid(&schema), "{verb}");
    }
    let (code, _, err) = outcome(&["schema", "no", "such"], b"");
    assert!(code == Some(1) && err.contains("no schema of `no such`"), "{err}");
}
