//! Every program of `programs.csv.gz`: nothing but notes is found, and the restrictions that `rule-vectors.csv.gz` says the same
//! instruction breaks. Skipped, said so, without the data folder.

use std::collections::BTreeMap;
use unwedge_check::eu::{CheckOptions, Level, check};
use unwedge_isa::eu::Platform;
use unwedge_isa::eu::program::raw_bytes;
use unwedge_testkit::data;

fn table(name: &str) -> Option<String> {
    data::text(&format!("intel/eu/{name}"))
}

#[test]
fn programs_have_nothing_but_notes() {
    let (Some(text), Some(vectors)) = (table("programs.csv.gz"), table("rule-vectors.csv.gz")) else {
        return;
    };
    let listed = |platform: &str, bytes: &[u8], rule: &str| {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let row = format!(",{platform},{digits},");
        let mut rows = vectors.lines().filter(|line| line.contains(&row));
        rows.any(|line| line.rsplit(',').next().is_some_and(|rules| rules.split(' ').any(|r| r == rule)))
    };
    let (mut count, mut whole) = (0, 0);
    let mut by_rule: BTreeMap<(Level, &str), (usize, String)> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let mut fields = line.splitn(5, ',');
        let [_, platform, name, encoding] = std::array::from_fn(|_| fields.next().unwrap());
        let bytes = raw_bytes(encoding).unwrap();
        let report = check(Platform::by_name(platform).unwrap(), &bytes, CheckOptions::default());
        assert!(report.complete, "{platform} {name}");
        count += 1;
        whole += usize::from(report.whole);
        for f in &report.findings {
            let rule = f.rule.info().name;
            let at = f.at as usize;
            if f.level != Level::Note && listed(platform, bytes.get(at..at + 16).unwrap_or_default(), rule) {
                println!("{platform} {name} +{at:#x}: {rule}, as the same encoding among the vectors");
                continue;
            }
            let example = || (0, format!("{platform} {name} +{:#x}", f.at));
            by_rule.entry((f.level, f.rule.info().name)).or_insert_with(example).0 += 1;
        }
    }
    println!("{count} programs, {whole} of them whole");
    for ((level, rule), (times, example)) in &by_rule {
        println!("{times:6} {level:?} {rule}: {example}");
    }
    assert!(count > 0);
    assert!(by_rule.keys().all(|(level, _)| *level == Level::Note));
}
