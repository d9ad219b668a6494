//! Category 5: what instructions give the texture unit, and what they do with its texels.

use super::descriptor::{BufferView, Images, Table};
use super::fault::{FaultKind, MemoryUnit};
use super::group::Machine;
use super::memory::for_each;
use super::program::ShaderStep;
use super::quad;
use super::results::Results;
use super::wave::{FIBERS, Mask, Row, Wave};
use crate::adreno::texture::{
    CubicWeights, Derivatives, Image, LevelOfDetail, Sample, Sampled, SamplerDescriptor, Texel, TextureFault,
    TextureKind,
};
use unwedge_hw::adreno::format::{ChannelKind, Numeric};
use unwedge_isa::ir3::semantics::{Round, float};
use unwedge_isa::ir3::{
    Attributes, DescriptorIndex, Instruction, Opcode, Operand, OperandKind, TextureAccess, Type,
};

/// Components of the first source at most: five of a place, six of gradients.
const MOST_SOURCES: usize = 12;

/// An instruction in execution.
pub(super) struct TextureOp<'c> {
    pub(super) wave: &'c Wave,
    pub(super) instruction: &'c Instruction,
    pub(super) access: TextureAccess,
    pub(super) exec: Mask,
    aliases: Vec<(Operand, Operand)>,
}

pub(super) fn exec(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    step: &ShaderStep,
    exec: Mask,
) -> Result<Results, FaultKind> {
    let instruction = &step.instruction;
    if instruction.opcode == Opcode::Tcinv {
        return Ok(Results::default());
    }
    let aliases = std::mem::take(&mut wave.aliases);
    let (Attributes::Texture(access), Some(dst)) = (instruction.attributes, instruction.dsts.get(0)) else {
        return Err(FaultKind::NotEmulated(instruction.opcode.name()));
    };
    // A sample to no register fetches the descriptor ahead.
    if dst.is_none() {
        return Ok(Results::default());
    }
    let op = TextureOp { wave, instruction, access, exec, aliases };
    match instruction.opcode {
        _ if quad::is_quad(instruction.opcode) => quad::exec(machine, &op, &dst),
        Opcode::Isam | Opcode::Isaml | Opcode::Isamm => op.fetch(machine, &dst),
        Opcode::Sam | Opcode::Samb | Opcode::Saml => op.sample(machine, &dst),
        opcode if opcode.has_gradients() => op.sample(machine, &dst),
        Opcode::Gather4r | Opcode::Gather4g | Opcode::Gather4b | Opcode::Gather4a => op.sample(machine, &dst),
        Opcode::Getlod => op.level_of_detail(machine, &dst),
        Opcode::Getsize | Opcode::Getbuf | Opcode::Getinfo => op.query(machine, &dst),
        Opcode::Rgetpos => op.sample_place(machine, &dst),
        _ => Err(FaultKind::NotEmulated(instruction.opcode.name())),
    }
}

/// Which descriptors the fibers have.
struct Numbers {
    textures: Row,
    samplers: Row,
    sampler_base: Option<u8>,
}

/// What components become in registers.
fn to_register(value: u32, numeric: Numeric, ty: Type) -> u32 {
    match (numeric, ty) {
        (Numeric::Float, Type::F16) => float::narrow(value, Round::Even),
        _ => value,
    }
}

/// The part of a row that one fiber has, as a float or integer of its size.
fn as_float(value: u32, half: bool) -> f32 {
    f32::from_bits(if half { float::widen(value & 0xffff) } else { value })
}

fn as_signed(value: u32, half: bool) -> i32 {
    if half { i32::from(value as u16 as i16) } else { value as i32 }
}

impl TextureOp<'_> {
    fn operand(&self, at: usize) -> Result<Operand, FaultKind> {
        self.instruction.srcs.get(at).ok_or(FaultKind::NotEmulated("this form"))
    }

    /// A component of a source, or what an alias puts in its place.
    pub(super) fn row(
        &self,
        machine: &Machine<'_>,
        at: usize,
        component: usize,
        out: &mut Row,
    ) -> Result<(), FaultKind> {
        let operand = self.operand(at)?;
        let OperandKind::Gpr(number) = operand.kind else {
            return machine.source(self.wave, &operand, component, out);
        };
        let register = usize::from(number) + component;
        let aliased = |(dst, _): &&(Operand, Operand)| {
            dst.half == operand.half
                && matches!(dst.kind, OperandKind::Gpr(to) if usize::from(to) == register)
        };
        match self.aliases.iter().rev().find(aliased) {
            Some((_, source)) => machine.source(self.wave, source, 0, out),
            None => machine.source(self.wave, &operand, component, out),
        }
    }

    /// So many components of a source.
    fn rows(&self, machine: &Machine<'_>, at: usize, count: usize) -> Result<Vec<Row>, FaultKind> {
        (0..count.min(MOST_SOURCES))
            .map(|component| {
                let mut row = [0; FIBERS];
                self.row(machine, at, component, &mut row)?;
                Ok(row)
            })
            .collect()
    }

    /// Which texture and sampler each fiber names.
    fn numbers(&self, machine: &Machine<'_>) -> Result<Numbers, FaultKind> {
        let (access, a1) = (&self.access, self.wave.a1);
        let a7xx = machine.program.gpu_id() >= 700;
        let sampler_base = if access.a1 { Some((a1 & 7) as u8) } else { access.base };
        if access.index == DescriptorIndex::Immediate {
            let (texture, sampler) = match (access.a1, a7xx) {
                (false, _) => (access.texture.into(), access.sampler.into()),
                (true, false) => (a1 >> 3, access.sampler.into()),
                (true, true) => (access.texture.into(), a1 >> 3),
            };
            return Ok(Numbers { textures: [texture; FIBERS], samplers: [sampler; FIBERS], sampler_base });
        }
        // Texture and sampler are two registers of a set, sampler and texture two of a table.
        let numbers = access.numbers.ok_or(FaultKind::NotEmulated("this form"))?;
        let (mut textures, mut samplers) = ([0; FIBERS], [0; FIBERS]);
        let bindless = access.base.is_some();
        machine.source(self.wave, &numbers, usize::from(!bindless), &mut textures)?;
        if self.has_sampler() {
            machine.source(self.wave, &numbers, usize::from(bindless), &mut samplers)?;
        }
        Ok(Numbers { textures, samplers, sampler_base })
    }

    /// Whether what a sampler says counts.
    fn has_sampler(&self) -> bool {
        !matches!(
            self.instruction.opcode,
            Opcode::Isam | Opcode::Isaml | Opcode::Isamm | Opcode::Getsize | Opcode::Getbuf | Opcode::Getinfo
        )
    }

    /// Coordinates of the first source: of what the text calls `.1d` one, when it fetches from a buffer.
    fn axes(&self, machine: &mut Machine<'_>, numbers: &Numbers) -> Result<usize, FaultKind> {
        let all = usize::from(self.access.axes());
        if !self.access.one_d || self.exec == 0 {
            return Ok(all);
        }
        let texture = numbers.textures[self.exec.trailing_zeros() as usize % FIBERS];
        let image = self.images().get(machine, texture)?;
        Ok(if image.is_none_or(|image| image.is_buffer()) { 1 } else { all })
    }

    fn images(&self) -> Images {
        Images::new(self.access.base, Table::Textures, self.access.index)
    }

    /// Texels as registers.
    fn results(&self, dst: &Operand, texels: &[(Texel, Numeric)]) -> Results {
        let mut results = Results::default();
        for component in (0..4).filter(|component| self.access.mask >> component & 1 != 0) {
            let value = |fiber: usize| match texels.get(fiber) {
                Some((texel, numeric)) => to_register(texel[component], *numeric, self.access.ty),
                None => 0,
            };
            results.push(dst, component, self.exec, std::array::from_fn(value));
        }
        results
    }

    /// `isam`, `isaml`, `isamm`: texels by their numbers. What is outside reads as zero.
    fn fetch(&self, machine: &mut Machine<'_>, dst: &Operand) -> Result<Results, FaultKind> {
        let numbers = self.numbers(machine)?;
        let axes = self.axes(machine, &numbers)?;
        let mut sources = axes + usize::from(self.access.array);
        sources += usize::from(self.instruction.opcode == Opcode::Isamm);
        let half = self.operand(0)?.half;
        let rows = self.rows(machine, 0, sources)?;
        let offsets = if self.access.offsets { axes } else { 0 };
        let has_level = self.instruction.opcode == Opcode::Isaml;
        let second = match offsets + usize::from(has_level) {
            0 => Vec::new(),
            count => self.rows(machine, 1, count)?,
        };
        let mut images = self.images();
        let mut texels = [([0; 4], Numeric::Uint); FIBERS];
        for_each(self.exec, |fiber| {
            let Some(image) = images.get(machine, numbers.textures[fiber])? else { return Ok(()) };
            let signed = |rows: &[Row], at: usize| rows.get(at).map_or(0, |row| as_signed(row[fiber], half));
            let texel = &mut texels[fiber];
            texel.1 = image.numeric();
            if let Some(buffer) = BufferView::of(&image) {
                let index = rows.first().map_or(0, |row| row[fiber]);
                let index = if half { index & 0xffff } else { index };
                texel.0 =
                    self.element(machine, &image, buffer, index.wrapping_add(self.access.offset.into()))?;
                return Ok(());
            }
            if image.kind == TextureKind::Cube && !self.access.three_d && !self.access.array {
                return Err(FaultKind::NotEmulated("a fetch from a cube"));
            }
            let mut at: [i32; 3] = [0, 1, 2].map(|axis| {
                let offset = if axis < offsets { signed(&second, axis) } else { 0 };
                if axis < axes { signed(&rows, axis).wrapping_add(offset) } else { 0 }
            });
            if image.kind != TextureKind::D3 {
                // A face of a cube is a layer.
                let face = if image.kind == TextureKind::Cube && axes == 3 { at[2] } else { 0 };
                let array = if self.access.array { signed(&rows, axes) } else { 0 };
                let faces = if image.kind == TextureKind::Cube { 6 } else { 1 };
                // A number that is too great is outside, as -1 is.
                at[2] = array.checked_mul(faces).and_then(|first| first.checked_add(face)).unwrap_or(-1);
            }
            let level = if has_level { signed(&second, offsets) } else { 0 };
            let sample = match self.instruction.opcode {
                Opcode::Isamm => signed(&rows, axes + usize::from(self.access.array)),
                _ => 0,
            };
            texel.0 = texel_at(machine, &image, at, level, sample)?;
            Ok(())
        })?;
        Ok(self.results(dst, &texels))
    }

    /// An element of a buffer. Of formats with one integer the type of the instruction says how large an element is.
    fn element(
        &self,
        machine: &mut Machine<'_>,
        image: &Image,
        buffer: BufferView,
        index: u32,
    ) -> Result<Texel, FaultKind> {
        let plain = |kind| matches!(kind, ChannelKind::Uint | ChannelKind::Sint);
        let storage = matches!(image.format.channels(), [channel] if plain(channel.kind));
        if !storage && !self.access.vector {
            let texel = image.element(machine, index)?;
            return Ok(texel.map_or([0; 4], |texel| image.swizzled(texel)));
        }
        let bytes = self.access.ty.bits() / 8;
        let mut texel = [0, 0, 0, u32::from(!self.access.vector)];
        let count = if self.access.vector { 4 } else { 1 };
        for (component, value) in texel.iter_mut().enumerate().take(count) {
            if self.access.mask >> component & 1 == 0 {
                continue;
            }
            *value = match buffer.element(index.wrapping_add(component as u32), bytes) {
                Some(address) => machine.load(address, bytes as usize, MemoryUnit::Texture)? as u32,
                None => 0,
            };
        }
        Ok(texel)
    }

    /// Samples and gathers.
    fn sample(&self, machine: &mut Machine<'_>, dst: &Operand) -> Result<Results, FaultKind> {
        let gathered = match self.instruction.opcode {
            Opcode::Gather4r => Some(0),
            Opcode::Gather4g => Some(1),
            Opcode::Gather4b => Some(2),
            Opcode::Gather4a => Some(3),
            _ => None,
        };
        let mut texels = [([0; 4], Numeric::Float); FIBERS];
        let (borders, cubic) = (machine.dispatch.state.borders, machine.dispatch.state.cubic);
        let cubic = cubic.map(CubicWeights::new);
        let exec = self.exec & self.pixels();
        self.each_sample(machine, exec, |machine, fiber, image, sampler, sample| {
            let sampled = Sampled { image, sampler, borders, cubic };
            texels[fiber] = match gathered {
                Some(component) => (sampled.gather(machine, sample, component)?, image.numeric()),
                None => (sampled.sample(machine, sample)?, image.numeric()),
            };
            Ok(())
        })?;
        Ok(TextureOp { exec, aliases: Vec::new(), ..*self }.results(dst, &texels))
    }

    /// The fibers that an instruction is for: of a quad all, or one.
    fn pixels(&self) -> Mask {
        let first = Mask::MAX / 15;
        match self.instruction.opcode {
            Opcode::Samgp0 => first,
            Opcode::Samgp1 => first << 1,
            Opcode::Samgp2 => first << 2,
            Opcode::Samgp3 => first << 3,
            _ => Mask::MAX,
        }
    }

    fn level_of_detail(&self, machine: &mut Machine<'_>, dst: &Operand) -> Result<Results, FaultKind> {
        let mut texels = [([0; 4], Numeric::Sint); FIBERS];
        let borders = machine.dispatch.state.borders;
        self.each_sample(machine, self.exec, |_, fiber, image, sampler, sample| {
            let (taken, asked) = Sampled { image, sampler, borders, cubic: None }.level_of_detail(sample);
            texels[fiber].0 = [taken as u32, asked as u32, 0, 0];
            Ok(())
        })?;
        Ok(self.results(dst, &texels))
    }

    /// Calls with what every fiber samples. Null textures are left out: they read as zero.
    fn each_sample(
        &self,
        machine: &mut Machine<'_>,
        exec: Mask,
        mut act: impl FnMut(
            &mut Machine<'_>,
            usize,
            &Image,
            &SamplerDescriptor,
            &Sample,
        ) -> Result<(), TextureFault>,
    ) -> Result<(), FaultKind> {
        let sources = Sources::read(self, machine)?;
        let numbers = self.numbers(machine)?;
        let mut images = self.images();
        let mut samplers: Vec<(u32, SamplerDescriptor)> = Vec::new();
        for_each(exec, |fiber| {
            let Some(image) = images.get(machine, numbers.textures[fiber])? else { return Ok(()) };
            let number = numbers.samplers[fiber];
            let sampler = match samplers.iter().find(|(of, _)| *of == number) {
                Some((_, sampler)) => *sampler,
                None => {
                    let sampler = machine.sampler(numbers.sampler_base, number)?;
                    samplers.push((number, sampler));
                    sampler
                }
            };
            let sample = sources.sample(self, &image, fiber);
            act(machine, fiber, &image, &sampler, &sample).map_err(FaultKind::from)
        })
    }

    /// `rgetpos`: where samples of the render targets are, from the centre of the pixel.
    fn sample_place(&self, machine: &mut Machine<'_>, dst: &Operand) -> Result<Results, FaultKind> {
        let mut numbers = [0; FIBERS];
        self.row(machine, 0, 0, &mut numbers)?;
        let half = self.operand(0)?.half;
        let places = machine.dispatch.state.sample_places;
        let texels = numbers.map(|number| {
            let number = if half { number & 0xffff } else { number };
            let [x, y] = places.get(number as usize).copied().unwrap_or([8; 2]);
            let from_centre = |at: u8| ((f32::from(at) - 8.0) / 16.0).to_bits();
            ([from_centre(x), from_centre(y), 0, 0], Numeric::Float)
        });
        Ok(self.results(dst, &texels))
    }

    /// `getsize`, `getbuf`, `getinfo`.
    fn query(&self, machine: &mut Machine<'_>, dst: &Operand) -> Result<Results, FaultKind> {
        let levels = match self.instruction.opcode {
            Opcode::Getsize => self.rows(machine, 0, 1)?,
            _ => Vec::new(),
        };
        let numbers = self.numbers(machine)?;
        let mut images = self.images();
        let mut texels = [([0; 4], Numeric::Uint); FIBERS];
        for_each(self.exec, |fiber| {
            let Some(image) = images.get(machine, numbers.textures[fiber])? else { return Ok(()) };
            let descriptor = &image.descriptor;
            texels[fiber].0 = match self.instruction.opcode {
                Opcode::Getbuf => [descriptor.elements(), 0, 0, 0],
                Opcode::Getinfo => {
                    let of = |component: u8| self.access.mask >> component & 1 != 0;
                    let channels = if of(0) { image.channel_type()? } else { 0 };
                    let order = if of(1) { image.channel_order()? } else { 0 };
                    [channels, order, descriptor.levels, descriptor.samples]
                }
                _ => {
                    let level = levels.first().map_or(0, |row| row[fiber]).min(31);
                    let smaller = |size: u32| (size >> level).max(1);
                    let layers = descriptor.depth.max(1);
                    [smaller(descriptor.width), smaller(descriptor.height), smaller(layers), layers]
                }
            };
            Ok(())
        })?;
        Ok(self.results(dst, &texels))
    }
}

/// A texel by its numbers; zero outside of the image.
fn texel_at(
    machine: &mut Machine<'_>,
    image: &Image,
    at: [i32; 3],
    level: i32,
    sample: i32,
) -> Result<Texel, FaultKind> {
    let [Ok(x), Ok(y), Ok(z)] = at.map(u32::try_from) else { return Ok([0; 4]) };
    let (Ok(level), Ok(sample)) = (u32::try_from(level), u32::try_from(sample)) else { return Ok([0; 4]) };
    let texel = image.texel(machine, level, (x, y, z), sample)?;
    let texel = image.with_chroma(texel, machine, (x, y, z), false)?;
    Ok(texel.map_or([0; 4], |texel| image.swizzled(texel)))
}

/// The sources of a sample, for every fiber.
struct Sources {
    first: Vec<Row>,
    second: Vec<Row>,
    half: bool,
    axes: usize,
    /// Axes with offsets of the form of the second source; cubes have two.
    offsets: bool,
}

impl Sources {
    fn read(op: &TextureOp<'_>, machine: &Machine<'_>) -> Result<Sources, FaultKind> {
        let access = &op.access;
        let axes = usize::from(access.axes());
        let mut count =
            axes + usize::from(access.shadow) + usize::from(access.array) + usize::from(access.project);
        if op.instruction.opcode.has_gradients() {
            count = usize::from(access.gradients()) + 2 * axes;
        }
        let first = op.rows(machine, 0, count)?;
        let has_level = matches!(op.instruction.opcode, Opcode::Saml | Opcode::Samb);
        let second = match (if access.offsets { axes } else { 0 }) + usize::from(has_level) {
            0 => Vec::new(),
            // Cubes have an offset less; a register past the last one is not read.
            count => op.rows(machine, 1, count).or_else(|_| op.rows(machine, 1, count - 1))?,
        };
        Ok(Sources { first, second, half: op.operand(0)?.half, axes, offsets: access.offsets })
    }

    fn first(&self, at: usize, fiber: usize) -> f32 {
        self.first.get(at).map_or(0.0, |row| as_float(row[fiber % FIBERS], self.half))
    }

    /// Components from one on, divided where the instruction divides.
    fn vector(&self, at: usize, fiber: usize, divisor: f32) -> [f32; 3] {
        std::array::from_fn(
            |axis| if axis < self.axes { self.first(at + axis, fiber) / divisor } else { 0.0 },
        )
    }

    fn sample(&self, op: &TextureOp<'_>, image: &Image, fiber: usize) -> Sample {
        let access = &op.access;
        let mut at = self.axes;
        let mut next = |there: bool| {
            let place = at;
            at += usize::from(there);
            there.then_some(place)
        };
        let (reference, layer, divisor) = (next(access.shadow), next(access.array), next(access.project));
        let divisor = |fiber: usize| divisor.map_or(1.0, |at| self.first(at, fiber));
        let offsets = match (self.offsets, image.kind == TextureKind::Cube) {
            (false, _) => 0,
            (true, false) => self.axes,
            (true, true) => 2,
        };
        let offset = |axis: usize| match self.second.get(axis) {
            Some(row) if axis < offsets && image.kind != TextureKind::Cube => {
                as_signed(row[fiber], self.half)
            }
            _ => 0,
        };
        let scalar = || self.second.get(offsets).map_or(0.0, |row| as_float(row[fiber], self.half));
        let coordinates = |fiber: usize| self.vector(0, fiber, divisor(fiber));
        let implicit = || {
            let quad = fiber & !3;
            let [here, right, below] = [quad, quad + 1, quad + 2].map(coordinates);
            let change = |to: [f32; 3]| std::array::from_fn(|axis| to[axis] - here[axis]);
            Derivatives { across: change(right), down: change(below) }
        };
        let detail = match op.instruction.opcode {
            Opcode::Saml => LevelOfDetail::Level(scalar()),
            Opcode::Samb => LevelOfDetail::Changing { derivatives: implicit(), bias: scalar() },
            opcode if opcode.has_gradients() => {
                let at = usize::from(access.gradients());
                let derivatives = Derivatives {
                    across: self.vector(at, fiber, 1.0),
                    down: self.vector(at + self.axes, fiber, 1.0),
                };
                LevelOfDetail::Changing { derivatives, bias: 0.0 }
            }
            Opcode::Sam | Opcode::Getlod => LevelOfDetail::Changing { derivatives: implicit(), bias: 0.0 },
            _ => LevelOfDetail::Level(0.0),
        };
        Sample {
            coordinates: coordinates(fiber),
            layer: layer.map_or(0.0, |at| self.first(at, fiber)),
            reference: reference.map(|at| self.first(at, fiber) / divisor(fiber)),
            offsets: [offset(0), offset(1), offset(2)],
            detail,
        }
    }
}
