//! Dumps are kept on a disk that fails at every step in turn, under a kernel that checks, when a dump is acknowledged, that it is safe.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor, ErrorKind, Read, Write};
use std::rc::Rc;
use std::sync::Mutex;
use unwedge_keep::{
    Acknowledged, Disk, DumpNode, HeadKind, KeepEnd, KeepRequest, KeptName, Naming, TempName, adopt, keep,
};

/// Contents of a file, and whether they are on the medium.
#[derive(Clone, Default)]
struct StoredFile {
    bytes: Vec<u8>,
    synced: bool,
}

#[derive(Default)]
struct DiskState {
    files: BTreeMap<String, StoredFile>,
    /// What a loss of power leaves.
    durable: BTreeMap<String, Vec<u8>>,
    steps: usize,
    /// The step that fails, with what.
    fails: Option<(usize, ErrorKind)>,
    /// From the failure on every step fails, as for a process that was killed.
    killed: bool,
}

impl DiskState {
    fn step(&mut self) -> io::Result<()> {
        self.steps += 1;
        match self.fails {
            Some((step, kind)) if self.steps == step || self.killed && self.steps > step => Err(kind.into()),
            _ => Ok(()),
        }
    }
}

#[derive(Clone, Default)]
struct TestDisk(Rc<RefCell<DiskState>>);

struct TestFile(TestDisk, String);

impl Write for TestFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.0.borrow_mut();
        state.step()?;
        // Short writes are allowed.
        let bytes = &bytes[..bytes.len().min(50_000)];
        state.files.get_mut(&self.1).expect("a file").bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.0.borrow_mut().step()
    }
}

impl Disk for TestDisk {
    type File = TestFile;

    fn create(&self, name: &str) -> io::Result<TestFile> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        if state.files.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        state.files.insert(name.to_owned(), StoredFile::default());
        Ok(TestFile(self.clone(), name.to_owned()))
    }

    fn finish(&self, file: TestFile) -> io::Result<()> {
        self.sync(&file.1)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        Ok(state.files.keys().cloned().collect())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        assert!(!state.files.contains_key(to), "{to} would be lost");
        let file = state.files.remove(from).ok_or(ErrorKind::NotFound)?;
        state.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        state.files.remove(name).map(|_| ()).ok_or(ErrorKind::NotFound.into())
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        state.files.get_mut(name).ok_or(ErrorKind::NotFound)?.synced = true;
        Ok(())
    }

    fn sync_folder(&self) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        let synced = state.files.iter().filter(|(_, file)| file.synced);
        state.durable = synced.map(|(name, file)| (name.clone(), file.bytes.clone())).collect();
        Ok(())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read>> {
        let mut state = self.0.borrow_mut();
        state.step()?;
        let bytes = state.files.get(name).ok_or(ErrorKind::NotFound)?.bytes.clone();
        Ok(Box::new(Cursor::new(bytes)))
    }
}

/// A dump of the kernel, a page at a time.
struct TestNode {
    dump: Vec<u8>,
    at: usize,
    disk: TestDisk,
    acknowledged: bool,
    /// The byte after which reading fails, with an error of the system.
    fails: Option<(usize, i32)>,
}

impl Read for TestNode {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some((_, error)) = self.fails.filter(|(at, _)| self.at >= *at) {
            return Err(io::Error::from_raw_os_error(error));
        }
        let page = buffer.len().min(4096).min(self.dump.len() - self.at);
        buffer[..page].copy_from_slice(&self.dump[self.at..self.at + page]);
        self.at += page;
        Ok(page)
    }
}

impl DumpNode for TestNode {
    fn acknowledge(&mut self, _: &[u8]) -> io::Result<Acknowledged> {
        let state = self.disk.0.borrow();
        let safe =
            state.durable.iter().any(|(name, bytes)| KeptName::parse(name).is_some() && *bytes == self.dump);
        assert!(safe, "acknowledged before it was safe: {:?}", state.files.keys());
        self.acknowledged = true;
        Ok(Acknowledged::Yes)
    }
}

fn dump(seed: u8) -> Vec<u8> {
    let noise = (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8 ^ seed);
    b"dump of a GPU\n".iter().copied().chain(noise).collect()
}

fn kind(head: &[u8]) -> HeadKind {
    match head {
        _ if head.starts_with(b"dump") => HeadKind::Dump,
        _ if head.starts_with(b"No error") => HeadKind::NoDump,
        _ => HeadKind::Other,
    }
}

/// One attempt. Returns how it ended, and whether the dump was acknowledged.
fn attempt(disk: &TestDisk, dump: &[u8], number: u64, fails: Option<(usize, i32)>) -> (KeepEnd, bool) {
    let mut node = TestNode { dump: dump.to_vec(), at: 0, disk: disk.clone(), acknowledged: false, fails };
    let lock = Mutex::new(());
    let request = KeepRequest {
        temporary: TempName::new("devcd1", (1, number)),
        naming: Naming { millis: 5000, packing: "", lock: &lock },
        known_head: None,
        max_bytes: 1 << 20,
        kind: &kind,
    };
    let end = keep(&mut node, disk, &request);
    (end, node.acknowledged)
}

/// The contents of all files, which are kept dumps.
fn kept(disk: &TestDisk) -> Vec<Vec<u8>> {
    let state = disk.0.borrow();
    let of_name = |(name, file): (&String, &StoredFile)| {
        assert!(KeptName::parse(name).is_some(), "{name} was left behind");
        file.bytes.clone()
    };
    state.files.iter().map(of_name).collect()
}

/// The number of steps that keeping a dump takes.
fn steps_of(disk: &TestDisk) -> usize {
    disk.0.borrow().steps
}

#[test]
fn a_step_that_fails_leaves_the_dump_to_the_kernel_and_the_next_attempt_keeps_it_once() {
    let dump = dump(0);
    let probe = TestDisk::default();
    assert!(matches!(attempt(&probe, &dump, 0, None), (KeepEnd::Kept { known: false, .. }, true)));
    let steps = steps_of(&probe);
    assert!(steps > 10, "{steps}");
    for kind in [ErrorKind::StorageFull, ErrorKind::PermissionDenied, ErrorKind::Other] {
        for step in 1..=steps {
            let disk = TestDisk::default();
            disk.0.borrow_mut().fails = Some((step, kind));
            let (end, acknowledged) = attempt(&disk, &dump, 0, None);
            match end {
                KeepEnd::Failed(..) => assert!(!acknowledged, "step {step}"),
                end => panic!("step {step}: {end:?}"),
            }
            disk.0.borrow_mut().fails = None;
            let (end, acknowledged) = attempt(&disk, &dump, 1, None);
            assert!(matches!(end, KeepEnd::Kept { .. }) && acknowledged, "step {step}: {end:?}");
            assert_eq!(kept(&disk), std::slice::from_ref(&dump), "step {step}");
        }
    }
}

#[test]
fn a_process_that_is_killed_at_any_step_loses_nothing_and_the_next_one_keeps_the_dump_once() {
    let dump = dump(0);
    for loses_power in [false, true] {
        for step in 1.. {
            let disk = TestDisk::default();
            (disk.0.borrow_mut().fails, disk.0.borrow_mut().killed) = (Some((step, ErrorKind::Other)), true);
            let (_, acknowledged) = attempt(&disk, &dump, 0, None);
            let done = steps_of(&disk) < step;
            {
                let mut state = disk.0.borrow_mut();
                state.fails = None;
                if loses_power {
                    let durable = state.durable.clone().into_iter();
                    state.files =
                        durable.map(|(name, bytes)| (name, StoredFile { bytes, synced: true })).collect();
                }
            }
            // What the next process does at its start: the node is still there, so the part of its dump is deleted.
            let left: Vec<String> = disk.names().unwrap();
            for name in left.iter().filter(|name| TempName::parse(name).is_some()) {
                disk.remove(name).unwrap();
            }
            if !acknowledged {
                assert!(
                    matches!(attempt(&disk, &dump, 1, None), (KeepEnd::Kept { .. }, true)),
                    "step {step}"
                );
            }
            assert_eq!(kept(&disk), std::slice::from_ref(&dump), "step {step}");
            if done {
                break;
            }
        }
    }
}

#[test]
fn dumps_of_equal_contents_are_kept_once_and_others_never_take_their_place() {
    let disk = TestDisk::default();
    let dumps = [dump(0), dump(1)];
    for (n, dump) in [&dumps[0], &dumps[1], &dumps[0], &dumps[1]].into_iter().enumerate() {
        let (end, acknowledged) = attempt(&disk, dump, n as u64, None);
        assert!(acknowledged);
        assert!(matches!(end, KeepEnd::Kept { known, .. } if known == (n >= 2)), "{end:?}");
    }
    let kept: BTreeSet<Vec<u8>> = kept(&disk).into_iter().collect();
    assert_eq!(kept, dumps.iter().cloned().collect());
    // A file that lost its end is not the dump.
    {
        let mut state = disk.0.borrow_mut();
        state.files.values_mut().next().expect("a file").bytes.truncate(1000);
    }
    let ends = dumps.map(|dump| match attempt(&disk, &dump, 9, None).0 {
        KeepEnd::Kept { known, .. } => known,
        end => panic!("{end:?}"),
    });
    assert_eq!(ends.iter().filter(|known| **known).count(), 1, "{ends:?}");
}

/// What a burst costs is proportional to its dumps.
#[test]
fn steps_do_not_grow_with_the_number_of_kept_dumps() {
    let disk = TestDisk::default();
    let steps: Vec<usize> = (0..=20)
        .map(|number| {
            let before = steps_of(&disk);
            assert!(attempt(&disk, &dump(number), number.into(), None).1);
            steps_of(&disk) - before
        })
        .collect();
    assert!(steps.iter().all(|count| *count == steps[0]), "{steps:?}");
}

#[test]
fn a_dump_that_is_dropped_or_cannot_be_read_is_not_acknowledged() {
    let (disk, dump) = (TestDisk::default(), dump(0));
    for at in [0, 100, 20_000, 150_000, dump.len()] {
        let (end, acknowledged) = attempt(&disk, &dump, 0, Some((at, 19)));
        assert!(matches!(end, KeepEnd::Gone) && !acknowledged, "{at}: {end:?}");
        let (end, acknowledged) = attempt(&disk, &dump, 0, Some((at, 5)));
        assert!(matches!(end, KeepEnd::Failed(..)) && !acknowledged, "{at}: {end:?}");
    }
    assert!(kept(&disk).is_empty());
}

#[test]
fn only_dumps_of_gpus_are_read_and_only_as_long_as_they_may_be() {
    let disk = TestDisk::default();
    let network = [b"firmware of a network card".as_slice(), &[0; 100_000]].concat();
    let huge = [dump(0), vec![7; 1 << 20]].concat();
    for (contents, expected) in [
        (&b""[..], "Empty"),
        (b"No error state collected\n", "Empty"),
        (&network, "Other"),
        (&huge, "TooLarge"),
    ] {
        let (end, acknowledged) = attempt(&disk, contents, 0, None);
        assert!(format!("{end:?}").starts_with(expected) && !acknowledged, "{end:?}");
    }
    assert!(kept(&disk).is_empty());
}

#[test]
fn parts_of_dumps_that_are_gone_are_adopted() {
    let (disk, lock) = (TestDisk::default(), Mutex::new(()));
    let part = dump(0)[..70_000].to_vec();
    let files = [
        (".part-devcd1-1-0", part.clone()),
        (".part-devcd2-1-0", Vec::new()),
        (".part-x-1-0", b"?".to_vec()),
    ];
    for (name, bytes) in files {
        disk.0.borrow_mut().files.insert(name.to_owned(), StoredFile { bytes, synced: false });
    }
    let naming = Naming { millis: 7, packing: ".gz", lock: &lock };
    let adopted = |name: &str| adopt(&disk, name, naming, &kind).expect("it can be read").is_some();
    assert_eq!([".part-devcd1-1-0", ".part-devcd2-1-0", ".part-x-1-0"].map(adopted), [true, false, false]);
    assert_eq!(kept(&disk), [part]);
}
