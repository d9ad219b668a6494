//! Conditions with their names looked up, and what they are for a draw.

use super::{Binary, Expr, ExprError, ExprNode, Mistake};
use crate::WorkKind;
use crate::query::{Column, DrawScene, Pass, RegisterNames};
use unwedge_hw::{NumericValue, RegEnum, Selected, near};

/// A condition bound to a generation. Evaluating it allocates nothing.
#[derive(Clone, Debug)]
pub struct Condition<'d> {
    steps: Vec<ConditionStep<'d>>,
    values: Vec<ConditionValue>,
}

/// What a condition is for a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not.
    False,
    /// It depends on what nothing has written.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ConditionValue {
    Unknown,
    Int(i128),
    Float(f64),
}

#[derive(Clone, Debug)]
enum ConditionStep<'d> {
    Constant(ConditionValue),
    Register(Column<'d>),
    Attribute(Attribute),
    Not(usize),
    Complement(usize),
    Binary(Binary, usize, usize),
}

/// Attributes of draws, by the names they have in conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attribute {
    Kind,
    Number,
    Count,
    Instances,
    Primitive,
    Event,
    Submit,
    Pass,
    Left,
    Top,
    Right,
    Bottom,
}

const ATTRIBUTES: [(&str, Attribute); 12] = [
    ("draw.kind", Attribute::Kind),
    ("draw.number", Attribute::Number),
    ("draw.count", Attribute::Count),
    ("draw.instances", Attribute::Instances),
    ("draw.primitive", Attribute::Primitive),
    ("draw.event", Attribute::Event),
    ("submit", Attribute::Submit),
    ("pass", Attribute::Pass),
    ("bin.x1", Attribute::Left),
    ("bin.y1", Attribute::Top),
    ("bin.x2", Attribute::Right),
    ("bin.y2", Attribute::Bottom),
];

/// What names of values an operand takes.
#[derive(Clone, Copy)]
enum ValueNames<'d> {
    None,
    Enum(RegEnum<'d>),
    Boolean,
    ShaderRegister,
    Kind,
    Pass,
}

/// What a part of the condition is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OperandKind {
    Int,
    Float,
    Truth,
}

/// A part of the condition, bound.
struct Bound<'d> {
    step: ConditionStep<'d>,
    kind: OperandKind,
    names: ValueNames<'d>,
    /// A 32-bit float: numbers it is compared with are rounded likewise.
    single: bool,
}

impl<'d> Bound<'d> {
    fn int(step: ConditionStep<'d>) -> Bound<'d> {
        Bound { step, kind: OperandKind::Int, names: ValueNames::None, single: false }
    }
}

impl Attribute {
    fn names<'d>(self, gpu: impl RegisterNames<'d>) -> ValueNames<'d> {
        let named = |name| gpu.enumeration(name).map_or(ValueNames::None, ValueNames::Enum);
        match self {
            Attribute::Kind => ValueNames::Kind,
            Attribute::Pass => ValueNames::Pass,
            Attribute::Primitive => named("pc_di_primtype"),
            Attribute::Event => named("vgt_event_type"),
            _ => ValueNames::None,
        }
    }

    fn read(self, scene: &DrawScene<'_>) -> ConditionValue {
        let draw = scene.draw;
        let known = match self {
            Attribute::Kind => Some(draw.kind as u32),
            Attribute::Number => Some(draw.number),
            Attribute::Count => draw.count,
            Attribute::Instances => draw.instances,
            Attribute::Primitive => draw.primitive,
            Attribute::Event => draw.event,
            Attribute::Submit => Some(scene.submit),
            Attribute::Pass => scene.pass.map(|pass| pass as u32),
            Attribute::Left => scene.bin.map(|bin| bin.x1),
            Attribute::Top => scene.bin.map(|bin| bin.y1),
            Attribute::Right => scene.bin.map(|bin| bin.x2),
            Attribute::Bottom => scene.bin.map(|bin| bin.y2),
        };
        known.map_or(ConditionValue::Unknown, |n| ConditionValue::Int(n.into()))
    }
}

impl<'d> ValueNames<'d> {
    fn of(selected: &Selected<'d>) -> ValueNames<'d> {
        let Some(ty) = selected.ty else { return ValueNames::None };
        if ty.is_boolean() {
            ValueNames::Boolean
        } else if ty.is_shader_register() {
            ValueNames::ShaderRegister
        } else {
            ty.enumeration().map_or(ValueNames::None, ValueNames::Enum)
        }
    }

    /// What people call them.
    fn title(self) -> Option<&'d str> {
        match self {
            ValueNames::None => None,
            ValueNames::Enum(e) => Some(e.name()),
            ValueNames::Boolean => Some("boolean"),
            ValueNames::ShaderRegister => Some("shader registers such as r2.y"),
            ValueNames::Kind => Some("draw.kind"),
            ValueNames::Pass => Some("pass"),
        }
    }

    fn fixed(self) -> Vec<(&'static str, u64)> {
        match self {
            ValueNames::Boolean => vec![("TRUE", 1), ("FALSE", 0), ("true", 1), ("false", 0)],
            ValueNames::Kind => WorkKind::ALL.map(|kind| (kind.name(), kind as u64)).to_vec(),
            ValueNames::Pass => Pass::ALL.map(|pass| (pass.name(), pass as u64)).to_vec(),
            ValueNames::None | ValueNames::Enum(_) | ValueNames::ShaderRegister => Vec::new(),
        }
    }

    /// Every value of the name; several only where an enum has the name twice.
    fn values(self, name: &str) -> Vec<u64> {
        let mut found: Vec<u64> = match self {
            ValueNames::Enum(e) => e.iter().filter(|(n, _)| *n == name).map(|(_, v)| v).collect(),
            ValueNames::ShaderRegister => shader_register(name).into_iter().collect(),
            _ => self.fixed().into_iter().filter(|(n, _)| *n == name).map(|(_, v)| v).collect(),
        };
        found.sort_unstable();
        found.dedup();
        found
    }

    fn near(self, name: &str) -> Vec<String> {
        let close = match self {
            ValueNames::Enum(e) => near(e.iter().map(|(n, _)| n), name),
            _ => near(self.fixed().into_iter().map(|(n, _)| n), name),
        };
        let few = self.fixed().into_iter().map(|(n, _)| n);
        let shown = if close.is_empty() { few.collect() } else { close };
        shown.into_iter().map(str::to_owned).collect()
    }
}

/// `r2.y`
fn shader_register(name: &str) -> Option<u64> {
    let (number, component) = name.strip_prefix('r')?.split_once('.')?;
    let component = ["x", "y", "z", "w"].iter().position(|c| *c == component)?;
    let number: u64 = number.parse::<u32>().ok()?.into();
    Some(number << 2 | component as u64)
}

impl Expr {
    /// Looks the names up for a generation.
    ///
    /// # Errors
    /// A name is that of nothing, or things are compared that do not compare.
    pub fn bind<'d>(&self, gpu: impl RegisterNames<'d>) -> Result<Condition<'d>, ExprError> {
        let beside = self.beside();
        let mut bound: Vec<Bound<'d>> = Vec::with_capacity(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            let next = match node.what {
                ExprNode::Int(n) => Bound::int(ConditionStep::Constant(ConditionValue::Int(n))),
                ExprNode::Float(f) => Bound {
                    kind: OperandKind::Float,
                    ..Bound::int(ConditionStep::Constant(ConditionValue::Float(f)))
                },
                ExprNode::Name => self.name(index, beside.get(index).copied().flatten(), gpu)?,
                ExprNode::Not(a) => Bound { kind: OperandKind::Truth, ..Bound::int(ConditionStep::Not(a)) },
                ExprNode::Complement(a) => {
                    self.whole(a, &bound)?;
                    Bound::int(ConditionStep::Complement(a))
                }
                ExprNode::Binary(op, a, b) => {
                    if op.is_comparison() {
                        self.comparable(a, b, &bound)?;
                        round(&mut bound, a, b);
                        round(&mut bound, b, a);
                    } else if matches!(op, Binary::BitAnd | Binary::BitOr) {
                        self.whole(a, &bound)?;
                        self.whole(b, &bound)?;
                    }
                    let bits = matches!(op, Binary::BitAnd | Binary::BitOr);
                    let kind = if bits { OperandKind::Int } else { OperandKind::Truth };
                    Bound { kind, ..Bound::int(ConditionStep::Binary(op, a, b)) }
                }
            };
            bound.push(next);
        }
        let values = vec![ConditionValue::Unknown; bound.len()];
        Ok(Condition { steps: bound.into_iter().map(|b| b.step).collect(), values })
    }

    /// For each part the one on the other side of its operator.
    fn beside(&self) -> Vec<Option<usize>> {
        let mut beside = vec![None; self.nodes.len()];
        for node in &self.nodes {
            if let ExprNode::Binary(op, a, b) = node.what
                && !matches!(op, Binary::Or | Binary::And)
            {
                for (at, other) in [(a, b), (b, a)] {
                    if let Some(slot) = beside.get_mut(at) {
                        *slot = Some(other);
                    }
                }
            }
        }
        beside
    }

    fn text_of(&self, index: usize) -> &str {
        let node = self.nodes.get(index);
        node.and_then(|node| self.text.get(node.start..node.end)).unwrap_or_default()
    }

    fn fault(&self, index: usize, mistake: Mistake) -> ExprError {
        let (start, end) = self.nodes.get(index).map_or((0, 0), |node| (node.start, node.end));
        ExprError::new(mistake, start, end)
    }

    /// A register, field or attribute.
    fn operand<'d>(&self, name: &str, gpu: impl RegisterNames<'d>) -> Result<Bound<'d>, Mistake> {
        if let Some(&(_, attribute)) = ATTRIBUTES.iter().find(|(n, _)| *n == name) {
            return Ok(Bound {
                names: attribute.names(gpu),
                ..Bound::int(ConditionStep::Attribute(attribute))
            });
        }
        if matches!(name.split('.').next(), Some("draw" | "bin")) {
            return Err(Mistake::Attribute(ATTRIBUTES.map(|(n, _)| n).join(", ")));
        }
        let mut found = gpu.select(name.strip_prefix('@').unwrap_or(name))?;
        // Names that are no patterns give one.
        let column = found.swap_remove(0);
        let selected = &column.selected;
        let names = ValueNames::of(selected);
        let kind = match selected.ty {
            Some(ty) if ty.is_fraction() => OperandKind::Float,
            Some(ty) if ty.is_boolean() => OperandKind::Truth,
            _ => OperandKind::Int,
        };
        let single = selected.ty.is_some_and(|ty| ty.is_float32());
        Ok(Bound { step: ConditionStep::Register(column), kind, names, single })
    }

    /// A name: an operand, or a value of what stands on the other side.
    fn name<'d>(
        &self,
        index: usize,
        beside: Option<usize>,
        gpu: impl RegisterNames<'d>,
    ) -> Result<Bound<'d>, ExprError> {
        let name = self.text_of(index);
        let operand = self.operand(name, gpu);
        let other =
            beside.filter(|&b| matches!(self.nodes.get(b).map(|node| node.what), Some(ExprNode::Name)));
        let names = match other.map(|b| self.operand(self.text_of(b), gpu)) {
            Some(Ok(bound)) => bound.names,
            _ => ValueNames::None,
        };
        let values = names.values(name);
        match (operand, values.as_slice()) {
            (Ok(bound), []) => Ok(bound),
            (Ok(_), _) => {
                let title = names.title().unwrap_or_default();
                Err(self.fault(index, Mistake::Ambiguous(format!("a register or a value of {title}"))))
            }
            (Err(_), &[value]) => {
                let kind =
                    if matches!(names, ValueNames::Boolean) { OperandKind::Truth } else { OperandKind::Int };
                Ok(Bound { kind, ..Bound::int(ConditionStep::Constant(ConditionValue::Int(value.into()))) })
            }
            (Err(_), [_, ..]) => {
                let list: Vec<String> = values.iter().map(|v| format!("{v:#x}")).collect();
                Err(self.fault(index, Mistake::Ambiguous(list.join(" or "))))
            }
            (Err(mistake), []) => {
                let mistake = match names.title() {
                    Some(of) => Mistake::Value { of: of.to_owned(), near: names.near(name) },
                    None => mistake,
                };
                Err(self.fault(index, mistake))
            }
        }
    }

    fn whole(&self, index: usize, bound: &[Bound<'_>]) -> Result<(), ExprError> {
        match bound.get(index).map(|b| b.kind) {
            Some(OperandKind::Float) => Err(self.fault(index, Mistake::Bits)),
            _ => Ok(()),
        }
    }

    /// Yes or no compares with the like, and with 1 and 0.
    fn comparable(&self, a: usize, b: usize, bound: &[Bound<'_>]) -> Result<(), ExprError> {
        let kind = |i: usize| bound.get(i).map(|b| b.kind);
        let digit = |i: usize| {
            let step = bound.get(i).map(|b| &b.step);
            matches!(step, Some(ConditionStep::Constant(ConditionValue::Int(0 | 1))))
        };
        for (truth, other) in [(a, b), (b, a)] {
            if kind(truth) == Some(OperandKind::Truth)
                && kind(other) != Some(OperandKind::Truth)
                && !digit(other)
            {
                return Err(self.fault(truth, Mistake::TruthValue));
            }
        }
        Ok(())
    }
}

/// A number written beside a 32-bit float means the nearest such float.
fn round(bound: &mut [Bound<'_>], register: usize, number: usize) {
    if bound.get(register).is_some_and(|b| b.single)
        && let Some(Bound { step: ConditionStep::Constant(ConditionValue::Float(f)), .. }) =
            bound.get_mut(number)
    {
        *f = f64::from(*f as f32);
    }
}

impl Condition<'_> {
    /// What it is for a draw.
    pub fn holds(&mut self, scene: &DrawScene<'_>) -> Truth {
        let Condition { steps, values } = self;
        for (index, step) in steps.iter().enumerate() {
            let at = |i: usize| values.get(i).copied().unwrap_or(ConditionValue::Unknown);
            let value = match step {
                ConditionStep::Constant(value) => *value,
                ConditionStep::Register(Column { selected, shift }) => {
                    match selected.read(|reg| scene.regs.get(reg)) {
                        None => ConditionValue::Unknown,
                        Some(raw) => match selected
                            .ty
                            .map_or(NumericValue::Int((raw >> shift.min(&63)).into()), |ty| ty.number(raw))
                        {
                            NumericValue::Int(n) => ConditionValue::Int(n),
                            NumericValue::Float(f) => ConditionValue::Float(f),
                        },
                    }
                }
                ConditionStep::Attribute(attribute) => attribute.read(scene),
                ConditionStep::Not(a) => match at(*a).truth() {
                    Truth::True => ConditionValue::Int(0),
                    Truth::False => ConditionValue::Int(1),
                    Truth::Unknown => ConditionValue::Unknown,
                },
                ConditionStep::Complement(a) => match at(*a) {
                    ConditionValue::Int(n) => ConditionValue::Int(!n & i128::from(u64::MAX)),
                    _ => ConditionValue::Unknown,
                },
                ConditionStep::Binary(op, a, b) => op.apply(at(*a), at(*b)),
            };
            if let Some(slot) = values.get_mut(index) {
                *slot = value;
            }
        }
        values.last().map_or(Truth::Unknown, |value| value.truth())
    }
}

impl ConditionValue {
    fn truth(self) -> Truth {
        match self {
            ConditionValue::Unknown => Truth::Unknown,
            ConditionValue::Int(0) => Truth::False,
            ConditionValue::Float(0.0) => Truth::False,
            _ => Truth::True,
        }
    }
}

impl Binary {
    fn apply(self, a: ConditionValue, b: ConditionValue) -> ConditionValue {
        let decide = |holds: bool| ConditionValue::Int(holds.into());
        match self {
            // One side may be enough to know.
            Binary::And => match (a.truth(), b.truth()) {
                (Truth::False, _) | (_, Truth::False) => decide(false),
                (Truth::True, Truth::True) => decide(true),
                _ => ConditionValue::Unknown,
            },
            Binary::Or => match (a.truth(), b.truth()) {
                (Truth::True, _) | (_, Truth::True) => decide(true),
                (Truth::False, Truth::False) => decide(false),
                _ => ConditionValue::Unknown,
            },
            Binary::BitAnd | Binary::BitOr => match (a, b) {
                (ConditionValue::Int(a), ConditionValue::Int(b)) => {
                    ConditionValue::Int(if self == Binary::BitAnd { a & b } else { a | b })
                }
                _ => ConditionValue::Unknown,
            },
            _ => match (a, b) {
                (ConditionValue::Unknown, _) | (_, ConditionValue::Unknown) => ConditionValue::Unknown,
                (ConditionValue::Int(a), ConditionValue::Int(b)) => decide(self.compare(&a, &b)),
                (a, b) => decide(self.compare(&a.float(), &b.float())),
            },
        }
    }

    fn compare<T: PartialOrd>(self, a: &T, b: &T) -> bool {
        match self {
            Binary::Equal => a == b,
            Binary::NotEqual => a != b,
            Binary::Less => a < b,
            Binary::LessEqual => a <= b,
            Binary::Greater => a > b,
            _ => a >= b,
        }
    }
}

impl ConditionValue {
    fn float(self) -> f64 {
        match self {
            ConditionValue::Int(n) => n as f64,
            ConditionValue::Float(f) => f,
            ConditionValue::Unknown => f64::NAN,
        }
    }
}
