//! Memory in words: takes any shader; afterwards loads and stores of two 16-bit values or of four bytes move words, if their address is a multiple of four bytes.
//! Accesses that must be made as they are written stay.

use unwedge_base::entity::SecondaryMap;
use unwedge_shader::ir::{
    Access, Base, Builder, Function, Inst, MemAccess, Op, Payload, Shader, Space, Type, Value,
};

/// The alignment of words, as a power of two.
const WORD_ALIGN: u8 = 2;
const WORD_BYTES: u32 = 4;

/// Replaces accesses. Returns whether there was one.
pub(super) fn access_words(shader: &mut Shader) -> bool {
    let func = shader.entry_mut();
    let narrow: Vec<(Inst, MemAccess)> =
        func.walk().filter_map(|inst| Some((inst, moves_words(func, inst)?))).collect();
    if narrow.is_empty() {
        return false;
    }
    let mut loaded = SecondaryMap::<Value, Option<Value>>::default();
    for (inst, mem) in narrow {
        match func.op(inst) {
            Op::Load => {
                let (before, after) = load(func, inst, mem);
                loaded[before] = Some(after);
            }
            _ => store(func, inst, mem),
        }
    }
    func.replace_values(|value| loaded[value].unwrap_or(value));
    true
}

/// How an instruction accesses memory, if it moves narrow lanes that make whole words.
fn moves_words(func: &Function, inst: Inst) -> Option<MemAccess> {
    let Payload::Mem(mem) = func.payload(inst) else { return None };
    let moved = match func.op(inst) {
        Op::Load => func.result(inst),
        Op::Store => *func.args(inst).first()?,
        _ => return None,
    };
    let Type { base, lanes } = func.ty(moved);
    let narrow = matches!(base, Base::B8 | Base::B16);
    let whole = narrow && (u32::from(lanes) * base.bytes()).is_multiple_of(WORD_BYTES);
    let plain = !mem.access.any(Access::VOLATILE.or(Access::ATOMIC)) && mem.space != Space::Scratch;
    (whole && plain && mem.align >= WORD_ALIGN).then_some(mem)
}

/// A word, and the lanes of it.
fn types_of(ty: Type) -> (Type, Type) {
    let parts = (WORD_BYTES / ty.base.bytes()) as u8;
    (Type { base: Base::B32, lanes: ty.lanes / parts }, Type { lanes: parts, ..ty })
}

/// Loads words. Returns the loaded value and its replacement.
fn load(func: &mut Function, inst: Inst, mem: MemAccess) -> (Value, Value) {
    let before = func.result(inst);
    let ty = func.ty(before);
    let (words, parts) = types_of(ty);
    let args = func.args(inst).to_vec();
    let mut b = Builder::before(func, inst);
    let loaded = b.value(Op::Load, Payload::Mem(mem), &args, words);
    let mut lanes = Vec::new();
    for number in 0..words.lanes {
        let word = b.extract(loaded, number);
        let own = b.bitcast(parts, word);
        lanes.extend((0..parts.lanes).map(|lane| b.extract(own, lane)));
    }
    let after = b.vec(&lanes);
    func.unlink(inst);
    (before, after)
}

fn store(func: &mut Function, inst: Inst, mem: MemAccess) {
    let mut args = func.args(inst).to_vec();
    let (words, parts) = types_of(func.ty(args[0]));
    let mut b = Builder::before(func, inst);
    let stored: Vec<Value> = (0..words.lanes)
        .map(|number| {
            let first = number * parts.lanes;
            let own: Vec<Value> = (first..first + parts.lanes).map(|lane| b.extract(args[0], lane)).collect();
            let own = b.vec(&own);
            b.bitcast(Type::B32, own)
        })
        .collect();
    args[0] = b.vec(&stored);
    b.inst(Op::Store, Payload::Mem(mem), &args, &[]);
    func.unlink(inst);
}
