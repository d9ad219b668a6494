//! A run as the command line asks for it: executed, with what is missing and what is to be shown.

use super::request::{OutputRequest, Workgroups, descriptor_name};
use super::run::{BufferDump, RunView};
use std::path::Path;
use thiserror::Error;
use unwedge_shader::interp::{
    BindingPoint, Bindings, Dispatch, Limits, NoImages, Options, RunError, run_compute,
};
use unwedge_shader::ir::{ResourceClass, ResourceData, Shader};

/// A run.
#[derive(Debug)]
pub struct RunRequest<'a> {
    /// Workgroups.
    pub workgroups: Workgroups,
    /// Invocations of a subgroup.
    pub subgroup_size: u32,
    /// Instructions that subgroups may execute.
    pub steps: u64,
    /// Buffers that are wanted afterwards; all that change, if there are none.
    pub outputs: &'a [OutputRequest],
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ShaderRunError {
    /// A buffer is wanted that is not bound.
    #[error("--out {}: no --buffer is given for it", descriptor_name(*.0))]
    Unbound(BindingPoint),
    /// The shader cannot be run, or not to its end.
    #[error(transparent)]
    Run(#[from] RunError),
}

fn is_buffer(resource: &ResourceData) -> bool {
    matches!(resource.class, ResourceClass::UniformBuffer | ResourceClass::StorageBuffer)
}

impl RunRequest<'_> {
    /// What the shader declares and is not given, and what it is given and does not declare.
    pub fn warnings(&self, shader: &Shader, bindings: &Bindings) -> Vec<String> {
        let is_at = |resource: &ResourceData, point: &BindingPoint| {
            (resource.set, resource.binding) == (point.set, point.binding)
        };
        let buffers = || shader.resources.iter().map(|(_, resource)| resource).filter(|of| is_buffer(of));
        let mut warnings = Vec::new();
        for resource in buffers().filter(|of| !bindings.buffers.keys().any(|point| is_at(of, point))) {
            let ResourceData { set, binding, size, .. } = resource;
            let option = format!("--buffer {set}.{binding}=FILE or SIZE");
            let name = if resource.name.is_empty() { String::new() } else { format!(" `{}`", resource.name) };
            warnings
                .push(format!("the buffer{name} is not bound: give {option} (it has {size} bytes or more)"));
        }
        for point in bindings.buffers.keys().filter(|point| !buffers().any(|of| is_at(of, point))) {
            warnings.push(format!("the shader has no buffer {}", descriptor_name(*point)));
        }
        let (declared, given) = (shader.info.push_size, bindings.push.len());
        if given < declared as usize {
            let warning =
                format!("the shader has {declared} bytes of push constants, and --push gives {given}");
            warnings.push(warning);
        }
        warnings
    }

    /// The files that are to be written after the run, with their content.
    pub fn files<'b>(&'b self, bindings: &'b Bindings) -> impl Iterator<Item = (&'b Path, &'b [u8])> {
        self.outputs.iter().filter_map(|output| {
            let view = bindings.buffers.get(&output.point)?;
            Some((output.file.as_deref()?, bindings.memory.get(view.memory)?.as_slice()))
        })
    }

    fn wants(&self, point: BindingPoint) -> bool {
        self.outputs.iter().any(|output| output.point == point && output.file.is_none())
    }
}

impl<'a> RunView<'a> {
    /// Runs a shader over buffers.
    ///
    /// # Errors
    /// When a buffer that is wanted is not bound, or the shader cannot be run to its end.
    pub fn of(
        shader: &'a Shader,
        bindings: &mut Bindings,
        request: &RunRequest<'_>,
    ) -> Result<RunView<'a>, ShaderRunError> {
        let unbound = |output: &&OutputRequest| !bindings.buffers.contains_key(&output.point);
        if let Some(output) = request.outputs.iter().find(unbound) {
            return Err(ShaderRunError::Unbound(output.point));
        }
        let before = if request.outputs.is_empty() { bindings.memory.clone() } else { Vec::new() };
        let limits = Limits { steps: request.steps, ..Limits::default() };
        let options = Options { subgroup_size: request.subgroup_size, limits, ..Options::default() };
        let dispatch = Dispatch::new(request.workgroups.0);
        let report = run_compute(shader, dispatch, bindings, &mut NoImages, &options)?;
        let mut buffers = Vec::new();
        for (&point, view) in &bindings.buffers {
            let Some(bytes) = bindings.memory.get(view.memory) else { continue };
            if request.wants(point) || before.get(view.memory).is_some_and(|before| before != bytes) {
                buffers.push(BufferDump::of(point, bytes));
            }
        }
        Ok(RunView { shader, workgroups: request.workgroups.0, report, buffers })
    }
}
