//! What commands print with `--json` is what their schemas say: every field is named in them and has the type that they give.

mod program;

use program::{Folder, outcome, unwedge};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use unwedge::base::Generation;
use unwedge::hw::intel::platform::Platform;
use unwedge::intel::lrc::{LrcLayout, LrcOwner, PAGE};
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::{amdgpu, captures, data, i915, intel, xe};
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

#[test]
fn dumps_and_captures() {
    let mut schemas = Schemas::new();
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
    folder.run(&["demo", "--save", "demo.devcore"], b"");
    hung.push(("demo".to_owned(), std::fs::read(folder.path("demo.devcore")).expect("the demo")));
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
    for verb in ["explain", "info", "decode", "rd info", "rd cat", "query"] {
        assert!(schemas.seen.get(verb).is_some_and(|&seen| seen > 5), "{verb}: {:?}", schemas.seen);
    }
}

#[test]
fn several_dumps_and_differences() {
    let mut schemas = Schemas::new();
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

#[test]
fn registers_layouts_and_contexts() {
    let mut schemas = Schemas::new();
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

#[test]
fn code_and_shaders() {
    let mut schemas = Schemas::new();
    const BAD: &[u8] = b"s_mov_b32 vcc_lo, 0\nv_div_fmas_f32 v0, v1, v2, v3\ns_endpgm\n";
    for gpu in ["gfx900", "gfx1100"] {
        let args = ["amd", "check", "--json", "--gpu", gpu, "-"];
        let (_, code, _) = outcome(&["amd", "asm", "--gpu", gpu, "-"], BAD);
        let _ = code;
        schemas.run("amd check", &args, BAD);
    }
    let (_, out, _) = outcome(&["amd", "run", "--json", "--gpu", "gfx900", "-"], b"s_endpgm\n");
    if !out.is_empty() {
        schemas.check("amd run", &out);
    }
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
