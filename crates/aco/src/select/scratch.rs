//! Loads and stores of scratch memory: that of the lane alone. Up to gfx10 it is a buffer whose elements, of four bytes, are a wave apart, so each access
//! moves one; from gfx11 on it has instructions of its own.

use super::{Selected, Selector};
use crate::ir::{Definition, Memory, NewInst, Operand, Payload, RegClass};
use crate::spill::scratch_config;
use unwedge_isa::amdgcn::model::{Gfx, Mod};
use unwedge_isa::amdgcn::{Mods, Opcode};
use unwedge_shader::ir::{Access, Base, Inst, MemoryKinds};

/// The largest offset on all generations, less the bytes of the largest value.
const MAX_OFFSET: u64 = 4095 - 128;

/// Where an access is: the address in a vector register, if there is one, and the offset; the descriptor and its offset where scratch is a buffer.
struct ScratchAddress {
    vector: Operand,
    offset: u64,
    buffer: Option<[Operand; 2]>,
}

impl Selector<'_> {
    fn scratch_address(&mut self, inst: Inst, offset: Operand) -> Selected<ScratchAddress> {
        let buffer = match self.gfx >= Gfx::Gfx11 {
            true => None,
            false => {
                let args = self.program.scratch;
                let (Some(base), Some(wave)) = (args.descriptor, args.offset) else {
                    return Err(self.unsupported(inst, Some("scratch of a stage without it")));
                };
                let [base, wave] = [base, wave].map(|temp| Operand::temp(temp, self.program.class(temp)));
                let config = scratch_config(self.gfx, self.program.gpu.wave64());
                let whole = match base.class.dwords() {
                    4 => base,
                    _ => {
                        self.create(RegClass::sgpr(4), &[base, Operand::c32(u32::MAX), Operand::c32(config)])
                    }
                };
                Some([whole, wave])
            }
        };
        let (vector, offset) = match offset.as_const() {
            Some(bytes) if bytes <= MAX_OFFSET => (Operand::undef(RegClass::V1), bytes),
            _ => (self.in_vgpr(offset), 0),
        };
        Ok(ScratchAddress { vector, offset, buffer })
    }

    fn scratch_access(
        &mut self,
        opcodes: [Opcode; 2],
        definitions: &[Definition],
        data: Option<Operand>,
        address: &ScratchAddress,
        at: u64,
    ) {
        let mut mods = Mods::default();
        mods.set(Mod::Offset, (address.offset + at) as i32);
        let mut operands = vec![address.vector];
        let opcode = match address.buffer {
            Some([descriptor, wave]) => {
                mods.set(Mod::Offen, i32::from(!address.vector.is_undef()));
                operands.splice(0..0, data);
                operands.extend([descriptor, wave]);
                opcodes[0]
            }
            None => {
                operands.extend(data);
                operands.push(Operand::undef(RegClass::S1));
                opcodes[1]
            }
        };
        let mut new = NewInst::hw(opcode, definitions, &operands);
        new.mods = mods;
        let access = Access::NONE;
        new.payload = Payload::Memory(Memory { kinds: MemoryKinds::BUFFERS, access, private: true });
        self.add(&new);
    }

    /// Words of a load of scratch.
    pub(super) fn load_scratch(&mut self, inst: Inst) -> Selected<Vec<Operand>> {
        use Opcode as O;
        let ty = self.func.ty(self.func.result(inst));
        let offset = self.scalar(self.func.args(inst)[0]);
        let address = self.scratch_address(inst, offset)?;
        let (opcodes, bytes, count) = match ty.base {
            Base::B8 => ([O::buffer_load_ubyte, O::scratch_load_ubyte], 1, ty.lanes.into()),
            Base::B16 => ([O::buffer_load_ushort, O::scratch_load_ushort], 2, ty.lanes.into()),
            Base::B64 => ([O::buffer_load_dword, O::scratch_load_dword], 4, u64::from(ty.lanes) * 2),
            _ => ([O::buffer_load_dword, O::scratch_load_dword], 4, ty.lanes.into()),
        };
        let mut words = Vec::new();
        for at in 0..count {
            let temp = self.program.make_temp(RegClass::V1);
            let definition = [Definition::temp(temp, RegClass::V1)];
            self.scratch_access(opcodes, &definition, None, &address, at * bytes);
            words.push(Operand::temp(temp, RegClass::V1));
        }
        Ok(words)
    }

    /// A store of words to scratch.
    pub(super) fn store_scratch(&mut self, inst: Inst, words: &[Operand]) -> Selected<()> {
        use Opcode as O;
        let args = self.func.args(inst);
        let base = self.func.ty(args[0]).base;
        let offset = self.scalar(args[1]);
        let address = self.scratch_address(inst, offset)?;
        let (opcodes, bytes) = match base {
            Base::B8 => ([O::buffer_store_byte, O::scratch_store_byte], 1),
            Base::B16 => ([O::buffer_store_short, O::scratch_store_short], 2),
            _ => ([O::buffer_store_dword, O::scratch_store_dword], 4),
        };
        for (at, word) in (0..).zip(words) {
            let word = self.in_vgpr(*word);
            let word = if word.is_undef() { self.copy(RegClass::V1, Operand::c32(0)) } else { word };
            self.scratch_access(opcodes, &[], Some(word), &address, at * bytes);
        }
        Ok(())
    }
}
