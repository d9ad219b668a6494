//! Compiles `data/amd` into the tables of `amdgcn`.

mod access;
mod cost;
mod emit;
mod forms;
mod gpus;
mod mem;
mod opcodes;
mod read;
mod rules;
mod waits;

use crate::amdgcn_facts::model::{COLUMNS, Columns, EncodingLayout, Form, Format, GENS, NO_OPCODE};
use crate::amdgcn_facts::regs;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

/// A variant before it is emitted: lists are indexes into [`Tables`].
#[derive(Debug, Clone, PartialEq, Eq)]
struct Draft {
    row: usize,
    name: String,
    spec: forms::Spec,
    /// Of a dual instruction: row and name of the second half, and its first slot.
    second: Option<(usize, String, u8)>,
    columns: Columns,
    opcodes: [u16; GENS],
}

/// What is emitted.
#[derive(Default)]
struct Tables {
    rows: Vec<read::SourceRow>,
    drafts: Vec<Draft>,
    layouts: Vec<EncodingLayout>,
    /// By generation and encoding: index of a layout.
    layout_of: BTreeMap<(usize, usize), usize>,
    /// By generation: layouts in the order they are tried.
    order: Vec<Vec<usize>>,
    /// By name: variants, and the columns in which they have it.
    names: BTreeMap<String, Vec<(usize, Columns)>>,
}

/// Reads the folder and writes `amdgcn.rs`, `amdgcn_opcodes.rs`, `amdgcn_gpus.rs`, `amdgcn_waits.rs`, `amdgcn_rules.rs` and `amdgcn_cost.rs`
/// into `out`.
pub fn compile(folder: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut tables = Tables { order: vec![Vec::new(); GENS], ..Tables::default() };
    let mut files: Vec<_> = fs::read_dir(folder)?.map(|f| f.map(|f| f.path())).collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|e| e == "txt"));
    // Which stages run where is a table of the compiler.
    files.retain(|path| path.file_stem().is_none_or(|name| name != "stages"));
    files.sort();
    let (mut waits, mut costs) = (None, None);
    for path in files {
        println!("cargo::rerun-if-changed={}", path.display());
        let shown = path.display().to_string();
        let source = fs::read_to_string(&path).map_err(|e| format!("{shown}: {e}"))?;
        if path.file_stem().is_some_and(|name| name == "cost") {
            costs = Some((source, path));
        } else if path.file_stem().is_some_and(|name| name == "waits") {
            waits = Some((source, path));
        } else if path.file_stem().is_some_and(|name| name == "encodings") {
            let layouts = read::encodings(&source).map_err(|e| format!("{shown}: {e}"))?;
            for (gens, layout) in layouts {
                let at = tables.layouts.len();
                for generation in gens {
                    let key = (generation as usize, layout.encoding as usize);
                    if tables.layout_of.insert(key, at).is_some() {
                        return Err(format!(
                            "{shown}: {} twice in {}",
                            layout.encoding.name(),
                            generation.name()
                        )
                        .into());
                    }
                    tables.order[generation as usize].push(at);
                }
                tables.layouts.push(layout);
            }
        } else {
            let register = |name: &str| regs::special(name).map(|reg| reg.0);
            tables.rows.extend(read::rows(&source, &register).map_err(|e| format!("{shown}: {e}"))?);
        }
    }
    for row in &tables.rows {
        opcodes::check(row)?;
        access::access(row)?;
    }
    tables.expand()?;
    let (source, path) = waits.ok_or("no waits.txt")?;
    let waits = waits::compile(&source, &tables.rows, &opcodes::opcodes(&tables.rows));
    fs::write(out.join("amdgcn_waits.rs"), waits.map_err(|e| format!("{}: {e}", path.display()))?)?;
    let (source, path) = costs.ok_or("no cost.txt")?;
    let costs = cost::compile(&source, &opcodes::opcodes(&tables.rows));
    fs::write(out.join("amdgcn_cost.rs"), costs.map_err(|e| format!("{}: {e}", path.display()))?)?;
    let path = folder.join("check/rules.txt");
    println!("cargo::rerun-if-changed={}", path.display());
    let rules = rules::compile(&fs::read_to_string(&path)?);
    fs::write(out.join("amdgcn_rules.rs"), rules.map_err(|e| format!("{}: {e}", path.display()))?)?;
    let mut enums = String::new();
    opcodes::enums(&mut enums, &tables.rows)?;
    fs::write(out.join("amdgcn_opcodes.rs"), enums)?;
    let devices = [folder.join("amd.devices"), folder.join("additions/amd.devices")];
    fs::write(out.join("amdgcn_gpus.rs"), gpus::compile(&devices)?)?;
    fs::write(out.join("amdgcn.rs"), emit::emit(&tables)?)?;
    Ok(())
}

impl Tables {
    /// Makes the variants of all rows, equal ones of several columns being one.
    fn expand(&mut self) -> Result<(), Box<dyn Error>> {
        for row_at in 0..self.rows.len() {
            let first = self.drafts.len();
            let row = self.rows[row_at].clone();
            if row.format == Format::Vopd {
                continue;
            }
            let mut specs = Vec::new();
            // Which generations have a long form, in any of their modes.
            let mut long = [false; GENS];
            for column in 0..COLUMNS {
                let (generation, halves) = read::column(column);
                for cell in row.cells.iter().filter(|cell| cell.gens.contains(&generation)) {
                    let own = forms::specs(&row, cell, generation, halves)?;
                    long[generation as usize] |= own.iter().any(|spec| spec.form == Form::E64);
                    specs.extend(own.into_iter().map(|spec| (column, spec)));
                }
            }
            for (column, mut spec) in specs {
                let generation = read::column(column).0 as usize;
                spec.only_short = spec.form == Form::E32 && !long[generation];
                self.add(first, row_at, None, column, spec)?;
            }
            for (at, draft) in self.drafts.iter().enumerate().skip(first) {
                let own = (&draft.name, draft.columns);
                let aliases = row.aliases.iter().map(|(name, of)| (name, of & draft.columns));
                for (name, columns) in
                    std::iter::once(own).chain(aliases).filter(|(_, columns)| *columns != 0)
                {
                    self.names.entry(name.clone()).or_default().push((at, columns));
                }
            }
        }
        self.dual()?;
        for variants in self.names.values_mut() {
            variants.sort_by_key(|(at, _)| (self.drafts[*at].spec.form, *at));
        }
        Ok(())
    }

    /// Makes every pair of halves of dual instructions.
    fn dual(&mut self) -> Result<(), Box<dyn Error>> {
        let halves: Vec<(usize, read::SourceRow)> =
            self.rows.iter().cloned().enumerate().filter(|(_, row)| row.format == Format::Vopd).collect();
        for (x_at, x) in &halves {
            let first = self.drafts.len();
            for column in 0..COLUMNS {
                let (generation, _) = read::column(column);
                let cell =
                    |row: &read::SourceRow| row.cells.iter().find(|c| c.gens.contains(&generation)).cloned();
                let Some(x_cell) = cell(x).filter(|cell| cell.opcode < 16) else { continue };
                for (y_at, y) in &halves {
                    let Some(y_cell) = cell(y) else { continue };
                    let (spec, slot) = forms::dual((x, &x_cell), (y, &y_cell), generation);
                    let name = y_cell.name.clone().unwrap_or_else(|| y.name.clone());
                    self.add(first, *x_at, Some((*y_at, name, slot)), column, spec)?;
                }
            }
            for (at, draft) in self.drafts.iter().enumerate().skip(first) {
                if let Some((_, second, _)) = &draft.second {
                    let name = format!("{}::{second}", draft.name);
                    self.names.entry(name).or_default().push((at, draft.columns));
                }
            }
        }
        Ok(())
    }

    /// Adds a variant, or a column to one since `first` that is the same.
    fn add(
        &mut self,
        first: usize,
        row: usize,
        second: Option<(usize, String, u8)>,
        column: usize,
        spec: forms::Spec,
    ) -> Result<(), Box<dyn Error>> {
        let generation = read::column(column).0 as usize;
        if !self.layout_of.contains_key(&(generation, spec.encoding as usize)) {
            let row = &self.rows[row].name;
            return Err(format!("{row}: no {} in column {column}", spec.encoding.name()).into());
        }
        let name = spec.name.clone();
        let opcode = spec.opcode;
        let spec = forms::Spec { opcode: 0, ..spec };
        let same = self.drafts.iter().skip(first).position(|draft| {
            draft.spec == spec
                && draft.name == name
                && draft.second == second
                && [NO_OPCODE, opcode].contains(&draft.opcodes[generation])
        });
        let at = same.map_or(self.drafts.len(), |at| at + first);
        if same.is_none() {
            let opcodes = [NO_OPCODE; GENS];
            self.drafts.push(Draft { row, name, spec, second, columns: 0, opcodes });
        }
        self.drafts[at].columns |= 1 << column;
        self.drafts[at].opcodes[generation] = opcode;
        Ok(())
    }

    fn intern<T: PartialEq + Clone>(lists: &mut Vec<Vec<T>>, list: &[T]) -> usize {
        match lists.iter().position(|have| have == list) {
            Some(at) => at,
            None => {
                lists.push(list.to_vec());
                lists.len() - 1
            }
        }
    }
}
