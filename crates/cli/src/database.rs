//! The register database: the built-in one, or rnndb XML of the user's own tree.

use crate::args::Global;
use crate::failure::{Failure, complain};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use unwedge::hw::Db;

/// A file of a register database is never larger.
const MAX_XML: u64 = 64 << 20;
/// Complaints about XML that are printed one by one; the rest is counted.
const ISSUES_SHOWN: usize = 5;

/// The database the options and the environment ask for.
pub fn load(global: &Global) -> Result<Db, Failure> {
    let Some(list) = global.regdb.as_ref().filter(|l| !l.is_empty()) else { return Ok(Db::builtin()) };
    let folders: Vec<PathBuf> = std::env::split_paths(list).filter(|p| !p.as_os_str().is_empty()).collect();
    let source = list.to_string_lossy();
    let (db, issues) = Db::from_rnndb(&source, &mut |name| folders.iter().find_map(|f| fetch(f, name)))
        .map_err(|e| Failure::Database(format!("register database {source}: {e}")))?;
    for issue in issues.iter().take(ISSUES_SHOWN) {
        complain!("register database {source}: {issue}");
    }
    if issues.len() > ISSUES_SHOWN {
        complain!("register database {source}: and {} more", issues.len() - ISSUES_SHOWN);
    }
    Ok(db)
}

/// A file of a folder, plain or gzipped.
fn fetch(folder: &Path, name: &str) -> Option<Vec<u8>> {
    let path = folder.join(name);
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(&path) {
        file.take(MAX_XML).read_to_end(&mut bytes).ok()?;
        return Some(bytes);
    }
    let mut packed = path.into_os_string();
    packed.push(".gz");
    let file = std::io::BufReader::new(File::open(packed).ok()?);
    flate2::bufread::MultiGzDecoder::new(file).take(MAX_XML).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
