//! Programs of `UNWEDGE_DATA`, and code made from text.

#![allow(dead_code, reason = "each test uses a part")]

use std::path::PathBuf;
use unwedge_check::amdgcn::EntryPreset;
use unwedge_isa::amdgcn::{Gpu, codec, text};
pub use unwedge_testkit::aco_data::gpu;
use unwedge_testkit::data::{files, read_text};
pub use unwedge_testkit::pack::bytes;

/// The texts of packed files of a folder below `amd` whose names have a part in them.
pub fn packed(name: &str, part: &str) -> Vec<(String, String)> {
    let mut paths = files(&format!("amd/{name}"), ".gz");
    let named = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.retain(|path| named(path).contains(part) && !named(path).ends_with(".tar.gz"));
    paths.into_iter().map(|path| (named(&path), read_text(&path))).collect()
}

/// One program of `aco_binaries`.
pub struct Binary {
    pub name: String,
    pub gpu: Gpu,
    pub words: Vec<u32>,
    /// Registers that are set when it starts.
    pub preset: EntryPreset,
}

/// The registers behind the last one that a column of arguments names, of both files: `push0=s3:1 local_id_x=v0:1`.
fn preset(args: &str) -> EntryPreset {
    let mut preset = EntryPreset { sgprs: 0, vgprs: 0 };
    for (_, place) in args.split_whitespace().filter_map(|arg| arg.split_once('=')) {
        let (file, range) = place.split_at(1);
        let (first, count) = range.split_once(':').unwrap();
        let end = first.parse::<u16>().unwrap() + count.parse::<u16>().unwrap();
        let set = if file == "s" { &mut preset.sgprs } else { &mut preset.vgprs };
        *set = end.max(*set);
    }
    preset
}

pub fn binaries() -> Vec<Binary> {
    let mut all = Vec::new();
    for (_, text) in packed("shaders", "binaries") {
        let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let head = rows.next().unwrap();
        let at = |name: &str| head.iter().position(|h| *h == name).unwrap();
        let (shader, family, wave) = (at("shader"), at("family"), at("wave"));
        let (bytes, code, args) = (at("exec_bytes"), at("code_dwords_hex"), at("args"));
        for row in rows {
            let dwords = row[code].as_bytes().chunks(8);
            let words = dwords.map(|hex| u32::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap());
            let count: usize = row[bytes].parse().unwrap();
            all.push(Binary {
                name: format!("{} {}", row[shader], row[family]),
                gpu: gpu(row[family], row[wave].parse().unwrap()),
                words: words.take(count / 4).collect(),
                preset: preset(row[args]),
            });
        }
    }
    all
}

/// Code of lines, and where each of them that makes code begins. A line `NAME:` is a label.
pub fn assemble(lines: &[String], gpu: &Gpu) -> Result<(Vec<u8>, Vec<u32>), String> {
    let (mut words, mut starts): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    let (mut labels, mut branches) = (Vec::new(), Vec::new());
    for line in lines {
        let said = |what: String| format!("{line}: {what}");
        if let Some(label) = line.strip_suffix(':') {
            labels.push((label, words.len()));
            continue;
        }
        starts.push(4 * words.len() as u32);
        if let Some(list) = line.strip_prefix(".long ") {
            for word in list.split(',') {
                let digits = word.trim().trim_start_matches("0x");
                words.push(u32::from_str_radix(digits, 16).map_err(|e| said(e.to_string()))?);
            }
            continue;
        }
        let (name, target) = line.rsplit_once(' ').unwrap_or((line, ""));
        let branch = target.starts_with('B') && target[1..].parse::<u32>().is_ok();
        let text = if branch { format!("{name} 0") } else { line.clone() };
        let inst = text::parse_line(&text, gpu, &()).map_err(|e| said(e.to_string()))?;
        let made = codec::encode(&inst, gpu).map_err(|e| said(e.to_string()))?;
        if branch {
            branches.push((words.len(), made.as_slice().len(), target));
        }
        words.extend_from_slice(made.as_slice());
    }
    for (at, size, target) in branches {
        let (_, to) =
            labels.iter().find(|(l, _)| *l == target).ok_or_else(|| format!("no label {target}"))?;
        words[at] |= u32::from((*to as i64 - (at + size) as i64) as i16 as u16);
    }
    Ok((bytes(&words), starts))
}

/// How many of something there were, per name.
#[derive(Default)]
pub struct Counts(std::collections::BTreeMap<String, usize>);

impl Counts {
    pub fn add(&mut self, name: impl Into<String>) {
        *self.0.entry(name.into()).or_default() += 1;
    }

    pub fn show(&self, title: &str) {
        println!("{title}:");
        for (name, count) in &self.0 {
            println!("  {count:6} {name}");
        }
    }
}

/// How many examples of a difference are shown: `UNWEDGE_SHOW`.
pub fn shown() -> usize {
    std::env::var("UNWEDGE_SHOW").ok().and_then(|n| n.parse().ok()).unwrap_or(3)
}
