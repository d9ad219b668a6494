//! Walks of batches: commands a second.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use unwedge_base::{Buffer, Memory};
use unwedge_hw::intel::IntelGpu;
use unwedge_hw::intel::platform::{EngineClass, Version};
use unwedge_stream::intel::commands::Decoder;
use unwedge_stream::intel::state::IntelState;
use unwedge_stream::intel::walk::{IntelWalk, Space, Spaces};
use unwedge_testkit::intel::{MI_BATCH_BUFFER_END, load_registers, pipe_control, primitive, stream};

fn main() {
    divan::main();
}

/// 4 MiB of draws, flushes and register writes.
fn batch() -> Memory {
    let draw = stream(&[&load_registers(&[(0x2580, 0x0001_0001)]), &primitive(3), &pipe_control(1 << 20)]);
    let mut words = draw.repeat((1 << 20) / draw.len());
    words.push(MI_BATCH_BUFFER_END);
    let size = words.len() as u64 * 4;
    [Buffer { iova: 0x10_0000, size, contents: Some(words), name: String::new() }].into_iter().collect()
}

fn bench(bencher: Bencher<'_, '_>, with: impl Fn(IntelWalk<'_>) -> u64 + Sync) {
    let (memory, none) = (batch(), Memory::default());
    let decoder = Decoder::new(Version::new(12, 0), EngineClass::Render);
    let spaces = Spaces { ggtt: &none, ppgtt: &memory };
    bencher
        .counter(BytesCount::new(memory.stored() * 4))
        .bench(|| with(IntelWalk::batch(decoder, black_box(spaces), Space::Ppgtt, 0x10_0000)));
}

#[divan::bench]
fn walk_a_batch(bencher: Bencher<'_, '_>) {
    bench(bencher, |walk| walk.count() as u64);
}

#[divan::bench]
fn walk_a_batch_and_track_state(bencher: Bencher<'_, '_>) {
    bench(bencher, |walk| {
        let mut state = IntelState::new(IntelGpu::of(12, 0));
        walk.for_each(|event| state.see(&event));
        state.counts().draws
    });
}
