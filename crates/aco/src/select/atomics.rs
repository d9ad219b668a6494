//! Atomic operations on buffers, memory of the workgroup and global memory.
//!
//! Operations on floats that the GPU does not have, or that ignore the float mode, became loops before selection.

use super::global::{GlobalOpcodes, opcodes};
use super::memory::LDS_LIMIT;
use super::{Selected, Selector};
use crate::ir::{Definition, NewInst, Operand, RegClass};
use unwedge_isa::amdgcn::model::{Gfx, Mod};
use unwedge_isa::amdgcn::{Mods, Opcode};
use unwedge_shader::ir::{AtomicOp, Base, Inst, MemAccess, Op, Space, Value};

/// The instructions for an atomic operation on memory, on 32 and on 64 bits.
fn memory_opcodes(op: AtomicOp, compares: bool) -> [GlobalOpcodes; 2] {
    use AtomicOp as A;
    match op {
        _ if compares => [
            opcodes!(buffer_atomic_cmpswap flat_atomic_cmpswap global_atomic_cmpswap),
            opcodes!(buffer_atomic_cmpswap_x2 flat_atomic_cmpswap_x2 global_atomic_cmpswap_x2),
        ],
        A::Add => [
            opcodes!(buffer_atomic_add flat_atomic_add global_atomic_add),
            opcodes!(buffer_atomic_add_x2 flat_atomic_add_x2 global_atomic_add_x2),
        ],
        A::IMin => [
            opcodes!(buffer_atomic_smin flat_atomic_smin global_atomic_smin),
            opcodes!(buffer_atomic_smin_x2 flat_atomic_smin_x2 global_atomic_smin_x2),
        ],
        A::IMax => [
            opcodes!(buffer_atomic_smax flat_atomic_smax global_atomic_smax),
            opcodes!(buffer_atomic_smax_x2 flat_atomic_smax_x2 global_atomic_smax_x2),
        ],
        A::UMin => [
            opcodes!(buffer_atomic_umin flat_atomic_umin global_atomic_umin),
            opcodes!(buffer_atomic_umin_x2 flat_atomic_umin_x2 global_atomic_umin_x2),
        ],
        A::UMax => [
            opcodes!(buffer_atomic_umax flat_atomic_umax global_atomic_umax),
            opcodes!(buffer_atomic_umax_x2 flat_atomic_umax_x2 global_atomic_umax_x2),
        ],
        A::And => [
            opcodes!(buffer_atomic_and flat_atomic_and global_atomic_and),
            opcodes!(buffer_atomic_and_x2 flat_atomic_and_x2 global_atomic_and_x2),
        ],
        A::Or => [
            opcodes!(buffer_atomic_or flat_atomic_or global_atomic_or),
            opcodes!(buffer_atomic_or_x2 flat_atomic_or_x2 global_atomic_or_x2),
        ],
        A::Xor => [
            opcodes!(buffer_atomic_xor flat_atomic_xor global_atomic_xor),
            opcodes!(buffer_atomic_xor_x2 flat_atomic_xor_x2 global_atomic_xor_x2),
        ],
        A::Exchange => [
            opcodes!(buffer_atomic_swap flat_atomic_swap global_atomic_swap),
            opcodes!(buffer_atomic_swap_x2 flat_atomic_swap_x2 global_atomic_swap_x2),
        ],
        A::FAdd => [
            opcodes!(buffer_atomic_add_f32 flat_atomic_add_f32 global_atomic_add_f32),
            opcodes!(buffer_atomic_add_f64 flat_atomic_add_f64 global_atomic_add_f64),
        ],
        A::FMin => [
            opcodes!(buffer_atomic_fmin flat_atomic_fmin global_atomic_fmin),
            opcodes!(buffer_atomic_fmin_x2 flat_atomic_fmin_x2 global_atomic_fmin_x2),
        ],
        A::FMax => [
            opcodes!(buffer_atomic_fmax flat_atomic_fmax global_atomic_fmax),
            opcodes!(buffer_atomic_fmax_x2 flat_atomic_fmax_x2 global_atomic_fmax_x2),
        ],
    }
}

/// The instruction for an atomic operation on a buffer.
pub(crate) fn buffer_atomic(op: AtomicOp, compares: bool, base: Base) -> Option<Opcode> {
    Some(memory_opcodes(op, compares)[wide(base)?].buffer)
}

/// The same for a global address, by generation.
pub(crate) fn global_atomic(op: AtomicOp, compares: bool, base: Base, gfx: Gfx) -> Option<Opcode> {
    Some(memory_opcodes(op, compares)[wide(base)?].of(gfx))
}

/// The instruction for an atomic operation on a texel. The mask of the instruction selects the width of integers.
pub(crate) fn image_atomic(op: AtomicOp, compares: bool, base: Base) -> Option<Opcode> {
    use AtomicOp as A;
    use Opcode as O;
    wide(base)?;
    Some(match op {
        _ if compares => O::image_atomic_cmpswap,
        A::Add => O::image_atomic_add,
        A::IMin => O::image_atomic_smin,
        A::IMax => O::image_atomic_smax,
        A::UMin => O::image_atomic_umin,
        A::UMax => O::image_atomic_umax,
        A::And => O::image_atomic_and,
        A::Or => O::image_atomic_or,
        A::Xor => O::image_atomic_xor,
        A::Exchange => O::image_atomic_swap,
        A::FAdd | A::FMin | A::FMax if base != Base::B32 => return None,
        A::FAdd => O::image_atomic_add_flt,
        A::FMin => O::image_atomic_fmin,
        A::FMax => O::image_atomic_fmax,
    })
}

/// The instructions for an atomic operation on LDS, with and without a result. Exchanges always have one.
pub(crate) fn shared_atomic(op: AtomicOp, compares: bool, base: Base, gfx: Gfx) -> Option<[Opcode; 2]> {
    use AtomicOp as A;
    use Opcode as O;
    let both = match op {
        _ if compares && gfx >= Gfx::Gfx11 => {
            [[O::ds_cmpstore_rtn_b32, O::ds_cmpstore_b32], [O::ds_cmpstore_rtn_b64, O::ds_cmpstore_b64]]
        }
        _ if compares => [[O::ds_cmpst_rtn_b32, O::ds_cmpst_b32], [O::ds_cmpst_rtn_b64, O::ds_cmpst_b64]],
        A::Add => [[O::ds_add_rtn_u32, O::ds_add_u32], [O::ds_add_rtn_u64, O::ds_add_u64]],
        A::IMin => [[O::ds_min_rtn_i32, O::ds_min_i32], [O::ds_min_rtn_i64, O::ds_min_i64]],
        A::IMax => [[O::ds_max_rtn_i32, O::ds_max_i32], [O::ds_max_rtn_i64, O::ds_max_i64]],
        A::UMin => [[O::ds_min_rtn_u32, O::ds_min_u32], [O::ds_min_rtn_u64, O::ds_min_u64]],
        A::UMax => [[O::ds_max_rtn_u32, O::ds_max_u32], [O::ds_max_rtn_u64, O::ds_max_u64]],
        A::And => [[O::ds_and_rtn_b32, O::ds_and_b32], [O::ds_and_rtn_b64, O::ds_and_b64]],
        A::Or => [[O::ds_or_rtn_b32, O::ds_or_b32], [O::ds_or_rtn_b64, O::ds_or_b64]],
        A::Xor => [[O::ds_xor_rtn_b32, O::ds_xor_b32], [O::ds_xor_rtn_b64, O::ds_xor_b64]],
        A::Exchange => [[O::ds_wrxchg_rtn_b32; 2], [O::ds_wrxchg_rtn_b64; 2]],
        A::FAdd => [[O::ds_add_rtn_f32, O::ds_add_f32], [O::ds_add_rtn_f64, O::ds_add_f64]],
        A::FMin => [[O::ds_min_rtn_f32, O::ds_min_f32], [O::ds_min_rtn_f64, O::ds_min_f64]],
        A::FMax => [[O::ds_max_rtn_f32, O::ds_max_f32], [O::ds_max_rtn_f64, O::ds_max_f64]],
    };
    Some(both[wide(base)?])
}

/// The index of a width in the tables above.
fn wide(base: Base) -> Option<usize> {
    match base {
        Base::B32 => Some(0),
        Base::B64 => Some(1),
        _ => None,
    }
}

/// An atomic operation: what it does, and the values that it takes.
struct AtomicValues {
    inst: Inst,
    op: AtomicOp,
    base: Base,
    /// The type of one value.
    class: RegClass,
    data: Operand,
    compared: Option<Operand>,
    /// Whether the result is read.
    wanted: bool,
}

impl Selector<'_> {
    /// Selects an atomic operation.
    pub(super) fn atomic(&mut self, inst: Inst, op: AtomicOp, mem: &MemAccess) -> Selected<()> {
        let func = self.func;
        let result = func.result(inst);
        let ty = func.ty(result);
        if wide(ty.base).is_none() || ty.lanes != 1 {
            return Err(self.unsupported(inst, Some("an atomic operation of this width")));
        }
        let args = func.args(inst).to_vec();
        let compares = func.op(inst) == Op::AtomicCompare;
        let class = RegClass::vgpr((ty.base.bits() / 32) as u8);
        let mut value = |value: Value| {
            let data = self.scalar(value);
            let data = self.in_vgpr(data);
            // The instruction reads its data, even if they are undefined, so they need a register.
            if data.is_undef() { self.copy(class, Operand::constant(0, class)) } else { data }
        };
        let values = AtomicValues {
            inst,
            op,
            base: ty.base,
            class,
            data: value(args[0]),
            compared: compares.then(|| value(args[1])),
            wanted: self.read[result] != 0,
        };
        let place = &args[1 + usize::from(compares)..];
        let found = match (mem.space, place) {
            (Space::Shared, &[offset]) => self.atomic_shared(&values, mem, offset)?,
            (Space::Storage, &[handle, offset]) => {
                let (handle, offset) = (self.scalar(handle), self.scalar(offset));
                self.atomic_buffer(&values, mem, handle, offset)?
            }
            (Space::Global, &[address]) => self.atomic_global(&values, mem, address)?,
            _ => return Err(self.unsupported(inst, Some(mem.space.name()))),
        };
        self.define(result, &[found]);
        Ok(())
    }

    fn atomic_shared(&mut self, values: &AtomicValues, mem: &MemAccess, offset: Value) -> Selected<Operand> {
        let &AtomicValues { inst, op, base, class, data, compared, wanted } = values;
        let opcodes = shared_atomic(op, compared.is_some(), base, self.gfx);
        let Some([with, without]) = opcodes.filter(|[with, _]| self.has(*with)) else {
            return Err(self.unsupported(inst, Some("in LDS on this GPU")));
        };
        let (address, first) = self.lds_address(offset);
        let returns = wanted || with == without;
        let mut operands = vec![address, data];
        if let Some(compared) = compared {
            // The older instruction takes the compared value first.
            operands.insert(if self.gfx >= Gfx::Gfx11 { 2 } else { 1 }, compared);
        }
        operands.push(LDS_LIMIT);
        let temp = self.program.make_temp(class);
        let definitions = [Definition::temp(temp, class)];
        let definitions = if returns { &definitions[..] } else { &[] };
        let mut new =
            NewInst::hw(if returns { with } else { without }, definitions, self.lds_operands(&operands));
        new.mods.set(Mod::Offset, first as i32);
        new.payload = self.memory(mem);
        self.add(&new);
        Ok(if returns { Operand::temp(temp, class) } else { Operand::undef(class) })
    }

    /// The data of an instruction, followed by the compared value, and the class of both together.
    fn atomic_data(&mut self, values: &AtomicValues) -> (Operand, RegClass) {
        match values.compared {
            Some(compared) => {
                let both = RegClass::vgpr(values.class.dwords() * 2);
                (self.create(both, &[values.data, compared]), both)
            }
            None => (values.data, values.class),
        }
    }

    fn atomic_buffer(
        &mut self,
        values: &AtomicValues,
        mem: &MemAccess,
        handle: Operand,
        offset: Operand,
    ) -> Selected<Operand> {
        let opcode = buffer_atomic(values.op, values.compared.is_some(), values.base);
        let Some(opcode) = opcode.filter(|opcode| self.has(*opcode)) else {
            return Err(self.unsupported(values.inst, Some("in buffers on this GPU")));
        };
        let (address, first) = self.buffer_address(handle, offset);
        let (data, class) = self.atomic_data(values);
        // In the table, the operand that is both read and written comes last.
        let operands = [address[0], address[1], address[2], data];
        let mut mods = self.buffer_mods(mem, false, &address, first);
        self.set_returns(&mut mods, values.wanted);
        Ok(self.add_atomic(values, mem, opcode, class, &operands, mods))
    }

    fn atomic_global(&mut self, values: &AtomicValues, mem: &MemAccess, address: Value) -> Selected<Operand> {
        let opcode = global_atomic(values.op, values.compared.is_some(), values.base, self.gfx);
        let Some(opcode) = opcode.filter(|opcode| self.has(*opcode)) else {
            return Err(self.unsupported(values.inst, Some("by addresses on this GPU")));
        };
        let address = self.global_address(address, u64::from(values.base.bytes()));
        let (data, class) = self.atomic_data(values);
        // Buffer instructions return the old value in the registers of their data.
        let class = if self.gfx == Gfx::Gfx6 { class } else { values.class };
        let operands = self.global_operands(&address, Some(data), true);
        let mut mods = self.global_mods(self.access_mods(mem.access, false), &address, 0);
        self.set_returns(&mut mods, values.wanted);
        Ok(self.add_atomic(values, mem, opcode, class, &operands, mods))
    }

    /// Emits an atomic operation that returns so many registers. The old value from memory is the first part of them.
    fn add_atomic(
        &mut self,
        values: &AtomicValues,
        mem: &MemAccess,
        opcode: Opcode,
        class: RegClass,
        operands: &[Operand],
        mods: Mods,
    ) -> Operand {
        let temp = self.program.make_temp(class);
        let definitions = [Definition::temp(temp, class)];
        let mut new = NewInst::hw(opcode, if values.wanted { &definitions } else { &[] }, operands);
        new.mods = mods;
        new.payload = self.memory(mem);
        self.add(&new);
        match values.wanted {
            true => self.split(Operand::temp(temp, class), values.class.dwords())[0],
            false => Operand::undef(values.class),
        }
    }
}
