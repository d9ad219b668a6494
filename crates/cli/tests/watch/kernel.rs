//! A kernel that makes dumps in a folder in place of sysfs, by the rules of `drivers/base/devcoredump.c`: a device holds one dump at a
//! time, which is dropped when `data` is written to, or after a time. On each write it checks that the dump has been kept.

use super::program::Folder;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use unwedge::base::hash::Fnv1a;
use unwedge::files::Input;
use unwedge_keep::{FileRole, KeptName};

/// What became of a dump that the kernel took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpState {
    /// It is there.
    Held,
    /// It was acknowledged.
    Acknowledged,
    /// Nobody came for it.
    Expired,
}

struct DeviceDump {
    node: PathBuf,
    dump: Vec<u8>,
    made: Instant,
    state: DumpState,
    /// A thread gives it slowly, and waits for the acknowledgement.
    slow: bool,
}

#[derive(Default)]
struct KernelState {
    dumps: Vec<DeviceDump>,
    /// The dump that each device holds, as an index.
    held: BTreeMap<u32, usize>,
    count: u32,
    /// Dumps that were acknowledged while they were not safe.
    unsafe_: Vec<String>,
}

/// The kernel.
pub struct Kernel {
    pub folder: Folder,
    state: Arc<Mutex<KernelState>>,
    stop: Arc<AtomicBool>,
    life: Duration,
    thread: Option<JoinHandle<()>>,
}

/// The kept dumps of a folder, decompressed; names that do not belong there.
pub fn kept(store: &Path) -> (Vec<Vec<u8>>, Vec<String>) {
    let (mut dumps, mut others) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(store).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().expect("UTF-8");
        match KeptName::parse(&name) {
            Some(kept) if kept.role == FileRole::Dump => {
                dumps.push(Input::open(&entry.path(), 1 << 30).expect("a kept dump").bytes);
            }
            Some(_) => {}
            None if name == ".lock" => {}
            None => others.push(name),
        }
    }
    (dumps, others)
}

/// Whether a dump is in the folder, whole. Names are looked at before files, which get their signatures meanwhile.
fn is_kept(store: &Path, dump: &[u8]) -> bool {
    let hash = Fnv1a::of(dump);
    let text = format!("{hash:016x}");
    for _ in 0..100 {
        let entries = fs::read_dir(store).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let names: Vec<String> = names.filter(|name| name.contains(&text)).collect();
        let of_dump = |name: &&String| {
            KeptName::parse(name).is_some_and(|kept| kept.stem.hash == hash && kept.role == FileRole::Dump)
        };
        for name in names.iter().filter(of_dump) {
            match Input::open(&store.join(name), 1 << 30) {
                Ok(input) => return input.bytes == dump,
                Err(_) => continue,
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
    false
}

impl Kernel {
    /// One that drops dumps after `life`.
    pub fn new(life: Duration) -> Kernel {
        let folder = Folder::new();
        fs::create_dir_all(folder.0.join("sys/class/devcoredump")).unwrap();
        let mut kernel = Kernel { folder, state: Arc::default(), stop: Arc::default(), life, thread: None };
        let (state, stop, store) = (kernel.state.clone(), kernel.stop.clone(), kernel.store());
        kernel.thread = Some(thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                look(&mut state.lock().unwrap(), life, &store);
                thread::sleep(Duration::from_millis(5));
            }
        }));
        kernel
    }

    pub fn sysfs(&self) -> PathBuf {
        self.folder.0.join("sys")
    }

    pub fn store(&self) -> PathBuf {
        self.folder.0.join("store")
    }

    /// A device hangs. Without a dump if it holds one already.
    pub fn hang(&self, device: u32, dump: &[u8]) -> bool {
        self.add(device, dump, false, |data| fs::write(data, dump).unwrap())
    }

    /// A device hangs whose dump is printed a page at a time.
    pub fn hang_slowly(&self, device: u32, dump: &[u8], pause: Duration) -> bool {
        self.add(device, dump, true, |data| {
            assert!(Command::new("mkfifo").arg(data).status().unwrap().success());
            let (real, dump, state) = (data.to_owned(), dump.to_vec(), self.state.clone());
            let store = self.store();
            // The folder gets its name after this.
            let name = real.parent().unwrap().file_name().unwrap().to_string_lossy().replace("new-", "");
            let data = real.parent().unwrap().with_file_name(name).join("data");
            thread::spawn(move || {
                while !data.exists() {
                    thread::sleep(Duration::from_millis(1));
                }
                let mut pipe = File::options().write(true).open(&data).unwrap();
                for page in dump.chunks(4096) {
                    if pipe.write_all(page).is_err() {
                        return;
                    }
                    thread::sleep(pause);
                }
                drop(pipe);
                let mut written = Vec::new();
                File::open(&data).unwrap().read_to_end(&mut written).unwrap();
                acknowledge(&mut state.lock().unwrap(), &data, &store);
            });
        })
    }

    fn add(&self, device: u32, dump: &[u8], slow: bool, make: impl FnOnce(&Path)) -> bool {
        let mut state = self.state.lock().unwrap();
        if state.held.contains_key(&device) {
            return false;
        }
        state.count += 1;
        let class = self.sysfs().join("class/devcoredump");
        let (new, node) =
            (class.join(format!("new-devcd{}", state.count)), class.join(format!("devcd{}", state.count)));
        fs::create_dir(&new).unwrap();
        make(&new.join("data"));
        fs::rename(&new, &node).unwrap();
        let dump = dump.to_vec();
        let index = state.dumps.len();
        let (made, data) = (Instant::now(), node.join("data"));
        state.dumps.push(DeviceDump { node: data, dump, made, state: DumpState::Held, slow });
        state.held.insert(device, index);
        true
    }

    /// Looks for acknowledgements now: writes to the real `data` take effect at once.
    pub fn settle(&self) {
        look(&mut self.state.lock().unwrap(), self.life, &self.store());
    }

    /// The dumps that it took, and what became of them.
    pub fn dumps(&self) -> Vec<(Vec<u8>, DumpState)> {
        self.state.lock().unwrap().dumps.iter().map(|dump| (dump.dump.clone(), dump.state)).collect()
    }

    pub fn count(&self, wanted: DumpState) -> usize {
        self.state.lock().unwrap().dumps.iter().filter(|dump| dump.state == wanted).count()
    }

    /// Fails if a dump was acknowledged that was not safe.
    pub fn check(&self) {
        assert_eq!(self.state.lock().unwrap().unsafe_, [""; 0]);
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Drops what was written to, and what is too old.
fn look(state: &mut KernelState, life: Duration, store: &Path) {
    let held: Vec<usize> = state.held.values().copied().collect();
    for index in held {
        let dump = &state.dumps[index];
        let data = dump.node.clone();
        let mut first = [0];
        let written = !dump.slow
            && File::open(&data).and_then(|mut file| file.read_exact(&mut first)).is_ok()
            && first[0] != dump.dump[0];
        if written {
            acknowledge(state, &data, store);
        } else if dump.made.elapsed() >= life {
            release(state, index, DumpState::Expired);
        }
    }
}

fn acknowledge(state: &mut KernelState, data: &Path, store: &Path) {
    let Some(index) = state.dumps.iter().position(|dump| dump.node == data) else { return };
    if !is_kept(store, &state.dumps[index].dump) {
        state.unsafe_.push(data.display().to_string());
    }
    release(state, index, DumpState::Acknowledged);
}

fn release(state: &mut KernelState, index: usize, end: DumpState) {
    state.held.retain(|_, held| *held != index);
    let dump = &mut state.dumps[index];
    dump.state = end;
    let _ = fs::remove_dir_all(dump.node.parent().unwrap());
}
