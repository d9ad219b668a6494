//! Broken dumps: no panic, no loss of a byte, no more memory or time than the input warrants.

mod data;

use std::time::{Duration, Instant};
use unwedge_capture::devcore::lines::Lines;
use unwedge_capture::devcore::{Blob, Devcore};
use unwedge_testkit::devcore::variety;
use unwedge_testkit::mutate::mutate;

/// Whatever the bytes: reads them, writes them back as they were, and decodes all data in bounds.
fn check(text: &[u8]) {
    let started = Instant::now();
    let lines: usize = Lines::new(text).map(|line| line.raw.len()).sum();
    assert_eq!(lines, text.len(), "lines lose nothing");
    let Ok(dump) = Devcore::read(text) else { return };
    let mut written = Vec::new();
    dump.write(&mut written);
    assert!(written == text, "written as read");
    let again = Devcore::read(&written).expect("still a dump");
    assert!(again == dump, "reads the same again");

    let blobs = dump
        .rings
        .iter()
        .map(|r| &r.data)
        .chain(dump.bos.iter().map(|b| &b.data))
        .chain([&dump.gmu_log, &dump.gmu_hfi, &dump.gmu_debug].into_iter().flatten().map(|b| &b.data))
        .chain(dump.indexed.iter().map(|i| &i.data))
        .chain(dump.shader_blocks.iter().flat_map(|b| &b.banks).map(|b| &b.data))
        .chain(dump.debugbus.iter().map(|b| &b.data));
    let decoded: usize = blobs.flatten().map(Blob::decode).map(|d| d.capacity() * 4).sum();
    assert!(decoded <= text.len() * 5, "{decoded} bytes of data from {}", text.len());
    assert!(dump.diagnostics.len() < 256);
    let memory = dump.memory();
    for bo in &dump.bos {
        memory.find(bo.iova);
        memory.read(bo.iova.wrapping_add(bo.size));
    }
    assert!(started.elapsed() < Duration::from_secs(1), "took {:?}", started.elapsed());
}

#[test]
fn mutated_synthetic_dumps() {
    let dumps = variety();
    for seed in 0..4000 {
        let (_, text) = &dumps[seed as usize % dumps.len()];
        check(&mutate(text, seed));
    }
}

#[test]
fn mutated_real_dumps() {
    for (_, text) in data::dumps() {
        for seed in 0..20 {
            check(&mutate(&text, seed));
        }
    }
}

#[test]
fn every_cut_of_a_dump() {
    let text = unwedge_testkit::devcore::DevcoreBuilder::complete(unwedge_base::Generation::A7xx).text();
    for end in 0..text.len() {
        check(&text[..end]);
    }
}

#[test]
fn many_of_anything_takes_linear_time() {
    let repeated: [&[u8]; 16] = [
        b"\n",
        b"x:\n",
        b"---\n",
        b"kernel: 1\n",
        b"registers:\n",
        b"bos:\n  - iova: 0x1\n",
        b"  - iova: 0x1\n    size: 0xffffffffffffffff\n    data: !!ascii85 |\n     z\n",
        b"  - id: 1\n",
        b"    iova: 1\n",
        b"- bank: 1\n",
        b"    - context: 0\n",
        b"  - cluster-name: A\n",
        b"    queue-history[15]: 1\n",
        b"- {offset:4 value:1\n",
        b"    data: !!ascii85 |\n",
        b"zzzzzzzz",
    ];
    for heading in ["ringbuffer:\n", "bos:\n", "clusters:\n", "shader-blocks:\n  - type: A\n", "gmu-hfi:\n"] {
        for line in repeated {
            check(&[heading.as_bytes(), &line.repeat(200_000 / line.len())].concat());
        }
    }
}
