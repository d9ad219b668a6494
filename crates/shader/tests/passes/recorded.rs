//! Modules of the test data: each pass on its own and the standard pipeline keep them valid, and what they do.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use unwedge_shader::front::spirv::{Options, Reader, words};
use unwedge_shader::ir::Shader;
use unwedge_shader::text::print;
use unwedge_shader::valid::validate;
use unwedge_testkit::data;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::shaders::checks::passes;
use unwedge_testkit::shaders::run::{NotComparable, Setup, count, observe, same};

/// Archives of modules below the root of the test data.
const ARCHIVES: [&str; 3] = ["amd/shaders/shaders.tar.gz", "cts-amber/spirv.tar.gz", "amd/cts/spirv.tar.gz"];

/// How modules are run before passes.
const SETUP: Setup = Setup { seed: 7, subgroup_size: 32, steps: 200_000 };

#[derive(Default)]
struct Sums {
    compared: usize,
    not_compared: BTreeMap<String, usize>,
    insts: [usize; 2],
    steps: [u64; 2],
    times: Vec<Duration>,
}

impl Sums {
    fn check(&mut self, name: &str, shader: &Shader, compares: bool) {
        let before = compares.then(|| observe(shader, &SETUP));
        match &before {
            Some(Ok(_)) => self.compared += 1,
            Some(Err(e)) => *self.not_compared.entry(format!("{e:?}")).or_default() += 1,
            None => {}
        }
        for pass in passes() {
            let mut changed = shader.clone();
            let start = Instant::now();
            let changes = (pass.run)(&mut changed);
            let time = start.elapsed();
            // A pass is not run again on a shader that it says it left as it was.
            if pass.standard && !changes {
                assert_eq!(print(&changed), print(shader), "{name}, {}", pass.name);
            }
            if let Err(e) = validate(&changed) {
                panic!("{name}, {}: {e}\n{}\nbefore:\n{}", pass.name, print(&changed), print(shader));
            }
            if pass.name == "standard" {
                self.times.push(time);
                self.insts[0] += count(shader);
                self.insts[1] += count(&changed);
            }
            let Some(Ok(before)) = &before else { continue };
            // Lowered divisions are loops.
            let after = match observe(&changed, &Setup { steps: 4096 * SETUP.steps, ..SETUP }) {
                Ok(after) => after,
                Err(NotComparable::Error(e)) => panic!("{name}, {}: {e}", pass.name),
                Err(NotComparable::Undefined(e)) => {
                    panic!("{name}, {}: {e:?}\n{}\nbefore:\n{}", pass.name, print(&changed), print(shader))
                }
            };
            if pass.name == "standard" {
                self.steps[0] += before.steps;
                self.steps[1] += after.steps;
            }
            let is_same = same(before, &after);
            assert!(is_same, "{name}, {}:\n{}\nbefore:\n{}", pass.name, print(&changed), print(shader));
        }
    }
}

#[test]
fn modules_of_the_data_stay_valid_and_do_the_same() {
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let (mut reader, mut shader) = (Reader::default(), Shader::default());
    let (mut read, mut compared) = (0, 0);
    for archive in ARCHIVES {
        let mut sums = Sums::default();
        let modules = data::archive(archive).into_iter().filter(|(name, _)| name.ends_with(".spv"));
        for (number, (name, bytes)) in modules.enumerate() {
            let words = words(&bytes).expect("a module");
            if reader.read(&words, &Options::default(), &mut shader).is_ok() {
                sums.check(&name, &shader, all || number % 4 == 0);
            }
        }
        sums.times.sort();
        let median = sums.times.get(sums.times.len() / 2).copied().unwrap_or_default();
        println!(
            "{archive}: {} modules, {} compared, {:?} instructions, {:?} steps, {median:?} for the median one",
            sums.times.len(),
            sums.compared,
            sums.insts,
            sums.steps
        );
        for (reason, count) in &sums.not_compared {
            println!("  {count} not compared: {reason}");
        }
        read += sums.times.len();
        compared += sums.compared;
    }
    assert!(read == 0 || compared > 0, "none of {read} modules was compared");
}

#[test]
fn broken_modules_that_are_read_stay_valid() {
    let rounds = if std::env::var_os("UNWEDGE_ALL").is_some() { 100_000 } else { 2_000 };
    let sources: Vec<Vec<u32>> = ARCHIVES
        .iter()
        .flat_map(|archive| data::archive(archive))
        .filter(|(name, _)| name.ends_with(".spv"))
        .map(|(_, bytes)| words(&bytes).expect("a module"))
        .collect();
    if sources.is_empty() {
        return;
    }
    let (mut reader, mut shader, mut rng) = (Reader::default(), Shader::default(), Rng::new(5));
    let options = Options { max_insts: 1 << 16, ..Options::default() };
    let mut accepted = 0;
    for round in 0..rounds {
        let mut words = sources[rng.below(sources.len())].clone();
        let at = rng.below(words.len());
        match rng.below(3) {
            0 => words[at] = words[rng.below(words.len())],
            1 => words[at] ^= 1 << rng.below(32),
            _ => words[at] = words[at].wrapping_add(1),
        }
        if reader.read(&words, &options, &mut shader).is_err() {
            continue;
        }
        accepted += 1;
        for pass in passes() {
            let mut changed = shader.clone();
            (pass.run)(&mut changed);
            validate(&changed).unwrap_or_else(|e| panic!("round {round}, {}: {e}", pass.name));
        }
    }
    println!("{accepted} of {rounds} are read");
    assert!(accepted > 0);
}
