//! SPIR-V: modules of the test data and of this file are read, validated, printed and parsed; what is broken gives an error.

use std::collections::BTreeMap;
use unwedge_shader::front::spirv::{Options, Reader, SpirvCause, source_texts, words};
use unwedge_shader::interp::{
    BindingPoint, Bindings, Dispatch, NoImages, Options as RunOptions, run_compute,
};
use unwedge_shader::ir::{Modes, Shader};
use unwedge_shader::passes::lower_nonuniform;
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;
use unwedge_testkit::data;
use unwedge_testkit::mutate::Rng;

/// Archives of modules below the root of the test data.
const ARCHIVES: [&str; 3] = ["amd/shaders/shaders.tar.gz", "cts-amber/spirv.tar.gz", "amd/cts/spirv.tar.gz"];

fn modules(archive: &str) -> Vec<(String, Vec<u32>)> {
    let files = data::archive(archive).into_iter().filter(|(name, _)| name.ends_with(".spv"));
    files.map(|(name, bytes)| (name, words(&bytes).expect("a module"))).collect()
}

fn check(name: &str, shader: &Shader) {
    if let Err(e) = validate(shader) {
        panic!("{name}: {e}\n{}", print(shader));
    }
    let text = print(shader);
    let mut again = Shader::default();
    parse(&text, &mut again).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
    validate(&again).unwrap_or_else(|e| panic!("{name}, parsed: {e}\n{text}"));
    assert_eq!(print(&again), text, "{name}");
}

#[test]
fn modules_of_the_data_are_read_validated_printed_and_parsed() {
    let (mut reader, mut shader) = (Reader::default(), Shader::default());
    for archive in ARCHIVES {
        let modules = modules(archive);
        let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut times = Vec::new();
        for (name, words) in &modules {
            let start = std::time::Instant::now();
            let read = reader.read(words, &Options::default(), &mut shader);
            times.push(start.elapsed());
            match read {
                Ok(()) => check(name, &shader),
                Err(e) => refused.entry(e.cause.to_string()).or_default().push(name.clone()),
            }
        }
        let count: usize = refused.values().map(Vec::len).sum();
        times.sort();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        println!("{archive}: {} modules, {count} refused, {median:?} for the median one", modules.len());
        for (reason, names) in &refused {
            println!("  {} × {reason}: {}", names.len(), names[0]);
        }
        assert!(count * 100 <= modules.len() * 3, "{archive}: {count} of {} are refused", modules.len());
    }
}

#[test]
fn broken_modules_give_an_error_or_a_valid_shader() {
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let (mut reader, mut shader) = (Reader::default(), Shader::default());
    let mut rng = Rng::new(18);
    let options = Options { max_insts: 1 << 16, ..Options::default() };
    let mut sources: Vec<(String, Vec<u32>)> = vec![("own".into(), own_module())];
    sources.extend(ARCHIVES.iter().flat_map(|archive| modules(archive)));
    let rounds = if all { 200_000 } else { 6_000 };
    for round in 0..rounds {
        let (name, source) = &sources[rng.below(sources.len())];
        let mut words = source.clone();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(words.len());
            match rng.below(5) {
                0 => words[at] = rng.next_u64() as u32,
                1 => words[at] ^= 1 << rng.below(32),
                2 => words[at] = words[rng.below(words.len())],
                3 => words[at] = words[at].wrapping_add(1),
                _ => words.truncate(at.max(8)),
            }
        }
        if reader.read(&words, &options, &mut shader).is_ok()
            && let Err(e) = validate(&shader)
        {
            panic!("round {round}, {name}: {e}\n{}", print(&shader));
        }
    }
}

/// Writes a module word by word.
#[derive(Default)]
struct Assembler(Vec<u32>);

impl Assembler {
    fn op(&mut self, opcode: u32, words: &[u32]) -> u32 {
        let at = self.0.len() as u32;
        self.0.push((words.len() as u32 + 1) << 16 | opcode);
        self.0.extend(words);
        at
    }
}

/// The start of a compute shader over a storage buffer: 4 is the type of its words, 13 the buffer, 14 a pointer to a word; 6, 7 and 8
/// are 0, 1 and 4.
fn head() -> Assembler {
    let mut a = Assembler(vec![0x0723_0203, 0x0001_0300, 0, 60, 0]);
    let main = [u32::from_le_bytes(*b"main"), 0];
    a.op(17, &[1]);
    a.op(14, &[0, 1]);
    a.op(15, &[5, 1, main[0], main[1]]);
    a.op(16, &[1, 17, 64, 1, 1]);
    a.op(71, &[10, 6, 4]);
    a.op(72, &[11, 0, 35, 0]);
    a.op(71, &[11, 2]);
    a.op(71, &[13, 34, 0]);
    a.op(71, &[13, 33, 5]);
    a.op(19, &[2]);
    a.op(33, &[3, 2]);
    a.op(21, &[4, 32, 0]);
    a.op(20, &[5]);
    for (id, value) in [(6, 0), (7, 1), (8, 4)] {
        a.op(43, &[4, id, value]);
    }
    a.op(29, &[10, 4]);
    a.op(30, &[11, 10]);
    a.op(32, &[12, 12, 11]);
    a.op(59, &[12, 13, 12]);
    a.op(32, &[14, 12, 4]);
    a
}

/// A compute shader: `if (b[0] < 4) x = 1; do { x += 1; } while (x < 4); b[1] = x` over a storage buffer.
fn own_module() -> Vec<u32> {
    let mut a = head();
    // The entry block, and a selection.
    a.op(54, &[2, 1, 0, 3]);
    a.op(248, &[20]);
    a.op(65, &[14, 21, 13, 6, 6]);
    a.op(61, &[4, 22, 21]);
    a.op(176, &[5, 23, 22, 8]);
    a.op(247, &[25, 0]);
    a.op(250, &[23, 24, 25]);
    a.op(248, &[24]);
    a.op(249, &[25]);
    a.op(248, &[25]);
    a.op(245, &[4, 26, 22, 20, 7, 24]);
    a.op(249, &[30]);
    // A loop whose value is used after it.
    a.op(248, &[30]);
    a.op(245, &[4, 31, 26, 25, 33, 32]);
    a.op(246, &[40, 32, 0]);
    a.op(249, &[32]);
    a.op(248, &[32]);
    a.op(128, &[4, 33, 31, 7]);
    a.op(176, &[5, 34, 33, 8]);
    a.op(250, &[34, 30, 40]);
    a.op(248, &[40]);
    a.op(65, &[14, 41, 13, 6, 7]);
    a.op(62, &[41, 33]);
    a.op(253, &[]);
    a.op(56, &[]);
    a.0
}

#[test]
fn flow_becomes_regions_and_values_leave_loops_through_variables() {
    let mut shader = Shader::default();
    Reader::default().read(&own_module(), &Options::default(), &mut shader).expect("a shader");
    check("own", &shader);
    let text = print(&shader);
    let body = text.split_once("-> () {\n").expect("a function").1;
    let ops: Vec<&str> = body
        .lines()
        .filter_map(|line| line.split('=').next_back()?.split(['<', ' ']).find(|w| !w.is_empty()))
        .collect();
    let count = |op: &str| ops.iter().filter(|o| **o == op).count();
    assert_eq!(
        (count("loop"), count("continue"), count("store_var"), count("load_var")),
        (1, 1, 1, 1),
        "{text}"
    );
    assert!(text.contains("resource r0 \"\" storage_buffer set 0 binding 5"), "{text}");
    assert!(text.contains("workgroup_size 64 1 1"), "{text}");
}

#[test]
fn errors_say_where_and_why() {
    let good = own_module();
    let at = |opcode: u32, nth: usize| {
        let mut at = 5;
        let mut found = Vec::new();
        while at < good.len() {
            if good[at] & 0xffff == opcode {
                found.push(at);
            }
            at += (good[at] >> 16) as usize;
        }
        found[nth]
    };
    let error = |change: &dyn Fn(&mut Vec<u32>)| {
        let mut words = good.clone();
        change(&mut words);
        Reader::default().read(&words, &Options::default(), &mut Shader::default()).expect_err("an error")
    };
    let add = at(128, 0);
    let e = error(&|words| words[add + 4] = 58);
    assert_eq!((e.offset as usize, e.cause), (add, SpirvCause::Undefined(58)));
    let e = error(&|words| words[add + 4] = 23);
    assert_eq!(e.offset as usize, add);
    let e = error(&|words| words[0] = 1);
    assert_eq!(e.cause, SpirvCause::Magic);
    let capability = at(17, 0);
    let e = error(&|words| words[capability + 1] = 6022);
    assert_eq!(e.to_string(), "word 5: not supported: capability CooperativeMatrixKHR");
    let e = error(&|words| words[3] = u32::MAX);
    assert_eq!(e.cause, SpirvCause::BoundTooLarge(u32::MAX));
    let options = Options { entry: Some("other".into()), ..Options::default() };
    let e = Reader::default().read(&good, &options, &mut Shader::default()).expect_err("no such entry point");
    assert_eq!(e.cause, SpirvCause::EntryPoint);
}

#[test]
fn integer_dot_products() {
    let mut a = head();
    // The bytes 1, -1, -128, 127 and 1, 3, -2, 2, or 1, 255, 128, 127 and 1, 3, 254, 2.
    let dots = [
        (4450, None, 508u32),
        (4451, None, 33_532),
        (4452, None, -32_260i32 as u32),
        (4453, Some(i32::MAX as u32), i32::MAX as u32),
        (4454, Some(u32::MAX), u32::MAX),
        (4455, Some(i32::MIN as u32), i32::MIN as u32),
        (4453, Some(2), 510),
    ];
    a.op(43, &[4, 50, 0x7f80_ff01]);
    a.op(43, &[4, 51, 0x02fe_0301]);
    for (number, (_, accumulator, _)) in dots.iter().enumerate() {
        a.op(43, &[4, 15 + number as u32, number as u32]);
        a.op(43, &[4, 22 + number as u32, accumulator.unwrap_or(0)]);
    }
    a.op(54, &[2, 1, 0, 3]);
    a.op(248, &[59]);
    for (number, (opcode, accumulator, _)) in dots.iter().enumerate() {
        let number = number as u32;
        let (result, pointer) = (30 + number, 40 + number);
        match accumulator {
            Some(_) => a.op(*opcode, &[4, result, 50, 51, 22 + number, 0]),
            None => a.op(*opcode, &[4, result, 50, 51, 0]),
        };
        a.op(65, &[14, pointer, 13, 6, 15 + number]);
        a.op(62, &[pointer, result]);
    }
    a.op(253, &[]);
    a.op(56, &[]);
    let mut shader = Shader::default();
    Reader::default().read(&a.0, &Options::default(), &mut shader).expect("a shader");
    check("dots", &shader);
    let mut bindings = Bindings::default();
    let memory = bindings.bind(BindingPoint { set: 0, binding: 5, index: 0 }, vec![0; 4 * dots.len()]);
    let options = RunOptions::default();
    run_compute(&shader, Dispatch::new([1, 1, 1]), &mut bindings, &mut NoImages, &options).expect("it runs");
    let words = bindings.memory[memory].chunks_exact(4);
    let words: Vec<u32> =
        words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    assert_eq!(words, dots.map(|(_, _, expected)| expected));
}

/// A class of rules, the opcode whose first instruction breaks it, and how.
type BrokenRule = (&'static str, u32, fn(&mut Vec<u32>, usize));

#[test]
fn each_class_of_rules_is_checked_and_the_error_is_at_the_instruction() {
    let good = own_module();
    let rules: [BrokenRule; 18] = [
        ("an instruction has no words", 128, |words, at| words[at] &= 0xffff),
        ("an instruction is longer than the module", 253, |words, at| words[at] |= 0xff00 << 16),
        ("an opcode is not known", 128, |words, at| words[at] = words[at] & 0xffff_0000 | 0xfff0),
        ("an id is not below the bound", 128, |words, at| words[at + 3] = 60),
        ("an id is defined twice", 61, |words, at| words[at + 2] = 8),
        ("a value is a type", 128, |words, at| words[at + 3] = 4),
        ("a type is a value", 128, |words, at| words[at + 1] = 6),
        ("an operand has another type", 128, |words, at| words[at + 3] = 23),
        ("a result has another type", 176, |words, at| words[at + 1] = 4),
        ("a value is used before its definition", 61, |words, at| words[at + 3] = 41),
        ("a condition is not a boolean", 250, |words, at| words[at + 1] = 22),
        ("an index is past the members", 65, |words, at| words[at + 4] = 8),
        ("an access chain leads to another type", 65, |words, at| words[at + 1] = 12),
        ("a load through a constant", 61, |words, at| words[at + 3] = 8),
        ("a load of another type", 61, |words, at| words[at + 1] = 5),
        ("a boolean is stored to a word", 62, |words, at| words[at + 2] = 23),
        ("a store through a number", 62, |words, at| words[at + 1] = 33),
        ("a branch to a type", 249, |words, at| words[at + 1] = 4),
    ];
    let mut missed = Vec::new();
    for (rule, opcode, change) in rules {
        let mut at = 5;
        while good[at] & 0xffff != opcode {
            at += (good[at] >> 16) as usize;
        }
        let mut words = good.clone();
        change(&mut words, at);
        match Reader::default().read(&words, &Options::default(), &mut Shader::default()) {
            Ok(()) => missed.push(format!("{rule}: accepted")),
            Err(e) if e.offset as usize != at || matches!(e.cause, SpirvCause::Unsupported(_)) => {
                missed.push(format!("{rule}: at {at}, reported as {e}"));
            }
            Err(_) => {}
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn elements_of_arrays_of_arrays_of_descriptors_follow_each_other() {
    let mut a = head();
    a.op(43, &[4, 50, 2]);
    a.op(43, &[4, 51, 3]);
    // Two arrays of four buffers each.
    a.op(28, &[52, 11, 8]);
    a.op(28, &[53, 52, 50]);
    a.op(32, &[54, 12, 53]);
    a.op(59, &[54, 55, 12]);
    a.op(54, &[2, 1, 0, 3]);
    a.op(248, &[20]);
    a.op(65, &[14, 21, 55, 7, 51, 6, 6]);
    a.op(62, &[21, 8]);
    a.op(253, &[]);
    a.op(56, &[]);
    let mut shader = Shader::default();
    Reader::default().read(&a.0, &Options::default(), &mut shader).expect("a shader");
    check("descriptors", &shader);
    assert!(shader.resources.values().any(|resource| resource.count == 8), "{}", print(&shader));
    let mut bindings = Bindings::default();
    let memory = bindings.bind(BindingPoint { set: 0, binding: 0, index: 7 }, vec![0; 4]);
    let options = RunOptions { subgroup_size: 64, ..RunOptions::default() };
    run_compute(&shader, Dispatch::new([1, 1, 1]), &mut bindings, &mut NoImages, &options).expect("it runs");
    assert_eq!(bindings.memory[memory], [4, 0, 0, 0]);
}

/// The index or the pointer is marked as not uniform: either makes a loop over the descriptors that lanes use.
#[test]
fn descriptors_of_marked_accesses_differ_between_lanes() {
    const NON_UNIFORM: u32 = 5300;
    let (index, pointer, access) = (61, 62, 63);
    for marked in [None, Some(index), Some(pointer)] {
        let mut a = head();
        // The entry point lists its input.
        a.0[10] += 1 << 16;
        a.0.insert(15, 56);
        if let Some(marked) = marked {
            a.op(71, &[marked, NON_UNIFORM]);
        }
        a.op(71, &[55, 34, 0]);
        a.op(71, &[55, 33, 6]);
        // The index is that of the invocation in its workgroup.
        a.op(71, &[56, 11, 29]);
        a.op(28, &[52, 11, 8]);
        a.op(32, &[53, 12, 52]);
        a.op(59, &[53, 55, 12]);
        a.op(32, &[57, 1, 4]);
        a.op(59, &[57, 56, 1]);
        a.0[3] = 64;
        a.op(54, &[2, 1, 0, 3]);
        a.op(248, &[20]);
        a.op(65, &[14, 21, 13, 6, 6]);
        a.op(61, &[4, index, 56]);
        a.op(65, &[14, pointer, 55, index, 6, 6]);
        a.op(61, &[4, access, pointer]);
        a.op(62, &[21, access]);
        a.op(253, &[]);
        a.op(56, &[]);
        let mut shader = Shader::default();
        Reader::default().read(&a.0, &Options::default(), &mut shader).expect("a shader");
        check("descriptors", &shader);
        assert!(lower_nonuniform(&mut shader), "{marked:?}");
        assert_eq!(print(&shader).contains("loop"), marked.is_some(), "{marked:?}\n{}", print(&shader));
    }
}

/// Nothing leads to the first block of a function, so it has no phis.
#[test]
fn a_phi_of_the_first_block_is_refused() {
    let good = own_module();
    let mut at = 5;
    while good[at] & 0xffff != 248 {
        at += (good[at] >> 16) as usize;
    }
    let first = at + 2;
    // Of the ids one at least is free.
    let causes = (1..good[3]).filter_map(|id| {
        let mut words = good.clone();
        words.splice(first..first, [3 << 16 | 245, 4, id]);
        let error =
            Reader::default().read(&words, &Options::default(), &mut Shader::default()).expect_err("a phi");
        matches!(error.cause, SpirvCause::Invalid(_)).then_some((error.offset as usize, error.to_string()))
    });
    let found: Vec<_> = causes.filter(|(_, text)| text.contains("first block of a function")).collect();
    assert!(!found.is_empty() && found.iter().all(|(offset, _)| *offset == first), "{found:?}");
}

/// Texts of `OpSource`, which `OpSourceContinued` continues, and of debug information. Instructions of other extended sets are not read.
#[test]
fn texts_of_sources_are_found() {
    let packed = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
        let (words, _) = bytes.as_chunks::<4>();
        words.iter().map(|word| u32::from_le_bytes(*word)).collect::<Vec<u32>>()
    };
    let with = |start: &[u32], text: &str| [start, &packed(text)].concat();
    let mut a = Assembler(vec![0x0723_0203, 0x0001_0300, 0, 60, 0]);
    a.op(11, &with(&[30], "NonSemantic.Shader.DebugInfo.100"));
    a.op(11, &with(&[31], "NonSemantic.Other"));
    for (id, text) in [(40, "a.comp"), (41, "b.comp"), (42, "line b"), (43, " more"), (44, "c.comp")] {
        a.op(7, &with(&[id], text));
    }
    a.op(3, &with(&[2, 450, 40], "line 1\nli"));
    a.op(2, &packed("ne 2"));
    a.op(3, &[2, 450, 44]);
    a.op(2, &packed("of a source without a text"));
    a.op(12, &[2, 50, 30, 35, 41, 42]);
    a.op(12, &[2, 51, 30, 102, 43]);
    a.op(12, &[2, 52, 31, 35, 44, 42]);
    let found = source_texts(&a.0);
    let found: Vec<(&str, &str)> =
        found.iter().map(|source| (source.file.as_str(), source.text.as_str())).collect();
    assert_eq!(found, [("a.comp", "line 1\nline 2"), ("b.comp", "line b more")]);
    for end in 0..a.0.len() {
        assert!(source_texts(&a.0[..end]).len() <= 2);
    }
    // A text that is continued by the same string again and again does not grow without a bound.
    let mut long = Assembler(a.0.clone());
    long.op(7, &with(&[45], &"x".repeat(40_000)));
    long.op(12, &[2, 53, 30, 35, 44, 45]);
    for _ in 0..1_000 {
        long.op(12, &[2, 54, 30, 102, 45]);
    }
    let bytes: usize = source_texts(&long.0).iter().map(|source| source.text.len()).sum();
    assert!((40_000..40 * long.0.len()).contains(&bytes), "{bytes} bytes");
}

/// The interface asks for an invocation for each sample, even of what the shader does not read.
#[test]
fn fragment_shaders_run_per_sample_if_their_interface_asks_for_it() {
    const BUILTIN: u32 = 11;
    const FLAT: u32 = 14;
    const SAMPLE: u32 = 17;
    const LOCATION: u32 = 30;
    let is_per_sample = |decorations: &[&[u32]], in_interface: bool| {
        let mut a = Assembler(vec![0x0723_0203, 0x0001_0300, 0, 60, 0]);
        a.op(17, &[1]);
        a.op(14, &[0, 1]);
        let point = [4, 1, u32::from_le_bytes(*b"main"), 0, 9];
        a.op(15, if in_interface { &point } else { &point[..4] });
        a.op(16, &[1, 7]);
        for decoration in decorations {
            a.op(71, &[&[9], *decoration].concat());
        }
        a.op(19, &[2]);
        a.op(33, &[3, 2]);
        a.op(21, &[4, 32, 1]);
        a.op(32, &[5, 1, 4]);
        a.op(59, &[5, 9, 1]);
        a.op(54, &[2, 1, 0, 3]);
        a.op(248, &[20]);
        a.op(253, &[]);
        a.op(56, &[]);
        let mut shader = Shader::default();
        Reader::default().read(&a.0, &Options::default(), &mut shader).expect("a shader");
        check("per sample", &shader);
        shader.info.modes.has(Modes::SAMPLE_SHADING)
    };
    const SAMPLE_ID: u32 = 18;
    const SAMPLE_MASK: u32 = 20;
    assert!(is_per_sample(&[&[BUILTIN, SAMPLE_ID], &[FLAT]], true));
    assert!(is_per_sample(&[&[LOCATION, 0], &[FLAT], &[SAMPLE]], true));
    assert!(!is_per_sample(&[&[BUILTIN, SAMPLE_ID], &[FLAT]], false));
    assert!(!is_per_sample(&[&[BUILTIN, SAMPLE_MASK], &[FLAT]], true));
    assert!(!is_per_sample(&[&[LOCATION, 0], &[FLAT]], true));
}
