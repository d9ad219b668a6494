//! What a program needs to know before instructions are made: which values leave ifs and loops in which they are defined, which phis
//! wait where paths meet, and which values are descriptors.
//!
//! In NIR, a value is visible wherever its definition dominates; in the shader IR, only in its region and those within. So each `if` and each loop gets one result for
//! each value that is defined in it and used after it.

use super::abi::{Argument, Arguments};
use super::error::{NirCause, NirError, Result, invalid, unsupported};
use super::parse::{InstText, Item, Program};
use std::collections::HashMap;
use std::ops::Range;

/// An arm, the body of a loop, or the function.
#[derive(Debug, Clone)]
struct Scope {
    parent: usize,
    /// The `if` or loop: an item.
    owner: usize,
    /// Its items.
    items: Range<usize>,
}

/// A value that is an address or a descriptor, not a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbol {
    /// The low word of the address of a descriptor set.
    SetLow(u32),
    /// The address of a descriptor set.
    Set(u32),
    /// The descriptor of a buffer: set and binding.
    Buffer(u32, u32),
}

/// The results of the analysis.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    /// Of each `if` and loop (an item), the values that are used after it.
    pub escapes: HashMap<usize, Vec<u32>>,
    /// Values that are not numbers.
    pub symbols: HashMap<u32, Symbol>,
    scopes: Vec<Scope>,
    /// The scope of each item.
    of_item: Vec<usize>,
    /// The scope of each block.
    blocks: HashMap<u32, usize>,
    /// The outermost scope that each value leaves, so far.
    reach: HashMap<u32, usize>,
    /// The total number of values that leave.
    escaped: usize,
}

/// The largest total number of values that leave ifs and loops.
const MAX_ESCAPED: usize = 1 << 21;

/// Bytes of a descriptor in a descriptor set.
const DESCRIPTOR_SIZE: u64 = 16;

impl Scopes {
    pub fn new(program: &Program<'_>, arguments: &Arguments) -> std::result::Result<Scopes, NirError> {
        let mut scopes = Scopes::default();
        scopes.tree(program);
        for (at, item) in program.items.iter().enumerate() {
            scopes.item(program, arguments, at, item).map_err(|cause| cause.at(program.lines[at]))?;
        }
        Ok(scopes)
    }

    fn tree(&mut self, program: &Program<'_>) {
        let all = 0..program.items.len();
        self.scopes.push(Scope { parent: 0, owner: usize::MAX, items: all });
        let mut current = 0;
        for (at, item) in program.items.iter().enumerate() {
            if matches!(item, Item::Else | Item::EndIf | Item::EndLoop) {
                self.scopes[current].items.end = at;
            }
            let parent = self.scopes[current].parent;
            match item {
                Item::EndIf | Item::EndLoop => current = parent,
                Item::Block { name, .. } => {
                    self.blocks.insert(*name, current);
                }
                _ => {}
            }
            self.of_item.push(current);
            let opened = match item {
                Item::If { .. } | Item::Loop { .. } => Some((current, at)),
                Item::Else => Some((parent, self.scopes[current].owner)),
                _ => None,
            };
            if let Some((parent, owner)) = opened {
                current = self.scopes.len();
                self.scopes.push(Scope { parent, owner, items: at..program.items.len() });
            }
        }
    }

    fn item(
        &mut self,
        program: &Program<'_>,
        arguments: &Arguments,
        at: usize,
        item: &Item<'_>,
    ) -> Result<()> {
        match item {
            Item::If { condition, .. } => self.uses(program, *condition, self.of_item[at]),
            Item::Inst(inst) => {
                for operand in &program.operands[inst.operands.clone()] {
                    self.uses(program, operand.id, self.of_item[at])?;
                }
                self.symbol(program, arguments, inst)
            }
            Item::Phi { sources, .. } => {
                for (block, id) in &program.sources[sources.clone()] {
                    let Some(&scope) = self.blocks.get(block) else {
                        return invalid(format!("block b{block} does not exist"));
                    };
                    self.uses(program, *id, scope)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A value is used in a scope: it leaves every `if` and loop that the scope is not in.
    fn uses(&mut self, program: &Program<'_>, id: u32, scope: usize) -> Result<()> {
        let Some(&def) = program.values.get(&id) else { return Err(NirCause::Undefined(id)) };
        let start = self.scopes[scope].items.start;
        let reach = self.reach.entry(id).or_insert(self.of_item[def]);
        while *reach != 0 && !self.scopes[*reach].items.contains(&start) {
            let Scope { owner, parent, .. } = self.scopes[*reach];
            self.escaped += 1;
            if self.escaped > MAX_ESCAPED {
                return Err(NirCause::Limit("values that leave ifs and loops"));
            }
            self.escapes.entry(owner).or_default().push(id);
            *reach = parent;
        }
        Ok(())
    }

    /// Follows the address of a descriptor set to the descriptors in it.
    fn symbol(&mut self, program: &Program<'_>, arguments: &Arguments, inst: &InstText<'_>) -> Result<()> {
        let Some((id, ty)) = inst.def else { return Ok(()) };
        let operands = &program.operands[inst.operands.clone()];
        let first = operands.first().filter(|operand| operand.swizzle.is_none());
        let first = first.and_then(|operand| self.symbols.get(&operand.id).copied());
        let symbol = match (inst.name, first) {
            ("load_scalar_arg_amd", _) => match arguments.get(program.index(inst, "base")?.unwrap_or(0)) {
                Argument::DescriptorSet(set) => Symbol::SetLow(set),
                _ => return Ok(()),
            },
            ("pack_64_2x32_split", Some(Symbol::SetLow(set))) => Symbol::Set(set),
            ("load_smem_amd", Some(Symbol::Set(set))) => {
                let offset = operands.get(1).and_then(|offset| program.constant(offset.id));
                let Some(offset) = offset else {
                    return unsupported("a descriptor at an offset that is not constant");
                };
                let base = program.index(inst, "base")?.unwrap_or(0);
                let offset = offset.wrapping_add(base) & u64::from(u32::MAX);
                if ty.bits() != 128 || ty.lanes != 4 || offset % DESCRIPTOR_SIZE != 0 {
                    return unsupported("a part of a descriptor, or one that is not a buffer");
                }
                let binding = (offset / DESCRIPTOR_SIZE) as u32;
                // The layout of the set is not in the text: at least a buffer must have this binding.
                if !program.decls.iter().any(|decl| decl.binding == binding) {
                    return unsupported(format!(
                        "a descriptor at offset {offset}, where no buffer is declared"
                    ));
                }
                Symbol::Buffer(set, binding)
            }
            _ => return Ok(()),
        };
        self.symbols.insert(id, symbol);
        Ok(())
    }
}

impl<'t> Program<'t> {
    /// The bits of a scalar constant.
    pub fn constant(&self, id: u32) -> Option<u64> {
        match &self.items[*self.values.get(&id)?] {
            Item::Inst(inst) => match &self.constants[inst.constants.clone()] {
                [bits] => Some(*bits),
                _ => None,
            },
            _ => None,
        }
    }

    /// An index of an intrinsic as text.
    pub fn text(&self, inst: &InstText<'_>, key: &str) -> Option<&'t str> {
        self.indices[inst.indices.clone()].iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// An index of an intrinsic as a number.
    pub fn index(&self, inst: &InstText<'_>, key: &str) -> Result<Option<u64>> {
        let Some(text) = self.text(inst, key) else { return Ok(None) };
        let number = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        number.map(Some).map_err(|_| NirCause::Expected("a number as an index"))
    }
}
