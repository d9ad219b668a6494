//! The trace of single fibers: how they are asked for, and each instruction with the registers that it reads and writes.
//!
//! Never: decides what registers an instruction touches.

use crate::json::Hex;
use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Write};
use std::str::FromStr;
use unwedge_isa::ir3;
use unwedge_sim::adreno::FiberWanted;
use unwedge_sim::adreno::ir3::{FiberLog, FiberRegister, FiberRun, FiberStep, RegisterValue};

/// How fibers are asked for.
const FORM: &str = "write it as draw=N:vertex=V[:instance=I], draw=N:pixel=X,Y[:layer=L][:sample=S], \
                    draw=N:patch=P:control=V, draw=N:patch=P:point=I, draw=N:primitive=P:output=V[:invocation=I] or \
                    dispatch=N:group=X,Y,Z:local=X,Y,Z";

/// Fibers that are asked for, and of which draw or dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiberSpec {
    /// Number of the draw or dispatch, as the replay counts work.
    pub work: u64,
    /// Which fibers.
    pub wanted: FiberWanted,
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number; {FORM}"))
}

fn numbers<const N: usize>(text: &str) -> Result<[u32; N], String> {
    let all = text.split(',').map(number).collect::<Result<Vec<u32>, String>>()?;
    all.try_into().map_err(|_| format!("`{text}` is not {N} numbers; {FORM}"))
}

/// Reads `X,Y`.
///
/// # Errors
///
/// What is wrong with it.
pub fn pixel(text: &str) -> Result<[u32; 2], String> {
    let wrong = || format!("`{text}` is not a pixel: write it as X,Y");
    let (x, y) = text.split_once(',').ok_or_else(wrong)?;
    Ok([x.parse().map_err(|_| wrong())?, y.parse().map_err(|_| wrong())?])
}

impl FromStr for FiberSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<FiberSpec, String> {
        let parts: Vec<(&str, &str)> =
            text.split(':').map(|part| part.split_once('=').ok_or(FORM)).collect::<Result<_, _>>()?;
        let get = |name: &str| parts.iter().find(|(of, _)| *of == name).map(|(_, value)| *value);
        let or_zero = |name: &str| get(name).map_or(Ok(0), number);
        let allowed = |names: &[&str]| match parts.iter().find(|(name, _)| !names.contains(name)) {
            Some((name, _)) => Err(format!("`{name}` does not belong there; {FORM}")),
            None => Ok(()),
        };
        let needed = |name: &str| get(name).ok_or(FORM).map_err(str::to_owned);
        let wanted = if let Some(vertex) = get("vertex") {
            allowed(&["draw", "vertex", "instance"])?;
            FiberWanted::Vertex { vertex: number(vertex)?, instance: or_zero("instance")? }
        } else if let Some(pixel) = get("pixel") {
            allowed(&["draw", "pixel", "layer", "sample"])?;
            let [x, y] = numbers(pixel)?;
            let sample = get("sample").map(number).transpose()?;
            FiberWanted::Fragment { pixel: [x, y, or_zero("layer")?], sample }
        } else if let Some(vertex) = get("control") {
            allowed(&["draw", "patch", "control"])?;
            FiberWanted::Hull { patch: number(needed("patch")?)?, vertex: number(vertex)? }
        } else if let Some(point) = get("point") {
            allowed(&["draw", "patch", "point"])?;
            FiberWanted::Domain { patch: number(needed("patch")?)?, point: number(point)? }
        } else if let Some(vertex) = get("output") {
            allowed(&["draw", "primitive", "output", "invocation"])?;
            let primitive = number(needed("primitive")?)?;
            FiberWanted::Geometry { primitive, invocation: or_zero("invocation")?, vertex: number(vertex)? }
        } else {
            allowed(&["dispatch", "group", "local"])?;
            FiberWanted::Compute { group: numbers(needed("group")?)?, local: numbers(needed("local")?)? }
        };
        let of = if matches!(wanted, FiberWanted::Compute { .. }) { "dispatch" } else { "draw" };
        let work = needed(of)?;
        let work = work.parse().map_err(|_| format!("`{work}` is not a number; {FORM}"))?;
        Ok(FiberSpec { work, wanted })
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RegisterJson {
    name: String,
    value: Hex,
    /// The same bits as a float, where they are a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    float: Option<f32>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RunJson {
    r#type: &'static str,
    fiber: usize,
    stage: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    primitive: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<u8>,
    /// It only helps the others of its quad.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    helper: bool,
    /// It was killed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    killed: bool,
    starts: Vec<RegisterJson>,
    instructions: usize,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StepJson {
    r#type: &'static str,
    fiber: usize,
    index: u32,
    word: Hex,
    text: String,
    reads: Vec<RegisterJson>,
    writes: Vec<RegisterJson>,
}

fn is_float(register: FiberRegister) -> bool {
    matches!(register, FiberRegister::Full(_) | FiberRegister::Constant(_))
}

fn as_float((register, value): RegisterValue) -> Option<f32> {
    let float = f32::from_bits(value);
    let likely = float == 0.0 || (1e-10..1e10).contains(&float.abs());
    Some(float).filter(|_| is_float(register) && likely)
}

fn json(values: &[RegisterValue]) -> Vec<RegisterJson> {
    let one = |value: &RegisterValue| RegisterJson {
        name: value.0.to_string(),
        value: Hex::dword(value.1),
        float: as_float(*value),
    };
    values.iter().map(one).collect()
}

fn text_of(word: u64, gpu_id: u32) -> String {
    let mut text = Vec::new();
    ir3::write(word, gpu_id, &mut text);
    String::from_utf8_lossy(&text).trim().to_owned()
}

fn values(values: &[RegisterValue]) -> String {
    let one = |value: &RegisterValue| {
        let float = as_float(*value).map_or_else(String::new, |float| format!(" ({float})"));
        format!("{}={:#x}{float}", value.0, value.1)
    };
    values.iter().map(one).collect::<Vec<String>>().join(" ")
}

/// What was logged, as text.
pub(super) fn text(log: &FiberLog, gpu_id: u32, out: &mut dyn Write) -> io::Result<()> {
    for (fiber, run) in log.runs.iter().enumerate() {
        let FiberRun { stage, primitive, sample, helper, starts, steps, dropped } = run;
        write!(out, "  fiber {fiber}: {stage} shader")?;
        if let Some(primitive) = primitive {
            write!(out, ", primitive {primitive}")?;
        }
        if let Some(sample) = sample {
            write!(out, ", sample {sample}")?;
        }
        let fate = match (helper, dropped) {
            (true, _) => ", helper",
            (_, true) => ", killed",
            _ => "",
        };
        writeln!(out, "{fate}, {}", counted(steps.len() as u64, "instruction", "instructions"))?;
        writeln!(out, "        starts  {}", values(starts))?;
        for FiberStep { index, word, reads, writes } in steps {
            writeln!(out, "  {index:>4}  {}", text_of(*word, gpu_id))?;
            if !reads.is_empty() {
                writeln!(out, "          reads  {}", values(reads))?;
            }
            if !writes.is_empty() {
                writeln!(out, "         writes  {}", values(writes))?;
            }
        }
    }
    if log.more {
        writeln!(out, "  there is more than is shown")?;
    }
    Ok(())
}

/// The same as JSON lines.
pub(super) fn lines(log: &FiberLog, gpu_id: u32, out: &mut dyn Write) -> io::Result<()> {
    let line = |value: &dyn Fn(&mut dyn Write) -> serde_json::Result<()>, out: &mut dyn Write| {
        value(out).map_err(io::Error::from).and_then(|()| writeln!(out))
    };
    for (fiber, run) in log.runs.iter().enumerate() {
        let head = RunJson {
            r#type: "fiber",
            fiber,
            stage: run.stage,
            primitive: run.primitive,
            sample: run.sample,
            helper: run.helper,
            killed: run.dropped && !run.helper,
            starts: json(&run.starts),
            instructions: run.steps.len(),
        };
        line(&|out| serde_json::to_writer(out, &head), out)?;
        for step in &run.steps {
            let step = StepJson {
                r#type: "instruction",
                fiber,
                index: step.index,
                word: Hex::wide(step.word),
                text: text_of(step.word, gpu_id),
                reads: json(&step.reads),
                writes: json(&step.writes),
            };
            line(&|out| serde_json::to_writer(out, &step), out)?;
        }
    }
    if log.more {
        writeln!(out, "{{\"type\":\"more\"}}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fibers_are_asked_for_by_stage() {
        let read = |text: &str| text.parse::<FiberSpec>().map(|spec| (spec.work, spec.wanted));
        assert_eq!(
            read("draw=3:vertex=7:instance=1"),
            Ok((3, FiberWanted::Vertex { vertex: 7, instance: 1 }))
        );
        assert_eq!(
            read("draw=0:pixel=4,5:sample=2"),
            Ok((0, FiberWanted::Fragment { pixel: [4, 5, 0], sample: Some(2) }))
        );
        assert_eq!(
            read("dispatch=1:group=0,1,2:local=3,4,5"),
            Ok((1, FiberWanted::Compute { group: [0, 1, 2], local: [3, 4, 5] }))
        );
        assert_eq!(read("draw=2:patch=1:control=0"), Ok((2, FiberWanted::Hull { patch: 1, vertex: 0 })));
        assert_eq!(read("draw=2:patch=1:point=9"), Ok((2, FiberWanted::Domain { patch: 1, point: 9 })));
        assert!(read("draw=2:primitive=1:output=2:invocation=1").is_ok());
        for wrong in [
            "",
            "draw=1",
            "draw=1:vertex",
            "vertex=1",
            "draw=1:pixel=3",
            "draw=1:pixel=3,4:group=1,1,1",
            "dispatch=1:group=1,2:local=1,1,1",
            "draw=1:group=0,0,0:local=0,0,0",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
