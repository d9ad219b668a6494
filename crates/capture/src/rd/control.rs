//! Capture control: which submits a driver writes to which captures, as the user asks with `FD_RD_DUMP`.
//!
//! A state machine between a driver, which offers its submits, and a [`CaptureHost`], which has files. Names, options and the
//! trigger file are those of Mesa's drivers (`freedreno_rd_output`), so that their users find what they know. Never:
//! files, the environment, compression: those are the host's.

use super::{MemoryRange, RdSectionKind, RdWriteError, RdWriter};
use std::io::{self, Write};
use unwedge_base::ChipId;

/// Where Mesa's drivers put captures and trigger files.
pub const FOLDER: &str = if cfg!(target_os = "android") { "/data/local/tmp" } else { "/tmp" };

/// Bytes of a trigger file that count.
const TRIGGER: usize = 31;

/// What the user asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureSettings {
    /// Captures are written at all.
    pub enable: bool,
    /// All submits go into one capture, instead of one each.
    pub combine: bool,
    /// The contents of every buffer, which a replay needs.
    pub full: bool,
    /// A file says when.
    pub trigger: bool,
    /// What names begin with.
    pub test: Option<String>,
    /// Only submits of these frames, or of `submits`.
    pub frames: Ranges,
    /// Only these submits, or those of `frames`.
    pub submits: Ranges,
}

impl CaptureSettings {
    /// As environment variables say: `FD_RD_DUMP`, `FD_RD_DUMP_TESTNAME`, `FD_RD_DUMP_FRAMES`, `FD_RD_DUMP_SUBMITS`.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> CaptureSettings {
        let mut settings = CaptureSettings::parse(&variable("FD_RD_DUMP").unwrap_or_default());
        settings.test = variable("FD_RD_DUMP_TESTNAME");
        let ranges = |name| Ranges::parse(&variable(name).unwrap_or_default());
        settings.frames = ranges("FD_RD_DUMP_FRAMES");
        settings.submits = ranges("FD_RD_DUMP_SUBMITS");
        settings
    }

    /// As the value of `FD_RD_DUMP` says: words between commas or blanks, or `all`. Words that mean nothing are passed
    /// over; any other word than `enable` implies it.
    pub fn parse(text: &str) -> CaptureSettings {
        let has = |word| text == "all" || text.split([',', ' ']).any(|w| w == word);
        let [combine, full, trigger] = ["combine", "full", "trigger"].map(has);
        let enable = has("enable") || combine || full || trigger;
        CaptureSettings { enable, combine, full, trigger, ..CaptureSettings::default() }
    }

    /// The name that all files of a device begin with: letters, digits, `-`, `_` and `.`; anything else is `_`.
    pub fn name(&self, device: &str) -> String {
        let whole = match &self.test {
            Some(test) => format!("{test}_{device}"),
            None => device.to_owned(),
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        whole.bytes().map(|byte| if plain(byte) { char::from(byte) } else { '_' }).collect()
    }

    fn allows(&self, frame: Option<u32>, submit: u32) -> bool {
        let all = self.frames == Ranges::Any && self.submits == Ranges::Any;
        all || frame.is_some_and(|frame| self.frames.names(frame)) || self.submits.names(submit)
    }
}

/// Numbers of frames or submits: `120-140,160,165`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ranges {
    /// Nothing is said.
    #[default]
    Any,
    /// These, the last one of each included. None where what is said makes no sense.
    These(Vec<(u32, u32)>),
}

impl Ranges {
    /// Reads numbers and pairs of numbers between commas.
    pub fn parse(text: &str) -> Ranges {
        if text.is_empty() {
            return Ranges::Any;
        }
        let number = |text: &str| match integer(text) {
            (value, "") if text.starts_with(|c: char| c.is_ascii_digit()) => u32::try_from(value).ok(),
            _ => None,
        };
        let range = |part: &str| match part.split_once('-') {
            Some((first, last)) => Some((number(first)?, number(last)?)),
            None => number(part).map(|one| (one, one)),
        };
        let parts = text.strip_suffix(',').unwrap_or(text).split(',');
        Ranges::These(parts.map(range).collect::<Option<_>>().unwrap_or_default())
    }

    /// The number is one of those named.
    fn names(&self, number: u32) -> bool {
        match self {
            Ranges::Any => false,
            Ranges::These(ranges) => ranges.iter().any(|&(first, last)| (first..=last).contains(&number)),
        }
    }
}

/// The number that a text begins with, as C reads it (blanks, a sign, `0x` or `0` for other bases), and the rest. 0
/// where there is none.
fn integer(text: &str) -> (i64, &str) {
    let start = text.trim_start();
    let (negative, digits) = match start.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, start.strip_prefix('+').unwrap_or(start)),
    };
    let hex = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    let (digits, base) = match hex.filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit())) {
        Some(rest) => (rest, 16),
        None => (digits, if digits.starts_with('0') { 8 } else { 10 }),
    };
    let (mut value, mut rest) = (0_i64, digits);
    while let Some(digit) = rest.chars().next().and_then(|c| c.to_digit(base)) {
        value = value.saturating_mul(base.into()).saturating_add(digit.into());
        rest = rest.get(1..).unwrap_or_default();
    }
    (if negative { value.saturating_neg() } else { value }, rest)
}

/// How many more submits a trigger file asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Triggered {
    /// So many.
    Left(u32),
    /// All, until it says otherwise.
    Always,
}

impl Triggered {
    /// What is written in the file means: a positive number that many submits, -1 all, anything else none. Nothing
    /// written leaves it as it was.
    fn read(self, contents: &[u8]) -> Triggered {
        if contents.is_empty() {
            return self;
        }
        let contents = contents.get(..TRIGGER).unwrap_or(contents);
        let text: String = contents.iter().map(|&byte| char::from(byte)).collect();
        match integer(&text).0 as i32 {
            -1 => Triggered::Always,
            value => Triggered::Left(u32::try_from(value).unwrap_or(0)),
        }
    }

    /// Counts a submit; whether it is asked for.
    fn spend(&mut self) -> bool {
        match self {
            Triggered::Always => true,
            Triggered::Left(left) => match left.checked_sub(1) {
                Some(less) => {
                    *left = less;
                    true
                }
                None => false,
            },
        }
    }
}

/// Where captures go. Files are called by their plain names; the host knows the folder ([`FOLDER`] for a driver).
pub trait CaptureHost {
    /// A capture being written. Mesa's are gzip: a flush must leave everything so far readable, also when nothing
    /// follows; dropping it closes it.
    type Output: Write;

    /// Starts a capture, in the place of one of the same name.
    ///
    /// # Errors
    ///
    /// Those of the host, if it cannot create the file.
    fn create(&mut self, file: &str) -> io::Result<Self::Output>;
    /// Makes an empty trigger file, for this user only.
    ///
    /// # Errors
    ///
    /// Those of the host, if it cannot create the file.
    fn create_trigger(&mut self, file: &str) -> io::Result<()>;
    /// What has been written to the trigger file since the last time, which empties it.
    ///
    /// # Errors
    ///
    /// Those of the host, if it cannot read or empty the file.
    fn take_trigger(&mut self, file: &str) -> io::Result<Vec<u8>>;
    /// The trigger file is of no more use.
    ///
    /// # Errors
    ///
    /// Those of the host, if it cannot remove the file.
    fn remove_trigger(&mut self, file: &str) -> io::Result<()>;
}

/// Decides for a device which submits are written, and where to.
#[derive(Debug)]
pub struct CaptureControl<H: CaptureHost> {
    settings: CaptureSettings,
    host: H,
    name: String,
    combined: Option<H::Output>,
    triggered: Triggered,
    /// There is a trigger file to remove.
    listening: bool,
}

impl<H: CaptureHost> CaptureControl<H> {
    /// Starts for a device, which `device` tells from others. With `combine` and `trigger` their files are made now.
    ///
    /// # Errors
    ///
    /// Those of the host, if it cannot create the combined capture or the trigger file.
    pub fn new(settings: CaptureSettings, device: &str, mut host: H) -> io::Result<CaptureControl<H>> {
        let name = settings.name(device);
        let combined = match settings.combine {
            true => Some(host.create(&format!("{name}_combined.rd.gz"))?),
            false => None,
        };
        let triggered = if settings.trigger { Triggered::Left(0) } else { Triggered::Always };
        let listening = settings.trigger;
        let control = CaptureControl { settings, host, name, combined, triggered, listening };
        control.listen()
    }

    fn listen(mut self) -> io::Result<CaptureControl<H>> {
        if let Some(file) = self.trigger_file() {
            // A file that could not be made is not there to be removed.
            self.listening = false;
            self.host.create_trigger(&file)?;
            self.listening = true;
        }
        Ok(self)
    }

    fn trigger_file(&self) -> Option<String> {
        self.listening.then(|| format!("{}_trigger", self.name))
    }

    /// What the user asks for.
    pub fn settings(&self) -> &CaptureSettings {
        &self.settings
    }

    /// The driver is about to submit. Gives what to write it to, if it is asked for. `frame` is for drivers that count
    /// frames.
    ///
    /// # Errors
    ///
    /// Those of the host, if it cannot read the trigger file or create the capture of this submit.
    pub fn begin(&mut self, frame: Option<u32>, submit: u32) -> io::Result<Option<Recording<'_, H>>> {
        if !self.settings.enable {
            return Ok(None);
        }
        if let Some(file) = self.trigger_file() {
            self.triggered = self.triggered.read(&self.host.take_trigger(&file)?);
        }
        if !self.triggered.spend() || !self.settings.allows(frame, submit) {
            return Ok(None);
        }
        let full = self.settings.full;
        let output = match &mut self.combined {
            Some(combined) => Output::Combined(combined),
            None => {
                let frame = frame.map(|frame| format!("frame{frame:05}_")).unwrap_or_default();
                let file = format!("{}_{frame}submit{submit:05}.rd", self.name);
                Output::Own(self.host.create(&file)?)
            }
        };
        Ok(Some(Recording { writer: RdWriter::new(output), full }))
    }

    /// Ends: closes the combined capture and removes the trigger file. Dropping does the same, and keeps quiet about
    /// what goes wrong.
    ///
    /// # Errors
    ///
    /// Those of the host, if it cannot flush the combined capture or remove the trigger file.
    pub fn finish(mut self) -> io::Result<()> {
        self.close()
    }

    fn close(&mut self) -> io::Result<()> {
        let flushed = self.combined.take().map_or(Ok(()), |mut combined| combined.flush());
        let removed = match self.trigger_file() {
            Some(file) => self.host.remove_trigger(&file),
            None => Ok(()),
        };
        self.listening = false;
        flushed.and(removed)
    }
}

impl<H: CaptureHost> Drop for CaptureControl<H> {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

/// Where a submit is written.
#[derive(Debug)]
enum Output<'c, O> {
    Own(O),
    Combined(&'c mut O),
}

impl<O: Write> Write for Output<'_, O> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Own(output) => output.write(bytes),
            Output::Combined(output) => output.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Own(output) => output.flush(),
            Output::Combined(output) => output.flush(),
        }
    }
}

/// A submit being written: first the GPU and the process, then every buffer, then the command streams, and
/// [`end`](Recording::end) before the GPU gets it, so that it is there when the GPU hangs.
#[derive(Debug)]
pub struct Recording<'c, H: CaptureHost> {
    writer: RdWriter<Output<'c, H::Output>>,
    full: bool,
}

impl<H: CaptureHost> Recording<'_, H> {
    /// Names the GPU.
    ///
    /// # Errors
    ///
    /// [`RdWriteError::Io`] if the host's output fails.
    pub fn chip_id(&mut self, chip_id: ChipId) -> Result<(), RdWriteError> {
        self.section(RdSectionKind::ChipId, &chip_id.0.to_le_bytes())
    }

    /// Names the process.
    ///
    /// # Errors
    ///
    /// [`RdWriteError::Io`] if the host's output fails, [`RdWriteError::TooLong`] for a name of 2 GiB or
    /// more.
    pub fn process(&mut self, name: &str) -> Result<(), RdWriteError> {
        let mut text = name.as_bytes().to_vec();
        text.push(0);
        self.section(RdSectionKind::Cmd, &text)
    }

    /// The contents of a buffer are written: all are with `full`, otherwise those that a decoder needs (`needed`):
    /// command streams, shaders, descriptors. Asked before a buffer is mapped.
    pub fn wants(&self, needed: bool) -> bool {
        needed || self.full
    }

    /// A buffer of the device, with its contents if they are [wanted](Recording::wants).
    ///
    /// # Errors
    ///
    /// [`RdWriteError::Io`] if the host's output fails, [`RdWriteError::TooLong`] for contents of 2 GiB or
    /// more.
    pub fn buffer(&mut self, range: MemoryRange, contents: Option<&[u8]>) -> Result<(), RdWriteError> {
        self.writer.range(RdSectionKind::GpuAddr, range, true)?;
        match contents {
            Some(contents) => self.section(RdSectionKind::BufferContents, contents),
            None => Ok(()),
        }
    }

    /// A command stream; its size is in dwords.
    ///
    /// # Errors
    ///
    /// [`RdWriteError::Io`] if the host's output fails.
    pub fn stream(&mut self, range: MemoryRange) -> Result<(), RdWriteError> {
        self.writer.range(RdSectionKind::CmdStreamAddr, range, true)
    }

    /// Any other section.
    ///
    /// # Errors
    ///
    /// [`RdWriteError::Io`] if the host's output fails, [`RdWriteError::TooLong`] for a payload of 2 GiB or
    /// more.
    pub fn section(&mut self, kind: RdSectionKind, payload: &[u8]) -> Result<(), RdWriteError> {
        self.writer.section(kind, payload)
    }

    /// All of the submit is written: it can be read from now on.
    ///
    /// # Errors
    ///
    /// Those of the host's output, if it cannot be flushed.
    pub fn end(self) -> io::Result<()> {
        self.writer.into_inner().flush()
    }
}

#[cfg(test)]
mod tests;
