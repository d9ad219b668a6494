//! Captures on a device that a test plays: what it is given, set by set, and what is made of its ends.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use unwedge_device::{DeviceEnd, DeviceError, DeviceStream, Errno, SubmitDevice};
use unwedge_hw::Db;
use unwedge_testkit::rd::CaptureBuilder;
use unwedge_view::Style;
use unwedge_view::replay::{MemoryWanted, Replacement, ReplayOptions, replay_on};

const DATA: u64 = 0x1_0000_0000;
const STREAM: u64 = 0x1_0010_0000;

/// A device that remembers.
#[derive(Default)]
struct Played {
    buffers: BTreeMap<u64, Vec<u8>>,
    submits: Vec<(Vec<u64>, Vec<DeviceStream>)>,
    /// How submits end; those that are not in it are done.
    ends: BTreeMap<usize, Result<DeviceEnd, DeviceError>>,
}

impl SubmitDevice for Played {
    fn addresses(&self) -> Range<u64> {
        1 << 32..2 << 32
    }

    fn load(&mut self, iova: u64, size: u64, contents: &[u8]) -> Result<(), DeviceError> {
        let mut bytes = contents.to_vec();
        bytes.resize(size as usize, 0);
        self.buffers.insert(iova, bytes);
        Ok(())
    }

    fn submit(&mut self, streams: &[DeviceStream]) -> Result<DeviceEnd, DeviceError> {
        self.submits.push((self.buffers.keys().copied().collect(), streams.to_vec()));
        self.ends.get(&(self.submits.len() - 1)).copied().unwrap_or(Ok(DeviceEnd::Done))
    }

    fn read(&mut self, iova: u64, size: u64) -> Result<Option<Vec<u8>>, DeviceError> {
        let Some((start, bytes)) = self.buffers.range(..=iova).next_back() else { return Ok(None) };
        let from = (iova - start) as usize;
        Ok(bytes.get(from..from + size as usize).map(<[u8]>::to_vec))
    }

    fn clear(&mut self) -> Result<(), DeviceError> {
        self.buffers.clear();
        Ok(())
    }
}

fn capture() -> Vec<u8> {
    let mut capture = CaptureBuilder::new(630, "test\0");
    for value in 1..4 {
        capture =
            capture.buffer(DATA, &[value; 8]).buffer(STREAM, &[0; 8]).submit(STREAM, 2).submit(STREAM + 8, 3);
    }
    capture.bytes()
}

fn stream(iova: u64, size: u32) -> DeviceStream {
    DeviceStream { iova, size }
}

#[test]
fn a_set_of_buffers_and_its_streams_are_given_at_once() {
    let mut device = Played::default();
    let place = |set| MemoryWanted { set, iova: DATA + 4, size: 4 };
    let wanted = vec![place(Some(1)), place(None), MemoryWanted { set: None, iova: 0, size: 4 }];
    let options = ReplayOptions { wanted, ..ReplayOptions::new(1) };
    let (replayed, lost) =
        replay_on(&mut device, "msm", &capture()[..], &options, None, &Db::builtin(), 1 << 30);
    assert_eq!(lost, []);
    assert_eq!(device.submits.len(), 3);
    assert_eq!(device.submits[2], (vec![DATA, STREAM], vec![stream(STREAM, 8), stream(STREAM + 8, 12)]));
    assert!(device.buffers.is_empty(), "they are taken away");
    assert_eq!(replayed.memory, [Some(vec![2, 0, 0, 0]), Some(vec![3, 0, 0, 0]), None]);
    assert!(replayed.is_complete() && replayed.submits() == 6);
    let mut text = Vec::new();
    replayed.text(Style::default(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("FD630, of msm") && !text.contains("changed"), "{text}");
}

#[test]
fn a_hang_is_told_and_a_refusal_ends_the_replay() {
    let refused = DeviceError::Refused { request: "DRM_MSM_GEM_SUBMIT", errno: Errno::EPERM };
    let ends = BTreeMap::from([(0, Ok(DeviceEnd::Hung)), (1, Err(refused))]);
    let mut device = Played { ends, ..Played::default() };
    let options = ReplayOptions::new(1);
    let (replayed, lost) =
        replay_on(&mut device, "msm", &capture()[..], &options, None, &Db::builtin(), 1 << 30);
    assert_eq!(device.submits.len(), 2, "nothing is given to a kernel that refuses");
    assert!(!replayed.is_complete());
    assert_eq!(lost.len(), 1);
    assert!(lost[0].to_string().contains("msm: DRM_MSM_GEM_SUBMIT: EPERM"), "{}", lost[0]);
    let mut text = Vec::new();
    replayed.text(Style::default(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("hung: the kernel's log says more") && text.contains("EPERM"), "{text}");
}

#[test]
fn a_stream_is_replaced_where_addresses_are_free() {
    const NEW: u64 = 0x1_4000_0000;
    let edited =
        CaptureBuilder::new(630, "new\0").buffer(NEW, &[0; 4]).buffer(DATA, &[9; 8]).submit(NEW, 4).bytes();
    let mut offered = None;
    let mut open = |free: Range<u64>| {
        offered = Some(free);
        Ok(Box::new(std::io::Cursor::new(edited.clone())) as Box<dyn Read>)
    };
    let replacement = Replacement::new(3, None, &mut open);
    let wanted = vec![MemoryWanted { set: Some(1), iova: DATA, size: 1 }];
    let options = ReplayOptions { wanted, ..ReplayOptions::new(1) };
    let mut device = Played::default();
    let (replayed, lost) =
        replay_on(&mut device, "msm", &capture()[..], &options, Some(replacement), &Db::builtin(), 1 << 30);
    assert_eq!(lost, []);
    assert_eq!(offered, Some(STREAM + 0x1000..2 << 32));
    assert_eq!(device.submits[1], (vec![DATA, STREAM, NEW], vec![stream(STREAM, 8), stream(NEW, 16)]));
    assert_eq!(replayed.memory, [Some(vec![9])]);
}
