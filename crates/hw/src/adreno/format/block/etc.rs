//! ETC1, ETC2 and EAC. Texels are numbered column by column, bits from the highest down.

/// What is added to a colour, by table: the small and the large step.
const STEPS: [[i32; 2]; 8] = [[2, 8], [5, 17], [9, 29], [13, 42], [18, 60], [24, 80], [33, 106], [47, 183]];
/// How far colours of the modes T and H are apart.
const DISTANCES: [i32; 8] = [3, 6, 11, 16, 23, 32, 41, 64];
/// Steps of EAC, by table. The other four of each are the complements of these.
const EAC_STEPS: [[i32; 4]; 16] = [
    [-3, -6, -9, -15],
    [-3, -7, -10, -13],
    [-2, -5, -8, -13],
    [-2, -4, -6, -13],
    [-3, -6, -8, -12],
    [-3, -7, -9, -11],
    [-4, -7, -8, -11],
    [-3, -5, -8, -11],
    [-2, -6, -8, -10],
    [-2, -5, -8, -10],
    [-2, -4, -8, -10],
    [-2, -5, -7, -10],
    [-3, -4, -7, -10],
    [-1, -2, -3, -10],
    [-4, -6, -8, -9],
    [-3, -5, -7, -9],
];

/// Which modes a block of colours can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EtcKind {
    /// Two colours.
    Etc1,
    /// With the modes T, H and planar.
    Etc2,
    /// With texels that are transparent.
    PunchThrough,
}

#[derive(Clone, Copy)]
struct Block(u64);

impl Block {
    /// `count` bits, of which the lowest is `low`.
    fn bits(self, low: u32, count: u32) -> i32 {
        (self.0 >> low & ((1 << count) - 1)) as i32
    }

    /// The index of a texel.
    fn index(self, x: usize, y: usize) -> usize {
        let number = (x * 4 + y) as u32;
        (self.bits(16 + number, 1) << 1 | self.bits(number, 1)) as usize
    }
}

/// A code of 4 to 7 bits at 8 bits.
fn widen(code: i32, bits: u32) -> i32 {
    let high = code << (8 - bits);
    high | high >> bits
}

/// The texels of a block of colours, row by row.
pub(super) fn colors(bytes: [u8; 8], kind: EtcKind) -> [[u8; 4]; 16] {
    let block = Block(u64::from_be_bytes(bytes));
    let flag = block.bits(33, 1) == 1;
    // With transparent texels the flag says that there are none.
    let transparent = kind == EtcKind::PunchThrough && !flag;
    if !flag && kind != EtcKind::PunchThrough {
        let half = |low: u32| [60, 52, 44].map(|start| widen(block.bits(start - low, 4), 4));
        return two_colors(block, [half(0), half(4)], false);
    }
    let base = [59, 51, 43].map(|low| block.bits(low, 5));
    let second: [i32; 3] = std::array::from_fn(|channel| {
        let delta = block.bits([56, 48, 40][channel], 3);
        base[channel] + (delta << 29 >> 29)
    });
    let outside = second.iter().position(|value| !(0..32).contains(value));
    match outside.filter(|_| kind != EtcKind::Etc1) {
        None => two_colors(block, [base, second].map(|c| c.map(|value| widen(value & 31, 5))), transparent),
        Some(0) => mode_t(block, transparent),
        Some(1) => mode_h(block, transparent),
        Some(_) => planar(block),
    }
}

fn clamped(color: [i32; 3], step: i32) -> [u8; 4] {
    let [r, g, b] = color.map(|value| (value + step).clamp(0, 255) as u8);
    [r, g, b, 255]
}

fn each(texel: impl Fn(usize, usize) -> [u8; 4]) -> [[u8; 4]; 16] {
    std::array::from_fn(|at| texel(at % 4, at / 4))
}

/// Two halves with a colour each.
fn two_colors(block: Block, colors: [[i32; 3]; 2], transparent: bool) -> [[u8; 4]; 16] {
    let tables = [block.bits(37, 3), block.bits(34, 3)].map(|table| STEPS[table as usize]);
    let flipped = block.bits(32, 1) == 1;
    each(|x, y| {
        let half = usize::from(if flipped { y >= 2 } else { x >= 2 });
        let [small, large] = tables[half];
        let small = if transparent { 0 } else { small };
        let step = match block.index(x, y) {
            0 => small,
            1 => large,
            2 if transparent => return [0; 4],
            2 => -small,
            _ => -large,
        };
        clamped(colors[half], step)
    })
}

/// One colour, and a second in three shades.
fn mode_t(block: Block, transparent: bool) -> [[u8; 4]; 16] {
    let first = [block.bits(59, 2) << 2 | block.bits(56, 2), block.bits(52, 4), block.bits(48, 4)];
    let second = [block.bits(44, 4), block.bits(40, 4), block.bits(36, 4)];
    let [first, second] = [first, second].map(|color| color.map(|code| widen(code, 4)));
    let distance = DISTANCES[(block.bits(34, 2) << 1 | block.bits(32, 1)) as usize];
    let paints =
        [clamped(first, 0), clamped(second, distance), clamped(second, 0), clamped(second, -distance)];
    paint(block, paints, transparent)
}

/// Two colours in two shades each.
fn mode_h(block: Block, transparent: bool) -> [[u8; 4]; 16] {
    let first = [
        block.bits(59, 4),
        block.bits(56, 3) << 1 | block.bits(52, 1),
        block.bits(51, 1) << 3 | block.bits(47, 3),
    ];
    let second = [block.bits(43, 4), block.bits(39, 4), block.bits(35, 4)];
    let [first, second] = [first, second].map(|color| color.map(|code| widen(code, 4)));
    let order = i32::from(first >= second);
    let distance = DISTANCES[(block.bits(34, 1) << 2 | block.bits(32, 1) << 1 | order) as usize];
    let paints = [
        clamped(first, distance),
        clamped(first, -distance),
        clamped(second, distance),
        clamped(second, -distance),
    ];
    paint(block, paints, transparent)
}

fn paint(block: Block, paints: [[u8; 4]; 4], transparent: bool) -> [[u8; 4]; 16] {
    each(|x, y| match block.index(x, y) {
        2 if transparent => [0; 4],
        index => paints[index],
    })
}

/// A plane through three colours.
fn planar(block: Block) -> [[u8; 4]; 16] {
    let widen_all = |[r, g, b]: [i32; 3]| [widen(r, 6), widen(g, 7), widen(b, 6)];
    let origin = widen_all([
        block.bits(57, 6),
        block.bits(56, 1) << 6 | block.bits(49, 6),
        block.bits(48, 1) << 5 | block.bits(43, 2) << 3 | block.bits(39, 3),
    ]);
    let across =
        widen_all([block.bits(34, 5) << 1 | block.bits(32, 1), block.bits(25, 7), block.bits(19, 6)]);
    let down = widen_all([block.bits(13, 6), block.bits(6, 7), block.bits(0, 6)]);
    each(|x, y| {
        let color = std::array::from_fn(|channel| {
            let start = origin[channel];
            let (x, y) = (x as i32, y as i32);
            (x * (across[channel] - start) + y * (down[channel] - start) + 4 * start + 2) >> 2
        });
        clamped(color, 0)
    })
}

/// The step of a texel of a block of EAC.
fn eac_step(block: Block, x: usize, y: usize) -> i32 {
    let index = block.bits(45 - 3 * (x * 4 + y) as u32, 3) as usize;
    let step = EAC_STEPS[block.bits(48, 4) as usize][index & 3];
    if index < 4 { step } else { !step }
}

/// The alpha of a block of ETC2.
pub(super) fn alpha(bytes: [u8; 8]) -> [u8; 16] {
    let block = Block(u64::from_be_bytes(bytes));
    let (base, factor) = (block.bits(56, 8), block.bits(52, 4));
    std::array::from_fn(|at| (base + eac_step(block, at % 4, at / 4) * factor).clamp(0, 255) as u8)
}

/// One channel of 11 bits.
pub(super) fn eac(bytes: [u8; 8], signed: bool) -> [f32; 16] {
    let block = Block(u64::from_be_bytes(bytes));
    // A factor of 0 stands for an eighth.
    let factor = (block.bits(52, 4) * 8).max(1);
    std::array::from_fn(|at| {
        let step = eac_step(block, at % 4, at / 4) * factor;
        if signed {
            let base = i32::from(bytes[0] as i8).max(-127) * 8;
            return (base + step).clamp(-1023, 1023) as f32 / 1023.0;
        }
        (block.bits(56, 8) * 8 + 4 + step).clamp(0, 2047) as f32 / 2047.0
    })
}
