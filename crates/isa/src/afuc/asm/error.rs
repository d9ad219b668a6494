//! What can be wrong with a source, and where.

use std::fmt;

/// One mistake in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfucError {
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// What is wrong.
    pub problem: AfucProblem,
}

impl AfucError {
    pub(super) fn at(line: usize, column: usize, problem: AfucProblem) -> AfucError {
        AfucError { line, column, problem }
    }
}

/// What is wrong at a place of a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AfucProblem {
    /// Characters that are no token.
    #[error("`{0}` is not part of the language")]
    Unreadable(String),
    /// There is no such register.
    #[error(
        "no register `{0}`: expected $00 to $1f, $sp, $lr, $rem, $data, $memdata, $regdata, $addr or $usraddr"
    )]
    NoRegister(String),
    /// More mistakes than are reported; the others are not told.
    #[error("too many errors: the rest are not listed")]
    TooMany,
    /// A number over 32 bits.
    #[error("`{0}` is over 32 bits")]
    TooLarge(String),
    /// Something else was expected.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What could stand here.
        expected: &'static str,
        /// What does.
        found: String,
    },
    /// There is no such instruction.
    #[error("no instruction `{0}`")]
    NoMnemonic(String),
    /// There is no such modifier.
    #[error("no modifier `({0})`: expected (rep), (peek), (xmov1) to (xmov3), (sds1) to (sds3)")]
    NoModifier(String),
    /// There is no such directive.
    #[error("no directive `.{0}`: expected .align, .jumptbl or .section")]
    NoDirective(String),
    /// There is no such control register on this firmware's GPU.
    #[error("no control register `@{0}` on this GPU")]
    NoControlRegister(String),
    /// There is no such SQE register on this firmware's GPU.
    #[error("no SQE register `%{0}` on this GPU")]
    NoSqeRegister(String),
    /// A label nobody declares in the section.
    #[error("no label `{0}` in this section")]
    NoLabel(String),
    /// A label declared twice in a section.
    #[error("label `{label}` is already on line {line}")]
    LabelTwice {
        /// The label.
        label: String,
        /// Line of the first.
        line: usize,
    },
    /// The packet table has no such entry.
    #[error("`{0}` is beyond the packet table's 128 entries")]
    BeyondTable(String),
    /// An alignment that is not a positive multiple of 4, or absurd.
    #[error("cannot align to {0} bytes: expected a multiple of 4 up to 4096")]
    BadAlignment(u32),
    /// `setsecure` skips two instructions, always.
    #[error("`setsecure` goes three instructions on: to {expected:#x}, not to {found:#x}")]
    SecureTarget {
        /// Offset it goes to.
        expected: u32,
        /// Offset of the label.
        found: u32,
    },
    /// The hardware reads `$02`, always.
    #[error("`setsecure` reads $02, no other register")]
    SecureRegister,
    /// There is no encoding.
    #[error(transparent)]
    Encode(#[from] super::super::insn::InsnEncodeError),
    /// No literal tells which firmware this is.
    #[error("which firmware? The first line must be its version, such as [016ee001]")]
    NoVersion,
    /// The version is of no known firmware.
    #[error("unknown firmware id {0:03x} in the version")]
    UnknownFirmware(u32),
    /// More words than any firmware has.
    #[error("the firmware is over {0} words")]
    TooLong(usize),
}

/// Every mistake in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfucErrors {
    /// Name of the source.
    pub file: String,
    /// The mistakes, by line.
    pub list: Vec<AfucError>,
    /// The lines they stand on, one for each.
    pub lines: Vec<String>,
}

impl fmt::Display for AfucErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (error, line)) in self.list.iter().zip(&self.lines).enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            let AfucError { line: number, column, problem } = error;
            if !self.file.is_empty() {
                write!(f, "{}:", self.file)?;
            }
            writeln!(f, "{number}:{column}: error: {problem}")?;
            writeln!(f, "    {line}")?;
            let before = line.get(..column.saturating_sub(1)).unwrap_or(line);
            let indent: String = before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            write!(f, "    {indent}^")?;
        }
        Ok(())
    }
}

impl std::error::Error for AfucErrors {}
