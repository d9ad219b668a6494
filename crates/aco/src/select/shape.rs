//! In which structured instructions lanes diverge, and where the wave goes at each jump; found before anything is selected.
//!
//! A jump is partial for a construct around it if some lanes that entered the construct may be missing there, because they took another arm or
//! have left earlier. A jump that is not partial for its target takes the wave along. Where it is partial, the wave goes on inside the innermost construct
//! for which it is, and the lanes wait at the target.

use unwedge_base::entity::SecondaryMap;
use unwedge_shader::analysis::divergence::Divergence;
use unwedge_shader::ir::{Function, Inst, Op, Payload, Region};

/// The most walks. After the last one every construct counts as divergent.
const MAX_ROUNDS: usize = 16;

/// The divergence of constructs and jumps.
#[derive(Debug, Default)]
pub(super) struct Shape {
    constructs: SecondaryMap<Inst, ConstructShape>,
    jumps: SecondaryMap<Inst, Option<u32>>,
    /// Lanes diverge in the function: some return before others.
    pub(super) root_divergent: bool,
}

/// The divergence of a construct.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConstructShape {
    /// Lanes diverge in it.
    pub(super) divergent: bool,
    /// Some lanes leave it for a construct around it while others stay: it may end with no lane left.
    pub(super) lost: bool,
    /// A jump starts it again.
    pub(super) continues: bool,
    /// Lanes wait to start it again while others are in it.
    pub(super) waits: bool,
    /// Lanes may be missing at its start: of a loop, in a later iteration.
    open: bool,
}

impl Shape {
    /// Analyses a function.
    pub(super) fn of(func: &Function, divergence: &Divergence) -> Shape {
        let mut walk = Walk {
            func,
            divergence,
            shape: Shape::default(),
            stack: vec![Level { inst: None, open: false }],
            changed: false,
        };
        for round in 0.. {
            walk.changed = false;
            walk.stack.truncate(1);
            walk.stack[0].open = walk.shape.root_divergent;
            walk.region(func.body());
            if !walk.changed {
                break;
            }
            if round == MAX_ROUNDS {
                walk.all();
            }
        }
        walk.shape
    }

    /// The divergence of a structured instruction.
    pub(super) fn construct(&self, inst: Inst) -> ConstructShape {
        self.constructs[inst]
    }

    /// How many constructs are around the one in which the wave goes on after a jump; `None` if it follows the jump.
    pub(super) fn stop(&self, jump: Inst) -> Option<u32> {
        self.jumps[jump]
    }
}

struct Level {
    inst: Option<Inst>,
    open: bool,
}

struct Walk<'a> {
    func: &'a Function,
    divergence: &'a Divergence,
    shape: Shape,
    stack: Vec<Level>,
    changed: bool,
}

impl Walk<'_> {
    fn region(&mut self, region: Region) {
        let func = self.func;
        for inst in func.insts(region) {
            match (func.op(inst), func.payload(inst)) {
                (Op::If, Payload::Arms(then, other)) => {
                    let condition = self.divergence.is_divergent(func.args(inst)[0]);
                    self.set(inst, |construct| construct.divergent |= condition);
                    for arm in [then, other] {
                        self.stack.push(Level { inst: Some(inst), open: condition });
                        self.region(arm);
                        self.stack.pop();
                    }
                }
                (_, Payload::Body(body)) => {
                    let open = self.shape.constructs[inst].open;
                    self.stack.push(Level { inst: Some(inst), open });
                    self.region(body);
                    self.stack.pop();
                }
                (_, Payload::Target(target)) => {
                    let depth = self.stack.iter().rposition(|level| level.inst == Some(target)).unwrap_or(0);
                    // Lanes that have left a loop are not missing where it starts again.
                    let continues = func.op(inst) == Op::Continue;
                    let stop = self.jump(inst, depth, depth + usize::from(continues));
                    if continues {
                        self.set(target, |construct| {
                            construct.continues = true;
                            construct.waits |= stop.is_some();
                        });
                    }
                }
                (Op::Return | Op::Terminate, _) => {
                    self.jump(inst, 0, 0);
                }
                _ => {}
            }
        }
    }

    fn set(&mut self, inst: Inst, change: impl FnOnce(&mut ConstructShape)) {
        let construct = &mut self.shape.constructs[inst];
        let before = *construct;
        change(construct);
        self.changed |= before != *construct;
    }

    /// Where the wave goes on after a jump that is partial for one of the levels from `first` on.
    fn jump(&mut self, inst: Inst, target: usize, first: usize) -> Option<usize> {
        let innermost = self.stack.iter().rposition(|level| level.open);
        let stop = innermost.filter(|depth| *depth >= first);
        let new = stop.map(|depth| depth as u32);
        self.changed |= self.shape.jumps[inst] != new;
        self.shape.jumps[inst] = new;
        for depth in target..=stop? {
            self.stack[depth].open = true;
            match self.stack[depth].inst {
                None => {
                    self.changed |= !self.shape.root_divergent;
                    self.shape.root_divergent = true;
                }
                Some(around) => self.set(around, |construct| {
                    construct.divergent = true;
                    construct.lost |= depth > target;
                    construct.open = true;
                }),
            }
        }
        stop
    }

    fn all(&mut self) {
        let func = self.func;
        self.shape.root_divergent = true;
        for inst in func.walk().filter(|inst| matches!(func.op(*inst), Op::If | Op::Block | Op::Loop)) {
            self.set(inst, |construct| {
                construct.divergent = true;
                construct.lost = true;
                construct.waits = true;
                construct.open = true;
            });
        }
    }
}
