//! What passes make of a shader: its text after the passes that are asked for, and whether it is still valid.

use crate::json::Heading;
use serde::Serialize;
use std::io::{self, Write};
use std::str::FromStr;
use thiserror::Error;
use unwedge_shader::ir::Shader;
use unwedge_shader::passes::{Pipeline, UnknownPass, pass};
use unwedge_shader::text;
use unwedge_shader::valid::{InvalidShader, validate};

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;

/// `--print-after PASS|all`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrintAfter {
    /// Every pass.
    All,
    /// The pass with this name.
    Pass(&'static str),
}

impl FromStr for PrintAfter {
    type Err = UnknownPass;

    fn from_str(name: &str) -> Result<Self, UnknownPass> {
        match pass(name) {
            Some(pass) => Ok(PrintAfter::Pass(pass.name)),
            None if name == "all" => Ok(PrintAfter::All),
            None => Err(UnknownPass(name.to_owned())),
        }
    }
}

/// The passes after which the shader is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrintRequest<'a> {
    /// After these.
    pub after: &'a [PrintAfter],
    /// After those that changed it.
    pub changed: bool,
}

impl PrintRequest<'_> {
    /// Whether anything but the result is shown.
    pub fn is_any(&self) -> bool {
        self.changed || !self.after.is_empty()
    }

    fn wants(&self, name: &str, changed: bool) -> bool {
        let named = |after: &PrintAfter| match after {
            PrintAfter::All => true,
            PrintAfter::Pass(pass) => *pass == name,
        };
        self.changed && changed || self.after.iter().any(named)
    }
}

/// A pass that broke a rule of the IR.
#[derive(Debug, Error)]
#[error("after pass {pass} (run {number}) the shader is not valid: {invalid}")]
struct BrokenByPass {
    pass: &'static str,
    number: usize,
    invalid: InvalidShader,
}

/// A pass that has run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PassView {
    pass: &'static str,
    changed: bool,
    instructions: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    shader: Option<String>,
}

/// What the passes of a pipeline made of a shader.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OptimizationView {
    #[serde(flatten)]
    heading: Heading<'static>,
    entry: String,
    instructions: usize,
    passes: Vec<PassView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid: Option<String>,
    shader: String,
}

impl OptimizationView {
    /// Runs the passes, and checks the shader after each of them. A pass after which it is not valid is the last one.
    pub fn of(shader: &mut Shader, pipeline: &Pipeline, request: PrintRequest<'_>) -> OptimizationView {
        let before = shader.instruction_count();
        let mut last = text::print(shader);
        let mut passes = Vec::new();
        let broken = pipeline.run(shader, |run, shader| {
            let now = text::print(shader);
            let changed = now != last;
            let shown = request.wants(run.pass.name, changed).then(|| now.clone());
            last = now;
            passes.push(PassView {
                pass: run.pass.name,
                changed,
                instructions: shader.instruction_count(),
                shader: shown,
            });
            validate(shader).map_err(|invalid| BrokenByPass {
                pass: run.pass.name,
                number: run.number,
                invalid,
            })
        });
        OptimizationView {
            heading: Heading::of_plain_object("unwedge.shader-opt", SCHEMA),
            entry: shader.info.name.clone(),
            instructions: before,
            passes,
            invalid: broken.err().map(|broken| broken.to_string()),
            shader: last,
        }
    }

    /// The pass that broke a rule of the IR, and the rule.
    pub fn invalid(&self) -> Option<&str> {
        self.invalid.as_deref()
    }

    /// The shader after all passes, as text.
    pub fn shader(&self) -> &str {
        &self.shader
    }

    /// The shader after the passes that were asked for, each under a comment with the name of the pass.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        for (number, run) in self.passes.iter().enumerate() {
            let Some(shader) = &run.shader else { continue };
            let changed = if run.changed { "" } else { ", which changed nothing" };
            writeln!(out, "# after {} (run {}){changed}", run.pass, number + 1)?;
            out.write_all(shader.as_bytes())?;
        }
        Ok(())
    }

    /// The same as a JSON object, with the shader after all passes.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }
}

crate::schema::shapes!(object: OptimizationView);

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_shader::ir::{Builder, Op, Payload};
    use unwedge_shader::passes::PASSES;

    /// A shader that computes a sum and does not use it.
    fn shader() -> Shader {
        let mut shader = Shader::default();
        shader.add_function();
        let body = shader.entry().body();
        let mut builder = Builder::at_end(shader.entry_mut(), body);
        let one = builder.u32(1);
        builder.alu(Op::IAdd, &[one, one]);
        builder.return_(&[]);
        shader
    }

    #[test]
    fn what_was_asked_for_is_shown() {
        let run = |list: &str, after: &[PrintAfter], changed| {
            let mut shader = shader();
            let request = PrintRequest { after, changed };
            let view = OptimizationView::of(&mut shader, &list.parse().expect("a list"), request);
            let mut out = Vec::new();
            view.text(&mut out).expect("written");
            (String::from_utf8(out).expect("text"), view)
        };
        let (text, view) = run("folding,dead,dead", &[], true);
        assert!(text.contains("# after folding (run 1)\n") && text.contains("# after dead (run 2)\n"));
        assert!(!text.contains("run 3") && view.invalid().is_none(), "{text}");
        assert!(!view.shader().contains("const"), "{}", view.shader());
        let (text, _) = run("folding,dead,dead", &[PrintAfter::Pass("dead")], false);
        assert_eq!(text.matches("# after").count(), 2);
        assert!(text.contains("# after dead (run 3), which changed nothing\n"), "{text}");
        let (text, view) = run("standard", &[PrintAfter::All], false);
        assert_eq!(text.matches("# after").count(), view.passes.len());
        assert!("standard,none".parse::<Pipeline>().is_err() && "".parse::<Pipeline>().is_err());
    }

    #[test]
    fn a_pass_that_breaks_a_rule_is_named() {
        let run = |shader: &mut Shader| {
            let func = shader.entry_mut();
            let end = func.last(func.body()).expect("the terminator");
            func.replace_inst(end, Op::Demote, Payload::None, &[]);
            true
        };
        let mut breaking = PASSES[0];
        (breaking.name, breaking.run) = ("breaking", run);
        let mut shader = shader();
        let passes: Pipeline = [PASSES[0], breaking, PASSES[0]].into_iter().collect();
        let view = OptimizationView::of(&mut shader, &passes, PrintRequest::default());
        let invalid = view.invalid().expect("a rule is broken");
        assert!(invalid.contains("pass breaking (run 2)") && invalid.contains("terminator"), "{invalid}");
        assert_eq!(view.passes.len(), 2);
    }
}
