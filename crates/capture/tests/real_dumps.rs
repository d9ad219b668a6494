//! Over the real dumps of `UNWEDGE_DATA`, where they are there.

use data::dumps;
use unwedge_base::Severity;
use unwedge_capture::msm::{Devcore, MsmLayout};
use unwedge_testkit::data;

#[test]
fn reading_then_writing_gives_back_the_bytes() {
    for (file, text) in dumps() {
        let dump = Devcore::read(&text).expect("a dump");
        let lost: Vec<_> = dump.diagnostics.iter().filter(|d| d.severity == Severity::Loss).collect();
        assert!(lost.is_empty(), "{file}: {lost:?}");
        let mut written = Vec::new();
        dump.write(&mut written);
        assert!(written == text, "{file}: not the same bytes");
        assert!(!dump.layout.has_exceptions(), "{file}: a kernel's lines are what the values say");
        assert!(!dump.rings.is_empty() && !dump.registers.is_empty(), "{file}");
    }
}

#[test]
fn the_values_alone_make_the_same_text() {
    for (file, text) in dumps() {
        let mut dump = Devcore::read(&text).expect("a dump");
        let headings: Vec<_> = dump.sections().iter().filter_map(|s| s.section).collect();
        dump.layout = MsmLayout::with_headings(&headings);
        let mut written = Vec::new();
        dump.write(&mut written);
        assert!(written == text, "{file}: not the same bytes");
    }
}
