//! A GPU is the same GPU to every command: the A702 has the number of an a7xx and is an a6xx.

mod program;

use program::{text, unwedge};
use unwedge::base::Generation;
use unwedge::hw::Db;
use unwedge_testkit::devcore::DevcoreBuilder;

fn said(args: &[&str], dump: &[u8]) -> (String, String) {
    let output = unwedge(args, dump);
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn an_a702_is_an_a6xx_everywhere() {
    let db = Db::builtin();
    let name = |generation, offset| Some(db.gpu(generation).reg(offset)?.name().to_owned());
    let (offset, of_a6xx, of_a7xx) = (0x8000..0xb000)
        .find_map(|offset| {
            let names = (name(Generation::A6xx, offset)?, name(Generation::A7xx, offset)?);
            (names.0 != names.1).then_some((offset, names.0, names.1))
        })
        .unwrap();
    for (gpu_id, chip) in [(702, [7, 0, 2, 0]), (0, [7, 0, 2, 1])] {
        let dump = DevcoreBuilder::a6xx().revision(gpu_id, chip).register(offset, 1).text();
        for command in ["decode", "crashdec"] {
            let (listing, notes) = said(&[command, "-"], &dump);
            assert!(listing.contains(&of_a6xx) && !listing.contains(&of_a7xx), "{command}: {listing}");
            assert!(!notes.contains("a7xx"), "{command}: {notes}");
        }
        let (lines, _) = said(&["decode", "--json", "-"], &dump);
        let mut lines = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        assert_eq!(lines.next().unwrap()["gpu"]["generation"], "a6xx");
        assert!(lines.any(|line| line["type"] == "register" && line["name"] == *of_a6xx));
        let (info, _) = said(&["info", "--json", "-"], &dump);
        let info: serde_json::Value = serde_json::from_str(&info).unwrap();
        assert_eq!(info["dump"]["generation"], "a6xx");
        let (report, _) = said(&["explain", "--json", "-"], &dump);
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert!(report["gpu"].to_string().contains("a6xx"), "{}", report["gpu"]);
    }
}
