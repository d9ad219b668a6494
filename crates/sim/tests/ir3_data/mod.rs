//! Compute dispatches of captures: collected from their command streams, as the command processor would hand them to the
//! shader processors.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use unwedge_hw::{Db, Gpu};
use unwedge_sim::SimMemory;
use unwedge_sim::adreno::ir3::{
    BindfulTable, BindfulTables, Dispatch, PrivateMemory, ShaderProgram, ShaderState,
};
use unwedge_stream::Flow;
use unwedge_stream::adreno::{AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoState, LoadState, Stage, StateType};
use unwedge_stream::play::{Consumer, Identity, Player, Submission, SubmitChoice};
use unwedge_testkit::data;

pub fn folder(name: &str) -> Option<PathBuf> {
    data::path(&format!("adreno/{name}"))
}

pub fn table(path: &Path) -> Vec<HashMap<String, String>> {
    let text = data::read_text(path);
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let row = |line: &str| {
        header.iter().zip(line.split(',')).map(|(k, v)| (k.to_string(), v.to_string())).collect()
    };
    lines.map(row).collect()
}

/// A dispatch as it was submitted.
pub struct Submitted {
    pub dispatch: Dispatch,
    pub code: u64,
    pub instructions: u32,
}

/// The dispatches of a capture in order, its memory, and the number of its GPU.
#[derive(Default)]
pub struct Capture {
    pub dispatches: Vec<Submitted>,
    pub memory: SimMemory,
    pub gpu_id: u32,
    /// Address and size of each buffer.
    pub buffers: Vec<(u64, u64)>,
}

struct Collector<'d> {
    gpu: Option<Gpu<'d>>,
    capture: Capture,
    constants: Vec<u32>,
}

/// First of the shared constants of a6xx.
const SHARED: usize = 504 * 4;

impl AdrenoSink for Collector<'_> {
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        match event {
            AdrenoEvent::LoadState(load) => self.load(load),
            AdrenoEvent::Packet(packet) if packet.op == AdrenoOp::ExecCs => {
                let groups = [1, 2, 3].map(|at| packet.payload.get(at).unwrap_or(0));
                self.dispatch(state, groups);
            }
            _ => {}
        }
        Flow::Continue
    }
}

impl Collector<'_> {
    fn load(&mut self, load: &LoadState<'_>) {
        let Some(contents) = load.contents else { return };
        let (at, count) = match (load.stage, load.ty) {
            (Some(Stage::Compute), StateType::Constants) => (load.dst as usize * 4, load.units as usize * 4),
            // Shared constants come as state of all images.
            (None, StateType::Ssbo2) => (SHARED + load.dst as usize, load.units as usize),
            _ => return,
        };
        for word in 0..count {
            if let (Some(place), Some(value)) = (self.constants.get_mut(at + word), contents.get(word)) {
                *place = value;
            }
        }
    }

    fn dispatch(&mut self, state: &AdrenoState, groups: [u32; 3]) {
        let gpu = self.gpu.expect("a GPU");
        let regs = state.current_regs();
        let offset = |name: &str| gpu.reg_offset(name);
        let reg = |name: &str| offset(name).map_or(0, |at| regs.raw(at));
        let wide = |name: &str| {
            offset(name).map_or(0, |at| u64::from(regs.raw(at)) | u64::from(regs.raw(at + 1)) << 32)
        };
        let a7xx = self.capture.gpu_id >= 700;
        let sets = if a7xx { 8 } else { 5 };
        // Indices are in hexadecimal but for the first one.
        let name = |set: u32| match set {
            0 => "SP_CS_BINDLESS_BASE[0].DESCRIPTOR".to_owned(),
            _ => format!("SP_CS_BINDLESS_BASE[{set:#x}].DESCRIPTOR"),
        };
        let bindless = (0..sets).map(|set| wide(&name(set))).collect();
        let is_first =
            |at: &u32| gpu.reg(*at).is_some_and(|reg| reg.name().starts_with("HLSQ_SHARED_CONSTS_IMM[0]"));
        let immediate_constants = match (0xa000..0xc000).find(is_first) {
            Some(at) => (0..64).map(|n| regs.raw(at + n)).collect(),
            None => Vec::new(),
        };
        let table = |name: &str| BindfulTable { address: wide(name), loaded: Vec::new() };
        let size = reg("HLSQ_CS_NDRANGE_0");
        // The registers of a6xx that are written; a7xx has one copy.
        let ids = reg(if a7xx { "SP_CS_CNTL_0" } else { "HLSQ_CS_CNTL_0" });
        let id = |low: u32| Some((ids >> low & 0xff) as u8).filter(|id| *id < 252);
        let threads = if a7xx { reg("SP_CS_CNTL_1") >> 8 } else { reg("HLSQ_CS_CNTL_1") >> 9 } & 1;
        let code = wide("SP_CS_OBJ_START") + u64::from(reg("SP_CS_OBJ_FIRST_EXEC_OFFSET"));
        self.capture.dispatches.push(Submitted {
            code,
            instructions: reg("SP_CS_INSTRLEN") * 16,
            dispatch: Dispatch {
                state: ShaderState {
                    wave_size: if threads == 1 { 128 } else { 64 },
                    constants: self.constants.clone(),
                    immediate_constants,
                    bindless,
                    tables: BindfulTables {
                        textures: table("SP_CS_TEX_CONST"),
                        images: table("SP_CS_IBO"),
                        ..BindfulTables::default()
                    },
                    private: PrivateMemory {
                        base: wide("SP_CS_PVT_MEM_ADDR"),
                        per_fiber: (reg("SP_CS_PVT_MEM_PARAM") & 0xff) << 9,
                    },
                    ..ShaderState::default()
                },
                entry: 0,
                groups,
                local_size: [size >> 2, size >> 12, size >> 22].map(|size| (size & 0x3ff) + 1),
                local_memory: ((reg("SP_CS_CTRL_REG1") & 0x1f) + 1) * 1024,
                local_id: id(24),
                group_id: id(0),
            },
        });
    }
}

impl<'d> Consumer<'d> for Collector<'d> {
    fn identity(&mut self, identity: Identity, gpu: Option<Gpu<'d>>) {
        self.gpu = gpu;
        self.capture.gpu_id = match identity {
            Identity::GpuId(id) => id,
            Identity::ChipId(_) => identity
                .name()
                .and_then(|name| name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok())
                .or(gpu.map(|gpu| if gpu.generation() >= unwedge_base::Generation::A7xx { 700 } else { 600 }))
                .unwrap_or(0),
        };
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let held = submission.live.memory();
        self.capture.memory = SimMemory::from(held);
        self.capture.buffers =
            held.buffers().iter().map(|buffer| (buffer.iova, buffer.end() - buffer.iova)).collect();
        let Ok(mut walk) = submission.open() else { return };
        walk.run(self);
    }
}

/// Reads a capture.
pub fn capture(path: &Path) -> Capture {
    let db = Db::builtin();
    let mut collector =
        Collector { gpu: None, capture: Capture::default(), constants: vec![0xdead_0c05; 512 * 4] };
    let mut player = Player::new(SubmitChoice::default(), &db, 1 << 30);
    let bytes = data::read(path);
    player.play(&bytes[..], &mut collector);
    collector.capture
}

impl Capture {
    /// The program of a dispatch.
    pub fn program(&self, submitted: &Submitted) -> ShaderProgram {
        let word = |at: u32| self.memory.load(submitted.code + 8 * u64::from(at), 8).known().unwrap_or(0);
        ShaderProgram::new((0..submitted.instructions).map(word), self.gpu_id)
    }
}

/// What each shader must give: by set, shader and push constant.
pub fn expected(path: &Path) -> BTreeMap<(String, String), Vec<u32>> {
    let words = |hex: &str| -> Vec<u32> {
        (0..hex.len() / 8).map(|at| u32::from_str_radix(&hex[at * 8..at * 8 + 8], 16).expect("hex")).collect()
    };
    table(path)
        .into_iter()
        .map(|row| ((row["shader"].clone(), row["push_constant"].clone()), words(&row["dst_words_hex"])))
        .collect()
}

pub fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).expect("a number"),
        None => text.parse().expect("a number"),
    }
}
