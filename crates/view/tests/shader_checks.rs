//! Shaders of msm dumps, checked: nothing is wrong in code that a driver's compiler made.

use unwedge_capture::msm::Devcore;
use unwedge_check::ir3::{CheckFinding, CheckOptions, Level, Rule, check};
use unwedge_hw::Db;
use unwedge_testkit::data;
use unwedge_view::asm::shaders;

/// Rules about what comes after the code that a dump has.
const SHAPE: [Rule; 2] = [Rule::BranchOutside, Rule::RunsOff];

#[test]
fn shaders_of_dumps_are_right() {
    let db = Db::builtin();
    let (mut dumps, mut checked) = (0, 0);
    for (name, text) in data::dumps() {
        let dump = Devcore::read(&text).expect("a dump");
        let Some(gpu) = dump.identity().and_then(|(id, chip)| db.identify(id, chip)) else { continue };
        dumps += 1;
        let whole = 100 * gpu.generation.number();
        let gpu_id = gpu.device.and_then(|device| device.number_in_name()).unwrap_or(whole);
        let memory = dump.memory();
        for shader in shaders::of_dump(&dump, &db) {
            let (Some(code), Some(bytes)) = (memory.dwords(shader.iova), shader.bytes) else { continue };
            let word =
                |at: usize| Some(u64::from(code.get(2 * at)?) | u64::from(code.get(2 * at + 1)?) << 32);
            let words: Vec<u64> = (0..bytes as usize / 8).map_while(word).collect();
            let report = check(&words, gpu_id, &CheckOptions::default());
            let wrong = |f: &&CheckFinding| f.level == Level::Error && !SHAPE.contains(&f.rule);
            let wrong: Vec<&CheckFinding> = report.findings.iter().filter(wrong).collect();
            assert!(wrong.is_empty(), "{name}, {:#x}: {wrong:#?}", shader.iova);
            checked += 1;
        }
    }
    match dumps {
        0 => println!("skipped: no dumps under UNWEDGE_DATA"),
        _ => println!("{checked} shaders of {dumps} dumps"),
    }
}
