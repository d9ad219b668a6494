//! Compute tests of the conformance suite that pass on lavapipe: their expectations hold in the interpreter.

use std::collections::BTreeMap;
use std::path::PathBuf;
use unwedge_testkit::amber::{self, AmberReason, BoundDescriptor, ComputeRun, Executor, Image, Interpreter};
use unwedge_testkit::data;

#[test]
fn compute_scripts_of_the_conformance_suite_pass() {
    let Some(suite) = data::text("adreno/graphics/suite.csv") else { return };
    let Some(table) = data::text("cts-amber/spirv.csv") else { return };
    let drivers = data::text("amd/cts/baseline.csv.gz").unwrap_or_default();
    let archives = ["cts-amber/spirv.tar.gz", "amd/cts/spirv.tar.gz"]
        .map(|name| data::archive(name).into_iter().collect::<BTreeMap<_, _>>());
    let modules = amber::script_modules(&archives, [&table, &drivers]);
    let none = BTreeMap::new();
    let (mut passed, mut expectations) = (0, 0);
    let mut others: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut reported: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut failures = Vec::new();
    for row in data::rows(&suite) {
        if row["pipelines"] != "compute" || row["lavapipe"] != "pass" {
            continue;
        }
        let name = &row["test"];
        let Some(text) = data::text(&format!("cts-amber/{name}")) else { continue };
        let mut executor = Interpreter::new(modules.get(name).unwrap_or(&none));
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let script = amber::parse(&text, &|file| data::text(&format!("cts-amber/{folder}/{file}")));
        let result = script.as_ref().map_err(Clone::clone).and_then(|script| script.run(&mut executor));
        match result {
            Ok(()) => {
                passed += 1;
                expectations += script.map_or(0, |script| script.expectations());
                for finding in executor.findings {
                    reported.entry(finding).or_default().push(name.clone());
                }
            }
            Err(e) => match e.reason {
                AmberReason::Failed(_) => failures.push(format!("{name}: {e}")),
                AmberReason::Unsupported(what) => {
                    let first = what.split(' ').next().unwrap_or_default().to_owned();
                    others.entry(format!("script: {first}")).or_default().push(name.clone());
                }
                AmberReason::Syntax(what) | AmberReason::Executor(what) => {
                    others.entry(what).or_default().push(name.clone());
                }
            },
        }
    }
    let left: usize = others.values().map(Vec::len).sum();
    println!("{passed} scripts pass with {expectations} expectations, {left} do not run");
    assert!(passed > 0, "a script runs");
    for (reason, names) in &others {
        println!("  {} × {reason}: {}", names.len(), names.join(" "));
    }
    for (finding, names) in &reported {
        println!("  {finding} is reported in {} scripts that pass: {}", names.len(), names.join(" "));
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
    assert!(left * 10 <= passed, "{left} of {} do not run", left + passed);
}

/// The scripts below a folder of the data.
fn scripts(folder: &str) -> Vec<PathBuf> {
    let mut scripts = data::files(folder, ".amber");
    let entries = data::path(folder).and_then(|path| std::fs::read_dir(path).ok());
    for entry in entries.into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()) {
        scripts.extend(self::scripts(&format!("{folder}/{}", entry.file_name().to_string_lossy())));
    }
    scripts
}

#[test]
fn scripts_of_the_data_parse_or_are_refused_by_name() {
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    let (mut parsed, mut wrong) = (0, Vec::new());
    for path in scripts("cts-amber") {
        let text = data::read_text(&path);
        let file = |name: &str| std::fs::read_to_string(path.parent()?.join(name)).ok();
        match amber::parse(&text, &file) {
            Ok(_) => parsed += 1,
            Err(e) => match e.reason {
                AmberReason::Unsupported(what) => {
                    let words: Vec<&str> = what.split(' ').take(2).collect();
                    *refused.entry(words.join(" ")).or_default() += 1;
                }
                _ => wrong.push(format!("{}: {e}", path.display())),
            },
        }
    }
    let count: usize = refused.values().sum();
    println!("{parsed} scripts parse, {count} are refused:");
    for (what, count) in &refused {
        println!("  {count} × {what}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count * 10 <= parsed, "{count} of {} are refused", parsed + count);
}

/// Fills the first attachment with the clear colour, or with green for every other draw.
#[derive(Default)]
struct Painter {
    draws: Vec<amber::Draw>,
}

impl Executor for Painter {
    fn dispatch(&mut self, _: &ComputeRun<'_>, _: &mut [Vec<u8>], _: &mut [Image]) -> Result<(), String> {
        Err("the script has no compute shader".to_owned())
    }

    fn draw(
        &mut self,
        pipeline: &amber::Pipeline,
        draw: &amber::Draw,
        samplers: &BTreeMap<String, Vec<String>>,
        _: &mut BTreeMap<String, amber::Buffer>,
        images: &mut BTreeMap<String, Image>,
    ) -> Result<(), String> {
        let graphics = pipeline.graphics.as_ref().ok_or("a graphics pipeline")?;
        assert_eq!(graphics.shaders.len(), 2);
        assert!(graphics.sampled.values().all(|(_, sampler)| samplers.contains_key(sampler)));
        let image = images.get_mut(&graphics.colours[&0]).ok_or("an image")?;
        let colour = match draw {
            amber::Draw::Clear { colour, .. } => colour.map(|component| component as u8),
            _ => [0, 255, 0, 255],
        };
        for (texel, defined) in image.bytes.chunks_exact_mut(4).zip(&mut image.defined) {
            texel.copy_from_slice(&colour);
            *defined = true;
        }
        self.draws.push(draw.clone());
        Ok(())
    }
}

/// Notes push constants and leaves floats in the only buffer.
#[derive(Default)]
struct Recorder {
    push: Vec<u8>,
}

impl Executor for Recorder {
    fn dispatch(
        &mut self,
        run: &ComputeRun<'_>,
        buffers: &mut [Vec<u8>],
        _: &mut [Image],
    ) -> Result<(), String> {
        self.push = run.push.to_vec();
        let Some([BoundDescriptor::Buffer { buffer, .. }]) = run.bindings.get(&(0, 3)).map(Vec::as_slice)
        else {
            return Err("the binding has a buffer".to_owned());
        };
        for float in buffers[*buffer].chunks_exact_mut(4) {
            float.copy_from_slice(&1.05f32.to_le_bytes());
        }
        Ok(())
    }
}

const VKSCRIPT: &str = "[compute shader]
anything
[test]
ssbo 3 8
uniform int 8 7
push vec2 0 1.0 0.5
tolerance 10%
compute 1 1 1
probe ssbo vec2 3 0 ~= 1.0 1.0
";

#[test]
fn scripts_of_the_older_form_have_push_constants_and_tolerances() {
    let parse = |text: &str| amber::parse(text, &|_| None).unwrap_or_else(|e| panic!("{e}"));
    let mut recorder = Recorder::default();
    parse(VKSCRIPT).run(&mut recorder).unwrap_or_else(|e| panic!("{e}"));
    let floats = [1f32, 0.5].map(f32::to_le_bytes).concat();
    assert_eq!(recorder.push, [&floats[..], &7u32.to_le_bytes()].concat());
    let error = parse(&VKSCRIPT.replace("10%", "1%")).run(&mut recorder);
    assert!(error.is_err_and(|e| matches!(e.reason, AmberReason::Failed(_))));
}

const GRAPHICS: &str = "SHADER vertex v PASSTHROUGH
SHADER fragment f GLSL
anything
END
BUFFER frame FORMAT R8G8B8A8_UNORM
BUFFER other FORMAT R8G8B8A8_UNORM
BUFFER data DATA_TYPE R32G32_SFLOAT DATA
0.5 1.0
-1 2
END
SAMPLER s \\
  MAG_FILTER linear
PIPELINE graphics p
  ATTACH v
  ATTACH f SPECIALIZE 3 AS uint32 7
  BIND BUFFER frame AS color LOCATION 0
  BIND BUFFER other AS combined_image_sampler SAMPLER s DESCRIPTOR_SET 0 BINDING 1
  VERTEX_DATA data LOCATION 0
  FRAMEBUFFER_SIZE 4 2
  DEPTH
    TEST on
    COMPARE_OP less
  END
END
DERIVE_PIPELINE q FROM p
  BIND BUFFER other AS color LOCATION 0
END
CLEAR_COLOR p 255 0 0 255
CLEAR p
EXPECT frame IDX 0 0 SIZE 4 2 EQ_RGBA 255 0 0 255
CLEAR q
RUN p DRAW_RECT POS 1 0 SIZE 2 2
RUN q DRAW_ARRAY AS TRIANGLE_LIST START_IDX 1 COUNT 3
EXPECT frame IDX 0 0 SIZE 4 2 EQ_RGBA 0 255 0 255
EXPECT frame EQ_HISTOGRAM_EMD_BUFFER other TOLERANCE 0.0
";

#[test]
fn graphics_scripts_draw_clear_and_compare() {
    let script = amber::parse(GRAPHICS, &|_| None).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(script.expectations(), 3);
    let mut painter = Painter::default();
    script.run(&mut painter).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(painter.draws[0], amber::Draw::Clear { colour: [255.0, 0.0, 0.0, 255.0], depth: 1.0 });
    assert_eq!(painter.draws[2], amber::Draw::Rect { at: [1.0, 0.0], size: [2.0, 2.0] });
    let array =
        amber::Draw::Array { topology: "TRIANGLE_LIST".to_owned(), indexed: false, start: 1, count: Some(3) };
    assert_eq!(painter.draws[3], array);
    // Without the last draw the images differ, and an executor without draws refuses the script.
    let differs = GRAPHICS.replace("RUN q DRAW_ARRAY AS TRIANGLE_LIST START_IDX 1 COUNT 3\n", "");
    let error = amber::parse(&differs, &|_| None).expect("a script").run(&mut Painter::default());
    assert!(error.as_ref().is_err_and(|e| matches!(e.reason, AmberReason::Failed(_))), "{error:?}");
    let none = BTreeMap::new();
    let error = script.run(&mut Interpreter::new(&none));
    assert!(error.is_err_and(|e| e.reason == AmberReason::Executor("draws are not supported".to_owned())));
}
