//! Shaders of all graphics stages: compiled for every generation, run on the emulator, and compared with the interpreter of the shader IR.
//!
//! Shaders of the conformance suite and random ones. What the compiler refuses is counted by its message. `UNWEDGE_ALL=1` takes all modules for all targets, `UNWEDGE_SAMPLE=N` every Nth for one target each, `UNWEDGE_SEEDS=N`
//! so many random shaders, `UNWEDGE_GPU=LIST` these GPUs only.

mod rig;

use rig::build::build;
use rig::group::judge::judge_group;
use rig::group::{
    GroupExpectation, GroupPrograms, build_group, expect_group, number_vertices, pass_patches, pass_through,
    pass_triangles,
};
use rig::judge::{Expectation, expect, judge};
use rig::recorded::{assembly, columns};
use rig::texts::numbered;
use rig::{options_of, targets};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use unwedge_aco::Options;
use unwedge_aco::stages::{HardwareStage, OutputMemory, PipelineMode, PipelineShape, SoftwareStage, rows};
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::front::spirv::{Options as ReadOptions, Reader, words};
use unwedge_shader::ir::{Shader, Stage};
use unwedge_shader::text;
use unwedge_testkit::data;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::parallel;
use unwedge_testkit::shaders::random_stage;

/// Of how many modules one is taken without `UNWEDGE_ALL`, for one of the targets each.
const SAMPLE: usize = 4;

/// What became of a shader.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Agrees,
    /// It is compiled; nothing is compared, because the interpreter does not run it with what it is given.
    Compiled,
    Refused(String),
    Wrong(String),
}

/// A shader with what the interpreter makes of it in waves of 64 and 32 lanes.
struct Expected<'s> {
    shader: &'s Shader,
    /// The shader before it in its workgroup.
    before: Option<Shader>,
    seed: u64,
    runs: [OnceCell<Option<Expectation>>; 2],
    groups: [OnceCell<Option<GroupExpectation>>; 2],
}

impl<'s> Expected<'s> {
    fn new(shader: &'s Shader, seed: u64) -> Expected<'s> {
        let second = matches!(shader.info.stage, Stage::TessControl | Stage::Geometry);
        Expected {
            shader,
            before: second.then(|| pass_through(shader)),
            seed,
            runs: [const { OnceCell::new() }; 2],
            groups: [const { OnceCell::new() }; 2],
        }
    }

    fn verdict(&self, options: &Options) -> Verdict {
        match &self.before {
            Some(before) => self.group_verdict(before, options),
            None => self.own_verdict(options),
        }
    }

    fn group_verdict(&self, before: &Shader, options: &Options) -> Verdict {
        let mut options = options.clone();
        options.graphics.last_vertex_provokes = self.seed % 2 == 1;
        let options = &options;
        let programs = match build_group(before, self.shader, options) {
            Err(("compile", what)) => return Verdict::Refused(what),
            Err((step, what)) => return Verdict::Wrong(format!("{step}: {what}")),
            Ok(programs) => programs,
        };
        let wave32 = usize::from(!options.gpu.wave64());
        let run =
            self.groups[wave32].get_or_init(|| expect_group(before, self.shader, 64 >> wave32, self.seed));
        let Some(run) = run else { return Verdict::Compiled };
        match judge_group(run, &programs, options, self.seed) {
            Ok(()) => Verdict::Agrees,
            Err((step, what)) => Verdict::Wrong(format!("{step}: {what}")),
        }
    }

    fn own_verdict(&self, options: &Options) -> Verdict {
        let compiled = match build(self.shader, options) {
            Err(("compile", what)) => return Verdict::Refused(what),
            Err((step, what)) => return Verdict::Wrong(format!("{step}: {what}")),
            Ok(compiled) => compiled,
        };
        let wave32 = usize::from(!options.gpu.wave64());
        let run = self.runs[wave32].get_or_init(|| expect(self.shader, 64 >> wave32, self.seed));
        let Some(run) = run else { return Verdict::Compiled };
        match judge(run, &compiled, options, self.seed) {
            Ok(()) => Verdict::Agrees,
            Err((step, what)) => Verdict::Wrong(format!("{step}: {what}")),
        }
    }
}

/// Prints a shader and its code.
fn show(shader: &Shader, options: &Options) {
    println!("{}", text::print(shader));
    let programs = match Expected::new(shader, 0).before {
        Some(before) => build_group(&before, shader, options).map(GroupPrograms::into_list),
        None => build(shader, options).map(|compiled| vec![compiled]),
    };
    for compiled in programs.unwrap_or_default() {
        println!("{:?}\n{}", compiled.args, assembly(&compiled, &options.gpu));
    }
}

/// Graphics modules of the conformance suite.
fn modules() -> Vec<(String, Stage, Vec<u8>)> {
    let Some(table) = data::text("cts-amber/spirv.csv") else { return Vec::new() };
    let mut stages = BTreeMap::new();
    for [module, stage, status] in columns(&table, ["module", "stage", "status"]) {
        let stage = match &stage[..] {
            "vertex" => Stage::Vertex,
            "fragment" => Stage::Fragment,
            "tessellation_control" => Stage::TessControl,
            "tessellation_evaluation" => Stage::TessEval,
            "geometry" => Stage::Geometry,
            _ => continue,
        };
        if status == "ok" {
            stages.insert(module, stage);
        }
    }
    data::archive("cts-amber/spirv.tar.gz")
        .into_iter()
        .filter_map(|(name, bytes)| {
            let file = name.rsplit('/').next()?.to_owned();
            Some((file.clone(), *stages.get(&file)?, bytes))
        })
        .collect()
}

fn read(bytes: &[u8], stage: Stage) -> Result<Shader, String> {
    let mut shader = Shader::default();
    let options = ReadOptions { stage: Some(stage), ..ReadOptions::default() };
    let words = words(bytes).map_err(|error| error.to_string())?;
    Reader::default().read(&words, &options, &mut shader).map_err(|error| error.to_string())?;
    Ok(shader)
}

/// Counts verdicts by stage and target, prints the table, and returns what is wrong.
fn report(results: Vec<(Stage, String, String, Verdict)>) -> Vec<String> {
    let mut counts: BTreeMap<(&str, String), [usize; 4]> = BTreeMap::new();
    let mut refusals: BTreeMap<(&str, String), BTreeSet<String>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (stage, target, name, verdict) in results {
        let row = counts.entry((stage.name(), target.clone())).or_default();
        match verdict {
            Verdict::Agrees => row[0] += 1,
            Verdict::Compiled => row[1] += 1,
            Verdict::Refused(what) => {
                row[2] += 1;
                refusals.entry((stage.name(), what)).or_default().insert(name);
            }
            Verdict::Wrong(what) => {
                row[3] += 1;
                wrong.push(format!("{target} {name}: {what}"));
            }
        }
    }
    for ((stage, target), [agree, compiled, refused, wrong]) in counts {
        println!(
            "{stage:14} {target:24} {agree:5} agree {compiled:5} compiled {refused:5} refused {wrong:5} wrong"
        );
    }
    let mut refusals: Vec<_> = refusals.into_iter().collect();
    refusals.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    for ((stage, what), names) in refusals {
        println!("{:5} {stage}: {what} ({})", names.len(), names.first().map_or("", String::as_str));
    }
    wrong
}

#[test]
fn shaders_of_the_suite_do_what_the_interpreter_does() {
    let modules = modules();
    if modules.is_empty() {
        eprintln!("no modules under {}", data::root().display());
        return;
    }
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let only = std::env::var("UNWEDGE_ONLY").unwrap_or_default();
    let targets = targets();
    let mut jobs = Vec::new();
    let sample =
        std::env::var("UNWEDGE_SAMPLE").ok().and_then(|sample| sample.parse().ok()).unwrap_or(SAMPLE);
    let whole = all || !only.is_empty();
    for (number, (name, stage, bytes)) in modules.iter().enumerate() {
        // There are few of these.
        let few = !matches!(stage, Stage::Vertex | Stage::Fragment);
        if !name.contains(&only) || !whole && !few && number % sample != 0 {
            continue;
        }
        let own = if whole {
            &targets[..]
        } else {
            std::slice::from_ref(&targets[number / sample % targets.len()])
        };
        if let Ok(shader) = read(bytes, *stage) {
            jobs.push((name, *stage, shader, own));
        }
    }
    assert!(!jobs.is_empty(), "a module is read");
    let results = parallel::map(&jobs, |(name, stage, shader, own)| {
        let expected = Expected::new(shader, 1);
        let verdicts = own
            .iter()
            .map(|(target, options)| (*stage, target.clone(), (*name).clone(), expected.verdict(options)));
        verdicts.collect::<Vec<_>>()
    });
    let mut wrong = report(results.into_iter().flatten().collect());
    let count = wrong.len();
    wrong.truncate(40);
    assert!(wrong.is_empty(), "{count} are wrong: {wrong:#?}");
}

#[test]
fn random_shaders_do_what_the_interpreter_does() {
    let seeds = rig::seeds(60);
    let targets = targets();
    let only = std::env::var("UNWEDGE_SEED").ok().and_then(|seed| seed.parse().ok());
    let jobs: Vec<u64> = match only {
        Some(seed) => vec![seed],
        None => seeds.clone().collect(),
    };
    let results = parallel::map(&jobs, |seed| {
        let shader = random_stage(&mut Rng::new(*seed));
        let (target, options) = &targets[*seed as usize % targets.len()];
        let mut options = options.clone();
        rig::vary(&mut options, *seed);
        if only.is_some() {
            show(&shader, &options);
        }
        (
            shader.info.stage,
            target.clone(),
            format!("seed {seed}"),
            Expected::new(&shader, *seed).verdict(&options),
        )
    });
    let mut wrong = report(results);
    let count = wrong.len();
    wrong.truncate(40);
    assert!(wrong.is_empty(), "{count} of {seeds:?} are wrong: {wrong:#?}");
}

/// A pixel shader of so many loops in each other, out of all of which lanes may go at once; a counter of all loops ends them.
fn nested_loops(depth: usize) -> Shader {
    fn level(depth: usize, outer: [String; 3], out: &mut String) {
        let name = |part: &str| format!("%{part}{depth}");
        let [flag, sum, count] = ["flag", "sum", "count"].map(name);
        let results = format!("%after_sum{depth}: b32, %after_count{depth}: b32, %after_flag{depth}: b1");
        let [outer_flag, outer_sum, outer_count] = outer;
        *out += &format!(
            "{results} = loop<L{depth}> {outer_flag}, {outer_sum}, {outer_count}, %zero ({flag}: b1, {sum}: b32, {count}: b32, %i{depth}: b32) {{\n\
             %few{depth}: b1 = ilt %i{depth}, %five\n%left{depth}: b1 = ilt {count}, %ten\n%goes{depth}: b1 = iand %few{depth}, %left{depth}\n\
             if<G{depth}> %goes{depth} {{\n"
        );
        let (sum_in, count_in, flag_in) = if depth > 1 {
            level(depth - 1, [flag.clone(), sum.clone(), count.clone()], out);
            let inner = depth - 1;
            *out += &format!(
                "if<E{depth}> %after_flag{inner} {{\nbreak<L{depth}> %after_sum{inner}, %after_count{inner}, %after_flag{inner}\n}} else {{\nbreak<E{depth}>\n}}\n"
            );
            (format!("%after_sum{inner}"), format!("%after_count{inner}"), format!("%after_flag{inner}"))
        } else {
            *out += &format!(
                "if<E{depth}> %ends {{\nbreak<L{depth}> {sum}, {count}, %true\n}} else {{\nbreak<E{depth}>\n}}\n"
            );
            (sum.clone(), count.clone(), flag.clone())
        };
        *out += &format!(
            "%more_i{depth}: b32 = iadd %i{depth}, %one\n%more_sum{depth}: b32 = iadd {sum_in}, %one\n%more_count{depth}: b32 = iadd {count_in}, %one\n\
             continue<L{depth}> {flag_in}, %more_sum{depth}, %more_count{depth}, %more_i{depth}\n}} else {{\nbreak<L{depth}> {sum}, {count}, {flag}\n}}\nunreachable\n}}\n"
        );
    }
    let mut loops = String::new();
    level(depth, ["%false", "%zero", "%zero"].map(str::to_owned), &mut loops);
    let text = format!(
        "shader fragment \"main\"\nworkgroup_size 1 1 1\nsizes shared 0 scratch 0 push 0\nfloats 16 nearest any\nfloats 32 nearest any\nfloats 64 nearest any\n\
         type t0 = b32x4\nvar v0 \"color\" output t0 location 0\nfn f0 \"main\" () -> () {{\n\
         %zero: b32 = const<0x0>\n%one: b32 = const<0x1>\n%five: b32 = const<0x5>\n%ten: b32 = const<0xa>\n\
         %false: b1 = const<0x0>\n%true: b1 = const<0x1>\n\
         %at: b32x4 = sysval<frag_coord>\n%x: b32 = extract<0> %at\n%ends: b1 = flt %x, %zero\n{loops}\
         %all: b32x4 = vec %after_sum{depth}, %after_count{depth}, %zero, %one\nstore_var<v0 mask 0xf> %all\nreturn\n}}\n"
    );
    let mut shader = Shader::default();
    text::parse(&numbered(&text), &mut shader).expect("the text of a shader");
    shader
}

/// The code of loops in each other grows with their number, not with its square, and lane masks that do not fit registers are kept.
#[test]
fn loops_in_each_other_agree_and_their_code_does_not_grow_with_the_square() {
    let gpu = Gpu::new("gfx1030").expect("a GPU").with_wave64(true);
    let options = options_of(gpu, true);
    let size = |depth| {
        let shader = nested_loops(depth);
        assert_eq!(Expected::new(&shader, 1).verdict(&options), Verdict::Agrees, "{depth} loops");
        build(&shader, &options).expect("it is compiled").code.instructions
    };
    let (few, many) = (size(5), size(39));
    // The masks of 39 loops are spilled.
    assert!(many < few * 39 / 5 * 4, "5 loops take {few} instructions, 39 take {many}");
}

/// Push constants of 8 and 16 bits, at constant offsets, at one that the shader computes and at one that differs between lanes, within words that registers hold and in memory.
#[test]
fn narrow_push_constants_agree() {
    let shader = |offset: &str| {
        let text = format!(
            "shader fragment \"main\"\nworkgroup_size 1 1 1\nsizes shared 0 scratch 0 push 32\nfloats 16 nearest any\nfloats 32 nearest any\n\
             floats 64 nearest any\ntype t0 = b32x4\nvar v0 \"color\" output t0 location 0\nfn f0 \"main\" () -> () {{\n\
             %two: b32 = const<0x2>\n%five: b32 = const<0x5>\n%zero: b32 = const<0x0>\n%mask: b32 = const<0x1e>\n\
             %sample: b32 = sysval<sample_id>\n%own: b32 = iadd %sample, %sample\n\
             %word: b32 = load<push align 4> %zero\n%some: b32 = iand %word, %mask\n\
             %halves: b16x2 = load<push align 2> %two\n%bytes: b8x3 = load<push align 1> %five\n%half: b16 = load<push align 2> {offset}\n\
             %low: b16 = extract<0> %halves\n%high: b16 = extract<1> %halves\n%byte: b8 = extract<2> %bytes\n\
             %x: b32 = u2u %low\n%y: b32 = u2u %high\n%z: b32 = u2u %byte\n%w: b32 = i2i %half\n\
             %all: b32x4 = vec %x, %y, %z, %w\nstore_var<v0 mask 0xf> %all\nreturn\n}}\n"
        );
        let mut shader = Shader::default();
        text::parse(&numbered(&text), &mut shader).unwrap_or_else(|error| panic!("{error}\n{text}"));
        shader
    };
    for offset in ["%two", "%some", "%own"] {
        let shader = shader(offset);
        let expected = Expected::new(&shader, 3);
        for (target, options) in targets() {
            assert_eq!(expected.verdict(&options), Verdict::Agrees, "{target}, offset {offset}");
        }
    }
}

/// Points of patches are the vertices of a geometry shader, merged or in the ring.
#[test]
fn evaluation_shaders_run_before_geometry_shaders() {
    let targets = targets();
    let shaders = (0..400).map(|seed| (seed, random_stage(&mut Rng::new(seed))));
    let jobs: Vec<(u64, Shader)> =
        shaders.filter(|(_, shader)| shader.info.stage == Stage::TessEval).take(60).collect();
    let results = parallel::map(&jobs, |(seed, first)| {
        let second = pass_triangles(first);
        let (target, options) = &targets[*seed as usize % targets.len()];
        let expected = Expected { before: Some(first.clone()), ..Expected::new(&second, *seed) };
        (Stage::TessEval, target.clone(), format!("seed {seed}"), expected.verdict(options))
    });
    let agree = results.iter().filter(|(.., verdict)| *verdict == Verdict::Agrees).count();
    let wrong = report(results);
    assert!(wrong.is_empty() && agree > 0, "{agree} agree: {wrong:#?}");
}

/// A workgroup of tessellation has a wave with vertices but no patches. Some GPUs of gfx9 have the registers of its vertices elsewhere.
#[test]
fn waves_without_patches_have_the_vertices_that_they_are_given() {
    let first = number_vertices();
    let second = pass_patches(&first, 1);
    let mut wrong = Vec::new();
    for name in ["gfx803", "gfx900", "gfx902", "gfx906", "gfx1010", "gfx1030", "gfx1100", "gfx1200"] {
        for wave64 in [true, false] {
            let gpu = Gpu::new(name).expect("a GPU").with_wave64(wave64);
            if gpu.wave64() != wave64 {
                continue;
            }
            let expected = Expected { before: Some(first.clone()), ..Expected::new(&second, 1) };
            match expected.verdict(&options_of(gpu, false)) {
                Verdict::Agrees => {}
                verdict => wrong.push(format!("{name}: {verdict:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The table of stages says what the recorded facts say.
#[test]
fn stages_are_those_of_the_facts() {
    let Some(table) = data::text("amd/facts/stages.csv") else {
        eprintln!("no facts under {}", data::root().display());
        return;
    };
    let mut facts = BTreeSet::new();
    for [gens, pipeline, hardware, software] in columns(&table, ["gens", "pipeline", "hw_stage", "sw_stages"])
    {
        let mode = match &gens[..] {
            "all" => PipelineMode::Compute,
            gens if gens.contains("NGG") => PipelineMode::Ngg,
            _ => PipelineMode::Legacy,
        };
        let shape = match &pipeline[..] {
            "tess" => PipelineShape::Tess,
            "GS" => PipelineShape::Geometry,
            "tess+GS" => PipelineShape::Both,
            _ => PipelineShape::Plain,
        };
        let hardware = match &hardware[..] {
            "HS (LSHS)" => "LSHS",
            "GS (ESGS)" => "ESGS",
            "NGG GS" => "NGG",
            other => other,
        };
        let stage = |name: &str| match name {
            "VS" => SoftwareStage::Stage(Stage::Vertex),
            "TCS" => SoftwareStage::Stage(Stage::TessControl),
            "TES" => SoftwareStage::Stage(Stage::TessEval),
            "GS" => SoftwareStage::Stage(Stage::Geometry),
            "FS" => SoftwareStage::Stage(Stage::Fragment),
            "CS" => SoftwareStage::Stage(Stage::Compute),
            _ => SoftwareStage::Copy,
        };
        let software: Vec<String> = software.split('+').map(|name| format!("{:?}", stage(name))).collect();
        let merged = gens.contains("gfx9");
        facts.insert((mode, shape, hardware.to_owned(), software, merged && mode == PipelineMode::Legacy));
    }
    let own: BTreeSet<_> = rows()
        .map(|row| {
            let software = row.software.iter().map(|stage| format!("{stage:?}")).collect();
            let merged = row.holds(Gfx::Gfx9) && row.mode == PipelineMode::Legacy;
            (row.mode, row.shape, row.hardware.name().to_owned(), software, merged)
        })
        .collect();
    assert_eq!(own, facts);
    let exported = rows()
        .filter(|row| row.to == OutputMemory::Export)
        .all(|row| matches!(row.hardware, HardwareStage::Vs | HardwareStage::Ngg));
    assert!(exported, "only the last stage before the rasterizer exports");
}
