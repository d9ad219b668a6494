//! Maintenance commands: `cargo xtask COMMAND`.

mod bench_dump;
mod dist;
mod docs;
mod fold_vectors;
mod import;
mod import_genxml;
mod import_isaspec;
mod ir3_code;
mod kernel_vectors;
mod mutate;
mod shaders;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask import-rnndb DIR [--devices CSV] [--version VERSION]
       cargo xtask import-isaspec DIR
       cargo xtask import-genxml DIR
       cargo xtask docs [--check]
       cargo xtask dist [--target TARGET] [--no-lua]
       cargo xtask assets
       cargo xtask bench-dump FILE [--binary PATH]
       cargo xtask fold-vectors OPS OUT [--seed S] [--count N] [--opt PROGRAM]
       cargo xtask kernel-vectors OUT [--seed S] [--count N] [--matrices N] [--gpu LIST]
                     [--llvm FOLDER] [--keep FOLDER]
       cargo xtask ir3-code GPU COUNT [--like FILE]
       cargo xtask mutate [N] [--seed S] [--only dumps|captures|contexts|i915|xe|amdgpu|amdisa]
                     [--like TEXT] [FILE…]
       cargo xtask shaders passes|stages|forms|spirv|nir|text|compile [N] [--seed S] [FILE…]
       cargo xtask shaders seeds FOLDER";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or_default();
    let result = match args.first().map(String::as_str) {
        Some("import-rnndb") => import::run(rest).map_err(|e| e.to_string()),
        Some("import-isaspec") => import_isaspec::run(rest).map_err(|e| e.to_string()),
        Some("import-genxml") => import_genxml::run(rest).map_err(|e| e.to_string()),
        Some("docs") => docs::run(rest),
        Some("dist") => dist::run(rest),
        Some("assets") => dist::assets(rest),
        Some("bench-dump") => bench_dump::run(rest),
        Some("fold-vectors") => fold_vectors::run(rest),
        Some("kernel-vectors") => kernel_vectors::run(rest),
        Some("ir3-code") => ir3_code::run(rest),
        Some("mutate") => mutate::run(rest),
        Some("shaders") => shaders::run(rest),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
