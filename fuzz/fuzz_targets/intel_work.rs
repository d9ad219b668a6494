//! Any bytes as commands, kernel, surface states and descriptors of the work at the stop of an Intel engine. The first four
//! bytes say the device and the driver, the stage, the view, and how the rest is divided; of gen4 to gen7.5 the third and fourth say
//! where in the batch and its states the rest is. `cargo fuzz run intel_work`
#![no_main]

mod shown;

use libfuzzer_sys::fuzz_target;
use unwedge_campaigns::View;
use unwedge_testkit::i915_old::{DEVICES, OldEra};
use unwedge_testkit::intel::TestDevice;
use unwedge_testkit::intel_old_states::OldWorkStates;
use unwedge_testkit::intel_states::{TestStage, WorkStates};
use unwedge_testkit::{i915, xe};

const BATCH: u64 = 0x10_0010_0000;
const STATES: u64 = 0x20_0000_0000;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[device, stage, view, parts], data)) = bytes.split_first_chunk() else { return };
    if device & 0xc0 == 0x40 {
        return old(device & 0x3f, stage, [view, parts], data);
    }
    let of_xe = device & 0x80 != 0;
    let device = TestDevice::ALL[usize::from(device & 0x7f) % TestDevice::ALL.len()];
    let stage = TestStage::ALL[usize::from(stage) % TestStage::ALL.len()];
    if !stage.is_of(device) {
        return;
    }
    let mut work = WorkStates::new(device, stage, STATES, 0x1000);
    let words: Vec<u32> = data.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    // Bits of `parts` say which of the four have a share.
    let chosen: Vec<usize> = (0..4).filter(|part| parts >> part & 1 != 0).collect();
    let shares = words.chunks(words.len().div_ceil(chosen.len().max(1)).max(1));
    for (part, share) in chosen.into_iter().zip(shares) {
        match part {
            0 => work.kernel = share.to_vec(),
            1 => overwrite(&mut work.surface, share),
            2 => overwrite(&mut work.dynamic, share),
            _ => {
                work.batch.splice(work.work..work.work, share.iter().copied());
                work.work += share.len();
            }
        }
    }
    let engine = work.engine(BATCH);
    let text = if of_xe {
        xe::DevcoreBuilder::new(device).engine(engine).text()
    } else {
        i915::ErrorStateBuilder::new(device).engine(engine).text()
    };
    shown::shown(&text, &View::OF_INTEL, view);
});

/// Commands and states of gen4 to gen7.5, which are in one buffer.
fn old(device: u8, dispatch: u8, [view, place]: [u8; 2], data: &[u8]) {
    let device = DEVICES[usize::from(device) % DEVICES.len()];
    let mut work =
        if dispatch & 1 != 0 { OldWorkStates::dispatch(device) } else { OldWorkStates::draw(device) };
    let words: Vec<u32> = data.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let from = usize::from(place) * 8 % work.batch.len();
    let mut changed = work.batch.split_off(from);
    overwrite(&mut changed, &words);
    work.batch.append(&mut changed);
    shown::shown(&work.error_state(OldEra::V3_16).text(), &View::OF_INTEL, view);
}

/// Exclusive or, so that zeros leave what is there.
fn overwrite(memory: &mut Vec<u32>, with: &[u32]) {
    memory.resize(memory.len().max(with.len()), 0);
    memory.iter_mut().zip(with).for_each(|(word, change)| *word ^= change);
}
