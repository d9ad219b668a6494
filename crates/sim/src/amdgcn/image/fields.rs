//! The parts of an image instruction's address: which registers they are in, and in which order they stand.

use super::super::apply;
use super::super::lanes::{bits, splat};
use super::super::machine::Machine;
use super::super::wave::Wave;
use super::descriptor::ImageType;
use unwedge_isa::amdgcn::Reg;
use unwedge_isa::amdgcn::semantics::Lanes;
use unwedge_isa::amdgcn::semantics::soft::{self, Env};

/// Registers of an address, read from the first on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fields {
    list: [u8; 13],
    /// How many stand alone; the others follow the last of these.
    count: u8,
    /// Halves of registers that have been read.
    done: u8,
}

/// Which coordinates an instruction has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Coordinates {
    pub(super) y: bool,
    /// A third: depth, face or layer. Without a second it stands second.
    pub(super) z: bool,
    pub(super) sample: bool,
}

impl Coordinates {
    /// Those of a dimension, or of a kind of image.
    pub(super) fn of(dim: Option<u8>, layered: bool, kind: ImageType) -> Coordinates {
        let (y, z, sample) = match dim {
            Some(0) => (false, false, false),
            Some(1) => (true, false, false),
            Some(2 | 3 | 5) => (true, true, false),
            Some(4) => (false, true, false),
            Some(6) => (true, false, true),
            Some(_) => (true, true, true),
            None => match kind {
                ImageType::D1 => (false, false, false),
                ImageType::D2 => (true, false, false),
                ImageType::D3 | ImageType::Cube => (true, true, false),
                ImageType::D1Array => (false, layered, false),
                ImageType::D2Array => (true, layered, false),
                ImageType::Msaa => (true, false, true),
                ImageType::MsaaArray => (true, layered, true),
            },
        };
        Coordinates { y, z, sample }
    }
}

impl Fields {
    /// Registers that follow each other.
    pub(super) fn block(first: Reg) -> Fields {
        let mut list = [0; 13];
        list[0] = first.index() as u8;
        Fields { list, count: 1, done: 0 }
    }

    /// Registers named one by one; what is more follows the last.
    pub(super) fn list(list: &[u8; 13], count: u8) -> Fields {
        Fields { list: *list, count: count.clamp(1, 13), done: 0 }
    }

    fn register(&self, at: u8) -> Reg {
        let last = self.count - 1;
        let after = at.saturating_sub(last);
        Reg::vgpr(self.list[usize::from(at.min(last))].wrapping_add(after))
    }

    /// The next part: half of a register, if `short`.
    pub(super) fn next(&mut self, machine: &mut Machine<'_>, wave: &Wave, short: bool, lanes: u64) -> Lanes {
        if !short {
            self.align();
        }
        let values = apply::address_lanes(machine, wave, self.register(self.done / 2), lanes);
        let high = self.done & 1 != 0;
        self.done += if short { 1 } else { 2 };
        if !short {
            return values;
        }
        values.map(|value| if high { value >> 16 } else { value & 0xffff })
    }

    /// The next part as floats.
    pub(super) fn float(&mut self, machine: &mut Machine<'_>, wave: &Wave, short: bool, lanes: u64) -> Lanes {
        let mut values = self.next(machine, wave, short, lanes);
        if short {
            for lane in bits(lanes) {
                values[lane] = soft::convert(soft::F16, soft::F32, values[lane].into(), Env::IEEE) as u32;
            }
        }
        values
    }

    /// Goes on at a whole register.
    pub(super) fn align(&mut self) {
        self.done = self.done.next_multiple_of(2);
    }

    /// X, Y and Z of a load or store, as far as they are there.
    pub(super) fn coordinates(
        &mut self,
        machine: &mut Machine<'_>,
        wave: &Wave,
        shape: &Coordinates,
        short: bool,
        lanes: u64,
    ) -> [Option<Lanes>; 3] {
        let x = self.next(machine, wave, short, lanes);
        let y = shape.y.then(|| self.next(machine, wave, short, lanes));
        let z = shape.z.then(|| self.next(machine, wave, short, lanes));
        [Some(x), y, z]
    }
}

/// Nothing in any lane.
pub(super) const NOTHING: Lanes = splat(0);
