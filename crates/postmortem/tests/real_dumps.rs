//! Every dump that `UNWEDGE_DATA` holds: what must be true of any real hang.

use std::path::{Path, PathBuf};

use unwedge_capture::msm::Devcore;
use unwedge_hw::Db;
use unwedge_postmortem::{FindingKind, Trust, explain_msm};

fn data() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    std::env::var_os("UNWEDGE_DATA").map_or(default, PathBuf::from).join("adreno/devcoredump")
}

fn gunzip(path: &Path) -> Vec<u8> {
    use std::io::Read;
    let file = std::fs::File::open(path).expect("a file the index names");
    let mut out = Vec::new();
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut out).expect("gzip");
    out
}

#[test]
fn real_hangs_are_found() {
    let folder = data();
    let Ok(index) = std::fs::read_to_string(folder.join("index.csv")) else {
        eprintln!("skipped: no dumps at {}", folder.display());
        return;
    };
    let db = Db::builtin();
    let mut lines = index.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = header.iter().position(|&c| c == "dump").expect("a column `dump`");
    for line in lines.filter(|l| !l.is_empty()) {
        let name = line.split(',').nth(column).expect("a dump's name").trim_matches('"');
        let text = gunzip(&folder.join(name));
        let dump = Devcore::read(&text).expect("a dump");
        let report = explain_msm(&dump, &db);
        let hang = report.hang.as_ref().unwrap_or_else(|| panic!("{name}: no stop"));
        let garbage = report.findings[0].args.number("garbage");
        assert!((hang.packet.is_some() || garbage.is_some()) && hang.iova.is_some(), "{name}: {hang:?}");
        assert!(hang.trust >= Trust::Likely, "{name}: {hang:?}");
        assert!(hang.levels.windows(2).all(|w| w[0].level < w[1].level), "{name}: {hang:?}");
        assert_eq!(report.findings[0].kind, FindingKind::HangPoint, "{name}");
        for finding in &report.findings {
            let empty = finding.evidence.is_empty() && finding.kind != FindingKind::NotCaptured;
            assert!(!empty, "{name}: {finding:?}");
        }
        assert!(!report.advice.is_empty(), "{name}");
    }
}
