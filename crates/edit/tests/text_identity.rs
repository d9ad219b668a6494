//! The text of a submit assembles to the sections that it was made from, byte for byte.

use unwedge_capture::rd::{RdReader, RdSectionKind};
use unwedge_edit::text::{self, SubmitText, TextError, TextOptions};
use unwedge_hw::Db;
use unwedge_testkit::{captures, data};

/// More than any capture here has alive.
const LIMIT: u64 = 1 << 30;

fn messages(errors: &[TextError]) -> String {
    errors.iter().take(5).map(|error| error.in_file("text")).collect::<Vec<_>>().join("\n")
}

/// The text of a submit, or why it does not come back.
fn check(name: &str, capture: &[u8], number: u32, db: &Db) -> Result<SubmitText, String> {
    let (sections, _) =
        text::cut(capture, number, db, LIMIT).map_err(|error| format!("{name}:{number}: {error}"))?;
    let text = text::decompile(&sections, db, TextOptions::default());
    let again = text::compile(&text.text, db, None, LIMIT)
        .map_err(|errors| format!("{name}:{number}: {}", messages(&errors)))?;
    if again != sections {
        let at = again.iter().zip(&sections).position(|(a, b)| a != b);
        return Err(format!(
            "{name}:{number}: {} bytes, of {}, differ at {at:?}",
            again.len(),
            sections.len()
        ));
    }
    Ok(text)
}

/// Submits of a capture.
fn submits(capture: &[u8]) -> u32 {
    let mut reader = RdReader::new(capture);
    let mut count = 0;
    while let Some(section) = reader.next() {
        count += u32::from(section.kind == RdSectionKind::CmdStreamAddr);
    }
    count
}

/// Every capture of the data: all submits of all of them with `UNWEDGE_ALL=1`, otherwise of a sample.
#[test]
fn submits_of_real_captures_come_back() {
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let db = Db::builtin();
    let (mut tried, mut opaque, mut failures) = (0, 0, Vec::new());
    for (folder, step) in [("captures", 1), ("renders", 5), ("compute", 9), ("graphics/captures", 97)] {
        let step = if all { 1 } else { step };
        for path in data::files(&format!("adreno/{folder}"), ".rd.gz").iter().step_by(step) {
            let capture = data::read(path);
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let count = submits(&capture);
            let of_each = if all { 1 } else { count.div_ceil(2) as usize };
            for number in (0..count).step_by(of_each.max(1)) {
                tried += 1;
                match check(&name, &capture, number, &db) {
                    Ok(text) => {
                        opaque += text.opaque.len();
                        if !text.opaque.is_empty() {
                            println!("{name}:{number}: {:x?} {}", text.opaque, messages(&text.refused));
                        }
                    }
                    Err(failure) => failures.push(failure),
                }
            }
        }
    }
    println!(
        "{tried} submits, {} do not come back, {opaque} streams and shaders shown as numbers",
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(opaque, 0);
    assert!(tried > 0 || data::files("adreno/captures", ".rd.gz").is_empty());
}

/// Captures of every generation, whole ones and broken ones: whatever is cut out of them has a text that comes back.
#[test]
fn submits_of_any_capture_come_back() {
    let db = Db::builtin();
    let whole = captures::variety();
    let count = if std::env::var_os("UNWEDGE_ALL").is_some() { 5_000 } else { 60 };
    let broken = (0..count).map(|seed| match seed % 3 {
        0 => captures::hostile(seed),
        _ => captures::mutate(&whole[seed as usize % whole.len()], seed),
    });
    let mut tried = 0;
    for (index, capture) in whole.iter().cloned().chain(broken).enumerate() {
        let name = format!("capture {index}");
        for number in 0..submits(&capture).min(2) {
            // Not every submit of a broken capture can be cut out.
            if text::cut(&capture[..], number, &db, LIMIT).is_ok() {
                tried += 1;
                check(&name, &capture, number, &db).unwrap_or_else(|failure| panic!("{failure}"));
            }
        }
    }
    assert!(tried > whole.len(), "{tried}");
}
