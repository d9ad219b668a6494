//! What only running a firmware tells: its sections, and the packet table of each.

use super::{INSTRUCTION_BASE, SqeEmulator, SqeStop};
use unwedge_isa::afuc::disasm::{self, AfucDisasmOptions, DisasmError, FirmwareSection, ListingForm};
use unwedge_isa::afuc::{AfucNames, Firmware, FirmwareBlob, Processor};

/// Instructions a bootstrap routine may run; those of real firmware take a few thousand.
const BOOTSTRAP_STEPS: u64 = 200_000;

/// Runs the bootstrap routine of each processor: the sections of what is loaded, and how each routine ended.
pub fn boot(words: &[u32], firmware: Firmware, names: &dyn AfucNames) -> Vec<(FirmwareSection, SqeStop)> {
    let boot = |processor, start: usize| {
        let mut emulator =
            SqeEmulator::new(firmware, words.get(start..).unwrap_or_default(), processor, names);
        emulator.set_log_limit(0);
        let stop = emulator.run_bootstrap(BOOTSTRAP_STEPS);
        (emulator, stop)
    };
    let (main, stop) = boot(Processor::Sqe, 0);
    let inside = |address: Option<u64>| {
        let offset = address?.checked_sub(INSTRUCTION_BASE)? / 4;
        usize::try_from(offset).ok().filter(|&offset| offset > 0 && offset < words.len())
    };
    let mut starts = vec![(Processor::Sqe, 0)];
    let (bv, lpac) = (inside(main.bv_base()), inside(main.lpac_base()));
    starts.extend(bv.map(|start| (Processor::Bv, start)));
    starts.extend(lpac.filter(|&start| bv.is_none_or(|bv| start > bv)).map(|start| (Processor::Lpac, start)));
    let ends: Vec<usize> = starts.iter().skip(1).map(|&(_, start)| start).chain([words.len()]).collect();
    let mut found = Vec::new();
    let mut first = Some((main, stop));
    for (&(processor, start), end) in starts.iter().zip(ends) {
        let (emulator, stop) = first.take().unwrap_or_else(|| boot(processor, start));
        let table = emulator.packet_table().to_vec();
        found.push((FirmwareSection::new(words, processor, start, end, table), stop));
    }
    found
}

/// The sections of what is loaded, found by running the bootstrap routine of each processor.
pub fn sections(words: &[u32], firmware: Firmware, names: &dyn AfucNames) -> Vec<FirmwareSection> {
    boot(words, firmware, names).into_iter().map(|(section, _)| section).collect()
}

/// Disassembles a firmware file, with the sections that running it finds.
///
/// # Errors
///
/// As [`unwedge_isa::afuc::disassemble`].
pub fn disassemble(
    bytes: &[u8],
    options: &AfucDisasmOptions,
    names: &dyn AfucNames,
) -> Result<String, DisasmError> {
    let blob = FirmwareBlob::new(bytes);
    // A file that is too large for a firmware is written as words.
    let as_words = options.raw
        || options.form == ListingForm::Exact && !options.verbose && blob.words.len() > disasm::LARGEST;
    let firmware = options.firmware.or(blob.firmware());
    let sections = match firmware.filter(|firmware| firmware.generation() >= 6 && !as_words) {
        Some(firmware) => sections(&blob.words, firmware, names),
        None => Vec::new(),
    };
    unwedge_isa::afuc::disassemble(bytes, &sections, options, names)
}
