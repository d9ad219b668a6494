//! The compute modules of the conformance suite's scripts.

use super::Pipeline;
use crate::data;
use std::collections::BTreeMap;
use unwedge_shader::front::spirv::{Options, Reader, words};
use unwedge_shader::ir::{Shader, Stage};
use unwedge_shader::valid::validate;

/// The shader of a pipeline, from the modules of its script by shader.
///
/// # Errors
///
/// What the reader or the validator does not take.
pub fn read_shader(modules: &BTreeMap<String, &[u8]>, pipeline: &Pipeline) -> Result<Shader, String> {
    let module = modules.get(&pipeline.shader).ok_or("the script has no module for the shader")?;
    let options = Options {
        entry: pipeline.entry.clone(),
        stage: Some(Stage::Compute),
        specialization: pipeline.specialization.clone(),
        ..Options::default()
    };
    let (mut reader, mut shader) = (Reader::default(), Shader::default());
    let words = words(module).map_err(|e| e.to_string())?;
    reader.read(&words, &options, &mut shader).map_err(|e| format!("reader: {e}"))?;
    validate(&shader).map_err(|e| format!("validator: {e}"))?;
    Ok(shader)
}

/// Modules of every script by shader, of the suite's archive; of the drivers' archive where a script has no module there and
/// a single compute shader. Tables of both say which modules they have.
pub fn script_modules<'a>(
    archives: &'a [BTreeMap<String, Vec<u8>>; 2],
    tables: [&str; 2],
) -> BTreeMap<String, BTreeMap<String, &'a [u8]>> {
    let files = |archive: &'a BTreeMap<String, Vec<u8>>| -> BTreeMap<&'a str, &'a [u8]> {
        let name = |path: &'a String| path.rsplit('/').next().unwrap_or_default();
        archive.iter().map(|(path, bytes)| (name(path), bytes.as_slice())).collect()
    };
    let [suite, drivers] = [files(&archives[0]), files(&archives[1])];
    let mut modules: BTreeMap<String, BTreeMap<String, &[u8]>> = BTreeMap::new();
    let mut shaders: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in data::rows(tables[0]).iter().filter(|row| row["stage"] == "compute") {
        shaders.entry(row["script"].clone()).or_default().push(row["shader"].clone());
        if let Some(bytes) = suite.get(row["module"].as_str()) {
            modules.entry(row["script"].clone()).or_default().insert(row["shader"].clone(), bytes);
        }
    }
    for row in data::rows(tables[1]) {
        let (script, module) = (&row["script"], format!("{}.spv", row["spirv_fnv64"]));
        let names = shaders.get(script).map(Vec::as_slice).unwrap_or_default();
        if let ([name], Some(bytes)) = (names, drivers.get(module.as_str())) {
            modules.entry(script.clone()).or_default().entry(name.clone()).or_insert(bytes);
        }
    }
    modules
}
