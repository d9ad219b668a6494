//! Where the SQE of an Adreno was in its firmware, as data of a report.

/// Where the SQE was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqePosition {
    /// What the firmware's file is called.
    pub firmware: String,
    /// The PC, in dwords from the start of the firmware.
    pub pc: u32,
    /// The packet whose handler the PC is in, and how many instructions into it.
    pub handler: Option<(String, u32)>,
    /// What the instructions there wait for.
    pub waits_for: Option<String>,
    /// The instructions around the PC; none when it is not in the firmware's code.
    pub instructions: Vec<SqeInstruction>,
}

/// An instruction of the firmware.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqeInstruction {
    /// In dwords from the start of the firmware.
    pub offset: u32,
    /// The instruction.
    pub word: u32,
    /// Its text.
    pub text: String,
    /// Packets whose handlers start here.
    pub handlers: Vec<String>,
}
