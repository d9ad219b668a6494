//! Images, samplers and texel buffers.
//!
//! The handle of an image is its descriptor as a value: eight words of an image, four of a sampler or texel buffer; that of a combined image and sampler has
//! two lanes. Multisampled images are not compressed, so samples are addressed directly. Sampled cubes are addressed by face and coordinates,
//! storage images of cubes as layers.

use super::atomics::{buffer_atomic, image_atomic};
use super::{Selected, Selector};
use crate::ir::{Definition, Memory, NewInst, Operand, Payload, RegClass};
use unwedge_base::inline::InlineList;
use unwedge_isa::amdgcn::model::{Gfx, Mod};
use unwedge_isa::amdgcn::{Mods, Opcode, tables};
use unwedge_shader::ir::{
    Access, AtomicOp, Base, Dim, ImageAccess, ImageFlags, Inst, MemoryKinds, Op, Payload as ShaderPayload,
    Value,
};

/// The component with the number of levels, of a query of sizes.
const LEVELS: u8 = 8;
/// The components of a texel of 64 bits.
const WIDE: u8 = 3;

/// The parts of an access.
struct ImageOperands {
    access: ImageAccess,
    image: Operand,
    sampler: Operand,
    coordinates: Vec<Operand>,
    /// The values of the flags, in their order.
    rest: Vec<Value>,
}

/// An instruction that is made.
struct ImageInst {
    opcode: Opcode,
    address: Vec<Operand>,
    mask: u8,
    dim: u8,
    layered: bool,
}

fn opcode(name: &str) -> Option<Opcode> {
    tables::rows().iter().find(|row| row.name == name).map(|row| row.opcode)
}

/// How many registers of an image address need not follow each other.
struct AddressList {
    most: usize,
    /// The last one may be the first of several that do.
    grouped: bool,
}

/// The list of addresses that an image instruction of a GPU takes. gfx10.1 has room for more than five, but no instruction that other accesses to
/// memory may follow.
const fn address_list(gfx: Gfx, sampled: bool) -> AddressList {
    let (most, grouped) = match gfx {
        Gfx::Gfx10 => (5, false),
        Gfx::Gfx10_3 => (13, false),
        Gfx::Gfx11 | Gfx::Gfx11_5 => (5, true),
        Gfx::Gfx12 => (if sampled { 4 } else { 5 }, true),
        _ => (0, false),
    };
    AddressList { most, grouped }
}

/// The operands of an image instruction: the first register of the address is among those that all instructions have, the rest of a list follows them.
pub(super) fn with_address(before: &[Operand], address: &[Operand], after: &[Operand]) -> Vec<Operand> {
    let (first, rest) = address.split_at(address.len().min(1));
    [before, first, after, rest].concat()
}

/// The code of a shape in instructions of gfx10 and later.
fn shape_code(dim: Dim, layered: bool, samples: bool) -> u8 {
    match (dim, layered, samples) {
        (Dim::D1 | Dim::Buffer, false, _) => 0,
        (Dim::D1 | Dim::Buffer, true, _) => 4,
        (Dim::D2 | Dim::Subpass, false, false) => 1,
        (Dim::D2 | Dim::Subpass, true, false) => 5,
        (Dim::D2 | Dim::Subpass, false, true) => 6,
        (Dim::D2 | Dim::Subpass, true, true) => 7,
        (Dim::D3, ..) => 2,
        (Dim::Cube, ..) => 3,
    }
}

impl Selector<'_> {
    /// Selects an access to an image or texel buffer.
    pub(super) fn image(&mut self, inst: Inst) -> Selected<()> {
        let op = self.func.op(inst);
        let access = match self.func.payload(inst) {
            ShaderPayload::Image(access) | ShaderPayload::ImageAtomic(_, access) => access,
            _ => return Err(self.unsupported(inst, None)),
        };
        let func = self.func;
        let texel = match op {
            Op::ImageStore | Op::ImageAtomic | Op::ImageAtomicCompare => func.args(inst).first(),
            _ => func.results(inst).first(),
        };
        let samples = matches!(op, Op::ImageSample | Op::ImageGather | Op::ImageQueryLod);
        let known = match texel.map_or(Base::B32, |value| func.ty(*value).base) {
            Base::B32 => true,
            Base::B64 => !samples,
            Base::B16 => op == Op::ImageStore && access.dim != Dim::Buffer && self.gfx >= Gfx::Gfx9,
            _ => false,
        };
        if !known {
            return Err(self.unsupported(inst, Some("of texels of this width")));
        }
        match op {
            Op::ImageSample | Op::ImageGather | Op::ImageQueryLod => self.sample_image(inst, access),
            _ if access.dim == Dim::Buffer => self.texel_buffer(inst, access),
            Op::ImageFetch | Op::ImageLoad => self.fetch(inst, access),
            Op::ImageStore => self.store_texel(inst, access),
            Op::ImageAtomic | Op::ImageAtomicCompare => self.atomic_texel(inst, access),
            Op::ImageSize => self.image_size(inst, access),
            Op::ImageLevels => {
                let (image, _) = self.handles(func.args(inst)[0]);
                let levels = self.size_query(image, access, Operand::c32(0), LEVELS)?;
                self.define_words(inst, &levels);
                Ok(())
            }
            _ => self.image_samples(inst),
        }
    }

    /// The descriptors of an image and its sampler.
    fn handles(&mut self, value: Value) -> (Operand, Operand) {
        let lanes = self.value(value).to_vec();
        let image = lanes.first().copied().unwrap_or(Operand::undef(RegClass::sgpr(8)));
        let sampler = lanes.last().copied().unwrap_or(image);
        (self.in_sgpr(image), self.in_sgpr(sampler))
    }

    fn image_operands(&mut self, inst: Inst, access: ImageAccess) -> ImageOperands {
        let func = self.func;
        let op = func.op(inst);
        let args = func.args(inst);
        let first = match op {
            Op::ImageStore | Op::ImageAtomic => 1,
            Op::ImageAtomicCompare => 2,
            _ => 0,
        };
        let sampled = matches!(op, Op::ImageSample | Op::ImageGather | Op::ImageQueryLod);
        let (image, own_sampler) = self.handles(args[first]);
        let sampler = if sampled { self.handles(args[first + 1]).1 } else { own_sampler };
        let at = first + if sampled { 2 } else { 1 };
        let coordinates = self.value(args[at]).to_vec();
        ImageOperands { access, image, sampler, coordinates, rest: args[at + 1..].to_vec() }
    }

    /// The value of a flag.
    fn extra(&self, operands: &ImageOperands, flag: ImageFlags) -> Option<Value> {
        operands.rest.get(operands.access.flags.operand(flag)?).copied()
    }

    /// Modifiers that the GPU's instruction has.
    fn set_known(&self, mods: &mut Mods, opcode: Opcode, id: Mod, value: i32) {
        let known = self.variants.widest(opcode).is_some_and(|variant| variant.has_mod(id));
        if known {
            mods.set(id, value);
        }
    }

    fn image_mods(&self, made: &ImageInst, access: ImageAccess, load: bool) -> Mods {
        let mut mods = self.access_mods(access.access, load);
        mods.set(Mod::Dmask, made.mask.into());
        if self.gfx >= Gfx::Gfx10 {
            mods.set(Mod::Dim, made.dim.into());
        } else if made.layered {
            mods.set(Mod::Da, 1);
        }
        mods
    }

    fn image_memory(access: ImageAccess) -> Payload {
        let kinds = if access.access.has(Access::READONLY) { MemoryKinds::NONE } else { MemoryKinds::IMAGES };
        Payload::Memory(Memory { kinds, access: access.access, private: false })
    }

    /// The address in registers that need not follow each other, if the GPU takes a list of so many, or in consecutive ones.
    fn image_address(&mut self, parts: &[Operand], sampled: bool) -> Vec<Operand> {
        let parts: Vec<Operand> =
            parts.iter().map(|part| if part.is_undef() { Operand::c32(0) } else { *part }).collect();
        let single = match address_list(self.gfx, sampled) {
            AddressList { most, .. } if parts.len() <= most => parts.len(),
            AddressList { most, grouped: true } => most - 1,
            AddressList { .. } => 0,
        };
        let (single, rest) = parts.split_at(single);
        let mut address: Vec<Operand> = single.iter().map(|part| self.in_vgpr(*part)).collect();
        match rest {
            [] if address.is_empty() => address.push(self.copy(RegClass::V1, Operand::c32(0))),
            [] => {}
            [part] => address.push(self.in_vgpr(*part)),
            _ => address.push(self.create(RegClass::vgpr(rest.len() as u8), rest)),
        }
        address
    }

    /// The address of a ray: node, extent, origin, direction and inverse direction.
    pub(super) fn ray_address(&mut self, parts: &[Vec<Operand>]) -> Vec<Operand> {
        let words: Vec<Operand> = parts.iter().flatten().map(|word| self.in_vgpr(*word)).collect();
        match address_list(self.gfx, false) {
            // Each of the five is in consecutive registers.
            AddressList { grouped: true, .. } => parts
                .iter()
                .map(|part| match part[..] {
                    [word] => self.in_vgpr(word),
                    _ => self.create(RegClass::vgpr(part.len() as u8), part),
                })
                .collect(),
            AddressList { most, .. } if words.len() <= most => words,
            AddressList { .. } => vec![self.create(RegClass::vgpr(words.len() as u8), &words)],
        }
    }

    /// An instruction that returns texels or sizes: its words.
    fn image_load_inst(
        &mut self,
        made: &ImageInst,
        access: ImageAccess,
        image: Operand,
        sampler: Option<Operand>,
        unorm: bool,
    ) -> Vec<Operand> {
        let gather = self.is_gather(made.opcode);
        let count = if gather { 4 } else { made.mask.count_ones() as u8 };
        let class = RegClass::vgpr(count);
        let address = self.image_address(&made.address, sampler.is_some());
        let temp = self.program.make_temp(class);
        let definitions = [Definition::temp(temp, class)];
        let descriptors: InlineList<Operand, 2> = [image].into_iter().chain(sampler).collect();
        let operands = with_address(&[], &address, &descriptors);
        let mut new = NewInst::hw(made.opcode, &definitions, &operands);
        new.mods = self.image_mods(made, access, true);
        if unorm {
            self.set_known(&mut new.mods, made.opcode, Mod::Unorm, 1);
        }
        new.payload = Self::image_memory(access);
        self.add(&new);
        self.split(Operand::temp(temp, class), 1)
    }

    fn is_gather(&self, opcode: Opcode) -> bool {
        opcode.name().starts_with("image_gather4")
    }

    /// Defines the lanes of the result that are in a mask; the others are undefined.
    fn define_masked(&mut self, inst: Inst, mask: u8, words: &[Operand]) {
        let lanes = self.func.ty(self.func.result(inst)).lanes;
        let mut next = words.iter();
        let all: Vec<Operand> = (0..lanes)
            .map(|lane| {
                let there = mask >> lane & 1 != 0;
                next_if(there, &mut next).unwrap_or(Operand::undef(RegClass::V1))
            })
            .collect();
        self.define_words(inst, &all);
    }

    /// Defines a 64-bit texel, whose format has one component, from its two words.
    fn define_wide(&mut self, inst: Inst, words: &[Operand]) {
        let value = self.create(RegClass::V2, words);
        let others = [0, 0, 1].map(|bits| Operand::constant(bits, RegClass::V2));
        let lanes = usize::from(self.func.ty(self.func.result(inst)).lanes);
        let lanes: Vec<Operand> = [value].into_iter().chain(others).take(lanes).collect();
        self.define_words(inst, &lanes);
    }

    /// The components of a texel that is stored.
    fn stored_texel(&mut self, inst: Inst) -> Vec<Operand> {
        let value = self.func.args(inst)[0];
        let texel = self.value(value).to_vec();
        match (self.func.ty(value).base, texel.first()) {
            (Base::B64, Some(first)) => self.words(*first).to_vec(),
            _ => texel,
        }
    }

    /// Defines a result by words of vector registers.
    fn define_words(&mut self, inst: Inst, words: &[Operand]) {
        let result = self.func.result(inst);
        let words: Vec<Operand> = if self.banks.is_vector(result) {
            words.to_vec()
        } else {
            words.iter().map(|word| self.in_scalar(*word)).collect()
        };
        self.define(result, &words);
    }

    /// Which lanes of the result are read.
    fn wanted(&self, inst: Inst) -> u8 {
        let result = self.func.result(inst);
        let lanes = self.func.ty(result).lanes.min(4);
        let mask = (self.read[result] & ((1 << lanes) - 1)) as u8;
        if mask == 0 { 1 } else { mask }
    }

    /// Sampling, gathers and queries of levels.
    fn sample_image(&mut self, inst: Inst, access: ImageAccess) -> Selected<()> {
        use ImageFlags as F;
        let op = self.func.op(inst);
        let operands = self.image_operands(inst, access);
        let layered = operands.coordinates.len() > usize::from(access.dim.coordinates());
        let lod = self.extra(&operands, F::LOD).map(|value| self.scalar(value));
        let zero = lod.is_some_and(|lod| lod.is_const(0));
        let mut name = String::from(match op {
            Op::ImageSample => "image_sample",
            Op::ImageGather => "image_gather4",
            _ => "image_get_lod",
        });
        let query = op == Op::ImageQueryLod;
        let given = |flag| access.flags.has(flag) && !query;
        let gathers_base = op == Op::ImageGather && !given(F::LOD) && !given(F::BIAS);
        for (there, suffix) in [
            (given(F::DREF), "_c"),
            (given(F::GRAD), "_d"),
            (given(F::BIAS), "_b"),
            (given(F::LOD) && !zero, "_l"),
            (given(F::LOD) && zero || gathers_base, "_lz"),
            (given(F::MIN_LOD), "_cl"),
            (given(F::OFFSET), "_o"),
        ] {
            if there {
                name.push_str(suffix);
            }
        }
        let Some(opcode) = opcode(&name).filter(|opcode| self.has(*opcode)) else {
            return Err(self.unsupported(inst, Some("this form of sampling on this GPU")));
        };
        let mut address = Vec::new();
        if let Some(offset) = self.extra(&operands, F::OFFSET) {
            address.push(self.texel_offset(offset));
        }
        for flag in [F::BIAS, F::DREF] {
            let value = self.extra(&operands, flag);
            address.extend(value.map(|value| self.scalar(value)));
        }
        let turned = access.dim == Dim::Cube && !access.flags.has(F::FACES);
        let direction = turned.then(|| self.cube_direction(&operands.coordinates));
        if given(F::GRAD)
            && let Some(at) = access.flags.operand(F::GRAD)
        {
            for along in operands.rest.iter().skip(at).take(2) {
                let along = self.value(*along).to_vec();
                match &direction {
                    Some(direction) => address.extend(self.face_derivative(direction, &along)),
                    None => address.extend(along),
                }
            }
        }
        let coordinates = match &direction {
            Some(direction) => {
                self.cube_coordinates(direction, operands.coordinates.get(3).copied()).to_vec()
            }
            None => operands.coordinates.clone(),
        };
        address.extend(coordinates);
        if let Some(lod) = lod.filter(|_| !zero) {
            address.push(lod);
        }
        let least = self.extra(&operands, F::MIN_LOD);
        address.extend(least.map(|value| self.scalar(value)));
        let wanted = self.wanted(inst);
        let mask = match op {
            Op::ImageGather => 1 << (access.component & 3),
            _ if given(F::DREF) => 1,
            _ => wanted,
        };
        let made = ImageInst {
            opcode,
            address,
            mask,
            dim: shape_code(access.dim, layered, false),
            layered: layered || access.dim == Dim::Cube,
        };
        let words = self.image_load_inst(&made, access, operands.image, Some(operands.sampler), false);
        if op == Op::ImageGather {
            self.define_words(inst, &words);
        } else {
            self.define_masked(inst, mask, &words);
        }
        Ok(())
    }

    /// Offsets in texels: six bits each, eight apart.
    fn texel_offset(&mut self, offset: Value) -> Operand {
        let lanes = self.value(offset).to_vec();
        let mut packed = Operand::c32(0);
        for (lane, shift) in lanes.into_iter().zip([0u32, 8, 16]) {
            let field = match lane.as_const() {
                Some(bits) => Operand::c32((bits as u32 & 63) << shift),
                None => {
                    let bits = self.valu(Opcode::v_and_b32, RegClass::V1, &[Operand::c32(63), lane]);
                    self.valu(Opcode::v_lshlrev_b32, RegClass::V1, &[Operand::c32(shift), bits])
                }
            };
            packed = match (packed.as_const(), field.as_const()) {
                (Some(a), Some(b)) => Operand::c32((a | b) as u32),
                (Some(0), None) => field,
                _ => {
                    let mut pair = [packed, field];
                    self.order(&mut pair);
                    self.valu(Opcode::v_or_b32, RegClass::V1, &pair)
                }
            };
        }
        packed
    }

    /// Integer coordinates of a texel, then the sample; and how the image is addressed.
    fn texel_address(&mut self, operands: &ImageOperands) -> (Vec<Operand>, u8, bool) {
        let access = operands.access;
        let mut address = operands.coordinates.clone();
        // Faces are layers.
        let cube = access.dim == Dim::Cube;
        if cube && address.len() > 3 {
            let six = Operand::c32(6);
            let first = self.valu(Opcode::v_mul_lo_u32, RegClass::V1, &[address[3], six]);
            address[2] = self.vector_add(address[2], first);
            address.truncate(3);
        }
        let layered = cube || address.len() > usize::from(access.dim.coordinates());
        let sample = self.extra(operands, ImageFlags::SAMPLE);
        let samples = sample.is_some();
        address.extend(sample.map(|value| self.scalar(value)));
        let dim = if cube { Dim::D2 } else { access.dim };
        (address, shape_code(dim, layered, samples), layered)
    }

    /// Whether an access names a level that is not the first, which is added to the address.
    fn level(&mut self, operands: &ImageOperands, address: &mut Vec<Operand>) -> bool {
        let level = self.extra(operands, ImageFlags::LOD).map(|value| self.scalar(value));
        let level = level.filter(|level| !level.is_const(0));
        address.extend(level);
        level.is_some()
    }

    fn fetch(&mut self, inst: Inst, access: ImageAccess) -> Selected<()> {
        let operands = self.image_operands(inst, access);
        let (mut address, dim, layered) = self.texel_address(&operands);
        let leveled = self.level(&operands, &mut address);
        let opcode = if leveled { Opcode::image_load_mip } else { Opcode::image_load };
        let wide = self.func.ty(self.func.result(inst)).base == Base::B64;
        let mask = if wide { WIDE } else { self.wanted(inst) };
        let made = ImageInst { opcode, address, mask, dim, layered };
        let words = self.image_load_inst(&made, access, operands.image, None, true);
        if wide {
            self.define_wide(inst, &words);
        } else {
            self.define_masked(inst, mask, &words);
        }
        Ok(())
    }

    fn store_texel(&mut self, inst: Inst, access: ImageAccess) -> Selected<()> {
        let operands = self.image_operands(inst, access);
        let (mut address, dim, layered) = self.texel_address(&operands);
        let leveled = self.level(&operands, &mut address);
        let opcode = if leveled { Opcode::image_store_mip } else { Opcode::image_store };
        let mut texel = self.stored_texel(inst);
        let mask = (1u8 << texel.len().min(4)) - 1;
        let halves = self.func.ty(self.func.args(inst)[0]).base == Base::B16;
        if halves {
            texel = texel.chunks(2).map(|pair| self.packed(pair)).collect();
        }
        let data = self.vector_data(&texel);
        let made = ImageInst { opcode, address, mask, dim, layered };
        let address = self.image_address(&made.address, false);
        let all = with_address(&[data], &address, &[operands.image]);
        let mut new = NewInst::hw(opcode, &[], &all);
        new.mods = self.image_mods(&made, access, false);
        self.set_known(&mut new.mods, opcode, Mod::Unorm, 1);
        if halves {
            new.mods.set(Mod::D16, 1);
        }
        new.payload = Self::image_memory(access);
        self.add(&new);
        Ok(())
    }

    /// One or two components of 16 bits, whose upper bits are undefined, in one register.
    fn packed(&mut self, components: &[Operand]) -> Operand {
        let &[low, high] = components else { return components[0] };
        let low = self.valu(Opcode::v_and_b32, RegClass::V1, &[Operand::c32(0xffff), low]);
        self.valu(Opcode::v_lshl_or_b32, RegClass::V1, &[high, Operand::c32(16), low])
    }

    /// The value of an atomic operation, with what is compared, and the class of both.
    fn texel_atomic_data(&mut self, inst: Inst) -> (Operand, RegClass) {
        let args = self.func.args(inst);
        let count = if self.func.op(inst) == Op::ImageAtomic { 1 } else { 2 };
        let mut words = Vec::new();
        for &value in &args[..count] {
            let value = self.scalar(value);
            words.extend(if value.class.dwords() == 2 { self.words(value).to_vec() } else { vec![value] });
        }
        (self.vector_data(&words), RegClass::vgpr(words.len() as u8))
    }

    fn atomic_op(&self, inst: Inst) -> Option<AtomicOp> {
        match self.func.payload(inst) {
            ShaderPayload::ImageAtomic(op, _) => Some(op),
            _ => None,
        }
    }

    fn atomic_texel(&mut self, inst: Inst, access: ImageAccess) -> Selected<()> {
        let compares = self.func.op(inst) == Op::ImageAtomicCompare;
        let base = self.func.ty(self.func.result(inst)).base;
        let opcode = self.atomic_op(inst).and_then(|op| image_atomic(op, compares, base));
        let Some(opcode) = opcode.filter(|opcode| self.has(*opcode)) else {
            return Err(self.unsupported(inst, Some("in images on this GPU")));
        };
        let operands = self.image_operands(inst, access);
        let (address, dim, layered) = self.texel_address(&operands);
        let (data, class) = self.texel_atomic_data(inst);
        // The components of a texel form a value, or a value and one to compare with.
        let mask = (1 << class.dwords()) - 1;
        let made = ImageInst { opcode, address, mask, dim, layered };
        let address = self.image_address(&made.address, false);
        let mut mods = self.image_mods(&made, access, false);
        self.set_known(&mut mods, opcode, Mod::Unorm, 1);
        let all = with_address(&[], &address, &[operands.image, data]);
        self.atomic_inst(inst, opcode, mods, access, &all, class);
        Ok(())
    }

    /// An atomic operation whose data are its last operand, and whose result is in the registers of the data.
    fn atomic_inst(
        &mut self,
        inst: Inst,
        opcode: Opcode,
        mut mods: Mods,
        access: ImageAccess,
        operands: &[Operand],
        class: RegClass,
    ) {
        let result = self.func.result(inst);
        let wanted = self.read[result] != 0;
        self.set_returns(&mut mods, wanted);
        let temp = self.program.make_temp(class);
        let definitions = [Definition::temp(temp, class)];
        let mut new = NewInst::hw(opcode, if wanted { &definitions } else { &[] }, operands);
        new.mods = mods;
        new.payload = Self::image_memory(access);
        self.add(&new);
        let dwords = (self.func.ty(result).base.bits() / 32) as u8;
        let value = match wanted {
            false => Operand::undef(RegClass::vgpr(dwords)),
            true => self.split(Operand::temp(temp, class), dwords)[0],
        };
        self.define_words(inst, &[value]);
    }

    /// Words of a query of sizes.
    fn size_query(
        &mut self,
        image: Operand,
        access: ImageAccess,
        level: Operand,
        mask: u8,
    ) -> Selected<Vec<Operand>> {
        let layered = access.flags.has(ImageFlags::ARRAY) || access.dim == Dim::Cube;
        let samples = access.flags.has(ImageFlags::MS);
        let dim = if access.dim == Dim::Cube { Dim::D2 } else { access.dim };
        let made = ImageInst {
            opcode: Opcode::image_get_resinfo,
            address: vec![level],
            mask,
            dim: shape_code(dim, layered, samples),
            layered,
        };
        let constant = ImageAccess { access: Access::READONLY, ..access };
        Ok(self.image_load_inst(&made, constant, image, None, false))
    }

    fn image_size(&mut self, inst: Inst, access: ImageAccess) -> Selected<()> {
        use Opcode as O;
        let args = self.func.args(inst);
        let (image, _) = self.handles(args[0]);
        let level = args.get(1).map_or(Operand::c32(0), |level| self.scalar(*level));
        let lanes = self.func.ty(self.func.result(inst)).lanes;
        let array = access.flags.has(ImageFlags::ARRAY);
        let v1 = RegClass::V1;
        let words = match (access.dim, array) {
            // Layers of one dimension are the second number on some GPUs, and the third on others; the one that is not is 1.
            (Dim::D1, true) => {
                let words = self.size_query(image, access, level, 7)?;
                let layers = self.valu(O::v_max_u32, v1, &[words[1], words[2]]);
                vec![words[0], layers]
            }
            (Dim::Cube, true) => {
                let words = self.size_query(image, access, level, 7)?;
                // A sixth: the high word of the product with 2 to the power of 34 over 6, less than 2 to the power of 14.
                let sixth = Operand::c32(0xaaaa_aaab);
                let high = self.valu(O::v_mul_hi_u32, v1, &[words[2], sixth]);
                let cubes = self.valu(O::v_lshrrev_b32, v1, &[Operand::c32(2), high]);
                vec![words[0], words[1], cubes]
            }
            _ => self.size_query(image, access, level, (1 << lanes.min(3)) - 1)?,
        };
        self.define_words(inst, &words);
        Ok(())
    }

    /// How many samples a texel has: a power of two in the descriptor, where its type is that of multisampled images.
    fn image_samples(&mut self, inst: Inst) -> Selected<()> {
        use Opcode as O;
        let s1 = RegClass::S1;
        let (image, _) = self.handles(self.func.args(inst)[0]);
        let words = self.split(image, 1);
        let word = words.get(3).copied().unwrap_or(Operand::undef(s1));
        let (lowest, bits) = if self.gfx >= Gfx::Gfx12 { (15, 5) } else { (16, 4) };
        let log2 = self.salu(O::s_bfe_u32, s1, &[word, Operand::c32(bits << 16 | lowest)]);
        let samples = self.salu(O::s_lshl_b32, s1, &[Operand::c32(1), log2]);
        let kind = self.salu(O::s_lshr_b32, s1, &[word, Operand::c32(28)]);
        let multisampled = self.salu_compare(O::s_cmp_ge_u32, &[kind, Operand::c32(14)]);
        let samples = self.salu(O::s_cselect_b32, s1, &[samples, Operand::c32(1), multisampled]);
        self.define(self.func.result(inst), &[samples]);
        Ok(())
    }

    /// Accesses to texel buffers: elements by number, in the format of the descriptor.
    fn texel_buffer(&mut self, inst: Inst, access: ImageAccess) -> Selected<()> {
        use Opcode as O;
        let op = self.func.op(inst);
        if op == Op::ImageSize {
            return self.texel_count(inst);
        }
        if op == Op::ImageLevels || op == Op::ImageSamples {
            self.define(self.func.result(inst), &[Operand::c32(1)]);
            return Ok(());
        }
        let operands = self.image_operands(inst, access);
        let index = operands.coordinates.first().copied().unwrap_or(Operand::undef(RegClass::V1));
        let index = if index.is_undef() { Operand::c32(0) } else { index };
        let index = self.in_vgpr(index);
        let address = [index, operands.image, Operand::c32(0)];
        let mut mods = self.access_mods(access.access, matches!(op, Op::ImageFetch | Op::ImageLoad));
        mods.set(Mod::Idxen, 1);
        match op {
            Op::ImageFetch | Op::ImageLoad => {
                let lanes = self.func.ty(self.func.result(inst)).lanes.min(4);
                let last = 8 - (self.wanted(inst)).leading_zeros() as u8;
                let wide = self.func.ty(self.func.result(inst)).base == Base::B64;
                let count = if wide { 2 } else { last.clamp(1, lanes) };
                let opcode = [
                    O::buffer_load_format_x,
                    O::buffer_load_format_xy,
                    O::buffer_load_format_xyz,
                    O::buffer_load_format_xyzw,
                ][usize::from(count) - 1];
                let class = RegClass::vgpr(count);
                let temp = self.program.make_temp(class);
                let definitions = [Definition::temp(temp, class)];
                let mut new = NewInst::hw(opcode, &definitions, &address);
                new.mods = mods;
                new.payload = Self::image_memory(access);
                self.add(&new);
                let mut words = self.split(Operand::temp(temp, class), 1);
                if wide {
                    self.define_wide(inst, &words);
                } else {
                    words.resize(lanes.into(), Operand::undef(RegClass::V1));
                    self.define_words(inst, &words);
                }
            }
            Op::ImageStore => {
                let texel = self.stored_texel(inst);
                let opcode = [
                    O::buffer_store_format_x,
                    O::buffer_store_format_xy,
                    O::buffer_store_format_xyz,
                    O::buffer_store_format_xyzw,
                ][texel.len().clamp(1, 4) - 1];
                let data = self.vector_data(&texel);
                let all = [data, address[0], address[1], address[2]];
                let mut new = NewInst::hw(opcode, &[], &all);
                new.mods = mods;
                new.payload = Self::image_memory(access);
                self.add(&new);
            }
            _ => {
                let compares = op == Op::ImageAtomicCompare;
                let base = self.func.ty(self.func.result(inst)).base;
                let opcode = self.atomic_op(inst).and_then(|op| buffer_atomic(op, compares, base));
                let Some(opcode) = opcode.filter(|opcode| self.has(*opcode)) else {
                    return Err(self.unsupported(inst, Some("in texel buffers on this GPU")));
                };
                let (data, class) = self.texel_atomic_data(inst);
                let all = [address[0], address[1], address[2], data];
                self.atomic_inst(inst, opcode, mods, access, &all, class);
            }
        }
        Ok(())
    }

    /// How many texels a buffer has: from its descriptor, which counts bytes on gfx8 and elements on other GPUs.
    fn texel_count(&mut self, inst: Inst) -> Selected<()> {
        use Opcode as O;
        let (s1, result) = (RegClass::S1, self.func.result(inst));
        let (image, _) = self.handles(self.func.args(inst)[0]);
        let words = self.split(image, 1);
        let [stride, records] = [1, 2].map(|at| words.get(at).copied().unwrap_or(Operand::undef(s1)));
        if self.gfx != Gfx::Gfx8 {
            self.define(result, &[records]);
            return Ok(());
        }
        // Elements have 1, 2, 4, 8, 12 or 16 bytes. The quotient by 12 is that by 4, and then by 3.
        let stride = self.salu(O::s_bfe_u32, s1, &[stride, Operand::c32(14 << 16 | 16)]);
        let shift = self.salu(O::s_ff1_i32_b32, s1, &[stride]);
        let units = self.salu(O::s_lshr_b32, s1, &[records, shift]);
        let third = self.valu(O::v_mul_hi_u32, RegClass::V1, &[units, Operand::c32(0xaaaa_aaab)]);
        let third = self.in_scalar(third);
        let third = self.salu(O::s_lshr_b32, s1, &[third, Operand::c32(1)]);
        let twelve = self.salu_compare(O::s_cmp_eq_u32, &[stride, Operand::c32(12)]);
        let count = self.salu(O::s_cselect_b32, s1, &[third, units, twelve]);
        self.define(result, &[count]);
        Ok(())
    }
}

/// The next word, if it is there.
fn next_if<'o>(there: bool, words: &mut impl Iterator<Item = &'o Operand>) -> Option<Operand> {
    if there { words.next().copied() } else { None }
}
