//! Compute shaders of the test data give the words that were recorded.

use std::collections::BTreeMap;
use unwedge_shader::front::nir;
use unwedge_shader::front::spirv::{Options as ReadOptions, Reader, words};
use unwedge_shader::interp::{BindingPoint, Bindings, Dispatch, NoImages, Options, run_compute};
use unwedge_shader::ir::Shader;
use unwedge_shader::passes::{PASSES, standard};
use unwedge_shader::text;
use unwedge_shader::valid::validate;
use unwedge_testkit::data;
use unwedge_testkit::pack::bytes;

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
    let input = bytes(&data::compute_input());
    let (mut reader, mut shader) = (Reader::default(), Shader::default());
    let mut lines = expected.lines();
    let header = data::cells(lines.next().unwrap_or_default());
    let column = |name: &str| header.iter().position(|cell| cell == name).expect("a column");
    let [name, push, words_column] = ["shader", "push_constant", "dst_words_hex"].map(column);
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let (mut count, mut passes, mut failures) = (0, 0, Vec::new());
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
        // All passes in turn over the shaders, or each on every shader, and then the standard ones.
        let chosen = PASSES.iter().enumerate().filter(|(at, _)| all || number % PASSES.len() == *at);
        for (_, pass) in chosen {
            let mut changed = shader.clone();
            (pass.run)(&mut changed);
            let mut optimized = changed.clone();
            standard(&mut optimized);
            for (name, changed) in [(pass.name, changed), ("standard after it", optimized)] {
                passes += 1;
                match output(&changed, push, &input, &options) {
                    Ok(words) if words == cells[words_column] => {}
                    Ok(_) => failures.push(format!("{file} {push}, {}, {name}: words differ", pass.name)),
                    Err(e) => failures.push(format!("{file} {push}, {}, {name}: {e}", pass.name)),
                }
            }
        }
    }
    println!("{count} runs, {passes} of them again after passes");
    assert!(failures.is_empty(), "{} of {count} fail:\n{}", failures.len(), failures.join("\n"));
}

/// The chip in a name `mesa_ir_CHIP.tar.gz`.
fn chip(archive: &str) -> Option<&str> {
    archive.strip_prefix("mesa_ir_")?.strip_suffix(".tar.gz")
}

/// A shader is the same after it was printed and parsed.
fn survives_text(shader: &Shader) -> Result<(), String> {
    let printed = text::print(shader);
    let mut parsed = Shader::default();
    text::parse(&printed, &mut parsed).map_err(|e| format!("not parsed: {e}"))?;
    validate(&parsed).map_err(|e| format!("not valid after parsing: {e}"))?;
    if text::print(&parsed) == printed { Ok(()) } else { Err("printed differently after parsing".to_owned()) }
}

/// Every text is read and valid. Printed, parsed and run for the push constants that are recorded are the texts of one chip for
/// each shader, with `UNWEDGE_ALL` those of all chips.
#[test]
fn recorded_nir_gives_the_results_of_its_shaders() {
    let Some(expected) = data::text("adreno/compute/expected.csv.gz") else { return };
    let Some(binaries) = data::text("amd/shaders/aco_binaries.csv.gz") else { return };
    let mut registers = BTreeMap::new();
    let mut lines = binaries.lines();
    let header = data::cells(lines.next().unwrap_or_default());
    let column = |name: &str| header.iter().position(|cell| cell == name).expect("a column");
    let [name, family, args] = ["shader", "family", "args"].map(column);
    for line in lines {
        let cells = data::cells(line);
        registers.insert((cells[family].clone(), cells[name].clone()), cells[args].clone());
    }
    let mut results: BTreeMap<String, Vec<(u32, String)>> = BTreeMap::new();
    let mut lines = expected.lines();
    let header = data::cells(lines.next().unwrap_or_default());
    let column = |name: &str| header.iter().position(|cell| cell == name).expect("a column");
    let [name, push, words] = ["shader", "push_constant", "dst_words_hex"].map(column);
    for line in lines {
        let cells = data::cells(line);
        let push = cells[push].parse().expect("a push constant");
        results.entry(cells[name].clone()).or_default().push((push, cells[words].clone()));
    }
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let input = bytes(&data::compute_input());
    let options = Options { subgroup_size: 64, ..Options::default() };
    let mut shader = Shader::default();
    let (mut texts, mut runs, mut failures) = (0, 0, Vec::new());
    let archives = data::files("amd/shaders", ".tar.gz");
    let names = archives.iter().filter_map(|path| path.file_name()?.to_str());
    let chips: Vec<&str> = names.filter_map(chip).collect();
    for (turn, chip) in chips.iter().enumerate() {
        for (number, (path, bytes)) in
            data::archive(&format!("amd/shaders/mesa_ir_{chip}.tar.gz")).into_iter().enumerate()
        {
            let file = path.rsplit('/').next().unwrap_or(&path);
            let Some(name) = file.strip_suffix(".nir") else { continue };
            let registers = registers.get(&((*chip).to_owned(), name.to_owned()));
            let registers = registers.map(String::as_str).unwrap_or_default();
            let arguments = nir::Arguments::parse(registers).expect("registers of arguments");
            let read_options = nir::Options { arguments, file: file.to_owned() };
            texts += 1;
            let text = String::from_utf8_lossy(&bytes);
            if let Err(e) = nir::read(&text, &read_options, &mut shader) {
                failures.push(format!("{chip} {file}: {e}"));
                continue;
            }
            if !all && number / 2 % chips.len() != turn {
                continue;
            }
            if let Err(e) = survives_text(&shader) {
                failures.push(format!("{chip} {file}: {e}"));
            }
            for (push, words) in results.get(name).map(Vec::as_slice).unwrap_or_default() {
                runs += 1;
                match output(&shader, *push, &input, &options) {
                    Ok(output) if output == *words => {}
                    Ok(_) => failures.push(format!("{chip} {file} {push}: the words differ")),
                    Err(e) => failures.push(format!("{chip} {file} {push}: {e}")),
                }
            }
        }
    }
    println!("{texts} texts, {runs} runs");
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
    assert!(runs > 0 || texts == 0, "no text ran");
}
