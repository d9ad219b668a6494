//! What must hold for any input: shared by tests and fuzz targets. Panics where it does not.

use std::time::{Duration, Instant};
use unwedge_capture::amdgpu::Devcoredump;
use unwedge_capture::ascii85;
use unwedge_capture::bundle::Bundle;
use unwedge_capture::msm::lines::DevcoreLines;
use unwedge_capture::msm::{Blob, Devcore};
use unwedge_capture::radv::RadvReport;
use unwedge_capture::radv::{MemberKind, ReportMember};
use unwedge_capture::umr::UmrText;

/// Above what a slow machine under load takes for any input of a test, below what a hang takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Lists what a file holds, in bounds of memory and time.
pub fn bundle(file: &[u8]) {
    const LIMIT: u64 = 1 << 24;
    let started = Instant::now();
    if let Some(bundle) = Bundle::read(file, LIMIT) {
        let listed: u64 = bundle.entries.iter().map(|entry| bundle.bytes(entry).len() as u64).sum();
        assert!(listed <= file.len() as u64 + LIMIT, "{listed} bytes from {}", file.len());
        assert!(bundle.diagnostics.len() <= 100, "diagnostics are bounded");
        bundle.entries.iter().for_each(|entry| drop((entry.name(), entry.processor())));
    }
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
}

/// Reads a dump, writes it back as it was, and decodes all of its data in bounds of memory and time.
pub fn devcore(text: &[u8]) {
    let started = Instant::now();
    let lines: usize = DevcoreLines::new(text).map(|line| line.raw.len()).sum();
    assert_eq!(lines, text.len(), "lines lose nothing");
    let Ok(dump) = Devcore::read(text) else { return };
    let mut written = Vec::new();
    dump.write(&mut written);
    assert!(written == text, "written as read");
    assert!(Devcore::read(&written).as_ref() == Ok(&dump), "reads the same again");

    let gmu = [&dump.gmu_log, &dump.gmu_hfi, &dump.gmu_debug];
    let banks = dump.shader_blocks.iter().flat_map(|block| &block.banks);
    let blobs = (dump.rings.iter().map(|r| &r.data))
        .chain(dump.bos.iter().map(|b| &b.data))
        .chain(gmu.into_iter().flatten().map(|b| &b.data))
        .chain(dump.indexed.iter().map(|i| &i.data))
        .chain(banks.map(|b| &b.data))
        .chain(dump.debugbus.iter().map(|b| &b.data));
    let decoded: usize = blobs.flatten().map(Blob::decode).map(|d| d.capacity() * 4).sum();
    assert!(decoded <= text.len() * 5, "{decoded} bytes of data from {}", text.len());
    assert!(dump.diagnostics.len() < 256, "diagnostics are bounded");

    let memory = dump.memory();
    for bo in &dump.bos {
        memory.read(bo.iova);
        memory.read(bo.iova.wrapping_add(bo.size));
    }
    assert!(started.elapsed() < PATIENCE, "took {:?}", started.elapsed());
}

/// Decodes a text; what was read of it without complaint is what its dwords encode to.
pub fn ascii85(text: &[u8]) {
    let decoded = ascii85::decode(text);
    assert!(decoded.dwords.capacity() <= text.len());
    let clean = decoded.overflows == 0 && !decoded.partial;
    let canonical = !text.windows(5).any(|group| group == b"!!!!!");
    if clean && canonical {
        assert_eq!(ascii85::encode(&decoded.dwords), text[..decoded.consumed]);
    }
}

/// Reads an amdgpu devcoredump and writes it back as it was, in bounds of memory and time.
pub fn amdgpu_devcoredump(text: &[u8]) {
    let started = Instant::now();
    let Ok(dump) = Devcoredump::read(text) else { return };
    let mut written = Vec::new();
    dump.write(&mut written);
    assert!(written == text, "written as read");
    assert!(Devcoredump::read(&written).as_ref() == Ok(&dump), "reads the same again");
    let mut at = 0;
    for section in dump.sections() {
        assert_eq!(section.span.start, at, "sections follow each other");
        at = section.span.end;
    }
    assert_eq!(at, text.len() as u64, "sections are the whole text");
    let dwords: usize = dump.rings.iter().map(|ring| ring.contents.len()).sum();
    assert!(dwords <= text.len() / 4, "{dwords} dwords from {} bytes", text.len());
    assert!(dump.diagnostics.len() < 256, "diagnostics are bounded");
    dump.gc_version();
    dump.gfx_block_version();
    dump.hung_ring();
    assert!(started.elapsed() < PATIENCE, "took {:?}", started.elapsed());
}

/// Reads text as a RADV report, as each of a report's files, and as text of umr, in bounds of memory and time.
pub fn amdgpu_texts(text: &[u8]) {
    let started = Instant::now();
    let whole = RadvReport::read_text(text).into_iter();
    let files = MemberKind::file_names().filter_map(|name| {
        RadvReport::read(&[ReportMember { name: &name, bytes: text, offset: 0 }])
            .ok()
            .map(|report| report.diagnostics.len())
    });
    let told = whole.map(|report| report.diagnostics.len()).chain(files).max().unwrap_or(0);
    assert!(told < 4096, "{told} diagnostics");
    if let Ok(umr) = UmrText::read(text) {
        assert!(umr.diagnostics.len() < 256, "diagnostics are bounded");
        for wave in &umr.waves {
            wave.pc();
            wave.field("STATUS", "HALT");
        }
    }
    assert!(started.elapsed() < PATIENCE, "took {:?}", started.elapsed());
}
