//! Transform feedback by primitive shaders in tests: the workgroups of a draw run one after another, with counters in memory or in GDS. A reference writes the primitives one by one.

use super::captures::{BYTES, MEMORY, NOTHING, STATE, STRIDE, TABLE};
use super::recorded::Problem;
use unwedge_aco::Options;
use unwedge_aco::captures::{BUFFERS, Captures};
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::interp::{InterfaceSlot, Slots};
use unwedge_sim::amdgcn::{OrderedState, SimMemory};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::pack::bytes;

/// Workgroups of a draw.
pub const GROUPS: u32 = 2;
const STREAMS: usize = 4;

/// The expected dword of a buffer: a constant, or a component of an output.
type Wanted = (u32, Option<(InterfaceSlot, usize)>);

/// The expected buffers and counters.
pub struct Feedback {
    captures: Captures,
    /// The position of the first workgroup in the order of the draw.
    first: u32,
    sizes: [u32; BUFFERS],
    written: [u32; BUFFERS],
    /// By stream: the numbers of primitives needed and written.
    counts: [[u64; 2]; STREAMS],
    groups: u32,
    /// `None`: an undefined output was captured.
    contents: Vec<Vec<Option<Wanted>>>,
    /// Their contents before the draw.
    start: ([u32; BUFFERS], [[u64; 2]; STREAMS]),
}

impl Feedback {
    /// Buffers of random sizes, some of which are too small.
    pub fn new(captures: &Captures, rng: &mut Rng) -> Feedback {
        let bound = rng.below(8) > 0;
        let sizes = std::array::from_fn(|_| match rng.below(3) {
            _ if !bound => 0,
            0 => rng.below(400) as u32 * 4,
            1 => rng.below(4000) as u32 * 4,
            _ => BYTES as u32,
        });
        let written = sizes.map(|size: u32| rng.below(size.min(200) as usize / 4 + 1) as u32 * 4);
        let counts = std::array::from_fn(|_| [rng.next_u64() >> 20, rng.next_u64() >> 30]);
        Feedback {
            captures: captures.clone(),
            first: rng.below(4000) as u32,
            sizes,
            written,
            counts,
            groups: 0,
            contents: vec![vec![Some((NOTHING, None)); BYTES / 4]; BUFFERS],
            start: (written, counts),
        }
    }

    /// The position of a workgroup in the order of the draw.
    pub fn order(&self, group: u32) -> u32 {
        self.first + group
    }

    /// Whether a buffer that is captured has any bytes.
    pub fn is_bound(&self) -> bool {
        let used =
            |buffer: &usize| self.captures.words.iter().any(|word| usize::from(word.buffer) == *buffer);
        (0..BUFFERS).filter(used).any(|buffer| self.sizes[buffer] > 0)
    }

    /// Sets the sizes of buffers, and the counters in memory.
    pub fn map(&self, memory: &mut SimMemory, options: &Options) {
        let high = u64::from(options.address_high) << 32;
        for (buffer, size) in (0..).zip(self.sizes) {
            memory.store(high | (TABLE + buffer * 16 + 8), 4, size.into());
        }
        let (written, counts) = self.start;
        let mut words: Vec<u32> = written.iter().flat_map(|bytes| [self.first, *bytes]).collect();
        words.extend(counts.iter().flatten().flat_map(|count| [*count as u32, (count >> 32) as u32]));
        memory.map(high | STATE, bytes(&words)).expect("free");
    }

    /// The counters in GDS.
    pub fn ordered(&self) -> OrderedState {
        let (written, counts) = self.start;
        let mut state = OrderedState { turn: self.first as u16, ..OrderedState::default() };
        state.streamout[..BUFFERS].copy_from_slice(&written);
        for (number, count) in counts.iter().flatten().enumerate() {
            state.streamout[8 + number * 2] = *count as u32;
            state.streamout[9 + number * 2] = (count >> 32) as u32;
        }
        state
    }

    /// A workgroup takes its turn with the primitives of each stream.
    pub fn write<'s>(&mut self, primitives: impl Fn(u8) -> Vec<Vec<&'s Slots>>) {
        if !self.is_bound() {
            return;
        }
        self.groups += 1;
        for stream in 0..STREAMS as u8 {
            if !self.captures.has_stream(stream) {
                continue;
            }
            for vertices in primitives(stream) {
                self.primitive(stream, &vertices);
            }
        }
    }

    fn primitive(&mut self, stream: u8, vertices: &[&Slots]) {
        let count = &mut self.counts[usize::from(stream)];
        count[0] += 1;
        let own = |buffer: &usize| self.captures.part(stream, *buffer as u8).next().is_some();
        let buffers: Vec<usize> = (0..BUFFERS).filter(own).collect();
        let size = |buffer: usize| self.captures.strides[buffer] * vertices.len() as u32;
        if buffers.iter().any(|buffer| self.written[*buffer] + size(*buffer) > self.sizes[*buffer]) {
            return;
        }
        count[1] += 1;
        for buffer in buffers {
            for (number, slots) in (0..).zip(vertices) {
                let begin = self.written[buffer] + number * self.captures.strides[buffer];
                for word in self.captures.part(stream, buffer as u8) {
                    let key =
                        InterfaceSlot { slot: word.slot.into(), vertex: 0, patch: false, index: word.stream };
                    let component = usize::from(word.component);
                    let value = slots.get(&key).and_then(|words| words[component]);
                    let place = &mut self.contents[buffer][(begin + word.offset) as usize / 4];
                    *place = value.map(|value| (value, Some((key, component))));
                }
            }
            self.written[buffer] += size(buffer);
        }
    }

    /// Compares the buffers and counters after all workgroups.
    pub fn compare(
        &self,
        memory: &SimMemory,
        ordered: &OrderedState,
        options: &Options,
        same: &dyn Fn(&InterfaceSlot, usize, u32, u32) -> bool,
    ) -> Result<(), Problem> {
        let word = |at: u64| {
            let own = memory.get(at, 4).and_then(|own| own.try_into().ok());
            own.map(u32::from_le_bytes).unwrap_or_default()
        };
        for (buffer, contents) in self.contents.iter().enumerate() {
            let base = MEMORY + buffer as u64 * STRIDE;
            for (at, wanted) in contents.iter().enumerate() {
                let found = word(base + at as u64 * 4);
                let fits = match wanted {
                    Some((value, Some((key, component)))) => same(key, *component, found, *value),
                    Some((value, None)) => found == *value,
                    None => true,
                };
                if !fits {
                    let (size, written) = (self.sizes[buffer], self.written[buffer]);
                    return Err((
                        "feedback",
                        format!(
                            "buffer {buffer} ({written} of {size}), dword {at}: {found:#x}, not {wanted:x?}"
                        ),
                    ));
                }
            }
        }
        let turn = self.first + self.groups;
        let gfx12 = options.gpu.generation() >= Gfx::Gfx12;
        let state = u64::from(options.address_high) << 32 | STATE;
        let found: Vec<u64> = match gfx12 {
            true => (0..24).map(|at| word(state + at * 4).into()).collect(),
            false => ordered.streamout.iter().map(|word| u64::from(*word)).collect(),
        };
        let mut wanted: Vec<u32> = match gfx12 {
            true => self.written.iter().flat_map(|written| [turn, *written]).collect(),
            false => self.written.iter().copied().chain([0; 4]).collect(),
        };
        wanted.extend(self.counts.iter().flatten().flat_map(|count| [*count as u32, (count >> 32) as u32]));
        if found.iter().zip(&wanted).any(|(found, wanted)| *found != u64::from(*wanted)) {
            return Err(("feedback", format!("counters are {found:?}, not {wanted:?}")));
        }
        if !gfx12 && u32::from(ordered.turn) != turn {
            return Err(("feedback", format!("the next turn is {}, not {turn}", ordered.turn)));
        }
        Ok(())
    }

    /// How many primitives were written, and how many did not fit.
    pub fn sums(&self) -> [u64; 2] {
        let (_, before) = self.start;
        let [all, written] = [0, 1].map(|at| {
            self.counts.iter().zip(before).map(|(count, before)| count[at] - before[at]).sum::<u64>()
        });
        [written, all - written]
    }
}
