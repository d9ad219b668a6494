//! How draws and LRZ agree: fragments that LRZ would have rejected though they are seen.

use crate::Style;
use crate::json::{Hex, is_zero};
use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_sim::adreno::AdrenoMachine;

/// What the check of LRZ came to.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct LrzReport {
    /// Fragments that LRZ would have rejected.
    rejected: u64,
    misses: Vec<ShownMiss>,
    /// Misses that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    more_misses: u64,
    /// Fragments that were not followed to the end of their pass: whether they are seen is not known.
    #[serde(skip_serializing_if = "is_zero")]
    unchecked: u64,
}

/// A fragment that LRZ would have rejected though it is seen.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ShownMiss {
    draw: u64,
    packet: Hex,
    x: u32,
    y: u32,
    layer: u32,
    sample: u32,
    depth: f32,
    bound: f32,
}

impl LrzReport {
    pub(super) fn of(machine: &AdrenoMachine<'_>) -> LrzReport {
        let Some(found) = machine.lrz_findings() else { return LrzReport::default() };
        let misses: Vec<ShownMiss> = found
            .misses
            .iter()
            .map(|miss| ShownMiss {
                draw: miss.draw,
                packet: Hex::wide(miss.packet),
                x: miss.pixel.0,
                y: miss.pixel.1,
                layer: miss.layer,
                sample: miss.sample,
                depth: miss.depth,
                bound: miss.bound,
            })
            .collect();
        let more_misses = found.missed.saturating_sub(misses.len() as u64);
        LrzReport { rejected: found.rejected, misses, more_misses, unchecked: found.unchecked }
    }

    /// Whether a fragment is seen that LRZ would have rejected, or may be.
    pub(super) fn has_misses(&self) -> bool {
        !self.misses.is_empty() || self.unchecked > 0
    }

    pub(super) fn text(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        let rejected = counted(self.rejected, "fragment", "fragments");
        writeln!(out, "\n  LRZ would reject {rejected}")?;
        if self.unchecked > 0 {
            let unchecked = counted(self.unchecked, "fragment was", "fragments were");
            writeln!(
                out,
                "  {unchecked} not followed to the end of the pass, because too many were rejected at once"
            )?;
        }
        if self.misses.is_empty() {
            return Ok(());
        }
        let heading = format!("{:>6}  {:18} {:>11} {:>6}  depth", "draw", "packet", "pixel", "sample");
        writeln!(out, "  {} of them seen", self.misses.len() as u64 + self.more_misses)?;
        writeln!(out, "  {}", style.bold(&heading))?;
        for ShownMiss { draw, packet, x, y, layer, sample, depth, bound } in &self.misses {
            let pixel = if *layer == 0 { format!("{x},{y}") } else { format!("{x},{y},{layer}") };
            writeln!(out, "  {draw:>6}  {packet} {pixel:>11} {sample:>6}  {depth}, its block has {bound}")?;
        }
        if self.more_misses > 0 {
            let more = counted(self.more_misses, "more is", "more are");
            writeln!(out, "  {more} not listed")?;
        }
        Ok(())
    }
}
