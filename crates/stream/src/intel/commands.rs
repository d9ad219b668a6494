//! Commands: what a header says, how long a command is, which fields it has.
//!
//! Names, lengths and fields come from `unwedge_hw::intel`. A command that the tables do not name has a length all the
//! same: every type of command has a rule for it, which stands here.
//!
//! Never: following addresses, formatting.

use unwedge_hw::intel::platform::{EngineClass, Version};
use unwedge_hw::intel::{IntelGpu, IntelInstruction, LayoutValues};

/// What decodes commands of one kind of engine of one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoder {
    /// The tables.
    pub gpu: IntelGpu,
    /// The engine.
    pub engine: EngineClass,
}

/// The type of a command: bits 31:29 of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandType {
    /// 0: MI, what the command streamer executes itself.
    Mi,
    /// 2: the blitter.
    Blitter,
    /// 3: the pipelines: 3D, GPGPU, media and video.
    Pipeline,
    /// 5: RESOURCE_BARRIER of Xe2.
    Barrier,
    /// Any other: no command.
    Other,
}

impl CommandType {
    /// Of a header.
    #[inline]
    pub fn of(header: u32) -> CommandType {
        match header >> 29 {
            0 => CommandType::Mi,
            2 => CommandType::Blitter,
            3 => CommandType::Pipeline,
            5 => CommandType::Barrier,
            _ => CommandType::Other,
        }
    }
}

/// A command of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Command<'w> {
    /// What the tables know of it; `None` for a command known by its length only.
    pub instruction: Option<IntelInstruction>,
    /// The dwords there are of it, the header first: fewer than `length` when the memory ends within.
    pub words: &'w [u32],
    /// Its length in dwords, as the header states it.
    pub length: u32,
}

impl<'w> Command<'w> {
    /// Its first dword.
    pub fn header(&self) -> u32 {
        self.words.first().copied().unwrap_or_default()
    }

    /// Its name; `None` when the tables have none.
    pub fn name(&self) -> Option<&'static str> {
        self.instruction.map(IntelInstruction::name)
    }

    /// The memory ends before the command does.
    pub fn is_cut(&self) -> bool {
        (self.words.len() as u64) < u64::from(self.length)
    }

    /// Its fields and their values. Nothing is decoded before it is asked for.
    pub fn fields(&self) -> LayoutValues<'w> {
        match self.instruction {
            Some(instruction) => instruction.layout().values(self.words, self.length),
            None => LayoutValues::none(),
        }
    }
}

impl Decoder {
    /// For engines of a class, of a graphics version.
    pub fn new(version: Version, class: EngineClass) -> Decoder {
        Decoder { gpu: IntelGpu::of(version.major.into(), version.release.into()), engine: class }
    }

    /// The command at the start of `words`; `None` when there are none, or the header is no command's.
    #[inline]
    pub fn command<'w>(&self, words: &'w [u32]) -> Option<Command<'w>> {
        let header = *words.first()?;
        let instruction = self.gpu.instruction(header, self.engine);
        let length = match instruction {
            Some(instruction) => instruction.length(header),
            None => length_by_type(header)?,
        };
        let words = words.get(..length as usize).unwrap_or(words);
        Some(Command { instruction, words, length })
    }
}

/// The length of a command by the rule of its type, for those without a name; `None` when there is none for this header.
pub fn length_by_type(header: u32) -> Option<u32> {
    let field = |high: u32, low: u32| header >> low & ((2 << (high - low)) - 1);
    match CommandType::of(header) {
        // Opcodes below 16 are of one dword.
        CommandType::Mi if field(28, 23) < 16 => Some(1),
        CommandType::Mi | CommandType::Blitter | CommandType::Barrier => Some(field(7, 0) + 2),
        CommandType::Pipeline => match (field(28, 27), field(26, 24)) {
            (0, 0 | 1) => Some(field(7, 0) + 2),
            (1, 0 | 1) => Some(1),
            (2, 0) => Some(field(7, 0) + 2),
            (2, 1 | 2) => Some(field(15, 0) + 2),
            // Video: HCP, AVP, HUC, VDENC.
            (2, _) => Some(field(11, 0) + 2),
            (3, 0..=3) => Some(field(7, 0) + 2),
            _ => None,
        },
        CommandType::Other => None,
    }
}
