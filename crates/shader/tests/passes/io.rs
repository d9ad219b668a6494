//! Inputs and outputs as slots: which slots they have, what accesses become, and what links two stages.

use std::collections::BTreeMap;
use unwedge_shader::analysis::slots::{SlotKey, SlotMask};
use unwedge_shader::front::spirv::{Options, Reader, words};
use unwedge_shader::interp::{
    Bindings, InterfaceSlot, InvocationInput, NoImages, Options as RunOptions, Violation, run_stage,
};
use unwedge_shader::ir::{
    Builtin, FIRST_LOCATION_SLOT, InterpAt, Op, Payload, Shader, SlotDir, Stage, SystemValue,
};
use unwedge_shader::passes::{lower_io, lower_locals, lower_outputs, remove_unread_outputs, standard};
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;
use unwedge_testkit::data;

/// A shader with the types b32, b32x4, arrays of three of them and b64x3, an index %0 and a zero %1.
fn shader(stage: Stage, vars: &str, body: &str) -> Shader {
    let mut head = Shader::default();
    head.info.stage = stage;
    let text = format!(
        "{}type t0 = b32\ntype t1 = b32x4\ntype t2 = [3 t1]\ntype t3 = [6 t0]\ntype t4 = b64x3\ntype t5 = b16x2\n\
         type t6 = [2 t2]\n{vars}fn f0 \"main\" () -> () {{\n%0: b32 = sysval<vertex_index>\n%1: b32 = const<0x0>\n\
         {body}\nreturn\n}}\n",
        print(&head)
    );
    let mut shader = Shader::default();
    parse(&text, &mut shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    validate(&shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    shader
}

fn lowered(stage: Stage, vars: &str, body: &str) -> Shader {
    let mut shader = shader(stage, vars, body);
    assert!(lower_io(&mut shader));
    validate(&shader).unwrap_or_else(|e| panic!("{e}\n{}", print(&shader)));
    shader
}

/// The lines of a text that access slots or barycentric coordinates, without results and operands.
fn accesses(shader: &Shader) -> Vec<String> {
    let text = print(shader);
    let lines = text.lines().filter(|line| {
        line.contains("_slot<") || line.contains("_interpolated<") || line.contains("barycentric<")
    });
    lines
        .map(|line| {
            let line = line.split(" = ").last().unwrap_or(line).trim();
            line[..=line.find('>').expect("a payload")].to_owned()
        })
        .collect()
}

#[test]
fn locations_have_slots_after_those_of_built_ins() {
    let mut slots = BTreeMap::new();
    for builtin in Builtin::ALL {
        let range = builtin.slots();
        assert!(!range.is_empty() && range.end <= FIRST_LOCATION_SLOT, "{builtin:?}");
        for slot in range {
            assert_eq!(slots.insert(slot, builtin), None, "{builtin:?} shares slot {slot}");
        }
    }
    let vars = "var v0 \"\" input t1 location 3\nvar v1 \"\" output t1 builtin position\n";
    let shader = lowered(Stage::Vertex, vars, "%2: b32x4 = load_var<v0 mask 0x0>\nstore_var<v1 mask 0xf> %2");
    assert_eq!(
        accesses(&shader),
        ["load_slot<in slot 35 component 0 index 0>", "store_slot<out slot 0 component 0 index 0>"]
    );
}

#[test]
fn indices_become_offsets_and_are_checked_before_stores() {
    let vars = "var v0 \"\" input t6 location 0\nvar v1 \"\" output t2 location 1\n";
    let body = "%2: b32x4 = load_var<v0 mask 0x0> %1, %0\nstore_var<v1 mask 0x5> %2, %0";
    let shader = lowered(Stage::Vertex, vars, body);
    let text = print(&shader);
    assert_eq!(
        accesses(&shader),
        [
            "load_slot<in slot 32 count 3 component 0 index 0>",
            "store_slot<out slot 33 count 3 component 0 index 0>",
            "store_slot<out slot 33 count 3 component 2 index 0>"
        ]
    );
    assert!(text.contains("ult") && text.contains("if<"), "{text}");
    // A store past the end changes no other output, and a load reads nothing of another input.
    for (index, stored) in [(2, true), (3, false), (7, false)] {
        let mut input = InvocationInput::default();
        input.system_values.insert(SystemValue::VertexIndex, [index, 0, 0, 0]);
        for slot in 32..64 {
            input.slots.insert(InterfaceSlot { slot, ..InterfaceSlot::default() }, [Some(slot); 4]);
        }
        let options = RunOptions::default();
        let run = run_stage(&shader, vec![input], &mut Bindings::default(), &mut NoImages, &options);
        let (outputs, report) = run.expect("it runs");
        assert_eq!(!outputs[0].slots.is_empty(), stored, "index {index}");
        let outside = report.findings.iter().any(|f| f.violation == Violation::IndexOutOfBounds);
        assert_eq!(outside, !stored, "index {index}");
    }
}

#[test]
fn lanes_of_64_bits_take_two_components_and_leaves_more_than_one_slot() {
    let vars = "var v0 \"\" input t4 location 0\nvar v1 \"\" output t4 location 2\n";
    let shader = lowered(Stage::Vertex, vars, "%2: b64x3 = load_var<v0 mask 0x0>\nstore_var<v1 mask 0x6> %2");
    assert_eq!(
        accesses(&shader),
        [
            "load_slot<in slot 32 component 0 index 0>",
            "load_slot<in slot 33 component 0 index 0>",
            "store_slot<out slot 34 component 2 index 0>",
            "store_slot<out slot 35 component 0 index 0>"
        ]
    );
}

#[test]
fn distances_follow_each_other_by_component() {
    let vars = "var v0 \"\" output t3 builtin clip_distance\n";
    let body = "%2: b32 = const<0x5>\nstore_var<v0 mask 0x1> %0, %2\nstore_var<v0 mask 0x1> %0, %0";
    let shader = lowered(Stage::Vertex, vars, body);
    let first = Builtin::ClipDistance.slots().start;
    let mut wanted = vec![format!("store_slot<out slot {} component 1 index 0>", first + 1)];
    wanted.extend((0..4).map(|c| format!("store_slot<out slot {first} count 2 component {c} index 0>")));
    assert_eq!(accesses(&shader), wanted);
}

#[test]
fn fragment_inputs_keep_their_interpolation() {
    let vars = "var v0 \"\" input t1 location 0 component 0 flags linear|centroid\n\
                var v1 \"\" input t1 location 1 flags flat\nvar v2 \"\" input t5 location 2\n\
                var v3 \"\" output t1 location 0\n";
    let body = "%2: b32x4 = load_var<v0 mask 0x0>\n%3: b32x4 = load_var<v1 mask 0x0>\n\
                %4: b16x2 = load_var<v2 mask 0x0>\n%5: b32x4 = interp_var<v0 sample>\n\
                %6: b32x4 = fadd %2, %3\n%7: b32x4 = fadd %6, %5\nstore_var<v3 mask 0xf> %7";
    let shader = lowered(Stage::Fragment, vars, body);
    let wanted = [
        "barycentric<centroid linear>",
        "barycentric<pixel>",
        "barycentric<sample linear>",
        "load_interpolated<in slot 32 component 0 index 0>",
        "load_slot<in slot 33 component 0 index 0>",
        "load_interpolated<in slot 34 component 0 index 0>",
        "load_interpolated<in slot 32 component 0 index 0>",
        "store_slot<out slot 32 component 0 index 0>",
    ];
    let mut found = accesses(&shader);
    found[..3].sort();
    assert_eq!(found, wanted);
}

#[test]
fn the_first_index_of_arrayed_variables_is_the_vertex() {
    // Two vertices of three vectors in, four of them out, which the invocation with the same number stores.
    let vars = "type t7 = [2 t2]\ntype t8 = [4 t1]\nvar v0 \"\" input t7 location 1 flags arrayed\n\
                var v1 \"\" output t8 location 2 flags arrayed\n";
    let body = "%2: b32 = sysval<invocation_id>\n%3: b32 = const<0x1>\n%4: b32x4 = load_var<v0 mask 0x0> %3, %2\n\
                store_var<v1 mask 0xf> %4, %2\n%5: b32x4 = load_var<v1 mask 0x0> %3\nstore_var<v1 mask 0x3> %5, %3";
    let mut shader = shader(Stage::TessControl, vars, body);
    shader.info.output_vertices = 4;
    assert!(lower_io(&mut shader));
    validate(&shader).unwrap_or_else(|e| panic!("{e}\n{}", print(&shader)));
    let text = print(&shader);
    assert_eq!(
        accesses(&shader),
        [
            "load_slot<in slot 33 count 3 component 0 index 0 vertex>",
            "store_slot<out slot 34 component 0 index 0 vertex>",
            "load_slot<out slot 34 component 0 index 0 vertex>",
            "store_slot<out slot 34 component 0 index 0 vertex>"
        ]
    );
    // Vertex, then offset. The vertex of the invocation itself needs no check.
    assert!(!text.contains("if<"), "{text}");
    let mut input = InvocationInput::default();
    input.system_values.insert(SystemValue::InvocationId, [0; 4]);
    input.system_values.insert(SystemValue::VertexIndex, [0; 4]);
    for vertex in 0..2 {
        for slot in 33..36 {
            let key = InterfaceSlot { slot, vertex, ..InterfaceSlot::default() };
            input.slots.insert(key, [0, 1, 2, 3].map(|lane| Some(100 * vertex + 10 * (slot - 33) + lane)));
        }
    }
    let mut second = input.clone();
    second.system_values.insert(SystemValue::InvocationId, [1, 0, 0, 0]);
    let run = run_stage(
        &shader,
        vec![input, second],
        &mut Bindings::default(),
        &mut NoImages,
        &RunOptions::default(),
    );
    let (outputs, report) = run.expect("it runs");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let stored =
        |vertex: u32| outputs[0].slots[&InterfaceSlot { slot: 34, vertex, ..InterfaceSlot::default() }];
    assert_eq!(stored(0), [100, 101, 102, 103].map(Some));
    assert_eq!(stored(1), [110, 111, 112, 113].map(Some));
}

#[test]
fn a_vertex_that_a_value_chooses_is_checked_before_a_store() {
    let vars = "var v0 \"\" output t2 location 0 flags arrayed\n";
    let body = "%2: b32x4 = vec %0, %0, %0, %0\nstore_var<v0 mask 0xf> %2, %0";
    let shader = lowered(Stage::TessControl, vars, body);
    for (vertex, stored) in [(2, true), (3, false)] {
        let mut input = InvocationInput::default();
        input.system_values.insert(SystemValue::VertexIndex, [vertex, 0, 0, 0]);
        let run =
            run_stage(&shader, vec![input], &mut Bindings::default(), &mut NoImages, &RunOptions::default());
        let outputs = run.expect("it runs").0;
        let key = InterfaceSlot { slot: 32, vertex, ..InterfaceSlot::default() };
        assert_eq!(outputs[0].slots.contains_key(&key), stored, "vertex {vertex}\n{}", print(&shader));
        assert_eq!(outputs[0].slots.len(), usize::from(stored));
    }
}

#[test]
fn slots_of_the_patch_are_numbered_separately() {
    let vars = "type t7 = [4 t0]\nvar v0 \"\" output t2 location 0 flags arrayed\n\
                var v1 \"\" output t1 location 0 flags patch\n\
                var v2 \"\" output t7 builtin tess_level_outer flags patch\n";
    let body = "%2: b32x4 = vec %0, %0, %0, %0\nstore_var<v0 mask 0xf> %2, %1\nstore_var<v1 mask 0xc> %2\n\
                %3: b32 = const<0x2>\nstore_var<v2 mask 0x1> %0, %3";
    let control = lowered(Stage::TessControl, vars, body);
    let levels = Builtin::TessLevelOuter.slots().start;
    let level = format!("store_slot<out slot {levels} component 2 index 0 patch>");
    assert_eq!(
        accesses(&control),
        [
            "store_slot<out slot 32 component 0 index 0 vertex>",
            "store_slot<out slot 32 component 2 index 0 patch>",
            &level
        ]
    );
    let stored = SlotMask::stored(&control);
    let key = |slot, patch| SlotKey { slot, patch, index: 0 };
    let components = [key(32, false), key(32, true), key(levels, true), key(levels, false)];
    assert_eq!(components.map(|key| stored.components(key)), [15, 12, 4, 0]);
    // The evaluation shader reads the same slots, and an element of the levels that a value chooses.
    let vars = "type t7 = [4 t0]\nvar v0 \"\" input t1 location 0 flags patch\n\
                var v1 \"\" input t7 builtin tess_level_outer flags patch\nvar v2 \"\" output t1 builtin position\n";
    let body = "%2: b32x4 = load_var<v0 mask 0x0>\n%3: b32 = load_var<v1 mask 0x0> %0\n%4: b32x4 = vec %3, %3, %3, %3\n\
                %5: b32x4 = fadd %2, %4\nstore_var<v2 mask 0xf> %5";
    let eval = lowered(Stage::TessEval, vars, body);
    assert_eq!(
        accesses(&eval),
        [
            "load_slot<in slot 32 component 0 index 0 patch>".to_owned(),
            format!("load_slot<in slot {levels} component 0 index 0 patch>"),
            "store_slot<out slot 0 component 0 index 0>".to_owned()
        ]
    );
    let missing: Vec<_> = SlotMask::loaded(&eval, SlotDir::Input).without(&stored).iter().collect();
    assert_eq!(missing, [(key(levels, true), 0b1011), (key(32, true), 0b0011)]);
}

#[test]
fn integers_of_the_primitive_are_not_interpolated() {
    let vars = "var v0 \"\" input t0 builtin layer\nvar v1 \"\" output t0 location 0\n";
    let shader = lowered(Stage::Fragment, vars, "%2: b32 = load_var<v0 mask 0x0>\nstore_var<v1 mask 0x1> %2");
    let slot = Builtin::Layer.slots().start;
    assert_eq!(accesses(&shader)[0], format!("load_slot<in slot {slot} component 0 index 0>"));
}

#[test]
fn system_values_of_the_primitive_are_slots_of_the_stage_before() {
    let vars = "var v0 \"\" output t0 location 0\n";
    let body = "%2: b32 = sysval<primitive_id>\n%3: b32 = sysval<layer>\n%4: b32 = sysval<viewport_index>\n\
                %5: b32 = iadd %2, %3\n%6: b32 = iadd %4, %5\nstore_var<v0 mask 0x1> %6";
    let loaded = |stage, dir| {
        let mask = SlotMask::loaded(&lowered(stage, vars, body), dir);
        mask.iter().map(|(key, bits)| (key.slot, bits)).collect::<Vec<_>>()
    };
    let builtins = [Builtin::PrimitiveId, Builtin::Layer, Builtin::ViewportIndex];
    let wanted: Vec<(u16, u8)> = builtins.iter().map(|builtin| (builtin.slots().start, 1)).collect();
    assert_eq!(loaded(Stage::Fragment, SlotDir::Input), wanted);
    assert_eq!(loaded(Stage::Fragment, SlotDir::Output), []);
    // Other stages get the primitive from the machine.
    assert_eq!(loaded(Stage::Geometry, SlotDir::Input), []);
}

#[test]
fn accesses_to_slots_that_do_not_exist_are_refused() {
    let coordinates = "%2: b32x2 = barycentric<pixel>\n";
    let cases = [
        ("load_slot<in slot 32 count 0 component 0 index 0> %1", "number of slots"),
        ("load_slot<in slot 32 count 257 component 0 index 0> %1", "number of slots"),
        ("load_slot<in slot 65535 component 0 index 0> %1", "number of slots"),
        ("load_slot<in slot 65300 count 236 component 0 index 0> %1", "number of slots"),
        ("load_slot<in slot 32 component 0 index 4> %1", "index is too large"),
        ("load_slot<in slot 32 component 4 index 0> %1", "do not fit the slot"),
        ("load_interpolated<in slot 32 component 0 index 0 vertex> %2, %1", "has no vertex"),
    ];
    for (access, reason) in cases {
        let good = "load_slot<in slot 65279 count 256 component 3 index 3> %1";
        let text = |access: &str| {
            let shader = shader(Stage::Fragment, "", coordinates);
            print(&shader).replace("  return\n", &format!("  %9: b32 = {access}\n  return\n"))
        };
        let mut shader = Shader::default();
        parse(&text(good), &mut shader).unwrap_or_else(|e| panic!("{e}\n{}", text(good)));
        validate(&shader).expect("a valid shader");
        parse(&text(access), &mut shader).unwrap_or_else(|e| panic!("{e}\n{}", text(access)));
        let error = validate(&shader).expect_err(access).to_string();
        assert!(error.contains(reason), "{access}: {error}");
    }
}

#[test]
fn variables_with_more_slots_than_an_access_has_stay() {
    for (len, lowers) in [(256, true), (257, false), (60_000, false)] {
        let vars = format!("type t7 = [{len} t1]\nvar v0 \"\" output t7 location 0\n");
        let body = "%2: b32x4 = vec %0, %0, %0, %0\nstore_var<v0 mask 0xf> %2, %0";
        let mut shader = shader(Stage::Vertex, &vars, body);
        assert_eq!(lower_io(&mut shader), lowers, "{len}");
        validate(&shader).unwrap_or_else(|e| panic!("{e}\n{}", print(&shader)));
        assert_eq!(SlotMask::stored(&shader).iter().count(), if lowers { len } else { 0 });
    }
}

#[test]
fn arrays_without_elements_are_not_accessed() {
    for (ty, place) in [("t0", "builtin clip_distance"), ("t1", "location 0")] {
        let vars = format!("type t7 = [0 {ty}]\nvar v0 \"\" output t7 {place}\n");
        let lanes = if ty == "t0" { "%0, %1" } else { "%2, %0" };
        let mask = if ty == "t0" { 1 } else { 15 };
        let body = format!("%2: b32x4 = vec %0, %0, %0, %0\nstore_var<v0 mask {mask:#x}> {lanes}");
        let dynamic = body.replace("%0, %1", "%0, %0");
        for body in [body, dynamic] {
            assert!(accesses(&lowered(Stage::Vertex, &vars, &body)).is_empty(), "{body}");
        }
    }
}

#[test]
fn halves_are_interpolated_in_words_and_rounded_once() {
    let vars = "var v0 \"\" input t5 location 0\nvar v1 \"\" output t5 location 0\n";
    let body = "%2: b16x2 = load_var<v0 mask 0x0>\nstore_var<v1 mask 0x3> %2";
    let shader = lowered(Stage::Fragment, vars, body);
    let mut input = InvocationInput::default();
    input.system_values.insert(SystemValue::VertexIndex, [0; 4]);
    input.barycentrics.insert((InterpAt::Pixel, false), [0.5f32.to_bits(), 0.0f32.to_bits()]);
    // 1 and 1 + 2^-10: the middle is halfway between two floats of 16 bits, and ties go to even.
    for (vertex, bits) in [(0, 0x3c00), (1, 0x3c01), (2, 0x3c00)] {
        let slot = InterfaceSlot { slot: 32, vertex, ..InterfaceSlot::default() };
        input.slots.insert(slot, [Some(bits), Some(0x4000), None, None]);
    }
    let run =
        run_stage(&shader, vec![input], &mut Bindings::default(), &mut NoImages, &RunOptions::default());
    let outputs = run.expect("it runs").0;
    let stored = outputs[0].slots.values().next().expect("a slot");
    assert_eq!(stored[..2], [Some(0x3c00), Some(0x4000)]);
}

#[test]
fn outputs_that_the_next_stage_does_not_read_are_removed() {
    let vars = "var v0 \"\" output t1 location 0\nvar v1 \"\" output t1 location 1\nvar v2 \"\" output t1 builtin position\n\
                var v3 \"\" output t1 location 2 flags captured capture 0 16 0\n";
    let body = "%2: b32x4 = vec %0, %0, %0, %0\nstore_var<v0 mask 0xf> %2\nstore_var<v1 mask 0xf> %2\n\
                store_var<v2 mask 0xf> %2\nstore_var<v3 mask 0xf> %2";
    let mut vertex = lowered(Stage::Vertex, vars, body);
    let vars = "var v0 \"\" input t0 location 0 component 2\nvar v1 \"\" output t0 location 0\n";
    let fragment =
        lowered(Stage::Fragment, vars, "%2: b32 = load_var<v0 mask 0x0>\nstore_var<v1 mask 0x1> %2");
    let read = SlotMask::loaded(&fragment, SlotDir::Input);
    assert_eq!(read.components(SlotKey { slot: 32, patch: false, index: 0 }), 4);
    assert!(remove_unread_outputs(&mut vertex, &read));
    validate(&vertex).expect("a valid shader");
    let left: Vec<u16> = SlotMask::stored(&vertex).iter().map(|(key, _)| key.slot).collect();
    // Position, the location that is read, and the captured one.
    assert_eq!(left, [0, 32, 34]);
    assert!(read.without(&SlotMask::stored(&vertex)).iter().next().is_none());
    assert!(!remove_unread_outputs(&mut vertex, &read));
}

/// Stages of the data that belong to one script, by its name.
fn scripts() -> BTreeMap<String, Vec<(String, Vec<u8>)>> {
    let Some(table) = data::text("cts-amber/spirv.csv") else { return BTreeMap::new() };
    let modules: BTreeMap<String, Vec<u8>> = data::archive("cts-amber/spirv.tar.gz")
        .into_iter()
        .map(|(path, bytes)| (path.rsplit('/').next().unwrap_or_default().to_owned(), bytes))
        .collect();
    let mut scripts: BTreeMap<String, Vec<(String, Vec<u8>)>> = BTreeMap::new();
    for row in table.lines().skip(1).map(data::cells) {
        if let [script, _, stage, _, _, module, ..] = row.as_slice()
            && let Some(bytes) = modules.get(module)
        {
            scripts.entry(script.clone()).or_default().push((stage.clone(), bytes.clone()));
        }
    }
    scripts
}

/// Lowers outputs and local variables. Afterwards there are no variables, and no output that a value chooses, but in patches.
fn unindexed(script: &str, mut shader: Shader) {
    lower_outputs(&mut shader);
    lower_io(&mut shader);
    standard(&mut shader);
    lower_locals(&mut shader);
    validate(&shader).unwrap_or_else(|e| panic!("{script}: {e}"));
    let patch = shader.info.stage == Stage::TessControl;
    let func = shader.entry();
    for inst in func.walk() {
        match func.payload(inst) {
            Payload::Var(..) | Payload::Interp(..) => panic!("{script}: {}", print(&shader)),
            Payload::Slot(slot) if slot.dir == SlotDir::Output && !patch => {
                assert!(slot.count == 1 && func.op(inst) == Op::StoreSlot, "{script}: {}", print(&shader));
            }
            _ => {}
        }
    }
}

#[test]
fn stages_of_the_data_agree_about_slots() {
    let (mut reader, mut pairs, mut left) = (Reader::default(), 0, 0);
    let scripts = scripts();
    let skipped = scripts.is_empty();
    for (script, stages) in scripts {
        let mut masks: BTreeMap<String, (usize, SlotMask, SlotMask)> = BTreeMap::new();
        for (stage, bytes) in stages {
            let mut shader = Shader::default();
            let words = words(&bytes).expect("a module");
            if reader.read(&words, &Options::default(), &mut shader).is_err() {
                continue;
            }
            unindexed(&script, shader.clone());
            lower_io(&mut shader);
            standard(&mut shader);
            validate(&shader).unwrap_or_else(|e| panic!("{script}: {e}"));
            let func = shader.entry();
            let accessed = |op| matches!(op, Op::LoadVar | Op::StoreVar | Op::InterpVar);
            let interface = func.walk().filter(|&inst| accessed(func.op(inst)));
            left += interface
                .filter(|&inst| match func.payload(inst) {
                    Payload::Var(var, _) | Payload::Interp(var, _) => shader.vars[var].storage.is_interface(),
                    _ => false,
                })
                .count();
            let entry = masks.entry(stage).or_default();
            entry.0 += 1;
            entry.1 = SlotMask::loaded(&shader, SlotDir::Input);
            entry.2 = SlotMask::stored(&shader);
        }
        // A script with one vertex and one fragment shader, and no stage between.
        let [("fragment", (1, read, _)), ("vertex", (1, _, stored))] =
            masks.iter().map(|(stage, masks)| (stage.as_str(), masks)).collect::<Vec<_>>()[..]
        else {
            continue;
        };
        pairs += 1;
        // The machine gives these where the vertex shader does not store them.
        let given = [Builtin::PrimitiveId, Builtin::Layer, Builtin::ViewportIndex];
        let given = given.map(|builtin| builtin.slots().start);
        let needed = |(key, _): &(SlotKey, u8)| !given.contains(&key.slot);
        let missing: Vec<_> = read.without(stored).iter().filter(needed).collect();
        assert!(missing.is_empty(), "{script}: {missing:?} is read and not stored");
    }
    println!("{pairs} pairs of vertex and fragment shaders, {left} accesses are not lowered");
    assert_eq!(left, 0);
    assert!(skipped || pairs > 0, "no script has a vertex and a fragment shader that are read");
}
