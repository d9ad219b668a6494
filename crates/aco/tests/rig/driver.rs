//! Which register RADV passes each argument of a stage in, and the workgroups that a recorded text of NIR with its code is run with.
//!
//! The numbers of arguments in a text follow the order of their declaration. That order is a fact of RADV's `radv_shader_args.c` (see `data/NOTICE.md`); where the
//! vector arguments begin is computed from a number that every text of the stage reads. Registers without a meaning in the table are left undefined, so an argument in the wrong place
//! is a fault of the emulator. This module never reads the code of a compiler.

use std::sync::OnceLock;
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::front::nir;
use unwedge_shader::ir::AmdRegisters;
use unwedge_sim::amdgcn::{Dispatch, Initial, SimMemory};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::pack::bytes;

/// What a scalar argument of a graphics stage holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScalarArgument {
    /// Nothing that a shader reads.
    Unused,
    /// The number and the count of the waves of a compute workgroup.
    GroupSize,
    /// Vertices and primitives of a workgroup of a primitive shader.
    GroupInfo,
    /// Lanes of both parts, number and count of waves.
    WaveInfo,
    /// The offset in the ring of patches.
    OffchipOffset,
    /// The offset in the ring of tessellation factors.
    FactorOffset,
    /// The offset of the wave in the ring after geometry shaders.
    GsToVs,
    /// What is culled.
    CullState,
    /// A word of the scale and translation of the viewport.
    Viewport,
    /// Which queries count primitives.
    QueryState,
}

/// What a vector argument holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VectorArgument {
    Unused,
    PatchId,
    /// The patch in the workgroup and the vertex in the patch.
    RelativeIds,
    /// Two vertices of the primitive, from one on.
    VertexPair(u32),
    PrimitiveId,
    Invocation,
    TessU,
    TessV,
    /// The patch in the ring of patches.
    RelativePatch,
    Vertex,
    /// The vertex in the workgroup.
    RelativeVertex,
    Instance,
}

/// The arguments of a stage.
#[derive(Debug)]
struct StageArguments {
    stage: &'static str,
    chip: &'static str,
    /// Scalars from number 1 on. Number 0 is the address of the descriptors of rings, in two registers; all others have one. Descriptor sets and other
    /// pointers come after these.
    first: &'static [ScalarArgument],
    /// The last scalars, which come before the vectors.
    last: &'static [ScalarArgument],
    vectors: &'static [VectorArgument],
    /// The place among the vectors of the first one that the last shader of a text reads.
    anchor: u64,
}

const CONTROL: &[ScalarArgument] =
    &[ScalarArgument::OffchipOffset, ScalarArgument::WaveInfo, ScalarArgument::FactorOffset];
const PRIMITIVE: &[ScalarArgument] =
    &[ScalarArgument::GroupInfo, ScalarArgument::WaveInfo, ScalarArgument::OffchipOffset];
const CULLING: &[ScalarArgument] = &[
    ScalarArgument::CullState,
    ScalarArgument::Viewport,
    ScalarArgument::Viewport,
    ScalarArgument::Viewport,
    ScalarArgument::Viewport,
];

/// The table: `radv_shader_args.c` of Mesa 25.0 for gfx9 and gfx10.3.
const STAGES: [StageArguments; 8] = {
    use ScalarArgument as S;
    use VectorArgument as V;
    let [pair, second, third] = [V::VertexPair(0), V::VertexPair(2), V::VertexPair(4)];
    [
        StageArguments {
            stage: "vertex+tess_ctrl",
            chip: "vega10",
            first: CONTROL,
            last: &[],
            vectors: &[V::PatchId, V::RelativeIds, V::Vertex, V::RelativeVertex, V::Instance],
            anchor: 1,
        },
        StageArguments {
            stage: "vertex+tess_ctrl",
            chip: "navi21",
            first: CONTROL,
            last: &[],
            vectors: &[V::PatchId, V::RelativeIds, V::Vertex, V::RelativeVertex, V::Unused, V::Instance],
            anchor: 1,
        },
        StageArguments {
            stage: "vertex+geometry",
            chip: "vega10",
            first: &[S::GsToVs, S::WaveInfo, S::OffchipOffset],
            last: &[],
            vectors: &[pair, second, V::PrimitiveId, V::Invocation, third, V::Vertex, V::Instance],
            anchor: 0,
        },
        StageArguments {
            stage: "vertex+geometry",
            chip: "navi21",
            first: PRIMITIVE,
            last: &[S::QueryState],
            vectors: &[
                pair,
                second,
                V::PrimitiveId,
                V::Invocation,
                third,
                V::Vertex,
                V::Unused,
                V::Unused,
                V::Instance,
            ],
            anchor: 0,
        },
        StageArguments {
            stage: "vertex",
            chip: "vega10",
            first: &[],
            last: &[],
            vectors: &[V::Vertex, V::Instance],
            anchor: 0,
        },
        StageArguments {
            stage: "vertex",
            chip: "navi21",
            first: PRIMITIVE,
            last: CULLING,
            vectors: &[
                pair,
                second,
                V::PrimitiveId,
                V::Invocation,
                third,
                V::Vertex,
                V::Unused,
                V::Unused,
                V::Instance,
            ],
            anchor: 0,
        },
        StageArguments {
            stage: "tess_eval",
            chip: "vega10",
            first: &[],
            last: &[S::Unused, S::OffchipOffset, S::Unused],
            vectors: &[V::TessU, V::TessV, V::RelativePatch, V::PatchId],
            anchor: 0,
        },
        StageArguments {
            stage: "tess_eval",
            chip: "navi21",
            first: PRIMITIVE,
            last: CULLING,
            vectors: &[
                pair,
                second,
                V::PrimitiveId,
                V::Invocation,
                third,
                V::TessU,
                V::TessV,
                V::RelativePatch,
                V::PatchId,
            ],
            anchor: 0,
        },
    ]
};

/// The number of the argument with [`ScalarArgument::WaveInfo`].
const WAVE_INFO: u64 = 2;
/// Scalar registers that can hold arguments.
const MOST_SCALARS: u64 = 40;

/// The high word of the addresses of descriptors.
const ADDRESS_HIGH: u32 = 0xffff_8000;
/// The table of descriptors is at the low words that scalar arguments have.
const TABLE_BYTES: usize = 0x2000;
/// The low word of the address of the descriptors of rings, in the table.
const RING_TABLE: u32 = 0x1000;
const BUFFERS: u64 = 0x1000_0000;
pub const BUFFER_BYTES: usize = 0x2000;
/// Buffers of all descriptors, and what is past the end of the last one.
const ALL_BUFFERS: usize = (TABLE_BYTES / 16 + 4) * BUFFER_BYTES;
/// Memory of the rings after geometry shaders, of tessellation factors, and of patches.
const RINGS: u64 = 0x2000_0000;
const RING_BYTES: usize = 1 << 16;
/// Bytes of a wave in the ring after geometry shaders.
const WAVE_RING_BYTES: u32 = 0x4000;
const LANES: usize = 64;
/// Bytes of LDS, which is more than any of the programs needs.
const LDS_BYTES: u32 = 0x8000;

/// A workgroup that a text is run with.
#[derive(Debug, Clone, Copy)]
pub struct GroupShape {
    /// Invocations of the first and of the second shader of a merged stage; vertices and primitives.
    counts: [usize; 2],
    /// Whether primitives are culled, or counted.
    pub culls: bool,
}

/// A text with the registers of its arguments.
pub struct DriverText<'t> {
    text: &'t str,
    stage: &'t str,
    gpu: Gpu,
    /// `None` of compute and fragment shaders.
    row: Option<&'static StageArguments>,
    first_vector: u64,
    last_scalar: u64,
}

/// The numbers of arguments that a text reads.
fn numbers(text: &str, name: &str) -> Vec<u64> {
    let number =
        |line: &str| line.split_once(name)?.1.strip_prefix(" (base=")?.split(',').next()?.parse().ok();
    text.lines().filter_map(number).collect()
}

/// The text of the last shader of a text.
fn last_shader(text: &str) -> &str {
    text.rsplit_once("\nshader: ").map_or(text, |(_, last)| last)
}

/// The number that a line of a text gives.
fn property(text: &str, name: &str) -> Option<u32> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line?.parse().ok()
}

/// The size of the workgroup.
pub fn workgroup(text: &str) -> [u32; 3] {
    let sizes = text.lines().find_map(|line| line.strip_prefix("workgroup_size: ")).unwrap_or_default();
    let mut sizes = sizes.split(", ").map(|size| size.parse().unwrap_or(1));
    std::array::from_fn(|_| sizes.next().unwrap_or(1))
}

impl<'t> DriverText<'t> {
    /// `None` if the numbers in the text contradict the table.
    pub fn new(text: &'t str, stage: &'t str, chip: &str, gpu: Gpu) -> Option<DriverText<'t>> {
        let row = STAGES.iter().find(|row| row.stage == stage && row.chip == chip);
        let vectors = numbers(text, "@load_vector_arg_amd");
        let last_scalar = numbers(text, "@load_scalar_arg_amd").into_iter().max().unwrap_or(1);
        let anchor = numbers(last_shader(text), "@load_vector_arg_amd").into_iter().min();
        let first_vector = match (row, anchor) {
            (Some(row), Some(anchor)) => anchor.checked_sub(row.anchor)?,
            (_, anchor) => anchor.unwrap_or(last_scalar + 1),
        };
        let count = row.map_or(u64::MAX, |row| row.vectors.len() as u64);
        let fits = |number: &u64| number.checked_sub(first_vector).is_some_and(|place| place < count);
        let settled = last_scalar < first_vector && vectors.iter().all(fits);
        settled.then_some(DriverText { text, stage, gpu, row, first_vector, last_scalar })
    }

    /// The registers of the arguments.
    pub fn arguments(&self) -> nir::Arguments {
        let most = numbers(self.text, "@load_vector_arg_amd").into_iter().max().unwrap_or(0);
        let argument = |number: u64| {
            let vector = number >= self.first_vector;
            let register = match number {
                0 => 0,
                _ if vector => number - self.first_vector,
                _ => number + 1,
            };
            nir::Argument::Register(AmdRegisters { vector, first: register as u16 })
        };
        nir::Arguments((0..=most.max(self.last_scalar).max(WAVE_INFO)).map(argument).collect())
    }

    /// Whether the program is a primitive shader.
    fn is_primitive(&self) -> bool {
        self.row.is_some_and(|row| row.first == PRIMITIVE)
    }

    fn is_merged(&self) -> bool {
        self.stage.contains('+')
    }

    /// Workgroups to run: of one and several waves.
    pub fn shapes(&self) -> Vec<GroupShape> {
        let shape = |counts, culls| GroupShape { counts, culls };
        match self.stage {
            "vertex+tess_ctrl" => {
                // The recorded shaders assume that a wave has as many vertices as points of patches.
                let points = |patches: u32| [(patches * self.corners()) as usize; 2];
                vec![shape(points(9), false), shape(points(40), false)]
            }
            "vertex+geometry" => vec![shape([40, 20], true), shape([72, 40], true), shape([110, 70], false)],
            _ if self.is_primitive() => {
                vec![
                    shape([40, 38], true),
                    shape([72, 90], true),
                    shape([120, 50], true),
                    shape([100, 70], false),
                ]
            }
            _ => vec![shape([LANES, 0], false)],
        }
    }

    /// The points of a patch.
    fn corners(&self) -> u32 {
        property(self.text, "tcs_vertices_out").unwrap_or(3)
    }

    /// Vertices that a primitive shader may export.
    fn exported(&self, shape: &GroupShape) -> usize {
        let each = property(self.text, "vertices_out").filter(|_| self.is_primitive() && self.is_merged());
        each.map_or(shape.counts[0], |each| each as usize * shape.counts[1])
    }

    /// The lanes of a full wave. The points of a patch are in one wave, because some shaders store an output of the patch in all of them: the last
    /// point wins, which is not settled between waves.
    fn full_wave(&self) -> usize {
        let corners =
            if self.row.is_some_and(|row| row.first == CONTROL) { self.corners() as usize } else { 1 };
        LANES / corners * corners
    }

    fn waves(&self, shape: &GroupShape) -> usize {
        if self.stage == "compute" {
            let lanes = self.gpu.lanes();
            return workgroup(self.text).into_iter().product::<u32>().div_ceil(lanes) as usize;
        }
        let [first, second] = shape.counts;
        first.max(second).max(self.exported(shape)).div_ceil(self.full_wave())
    }

    /// The meaning of a scalar argument, if the table has it.
    fn scalar_argument(&self, number: u64) -> Option<ScalarArgument> {
        if number == self.last_scalar && self.has_group_size() {
            return Some(ScalarArgument::GroupSize);
        }
        let row = self.row?;
        let at = |list: &[ScalarArgument], at: u64| list.get(usize::try_from(at).ok()?).copied();
        let early = number.checked_sub(1).and_then(|place| at(row.first, place));
        // The scalars before the vectors that texts with such code have.
        let present = match row.last.first() {
            Some(ScalarArgument::CullState) => self.text.matches("@sendmsg_amd").count() > 1,
            Some(ScalarArgument::QueryState) => self.text.contains("@gds_atomic_add_amd"),
            _ => true,
        };
        let late = number.checked_sub(self.first_vector - row.last.len() as u64);
        early.or_else(|| at(row.last, late?).filter(|_| present))
    }

    /// The words of a scalar argument by wave.
    fn scalar(&self, number: u64, shape: &GroupShape) -> Option<Vec<u32>> {
        let waves = self.waves(shape);
        let each = |word: &dyn Fn(usize) -> u32| Some((0..waves).map(word).collect());
        let full = self.full_wave();
        let lanes =
            |part: usize, wave: usize| shape.counts[part].saturating_sub(wave * full).min(full) as u32;
        match self.scalar_argument(number) {
            None => each(&|_| number as u32 * 0x100),
            Some(ScalarArgument::Unused) => None,
            // The number is in other bits on gfx10.3.
            Some(ScalarArgument::GroupSize) => {
                let number = if self.gpu.generation() >= Gfx::Gfx10_3 { 20 } else { 6 };
                each(&|wave| waves as u32 | (wave as u32) << 6 | (wave as u32) << number)
            }
            Some(ScalarArgument::GroupInfo) => {
                each(&|_| (self.exported(shape) as u32) << 12 | (shape.counts[1] as u32) << 22)
            }
            Some(ScalarArgument::WaveInfo) => each(&|wave| {
                let place = (wave as u32 + 5) << 16 | (wave as u32) << 24 | (waves as u32) << 28;
                lanes(0, wave) | lanes(1, wave) << 8 | place
            }),
            Some(ScalarArgument::OffchipOffset) => each(&|_| 0x240),
            Some(ScalarArgument::FactorOffset) => each(&|_| 0x80),
            Some(ScalarArgument::GsToVs) => each(&|wave| wave as u32 * WAVE_RING_BYTES),
            // Both faces, small primitives to 2^-9 pixels.
            Some(ScalarArgument::CullState) => each(&|_| if shape.culls { 0xf700_000b } else { 0 }),
            Some(ScalarArgument::Viewport) => each(&|_| 2f32.to_bits()),
            Some(ScalarArgument::QueryState) => each(&|_| if shape.culls { 0x40 } else { 0 }),
        }
    }

    /// What a vector register holds, by the thread.
    fn vector(&self, argument: VectorArgument, shape: &GroupShape) -> Option<Vec<u32>> {
        let full = self.full_wave() as u32;
        let threads = 0..(self.waves(shape) * LANES) as u32;
        let invocation = |thread: u32| thread / LANES as u32 * full + thread % LANES as u32;
        let each = |value: &dyn Fn(u32) -> u32| {
            Some(threads.clone().map(|thread| value(invocation(thread))).collect())
        };
        let corners = self.corners();
        let vertex = |number: u32, corner: u32| (number + corner) % shape.counts[0] as u32;
        match argument {
            VectorArgument::Unused => None,
            VectorArgument::PatchId => each(&|number| 7 + number / corners),
            VectorArgument::RelativeIds => each(&|number| number / corners | number % corners << 8),
            VectorArgument::VertexPair(corner) => {
                each(&|number| vertex(number, corner) | vertex(number, corner + 1) << 16)
            }
            VectorArgument::PrimitiveId => each(&|number| 100 + number),
            VectorArgument::Invocation => each(&|number| number % 2),
            VectorArgument::TessU => each(&|number| (((number * 5) % 33) as f32 / 64.0).to_bits()),
            VectorArgument::TessV => each(&|number| (((number * 3) % 31) as f32 / 64.0).to_bits()),
            VectorArgument::RelativePatch => each(&|number| number / 8),
            VectorArgument::Vertex => each(&|number| 3 + number),
            VectorArgument::RelativeVertex => each(&|number| number),
            VectorArgument::Instance => each(&|number| 1 + number % 4),
        }
    }

    /// Vector registers by number.
    fn vectors(&self, shape: &GroupShape) -> Vec<(u8, Vec<u32>)> {
        let vectors = self.row.map_or(&[][..], |row| row.vectors);
        let words = |(place, argument): (u8, &VectorArgument)| Some((place, self.vector(*argument, shape)?));
        (0..).zip(vectors).filter_map(words).collect()
    }

    /// Whether a compute text reads the number of its wave.
    fn has_group_size(&self) -> bool {
        self.stage == "compute" && self.text.contains("@mbcnt_amd")
    }

    /// The registers of the number of the workgroup along the axes that a compute shader reads: the last ones, but for those of waves.
    pub fn group_id(&self, is_read: [bool; 3]) -> [Option<u16>; 3] {
        let count = is_read.iter().filter(|is_read| **is_read).count() as u16;
        let first = if self.has_group_size() { 1 } else { 2 + count };
        let mut next = (self.last_scalar as u16 + first).saturating_sub(count);
        is_read.map(|is_read| {
            next += u16::from(is_read);
            is_read.then(|| next - 1)
        })
    }

    /// The dispatch of a workgroup. Compute shaders have the number of the workgroup in these registers.
    pub fn dispatch(&self, shape: &GroupShape, group_id: [Option<u16>; 3]) -> Dispatch {
        // Sums over waves read whole words of which only the bytes of the waves are written, and multiply the others by zero.
        let mut rng = Rng::new(shape.counts[0] as u64);
        let lds_content = (0..LDS_BYTES).map(|_| rng.below(256) as u8).collect();
        let mut dispatch =
            Dispatch { lds: LDS_BYTES, lds_content, gds: 0x200, steps: 100_000, ..Dispatch::default() };
        for number in 1..self.first_vector.min(MOST_SCALARS) {
            dispatch.waves_hold.extend(self.scalar(number, shape).map(|words| (number as u16 + 1, words)));
        }
        if self.stage == "compute" {
            dispatch.size = workgroup(self.text);
            dispatch.vectors = (0..3).map(|axis| (axis, Initial::LocalId(axis))).collect();
        } else {
            dispatch.scalars = vec![(0, RING_TABLE), (1, ADDRESS_HIGH)];
            dispatch.size = [(self.waves(shape) * LANES) as u32, 1, 1];
            dispatch.threads_hold = self.vectors(shape);
        }
        dispatch
    }

    /// Descriptors, buffers and rings with random content, without denormals if so asked.
    pub fn memory(&self, denormals: bool) -> SimMemory {
        let generation = self.gpu.generation();
        let vertex = self.stage.starts_with("vertex");
        let mut table: Vec<u32> = (0..TABLE_BYTES as u64 / 16)
            .flat_map(|slot| {
                let size = if vertex { 4 * BUFFER_BYTES } else { BUFFER_BYTES };
                let mut words = super::descriptor(BUFFERS + slot * BUFFER_BYTES as u64, size, generation);
                words[1] |= if vertex { 4 << 16 } else { 0 };
                words
            })
            .collect();
        for (number, ring) in (4..7).zip(0..) {
            let mut words = super::descriptor(RINGS + ring * RING_BYTES as u64, RING_BYTES, generation);
            if ring == 0 {
                super::swizzle_by_lane(&mut words, 1, generation);
            }
            let at = RING_TABLE as usize / 4 + number * 4;
            table[at..at + 4].copy_from_slice(&words);
        }
        let mut memory = SimMemory::default();
        memory.map(u64::from(ADDRESS_HIGH) << 32, bytes(&table)).expect("free");
        memory.map(BUFFERS, content(denormals)[..ALL_BUFFERS].to_vec()).expect("free");
        memory.map(RINGS, content(false)[..3 * RING_BYTES].to_vec()).expect("free");
        memory
    }

    /// The bytes of the buffers and of the rings.
    pub fn left(memory: &SimMemory) -> Vec<u8> {
        let parts = [(BUFFERS, ALL_BUFFERS), (RINGS, 3 * RING_BYTES)];
        parts.iter().flat_map(|(at, size)| memory.get(*at, *size)).flatten().copied().collect()
    }
}

/// Small floats, and half of the words small integers if there may be denormals.
fn content(denormals: bool) -> &'static [u8] {
    static CONTENT: [OnceLock<Vec<u8>>; 2] = [OnceLock::new(), OnceLock::new()];
    CONTENT[usize::from(denormals)].get_or_init(|| {
        let mut rng = Rng::new(1);
        let word = |_| match rng.below(2) {
            1 if denormals => rng.below(5) as u32,
            _ => (rng.below(17) as f32 - 8.0).to_bits(),
        };
        bytes(&(0..ALL_BUFFERS / 4).map(word).collect::<Vec<u32>>())
    })
}
