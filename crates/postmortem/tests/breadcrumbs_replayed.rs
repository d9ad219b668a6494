//! Captures with breadcrumbs replay on the virtual Adreno to the memory of the originals, while the CPU acknowledges.
//!
//! A sample of the recorded captures; all of them with `UNWEDGE_ALL=1`.

#[path = "edited/replay.rs"]
mod replay;

use replay::{LIMIT, Replayed, StreamPlaces, edited};
use unwedge_edit::breadcrumbs::{BreadcrumbEditor, BreadcrumbMap};
use unwedge_edit::rewrite::AddressSpace;
use unwedge_hw::Db;
use unwedge_sim::adreno::Loading;
use unwedge_testkit::data;

const STEPS: u64 = 1 << 32;
/// Captures of each folder.
const EACH: usize = 3;

#[test]
fn breadcrumbs_change_nothing_else() {
    let (db, all) = (Db::builtin(), std::env::var_os("UNWEDGE_ALL").is_some());
    let (mut wrong, mut seen, mut breadcrumbs) = (Vec::new(), 0, 0);
    for folder in ["adreno/renders", "adreno/compute", "adreno/graphics/captures"] {
        let files = data::files(folder, ".rd.gz");
        let step = if all { 1 } else { (files.len() / EACH).max(1) };
        for file in files.into_iter().step_by(step) {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let bytes = data::read(&file);
            // With and without waits for the CPU.
            let mut editor = BreadcrumbEditor::new(seen % 4 != 3);
            let (out, result) = edited(&bytes, &mut editor, &db).expect("written");
            assert!(result.diagnostics.is_empty(), "{name}: {:?}", result.diagnostics);
            breadcrumbs += editor.count();
            let map =
                BreadcrumbMap::read(AddressSpace::scan(&out[..]), &out[..], &db, LIMIT).expect("read").0;
            assert_eq!(2 * map.len(), editor.count() as usize, "{name}");
            let places = StreamPlaces::of(&bytes, &db);
            let before = Replayed::new(&bytes, Loading::Delta, STEPS, &db);
            let after = Replayed::new(&out, Loading::Delta, STEPS, &db);
            let (differ, _) = before.differences(&after, &places);
            if before.ends != after.ends || !differ.is_empty() {
                let (ends, first) = ((&before.ends, &after.ends), differ.first());
                wrong.push(format!("{name}: {ends:?}, {} dwords {first:x?}", differ.len()));
            }
            seen += 1;
        }
    }
    println!("{seen} captures, {breadcrumbs} breadcrumbs");
    assert!(wrong.is_empty(), "{} of {seen}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(seen == 0 || breadcrumbs > 0);
}
