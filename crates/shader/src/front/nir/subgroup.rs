//! Subgroup intrinsics of which the IR has no operation: values by patterns of lanes, masks of quads, and the last active lane.

use super::error::{Result, invalid, unsupported};
use super::intrinsics::lookup;
use super::parse::InstText;
use super::translate::Translator;
use crate::ir::{Base, Op, Payload, QuadDir, SystemValue, Value};

/// Patterns of quads for which there is an operation: two bits for each lane.
const QUAD_PATTERNS: &[(u64, QuadDir)] =
    &[(0xb1, QuadDir::Horizontal), (0x4e, QuadDir::Vertical), (0x1b, QuadDir::Diagonal)];
/// In a quad, all lanes read the same one.
const QUAD_BROADCASTS: [u64; 4] = [0x00, 0x55, 0xaa, 0xff];

/// Derivatives by their intrinsics.
const DERIVATIVES: &[(&str, Op)] = &[
    ("ddx", Op::Ddx),
    ("ddy", Op::Ddy),
    ("ddx_fine", Op::DdxFine),
    ("ddy_fine", Op::DdyFine),
    ("ddx_coarse", Op::DdxCoarse),
    ("ddy_coarse", Op::DdyCoarse),
];

impl<'t> Translator<'_, 't> {
    /// The result of one of these intrinsics; `None` if it is another one.
    pub fn lanes(&mut self, inst: &InstText<'t>) -> Result<Option<Value>> {
        let derivative = lookup(DERIVATIVES, inst.name);
        let wanted = match inst.name {
            "quad_swizzle_amd" | "masked_swizzle_amd" | "quad_vote_any" | "quad_vote_all" => 1,
            "rotate" => 2,
            "write_invocation_amd" => 3,
            "last_invocation" => 0,
            _ if derivative.is_some() => 1,
            _ => return Ok(None),
        };
        self.arity(inst, wanted)?;
        let args = self.operands(inst)?;
        let pattern = self.program.index(inst, "swizzle_mask")?.unwrap_or(0);
        let value = match (inst.name, args.as_slice()) {
            ("quad_swizzle_amd", &[value]) => self.quad_pattern(value, pattern)?,
            ("masked_swizzle_amd", &[value]) => self.masked_pattern(value, pattern),
            ("rotate", &[value, delta]) => {
                let cluster = self.program.index(inst, "cluster_size")?.unwrap_or(0);
                self.rotate(value, delta, cluster)?
            }
            ("write_invocation_amd", &[value, written, lane]) => {
                let own = self.lane();
                let is_lane = self.build().alu(Op::IEq, &[own, lane]);
                if self.func.ty(value).lanes != 1 {
                    return unsupported("@write_invocation_amd of a vector");
                }
                self.build().alu(Op::Select, &[is_lane, written, value])
            }
            ("last_invocation", _) => {
                let mut b = self.build();
                let all = b.constant(Base::B1, 1);
                let active = b.alu(Op::Ballot, &[all]);
                let (last, none) = (b.u32(0), b.u32(u32::MAX));
                let mut last = last;
                for word in 0..4u8 {
                    let bits = b.extract(active, word);
                    let bit = b.alu(Op::FindUMsb, &[bits]);
                    let first = b.u32(u32::from(word) * 32);
                    let lane = b.alu(Op::IAdd, &[bit, first]);
                    let is_empty = b.alu(Op::IEq, &[bit, none]);
                    last = b.alu(Op::Select, &[is_empty, last, lane]);
                }
                last
            }
            ("quad_vote_any" | "quad_vote_all", &[condition]) => {
                let op = if inst.name == "quad_vote_any" { Op::IOr } else { Op::IAnd };
                let mut b = self.build();
                let (one, zero) = (b.u32(1), b.u32(0));
                let mut value = b.alu(Op::Select, &[condition, one, zero]);
                for direction in [QuadDir::Horizontal, QuadDir::Vertical] {
                    let ty = b.func.ty(value);
                    let other = b.value(Op::QuadSwap, Payload::Quad(direction), &[value], ty);
                    value = b.alu(op, &[value, other]);
                }
                b.alu(Op::INe, &[value, zero])
            }
            (_, &[value]) => match derivative {
                Some(op) => self.build().alu(op, &[value]),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some(value))
    }

    fn lane(&mut self) -> Value {
        let own = SystemValue::SubgroupInvocation;
        self.build().value(Op::SysVal, Payload::SysVal(own), &[], own.ty())
    }

    /// The lanes of a quad read those that two bits each say.
    fn quad_pattern(&mut self, value: Value, pattern: u64) -> Result<Value> {
        let ty = self.func.ty(value);
        if pattern > 0xff {
            return invalid("a pattern of a quad has eight bits");
        }
        if let Some((_, direction)) = QUAD_PATTERNS.iter().find(|(own, _)| *own == pattern) {
            return Ok(self.build().value(Op::QuadSwap, Payload::Quad(*direction), &[value], ty));
        }
        if let Some(lane) = QUAD_BROADCASTS.iter().position(|own| *own == pattern) {
            let lane = self.build().u32(lane as u32);
            return Ok(self.build().alu(Op::QuadBroadcast, &[value, lane]));
        }
        let own = self.lane();
        let mut b = self.build();
        let (three, one, pattern) = (b.u32(3), b.u32(1), b.u32(pattern as u32));
        let first = b.u32(!3);
        let (first, in_quad) = (b.alu(Op::IAnd, &[own, first]), b.alu(Op::IAnd, &[own, three]));
        let shift = b.alu(Op::IShl, &[in_quad, one]);
        let chosen = b.alu(Op::UShr, &[pattern, shift]);
        let chosen = b.alu(Op::IAnd, &[chosen, three]);
        let lane = b.alu(Op::IOr, &[first, chosen]);
        Ok(b.alu(Op::Shuffle, &[value, lane]))
    }

    /// In 32 lanes each: five bits that the number of the lane keeps, five that are set, and five that are inverted.
    fn masked_pattern(&mut self, value: Value, pattern: u64) -> Value {
        let field = |at: u32| (pattern >> at) as u32 & 31;
        let own = self.lane();
        let mut b = self.build();
        let (kept, set, inverted) = (b.u32(field(0) | !31), b.u32(field(5)), b.u32(field(10)));
        let lane = b.alu(Op::IAnd, &[own, kept]);
        let lane = b.alu(Op::IOr, &[lane, set]);
        let lane = b.alu(Op::IXor, &[lane, inverted]);
        b.alu(Op::Shuffle, &[value, lane])
    }

    /// The value of the lane so many further on, around the end of the cluster.
    fn rotate(&mut self, value: Value, delta: Value, cluster: u64) -> Result<Value> {
        let own = self.lane();
        let size = SystemValue::SubgroupSize;
        let mut b = self.build();
        let size = match u32::try_from(cluster) {
            Ok(0) => b.value(Op::SysVal, Payload::SysVal(size), &[], size.ty()),
            Ok(cluster) if cluster.is_power_of_two() => b.u32(cluster),
            _ => return unsupported(format!("clusters of {cluster} invocations")),
        };
        let one = b.u32(1);
        let mask = b.alu(Op::ISub, &[size, one]);
        let rest = b.alu(Op::INot, &[mask]);
        let first = b.alu(Op::IAnd, &[own, rest]);
        let next = b.alu(Op::IAdd, &[own, delta]);
        let next = b.alu(Op::IAnd, &[next, mask]);
        let lane = b.alu(Op::IOr, &[first, next]);
        Ok(b.alu(Op::Shuffle, &[value, lane]))
    }
}
