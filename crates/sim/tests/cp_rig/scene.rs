//! A scene that streams draw: one target, two attributes, and shaders that pass a colour on. Tests and benchmarks change
//! what they are about.

use super::cp_rig::{DATA, STREAM, Stream, data, high, low, machine};
use unwedge_base::Generation::{self, A6xx, A7xx};
use unwedge_hw::Db;
use unwedge_isa::ir3::asm::Assembler;
use unwedge_sim::adreno::{AdrenoMachine, RunEnd};

pub const SIZE: u32 = 32;
/// Where things are behind `DATA`: the image, depth, vertices, indices, results, code.
pub const IMAGE: u64 = 0;
pub const DEPTH: u64 = 0x2000;
pub const VERTICES: u64 = 0x8000;
pub const INDICES: u64 = 0x9000;
pub const RESULTS: u64 = 0xa000;
pub const VERTEX_CODE: u64 = 0xc000;
pub const FRAGMENT_CODE: u64 = 0xd000;
/// Memory for what does not fit behind `DATA`: zeros, where a test asks for it.
pub const MORE: u64 = 0x3_0000_0000;
pub const NONE: u32 = 0xfcfc_fcfc;
pub const TRIANGLES: u32 = 4;
pub const STRIP: u32 = 6;
/// Passes its attributes on: position in `r0`, colour in `r1`.
pub const PASS: &str = "end";
/// Interpolates a colour into `r0.z` on.
pub const COLOUR: &str = "(rpt3)bary.f (ei)r0.z, (r)0, r0.x\nend";

/// A vertex: position and colour.
pub type Vertex = [f32; 8];

/// What a test draws with.
pub struct Scene<'d> {
    pub machine: AdrenoMachine<'d>,
    pub stream: Stream<'d>,
}

impl<'d> Scene<'d> {
    pub fn new(db: &'d Db, generation: Generation) -> Scene<'d> {
        Scene::on(db, machine(db, generation))
    }

    /// On a machine that was made before.
    pub fn on(db: &'d Db, machine: AdrenoMachine<'d>) -> Scene<'d> {
        let stream = Stream::new(db, machine.adreno().generation);
        let mut scene = Scene { machine, stream };
        scene.start();
        scene.code(VERTEX_CODE, PASS).code(FRAGMENT_CODE, COLOUR).state();
        scene
    }

    pub fn set(&mut self, name: &str, values: &[u32]) -> &mut Self {
        let reg = self.stream.gpu.reg_offset(name).unwrap_or_else(|| panic!("{name}"));
        self.stream.write(reg, values);
        self
    }

    pub fn put(&mut self, at: u64, words: &[u32]) -> &mut Self {
        for (n, word) in (0..).zip(words) {
            assert!(self.machine.space.memory.store(DATA + at + 4 * n, 4, (*word).into()));
        }
        self
    }

    pub fn code(&mut self, at: u64, source: &str) -> &mut Self {
        let gpu = if self.stream.gpu.generation() == A6xx { 630 } else { 740 };
        let mut assembler = Assembler::new(gpu);
        let words =
            source.lines().map(|line| assembler.instruction(line).unwrap_or_else(|e| panic!("{line}: {e}")));
        let halves: Vec<u32> = words.flat_map(|word| [word as u32, (word >> 32) as u32]).collect();
        self.put(at, &halves)
    }

    pub fn vertices(&mut self, vertices: &[Vertex]) -> &mut Self {
        let words: Vec<u32> = vertices.iter().flatten().map(|value| value.to_bits()).collect();
        self.put(VERTICES, &words)
    }

    /// One render target of 32 by 32 in memory, two attributes, nothing tested.
    pub fn state(&mut self) {
        let address = |at: u64| [low(DATA + at), high(DATA + at)];
        for (stage, code) in [("VS", VERTEX_CODE), ("FS", FRAGMENT_CODE)] {
            self.set(&format!("SP_{stage}_OBJ_START"), &address(code));
            self.set(&format!("SP_{stage}_INSTRLEN"), &[1]);
            self.set(&format!("SP_{stage}_CONFIG"), &[1 << 8]);
        }
        self.set("VFD_CONTROL_0", &[2 | 2 << 8]);
        self.set("VFD_CONTROL_1", &[NONE]);
        let [base, top] = address(VERTICES);
        self.set("VFD_FETCH[0].BASE", &[base, top, 0x1000, 32]);
        // FMT6_32_32_32_32_FLOAT from bytes 0 and 16.
        self.set("VFD_DECODE[0].INSTR", &[1 << 31 | 0x82 << 20, 1, 1 << 31 | 0x82 << 20 | 16 << 5, 1]);
        self.set("VFD_DEST_CNTL[0].INSTR", &[0xf, 0xf | 4 << 4]);
        // The colour at component 0, the position at 4.
        self.set("SP_VS_PRIMITIVE_CNTL", &[2]);
        self.set("SP_VS_OUT[0].REG", &[4 | 0xf << 8 | 0xf << 24]);
        self.set("SP_VS_VPC_DST[0].REG", &[4 << 8]);
        self.set("VPC_VS_PACK", &[8 | 4 << 8 | 0xff << 16]);
        self.set("VPC_VS_CLIP_CNTL", &[0xffff00]);
        self.set("VPC_VS_LAYER_CNTL", &[0xffff]);
        self.set("VPC_CNTL_0", &[4 | 0xff << 8 | 1 << 16 | 0xff << 24]);
        self.set("PC_RASTER_CNTL", &[0]);
        let half = (SIZE as f32 / 2.0).to_bits();
        self.set("GRAS_CL_VPORT[0].XOFFSET", &[half, half, half, half, 0, 1f32.to_bits()]);
        self.set("GRAS_CL_CNTL", &[1 << 6]);
        let last = (SIZE - 1) | (SIZE - 1) << 16;
        self.set("GRAS_SC_VIEWPORT_SCISSOR[0].TL", &[0, last]);
        self.set("GRAS_SC_SCREEN_SCISSOR[0].TL", &[0, last]);
        self.set("GRAS_SC_WINDOW_SCISSOR_TL", &[0, last]);
        self.set("GRAS_SU_CNTL", &[2 << 3 | 1 << 13]);
        self.set("GRAS_SU_POINT_MINMAX", &[16 | 64 << 16]).set("GRAS_SU_POINT_SIZE", &[16]);
        self.set("VPC_POLYGON_MODE", &[3]);
        self.set("HLSQ_CONTROL_2_REG", &[NONE, 0xfcfc_fc00, NONE]);
        self.set("SP_FS_OUTPUT_CNTL0", &[0xfcfc_fc00, 1]);
        self.set("SP_FS_OUTPUT[0].REG", &[2]);
        self.set("RB_RENDER_COMPONENTS", &[0xf]);
        let [base, top] = address(IMAGE);
        // FMT6_8_8_8_8_UNORM, linear.
        self.set("RB_MRT[0].CONTROL", &[0xf << 7, 0, 0x30, SIZE / 16, SIZE * SIZE / 16, base, top, 0]);
        self.set("RB_BLEND_CNTL", &[0xffff << 16]);
        self.memory();
    }

    /// Maps [`MORE`].
    pub fn more(&mut self, bytes: usize) -> &mut Self {
        self.machine.space.memory.map(MORE, vec![0; bytes]).unwrap();
        self
    }

    /// Writes a dword anywhere.
    pub fn write(&mut self, iova: u64, word: u32) {
        assert!(self.machine.space.memory.store(iova, 4, word.into()));
    }

    /// A dword from anywhere.
    pub fn read(&self, iova: u64) -> u32 {
        self.machine.space.memory.load(iova, 4).known().unwrap() as u32
    }

    /// A value of an enumeration.
    pub fn value(&self, enumeration: &str, name: &str) -> u32 {
        let values = self.stream.gpu.enumeration(enumeration).unwrap();
        values.value_of(name).unwrap_or_else(|| panic!("{name}")) as u32
    }

    /// An event without an address.
    pub fn event(&mut self, name: &str) -> &mut Self {
        let event = self.value("vgt_event_type", name);
        let packet = if self.stream.gpu.generation() == A6xx { "EVENT_WRITE" } else { "EVENT_WRITE7" };
        self.stream.op(packet, &[event]);
        self
    }

    /// The event that has one of these names.
    pub fn event_of(&mut self, names: [&str; 2]) -> &mut Self {
        let events = self.stream.gpu.enumeration("vgt_event_type").unwrap();
        let name = names.into_iter().find(|name| events.value_of(name).is_some()).unwrap();
        self.event(name)
    }

    /// Executes what was written.
    pub fn done(&mut self) -> &mut Self {
        assert_eq!(self.run(), RunEnd::Done);
        self
    }

    /// Draws go to memory.
    pub fn memory(&mut self) {
        match self.stream.gpu.generation() {
            A6xx => self.set("RB_BIN_CONTROL", &[3 << 22]),
            _ => self.set("RB_BIN_CONTROL", &[0]).set("RB_UNKNOWN_8812", &[0x3ff]),
        };
    }

    /// Draws and clears go to GMEM, in bins of 32 pixels and so many times 16 lines.
    pub fn gmem(&mut self, lines: u32) -> &mut Self {
        if self.stream.gpu.generation() != A6xx {
            self.set("RB_UNKNOWN_8812", &[0]).set("RB_BLIT_CLEAR_MODE", &[1]);
        }
        self.set("RB_BIN_CONTROL", &[1 | lines << 8])
    }

    pub fn draw(&mut self, primitive: u32, count: u32) -> &mut Self {
        self.draw_instances(primitive, 1, count)
    }

    pub fn draw_instances(&mut self, primitive: u32, instances: u32, count: u32) -> &mut Self {
        self.stream.op("DRAW_INDX_OFFSET", &[primitive | 2 << 6, instances, count]);
        self
    }

    /// Streams are for BR alone.
    fn start(&mut self) {
        if self.stream.gpu.generation() == A7xx {
            self.stream.op("THREAD_CONTROL", &[1]);
        }
    }

    /// Puts what was written into memory, and says how many dwords it is.
    pub fn load(&mut self) -> u32 {
        let words = std::mem::take(&mut self.stream.words);
        self.start();
        self.machine.space.unmap(STREAM, 0x10_0000);
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.machine.space.memory.map(STREAM, bytes).unwrap();
        words.len() as u32
    }

    pub fn run(&mut self) -> RunEnd {
        let words = self.load();
        self.machine.begin();
        self.machine.submit(STREAM, words);
        self.machine.run(50_000_000)
    }

    /// Executes what was written, and gives the image.
    pub fn image(&mut self) -> Vec<u32> {
        assert_eq!(self.run(), RunEnd::Done);
        (0..u64::from(SIZE * SIZE)).map(|at| data(&self.machine, IMAGE + 4 * at)).collect()
    }
}

pub fn vertex(x: f32, y: f32, z: f32, colour: [f32; 4]) -> Vertex {
    let [r, g, b, a] = colour;
    [x, y, z, 1.0, r, g, b, a]
}

pub const RED: [f32; 4] = [1.0, 0.0, 0.0, 1.0];
pub const GREEN: [f32; 4] = [0.0, 1.0, 0.0, 1.0];
pub const BLUE: [f32; 4] = [0.0, 0.0, 1.0, 1.0];
pub const RED8: u32 = 0xff00_00ff;
pub const GREEN8: u32 = 0xff00_ff00;
pub const BLUE8: u32 = 0xffff_0000;

/// A rectangle as a strip, in normalized coordinates.
pub fn strip([left, top]: [f32; 2], [right, bottom]: [f32; 2], z: f32, colour: [f32; 4]) -> [Vertex; 4] {
    [[left, top], [right, top], [left, bottom], [right, bottom]].map(|[x, y]| vertex(x, y, z, colour))
}
