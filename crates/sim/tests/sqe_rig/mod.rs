//! Firmware assembled for tests, and an emulator that runs it.

use unwedge_isa::afuc::{AfucNames, Firmware, FirmwareBlob, Processor, asm, assemble};
use unwedge_sim::adreno::sqe::SqeEmulator;

pub use unwedge_isa::afuc::DbNames;

pub fn build(source: &str, names: &dyn AfucNames) -> Vec<u8> {
    assemble(source, &asm::AfucAsmOptions::default(), names).unwrap_or_else(|errors| panic!("{errors}"))
}

pub fn words(source: &str, names: &dyn AfucNames) -> Vec<u32> {
    FirmwareBlob::new(&build(source, names)).words
}

/// A firmware whose bootstrap routine loads the packet table and asks for a packet, and then `handlers`.
pub fn firmware(version: &str, handlers: &str) -> String {
    format!(
        "[{version}]
[#jumptbl]
mov $01, 0x830
mov $02, 2
cwrite $01, [$00 + @REG_READ_ADDR]
cwrite $02, [$00 + @REG_READ_DWORDS]
mov $01, $regdata
mov $02, $regdata
mov $03, #jumptbl << 2
add $01, $01, $03
addhi $02, $02, 0
mov $rem, 0x80
cwrite $01, [$00 + @MEM_READ_ADDR]
cwrite $02, [$00 + @MEM_READ_ADDR+1]
cwrite $rem, [$00 + @MEM_READ_DWORDS]
cwrite $00, [$00 + @PACKET_TABLE_WRITE_ADDR]
(rep)cwrite $memdata, [$00 + @PACKET_TABLE_WRITE]
waitin
mov $01, $data
{handlers}
jumptbl:
.jumptbl
"
    )
}

pub const A6XX: &str = "016ee001";

pub fn boot<'n>(handlers: &str, names: &'n dyn AfucNames) -> SqeEmulator<'n> {
    let words = words(&firmware(A6XX, handlers), names);
    SqeEmulator::new(Firmware::A630, &words, Processor::Sqe, names)
}
