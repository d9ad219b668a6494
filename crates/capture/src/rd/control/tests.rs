use super::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Files in memory: contents, and how often they were flushed.
type Files = Rc<RefCell<BTreeMap<String, (Vec<u8>, usize)>>>;

#[derive(Clone, Default)]
struct Disk(Files);

struct MemoryFile(Files, String);

impl Write for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().get_mut(&self.1).unwrap().0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().get_mut(&self.1).unwrap().1 += 1;
        Ok(())
    }
}

impl CaptureHost for Disk {
    type Output = MemoryFile;

    fn create(&mut self, file: &str) -> io::Result<MemoryFile> {
        if file.starts_with("full_disk") {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.borrow_mut().insert(file.to_owned(), Default::default());
        Ok(MemoryFile(self.0.clone(), file.to_owned()))
    }

    fn create_trigger(&mut self, file: &str) -> io::Result<()> {
        self.create(file).map(drop)
    }

    fn take_trigger(&mut self, file: &str) -> io::Result<Vec<u8>> {
        let mut files = self.0.borrow_mut();
        let (contents, _) = files.get_mut(file).ok_or(io::ErrorKind::NotFound)?;
        Ok(std::mem::take(contents))
    }

    fn remove_trigger(&mut self, file: &str) -> io::Result<()> {
        self.0.borrow_mut().remove(file).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }
}

impl Disk {
    fn names(&self) -> Vec<String> {
        self.0.borrow().keys().cloned().collect()
    }

    fn trigger(&self, text: &str) {
        self.0.borrow_mut().get_mut("dev_trigger").unwrap().0 = text.as_bytes().to_vec();
    }
}

/// Which of these submits are asked for.
fn written(control: &mut CaptureControl<Disk>, submits: std::ops::Range<u32>) -> Vec<u32> {
    submits.filter(|&submit| control.begin(None, submit).unwrap().is_some()).collect()
}

#[test]
fn options() {
    let flags = |text| {
        let s = CaptureSettings::parse(text);
        [s.enable, s.combine, s.full, s.trigger]
    };
    assert_eq!(flags(""), [false; 4]);
    assert_eq!(flags("enable"), [true, false, false, false]);
    assert_eq!(flags("combine"), [true, true, false, false]);
    assert_eq!(flags("full,trigger"), [true, false, true, true]);
    assert_eq!(flags("full trigger,,combine"), [true; 4]);
    assert_eq!(flags("all"), [true; 4]);
    assert_eq!(flags("ENABLE,fully,off"), [false; 4]);
}

#[test]
fn names_are_plain() {
    let name = |test: Option<&str>, device: &str| {
        CaptureSettings { test: test.map(str::to_owned), ..CaptureSettings::default() }.name(device)
    };
    assert_eq!(name(None, "tu_0x1234-a.b"), "tu_0x1234-a.b");
    assert_eq!(name(Some("dEQP/x y:z"), "../dev"), "dEQP_x_y_z_.._dev");
    assert_eq!(name(None, "Bär"), "B__r", "bytes, not characters");
}

#[test]
fn ranges() {
    let these = |r: &[(u32, u32)]| Ranges::These(r.to_vec());
    assert_eq!(Ranges::parse(""), Ranges::Any);
    assert_eq!(Ranges::parse("120-140,160,0x10"), these(&[(120, 140), (160, 160), (16, 16)]));
    assert_eq!(Ranges::parse("7,"), these(&[(7, 7)]));
    for bad in ["x", "1-", "-1", "1 2", "1,,2", "1-2-3", "99999999999", "1é"] {
        assert_eq!(Ranges::parse(bad), these(&[]), "{bad}");
    }
}

#[test]
fn a_submit_is_written_to_a_file_of_its_own() {
    let disk = Disk::default();
    let mut control = CaptureControl::new(CaptureSettings::parse("enable"), "dev", disk.clone()).unwrap();
    let mut recording = control.begin(None, 7).unwrap().unwrap();
    recording.chip_id(ChipId(0x0603_0001)).unwrap();
    recording.process("game").unwrap();
    assert!(recording.wants(true) && !recording.wants(false));
    recording.buffer(MemoryRange { iova: 0x1_0000_0000, size: 8 }, Some(&[1; 8])).unwrap();
    recording.buffer(MemoryRange { iova: 0x2_0000_0000, size: 8 }, None).unwrap();
    recording.stream(MemoryRange { iova: 0x1_0000_0000, size: 2 }).unwrap();
    recording.end().unwrap();
    assert!(control.begin(Some(3), 8).unwrap().is_some());
    assert_eq!(disk.names(), ["dev_frame00003_submit00008.rd", "dev_submit00007.rd"]);
    let files = disk.0.borrow();
    let (bytes, flushed) = &files["dev_submit00007.rd"];
    assert_eq!(*flushed, 1);
    let mut reader = super::super::RdReader::new(&bytes[..]);
    let mut sections = Vec::new();
    while let Some(section) = reader.next() {
        sections.push((section.kind.name(), section.payload.len()));
    }
    let wanted = [
        ("chip_id", 8),
        ("cmd", 5),
        ("gpuaddr", 12),
        ("buffer_contents", 8),
        ("gpuaddr", 12),
        ("cmdstream_addr", 12),
    ];
    assert_eq!(sections, wanted);
}

#[test]
fn combined_submits_are_readable_one_by_one() {
    let disk = Disk::default();
    let settings = CaptureSettings { test: Some("T".to_owned()), ..CaptureSettings::parse("combine,full") };
    let mut control = CaptureControl::new(settings, "dev", disk.clone()).unwrap();
    assert_eq!(disk.names(), ["T_dev_combined.rd.gz"], "made before the first submit");
    for submit in 0..3 {
        let mut recording = control.begin(None, submit).unwrap().unwrap();
        assert!(recording.wants(false));
        recording.process("x").unwrap();
        recording.end().unwrap();
    }
    assert_eq!(disk.0.borrow()["T_dev_combined.rd.gz"], ([2, 0, 0, 0, 2, 0, 0, 0, b'x', 0].repeat(3), 3));
    control.finish().unwrap();
}

#[test]
fn the_trigger_file_says_when() {
    let disk = Disk::default();
    let mut control = CaptureControl::new(CaptureSettings::parse("trigger"), "dev", disk.clone()).unwrap();
    assert_eq!(written(&mut control, 0..3), [0; 0], "nothing was asked for yet");
    for (text, submits) in [
        ("2\n", vec![0, 1]),
        ("", vec![]),
        ("-1", vec![0, 1, 2, 3, 4]),
        ("", vec![0, 1, 2, 3, 4]),
        ("0x3", vec![0, 1, 2]),
        ("-1\n", vec![0, 1, 2, 3, 4]),
        ("0", vec![]),
        ("3 please", vec![0, 1, 2]),
        ("-1", vec![0, 1, 2, 3, 4]),
        ("stop", vec![]),
        ("-2", vec![]),
        ("99999999999999999999", vec![0, 1, 2, 3, 4]),
    ] {
        if !text.is_empty() {
            disk.trigger(text);
        }
        assert_eq!(written(&mut control, 0..5), submits, "{text:?}");
    }
    control.finish().unwrap();
    assert!(!disk.names().contains(&"dev_trigger".to_owned()));
}

#[test]
fn nobody_asked() {
    let disk = Disk::default();
    let mut control = CaptureControl::new(CaptureSettings::default(), "dev", disk.clone()).unwrap();
    assert_eq!(written(&mut control, 0..3), [0; 0]);
    drop(control);
    assert!(disk.names().is_empty());
}

#[test]
fn frames_or_submits() {
    let variables = |name: &str| {
        let value = match name {
            "FD_RD_DUMP" => "enable",
            "FD_RD_DUMP_FRAMES" => "2",
            "FD_RD_DUMP_SUBMITS" => "0,5-6",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let mut control = CaptureControl::new(CaptureSettings::of(variables), "dev", Disk::default()).unwrap();
    let submits = |control: &mut CaptureControl<Disk>, frames: bool| -> Vec<u32> {
        let frame = |submit| frames.then_some(submit / 2);
        (0..8).filter(|&s| control.begin(frame(s), s).unwrap().is_some()).collect()
    };
    assert_eq!(submits(&mut control, true), [0, 4, 5, 6]);
    assert_eq!(submits(&mut control, false), [0, 5, 6]);
}

#[test]
fn a_host_that_fails() {
    let disk = Disk::default();
    assert!(CaptureControl::new(CaptureSettings::parse("combine"), "full_disk", disk.clone()).is_err());
    assert!(CaptureControl::new(CaptureSettings::parse("trigger"), "full_disk", disk.clone()).is_err());
    let mut control = CaptureControl::new(CaptureSettings::parse("trigger"), "dev", disk.clone()).unwrap();
    disk.0.borrow_mut().clear();
    assert!(control.begin(None, 0).is_err(), "somebody removed the trigger file");
    assert!(control.finish().is_err());
}
