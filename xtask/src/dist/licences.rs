//! The licences of what is linked into the binary.

use super::output;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crate that has the sources of Lua: a dependency of a build, whose result is linked in.
const LUA: &str = "lua-src";

/// The crates that are linked into the program on a target, with the texts of their licences; equal texts stand once.
pub fn texts(target: &str) -> Result<String, String> {
    let mut crates: Vec<Crate> = linked(target)?;
    crates.sort();
    let mut out = String::from(
        "The unwedge program has the following linked in: these crates, the standard library of Rust\n\
         (MIT or Apache-2.0, the Rust project contributors)",
    );
    out.push_str(match target {
        _ if target.contains("musl") => ", and musl (MIT, Rich Felker and contributors).\n\n",
        _ => {
            ", and the GNU C library (LGPL-2.1-or-later).\n\
            The sources of the program are public, so it can be linked with another version of that library.\n\n"
        }
    });
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for c in &crates {
        let _ = writeln!(out, "{} {}: {}", c.name, c.version, c.licence);
        for text in c.texts()? {
            let names = texts.entry(text).or_default();
            let name = format!("{} {}", c.name, c.version);
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    for (text, names) in texts {
        let _ = write!(out, "\n{}\n{}\n\n{}\n", "-".repeat(80), names.join(", "), text.trim_end());
    }
    Ok(out)
}

/// A crate of others.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Crate {
    name: String,
    version: String,
    licence: String,
    folder: PathBuf,
}

impl Crate {
    /// The texts of its licences. A crate that carries the sources of a library has that library's, too.
    fn texts(&self) -> Result<Vec<String>, String> {
        let mut texts = Vec::new();
        let mut files: Vec<PathBuf> = entries(&self.folder)?;
        for folder in files.clone().iter().filter(|path| path.is_dir() && self.carries_sources()) {
            files.extend(entries(folder)?);
        }
        files.sort();
        for file in files.iter().filter(|path| path.is_file()) {
            let name = file.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
            let read = || fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()));
            if ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "UNLICENSE", "NOTICE"]
                .iter()
                .any(|start| name.starts_with(start))
            {
                texts.push(read()?);
            } else if self.carries_sources() && name == "LUA.H" {
                // Lua's licence is the comment at the end of its header.
                let header = read()?;
                let start = header.rfind("Copyright (C)").ok_or("lua.h without its licence")?;
                texts.push(header[start..].trim_end_matches(['\n', '#', ' ']).to_owned());
            }
        }
        Ok(texts)
    }

    /// Whether it is the sources of a library that is linked in.
    fn carries_sources(&self) -> bool {
        self.name == LUA
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |e| format!("{}: {e}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

/// What is linked into the program: what it depends on when it runs, and Lua, which is built on the way.
fn linked(target: &str) -> Result<Vec<Crate>, String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--format-version=1", "--locked", "--filter-platform", target]);
    let metadata: Value = serde_json::from_slice(&output(&mut cargo)?).map_err(|e| e.to_string())?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: HashMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|package| (text(&package["id"]), package)).collect();
    let nodes: HashMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|node| (text(&node["id"]), node)).collect();
    let mut open: Vec<String> =
        packages.iter().filter(|(_, p)| p["name"] == "unwedge-cli").map(|(id, _)| id.clone()).collect();
    let mut seen = open.clone();
    let mut out = Vec::new();
    while let Some(id) = open.pop() {
        let package = packages.get(&id).ok_or_else(|| format!("cargo metadata has no package {id}"))?;
        if !package["source"].is_null() {
            let manifest = PathBuf::from(text(&package["manifest_path"]));
            out.push(Crate {
                name: text(&package["name"]),
                version: text(&package["version"]),
                licence: text(&package["license"]),
                folder: manifest.parent().map(Path::to_owned).unwrap_or_default(),
            });
        }
        let package_name = text(&package["name"]);
        for dependency in nodes.get(&id).map(|node| list(&node["deps"])).unwrap_or_default() {
            let id = text(&dependency["pkg"]);
            let kinds = list(&dependency["dep_kinds"]);
            let runs = kinds.iter().any(|kind| kind["kind"].is_null());
            let built = kinds.iter().any(|kind| kind["kind"] == "build");
            let package = &packages[&id];
            let name = text(&package["name"]);
            let macros = list(&package["targets"])
                .iter()
                .any(|target| list(&target["kind"]).contains(&Value::from("proc-macro")));
            let linked = package_name != LUA && (runs && !macros || built && name == LUA);
            if linked && !seen.contains(&id) {
                seen.push(id.clone());
                open.push(id);
            }
        }
    }
    Ok(out)
}
