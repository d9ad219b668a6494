//! Compute shaders of the test data give the words that were recorded.

use std::collections::BTreeMap;
use unwedge_shader::front::spirv::{Options as ReadOptions, Reader, words};
use unwedge_shader::interp::{BindingPoint, Bindings, Dispatch, NoImages, Options, run_compute};
use unwedge_shader::ir::Shader;
use unwedge_testkit::data;

/// The input buffer, as the data's description defines it.
fn input() -> Vec<u8> {
    let mut state = 0x1234_5678u32;
    let word = |index: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match index & 3 {
            0 => index,
            1 => state >> 12 & 0xfff,
            2 => state >> 24,
            _ => state,
        }
    };
    (0..1024).map(word).flat_map(u32::to_le_bytes).collect()
}

fn point(binding: u32) -> BindingPoint {
    BindingPoint { set: 0, binding, index: 0 }
}

/// The words of the output buffer, as hexadecimal digits.
fn output(shader: &Shader, push: u32, input: &[u8], options: &Options) -> Result<String, String> {
    let mut bindings = Bindings { push: push.to_le_bytes().to_vec(), ..Bindings::default() };
    bindings.bind(point(0), input.to_vec());
    let out = bindings.bind(point(1), vec![0; 1024]);
    let dispatch = Dispatch::new([4, 1, 1]);
    let report =
        run_compute(shader, dispatch, &mut bindings, &mut NoImages, options).map_err(|e| e.to_string())?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("{finding:?}"));
    }
    let words = bindings.memory[out].chunks_exact(4);
    Ok(words
        .map(|word| format!("{:08x}", u32::from_le_bytes([word[0], word[1], word[2], word[3]])))
        .collect())
}

#[test]
fn recorded_compute_shaders_give_their_results() {
    let Some(expected) = data::text("adreno/compute/expected.csv.gz") else { return };
    let modules: BTreeMap<String, Vec<u8>> =
        data::archive("amd/shaders/shaders.tar.gz").into_iter().collect();
    let input = input();
    let (mut reader, mut shader) = (Reader::default(), Shader::default());
    let mut lines = expected.lines();
    let header = data::cells(lines.next().unwrap_or_default());
    let column = |name: &str| header.iter().position(|cell| cell == name).expect("a column");
    let [name, push, words_column] = ["shader", "push_constant", "dst_words_hex"].map(column);
    let (mut count, mut failures) = (0, Vec::new());
    for (number, line) in lines.enumerate() {
        let cells = data::cells(line);
        let file = format!("{}.spv", cells[name]);
        let Some((_, bytes)) = modules.iter().find(|(path, _)| path.rsplit('/').next() == Some(&file)) else {
            panic!("{file} is not in the archive");
        };
        let words = words(bytes).expect("a module");
        if let Err(e) = reader.read(&words, &ReadOptions::default(), &mut shader) {
            failures.push(format!("{file}: {e}"));
            continue;
        }
        let push = cells[push].parse().expect("a push constant");
        count += 1;
        let options = Options { subgroup_size: [32, 64, 8, 128][number % 4], ..Options::default() };
        match output(&shader, push, &input, &options) {
            Ok(words) if words == cells[words_column] => {}
            Ok(words) => {
                let differs = (0..words.len() / 8)
                    .find(|at| words.get(at * 8..at * 8 + 8) != cells[words_column].get(at * 8..at * 8 + 8));
                failures.push(format!("{file} {push}: word {differs:?} differs"));
            }
            Err(e) => failures.push(format!("{file} {push}: {e}")),
        }
    }
    println!("{count} runs");
    assert!(failures.is_empty(), "{} of {count} fail:\n{}", failures.len(), failures.join("\n"));
}
