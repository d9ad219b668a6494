//! Shaders in the text form, run with one storage buffer.

use unwedge_shader::interp::{
    BindingPoint, Bindings, Dispatch, Finding, NoImages, Options, Report, RunError, Violation, run_compute,
};
use unwedge_shader::ir::Shader;
use unwedge_shader::text::parse;
use unwedge_shader::valid::validate;

/// The head of a compute shader: storage buffer r0, storage image r1, sampled image with sampler r2, `invocations` in a workgroup.
pub fn head(invocations: u32) -> String {
    use unwedge_shader::ir::{Modes, ResourceClass, ResourceData};
    let mut shader = Shader::default();
    shader.info.workgroup_size = [invocations, 1, 1];
    shader.info.modes = Modes::LINEAR;
    shader.info.shared_size = 4096;
    shader.info.scratch_size = 64;
    shader.info.push_size = 64;
    let classes =
        [ResourceClass::StorageBuffer, ResourceClass::StorageImage, ResourceClass::CombinedImageSampler];
    for (binding, class) in classes.into_iter().enumerate() {
        shader.resources.push(ResourceData::new(class, binding as u32));
    }
    unwedge_shader::text::print(&shader)
}

/// A shader of the text form; `body` is that of its entry point. Every body may use %0 = the descriptor of the buffer and
/// %1 = the invocation's index.
pub fn shader(invocations: u32, body: &str) -> Shader {
    let start =
        "%900: b32 = const<0x0>\n%0: handle = descriptor<r0> %900\n%1: b32 = sysval<local_invocation_index>";
    let text = format!("{}fn f0 \"main\" () -> () {{\n{start}\n{body}\nreturn\n}}\n", head(invocations));
    let mut shader = Shader::default();
    parse(&text, &mut shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    validate(&shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    shader
}

/// The buffer and the report after one workgroup.
pub fn try_run(shader: &Shader, buffer: &[u32], options: &Options) -> (Vec<u32>, Result<Report, RunError>) {
    let mut bindings = Bindings { push: (0..64).collect(), ..Bindings::default() };
    let bytes = buffer.iter().flat_map(|word| word.to_le_bytes()).collect();
    let at = bindings.bind(BindingPoint { set: 0, binding: 0, index: 0 }, bytes);
    let report = run_compute(shader, Dispatch::new([1, 1, 1]), &mut bindings, &mut NoImages, options);
    let words = bindings.memory[at].chunks_exact(4);
    (words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect(), report)
}

/// The same with subgroups of eight.
pub fn run(shader: &Shader, buffer: &[u32]) -> (Vec<u32>, Vec<Finding>) {
    let options = Options { subgroup_size: 8, ..Options::default() };
    let (words, report) = try_run(shader, buffer, &options);
    (words, report.expect("it runs to its end").findings)
}

/// Violations of a run.
pub fn violations(findings: &[Finding]) -> Vec<Violation> {
    findings.iter().map(|finding| finding.violation).collect()
}
