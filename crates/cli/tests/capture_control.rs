//! A driver that records captures into a folder with the library: what is on disk, and when.
//!
//! The host is one over files and gzip, as a driver would have it. A capture is a row of gzip members, one for each time it was
//! flushed, so that what was flushed can be read whatever happens next.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use unwedge::base::ChipId;
use unwedge::capture::rd::control::{CaptureControl, CaptureHost, CaptureSettings};
use unwedge::capture::rd::{MemoryRange, RdReader};

/// A folder that captures go to.
struct Folder(PathBuf);

impl CaptureHost for Folder {
    type Output = Gzip;

    fn create(&mut self, file: &str) -> io::Result<Gzip> {
        Ok(Gzip { file: Some(File::create(self.0.join(file))?), member: None })
    }

    fn create_trigger(&mut self, file: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(self.0.join(file)).map(drop)
    }

    fn take_trigger(&mut self, file: &str) -> io::Result<Vec<u8>> {
        let mut trigger = OpenOptions::new().read(true).write(true).open(self.0.join(file))?;
        let mut contents = Vec::new();
        // More than a number needs; the rest goes away with the truncation.
        Read::by_ref(&mut trigger).take(64).read_to_end(&mut contents)?;
        if !contents.is_empty() {
            trigger.set_len(0)?;
            trigger.rewind()?;
        }
        Ok(contents)
    }

    fn remove_trigger(&mut self, file: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(file))
    }
}

/// A capture being written.
struct Gzip {
    /// Between two members.
    file: Option<File>,
    /// Inside of one.
    member: Option<GzEncoder<File>>,
}

impl Write for Gzip {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = self.file.take() {
            self.member = Some(GzEncoder::new(file, Compression::default()));
        }
        match &mut self.member {
            Some(member) => member.write(bytes),
            // A member that could not be ended has taken the file with it.
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(member) = self.member.take() {
            self.file = Some(member.finish()?);
        }
        Ok(())
    }
}

/// Sections of a capture on disk.
fn sections(path: &Path) -> usize {
    let packed = fs::read(path).expect("a capture");
    let mut reader = RdReader::new(flate2::read::MultiGzDecoder::new(&packed[..]));
    let mut count = 0;
    while reader.next().is_some() {
        count += 1;
    }
    assert!(reader.diagnostics().is_empty(), "{:?}", reader.diagnostics());
    count
}

fn record(control: &mut CaptureControl<Folder>, submit: u32) -> bool {
    let Some(mut recording) = control.begin(None, submit).unwrap() else { return false };
    recording.chip_id(ChipId(0x0603_0001)).unwrap();
    recording.process("test").unwrap();
    let buffer = MemoryRange { iova: 0x1_0000_0000, size: 1 << 16 };
    let contents = recording.wants(false).then(|| vec![7; 1 << 16]);
    recording.buffer(buffer, contents.as_deref()).unwrap();
    recording.stream(MemoryRange { size: 2, ..buffer }).unwrap();
    recording.end().unwrap();
    true
}

#[test]
fn captures_of_a_driver() {
    let path = std::env::temp_dir().join(format!("unwedge-control-{}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    let control = |settings| {
        CaptureControl::new(CaptureSettings::parse(settings), "tu dev", Folder(path.clone())).unwrap()
    };

    let mut each = control("enable");
    assert!((0..2).all(|submit| record(&mut each, submit)));
    assert_eq!(sections(&path.join("tu_dev_submit00001.rd")), 4);

    let mut combined = control("combine,full");
    for submit in 0..3 {
        record(&mut combined, submit);
        let so_far = sections(&path.join("tu_dev_combined.rd.gz"));
        assert_eq!(so_far, 5 * (submit as usize + 1), "readable before the capture is closed");
    }

    let trigger = path.join("tu_dev_trigger");
    let mut triggered = control("trigger");
    assert!(!record(&mut triggered, 10));
    fs::write(&trigger, "2\n").unwrap();
    assert_eq!([11, 12, 13].map(|submit| record(&mut triggered, submit)), [true, true, false]);
    assert_eq!(fs::read(&trigger).unwrap(), b"", "it is emptied once it is read");
    triggered.finish().unwrap();
    assert!(!trigger.exists() && path.join("tu_dev_submit00012.rd").exists());
    fs::remove_dir_all(&path).unwrap();
}
