//! Captures for tests: ones made here, and those of the folder of real files.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::fs;
use std::path::PathBuf;
use unwedge::base::Generation;
use unwedge::capture::rd::{MemoryRange, RdSectionKind, RdWriter};
use unwedge::hw::Db;
use unwedge_testkit::data;
use unwedge_testkit::pm4::{pkt0, pkt3, pkt4, pkt7};

/// Every capture of every index; empty, and said so, where there is none.
pub fn real() -> Vec<PathBuf> {
    let data = data::root();
    let mut found = Vec::new();
    for folder in ["adreno/captures", "adreno/renders"] {
        let folder = data.join(folder);
        let Ok(index) = fs::read_to_string(folder.join("index.csv")) else {
            println!("skipped: no {}", folder.join("index.csv").display());
            continue;
        };
        found.extend(index.lines().skip(1).filter_map(|row| row.split(',').next()).map(|f| folder.join(f)));
    }
    found.sort();
    found.dedup();
    found
}

/// A file for one test, gone with it.
pub struct Temporary(PathBuf);

impl Temporary {
    pub fn new(name: &str, bytes: &[u8]) -> Temporary {
        let path = std::env::temp_dir().join(format!("unwedge-{}-{name}", std::process::id()));
        fs::write(&path, bytes).expect("a temporary file");
        Temporary(path)
    }

    pub fn path(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A command stream of a generation.
#[derive(Clone)]
pub struct Stream {
    pub generation: Generation,
    pub words: Vec<u32>,
}

impl Stream {
    pub fn new(generation: Generation) -> Stream {
        Stream { generation, words: Vec::new() }
    }

    /// Writes a register by name, both halves of it if it has two.
    pub fn set(mut self, name: &str, value: u64) -> Stream {
        let db = Db::builtin();
        let register = db.gpu(self.generation).select(name).expect(name).remove(0);
        for (i, reg) in register.dwords().enumerate() {
            let value = [(value >> (32 * i)) as u32];
            let wide = self.generation.is_64bit();
            self.words.extend(if wide { pkt4(reg, &value) } else { pkt0(reg, &value) });
        }
        self
    }

    /// An operation by its packet's name.
    pub fn op(mut self, name: &str, payload: &[u32]) -> Stream {
        let db = Db::builtin();
        let gpu = db.gpu(self.generation);
        let opcode = (0..128).find(|&o| gpu.packet_name(o) == Some(name)).expect(name);
        let wide = self.generation.is_64bit();
        self.words.extend(if wide { pkt7(opcode.into(), payload) } else { pkt3(opcode.into(), payload) });
        self
    }

    /// A draw of triangles.
    pub fn draw(self, count: u32) -> Stream {
        match self.generation {
            Generation::A2xx | Generation::A3xx => self.op("CP_DRAW_INDX", &[0, 4, count]),
            _ => self.op("CP_DRAW_INDX_OFFSET", &[4, 1, count]),
        }
    }
}

/// A capture being written.
pub struct Capture {
    writer: RdWriter<Vec<u8>>,
    wide: bool,
}

impl Capture {
    pub fn new(gpu_id: u32) -> Capture {
        let mut capture = Capture { writer: RdWriter::new(Vec::new()), wide: true };
        capture.gpu(gpu_id);
        capture
    }

    /// From here on another GPU.
    pub fn gpu(&mut self, gpu_id: u32) {
        self.writer.section(RdSectionKind::GpuId, &gpu_id.to_le_bytes()).unwrap();
        self.wide = gpu_id >= 500;
    }

    pub fn process(mut self, name: &str) -> Capture {
        self.writer.section(RdSectionKind::Cmd, name.as_bytes()).unwrap();
        self
    }

    pub fn buffer(mut self, iova: u64, words: &[u32]) -> Capture {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let range = MemoryRange { iova, size: bytes.len() as u32 };
        self.writer.range(RdSectionKind::GpuAddr, range, self.wide).unwrap();
        self.writer.section(RdSectionKind::BufferContents, &bytes).unwrap();
        self
    }

    /// Submits a stream that lies in a buffer of its own.
    pub fn submit(self, iova: u64, stream: &Stream) -> Capture {
        let mut capture = self.buffer(iova, &stream.words);
        let range = MemoryRange { iova, size: stream.words.len() as u32 };
        capture.writer.range(RdSectionKind::CmdStreamAddr, range, capture.wide).unwrap();
        capture
    }

    pub fn bytes(self) -> Vec<u8> {
        self.writer.into_inner()
    }
}
