//! The head of a text: what it says about the shader before its function, and which buffers and textures it declares.

use super::error::{NirCause, Result, unsupported};
use super::lexer::Cursor;
use super::parse::{Decl, Program};
use crate::ir::{Dim, Round, Stage};

/// Lines of the head that change nothing of what a shader means here.
const HEAD: &[&str] = &[
    "source_blake3",
    "name",
    "label",
    "internal",
    "next_stage",
    "prev_stage",
    "num_textures",
    "num_ubos",
    "num_abos",
    "num_ssbos",
    "num_images",
    "system_values_read",
    "subgroup_size",
    "api_subgroup_size",
    "api_subgroup_size_draw_uniform",
    "max_subgroup_size",
    "min_subgroup_size",
    "divergence_analysis_run",
    "bit_sizes_float",
    "bit_sizes_int",
    "separate_shader",
    "known_interpolation_qualifiers",
    "has_transform_feedback_varyings",
    "xfb_stride",
    "inlinable_uniform_dw_offsets",
    "num_inlinable_uniforms",
    "clip_distance_array_size",
    "cull_distance_array_size",
    "flrp_lowered",
    "io_lowered",
    "writes_memory",
    "derivative_group",
    "inputs",
    "outputs",
    "printfs",
    "ray queries",
    "uses_texture_gather",
    "uses_resource_info_query",
    "uses_bindless",
    "uses_wide_subgroup_intrinsics",
    "uses_control_barrier",
    "uses_memory_barrier",
    "first_ubo_is_default_ubo",
    "textures_used",
    "textures_used_by_txf",
    "samplers_used",
    "images_used",
    "image_buffers",
    "msaa_images",
    "ubos",
    "shared_memory_explicit_layout",
    "zero_initialize_shared_memory",
    "workgroup_size_variable",
    "workgroup_size_hint",
    "user_data_components_amd",
    "ptr_size",
    "inputs_read",
    "dual_slot_inputs",
    "outputs_written",
    "outputs_read",
    "perspective_varyings",
    "linear_varyings",
    "per_primitive_inputs",
    "per_primitive_outputs",
    "per_view_outputs",
    "inputs_read_16bit",
    "outputs_written_16bit",
    "outputs_read_16bit",
    "inputs_read_indirectly_16bit",
    "outputs_read_indirectly_16bit",
    "outputs_written_indirectly_16bit",
    "inputs_read_indirectly",
    "outputs_read_indirectly",
    "outputs_written_indirectly",
    "patch_inputs_read",
    "patch_outputs_written",
    "patch_outputs_read",
    "patch_inputs_read_indirectly",
    "patch_outputs_read_indirectly",
    "patch_outputs_written_indirectly",
    "double_inputs",
    "blit_sgprs_amd",
    "window_space_position",
    "needs_edge_flag",
    "needs_quad_helper_invocations",
    "needs_coarse_quad_helper_invocations",
    "needs_full_quad_helper_invocations",
    "require_full_quads",
    "quad_derivatives",
    "origin_upper_left",
    "pixel_center_integer",
    "uses_discard",
    "uses_fbfetch_output",
    "fbfetch_coherent",
    "color_is_dual_source",
    "uses_sample_qualifier",
    "uses_sample_shading",
    "early_fragment_tests",
    "inner_coverage",
    "post_depth_coverage",
    "pixel_interlock_ordered",
    "pixel_interlock_unordered",
    "sample_interlock_ordered",
    "sample_interlock_unordered",
    "untyped_color_outputs",
    "depth_layout",
    "color0_interp",
    "color0_sample",
    "color0_centroid",
    "color1_interp",
    "color1_sample",
    "color1_centroid",
    "advanced_blend_modes",
    "primitive_mode",
    "spacing",
    "ccw",
    "point_mode",
    "tcs_vertices_out",
    "tcs_same_invocation_inputs_read",
    "tcs_cross_invocation_inputs_read",
    "tcs_cross_invocation_outputs_read",
    "vertices_in",
    "vertices_out",
    "invocations",
    "input_primitive",
    "output_primitive",
    "uses_end_primitive",
    "active_stream_mask",
];

/// The stages, and what each is here. The program of ray generation, into which the driver puts the other ray-tracing stages, runs as a compute
/// shader.
const STAGES: &[(&str, Stage)] = &[
    ("MESA_SHADER_COMPUTE", Stage::Compute),
    ("MESA_SHADER_KERNEL", Stage::Compute),
    (RAY_GENERATION, Stage::Compute),
    ("MESA_SHADER_VERTEX", Stage::Vertex),
    ("MESA_SHADER_TESS_EVAL", Stage::TessEval),
    ("MESA_SHADER_FRAGMENT", Stage::Fragment),
    ("MESA_SHADER_TESS_CTRL", Stage::TessControl),
    ("MESA_SHADER_GEOMETRY", Stage::Geometry),
];
const RAY_GENERATION: &str = "MESA_SHADER_RAYGEN";
/// The workgroup of a ray-generation program with waves of 32 lanes, which the text does not say, and bytes of LDS of each lane.
const RAYS: [u32; 3] = [8, 4, 1];
const STACK_BYTES: u32 = 64;

/// Names of shapes in types of textures, after `sampler` or `texture`.
const SHAPES: &[(&str, Dim)] =
    &[("1D", Dim::D1), ("2D", Dim::D2), ("3D", Dim::D3), ("Cube", Dim::Cube), ("Buffer", Dim::Buffer)];

/// The shape of a texture that is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextureShape {
    pub dim: Dim,
    pub layered: bool,
}

impl TextureShape {
    /// How many coordinates an access has. Those in cubes are on a face, and its number.
    pub fn coordinates(self) -> u8 {
        if self.dim == Dim::Cube { 3 } else { self.dim.coordinates() + u8::from(self.layered) }
    }

    /// Of a type as `isampler2DArrayShadow`.
    fn of_type(word: &str) -> Option<TextureShape> {
        let at = word.find("sampler").or_else(|| word.find("texture"))?;
        if !matches!(word.get(..at)?, "" | "i" | "u" | "i64" | "u64" | "i16" | "u16" | "f16") {
            return None;
        }
        let rest = word.get(at + "sampler".len()..)?;
        let (name, dim) = SHAPES.iter().find(|(name, _)| rest.starts_with(name))?;
        Some(TextureShape { dim: *dim, layered: rest.get(name.len()..)?.contains("Array") })
    }
}

/// The line that names the stage.
pub(super) fn stage(program: &mut Program<'_>, line: &str) -> Result<()> {
    let Some(("shader", stage)) = line.split_once(':') else { return Err(NirCause::Expected("shader:")) };
    let stage = stage.trim();
    let Some((_, known)) = STAGES.iter().find(|(name, _)| *name == stage) else {
        return unsupported(format!("the stage {stage}"));
    };
    program.stage = Some(*known);
    if stage == RAY_GENERATION {
        program.workgroup_size = RAYS;
        program.traces_rays = true;
    }
    Ok(())
}

/// Another line.
pub(super) fn line<'a>(program: &mut Program<'a>, line: &'a str) -> Result<()> {
    let mut cursor = Cursor::new(line);
    if cursor.eat_word("decl_var") {
        return declaration(program, cursor);
    }
    // Stages of which nothing more is said.
    if cursor.eat_word("decl_function") || line.starts_with("Unhandled stage ") {
        return Ok(());
    }
    let Some((key, value)) = line.split_once(':') else {
        return Err(NirCause::Expected("a line of the head, or a function"));
    };
    let number = || value.trim().parse().map_err(|_| NirCause::Expected("a number"));
    match key.trim() {
        "workgroup_size" if value.trim().starts_with(|c: char| c.is_ascii_digit()) => {
            let value = value.trim().trim_end_matches("(variable)");
            let mut sizes = value.split(',').map(|size| size.trim().parse());
            for size in &mut program.workgroup_size {
                *size = sizes.next().and_then(std::result::Result::ok).unwrap_or(0);
                if *size == 0 {
                    return Err(NirCause::Expected("three sizes of the workgroup"));
                }
            }
        }
        "shared_size" => {
            program.shared_size = number()?;
            // There are twice as many rays in waves of 64 lanes.
            if program.traces_rays && program.shared_size > RAYS.iter().product::<u32>() * STACK_BYTES {
                program.workgroup_size[1] = 2 * RAYS[1];
            }
        }
        "scratch" | "scratch_size" => program.scratch_size = number()?,
        "uniforms" => program.push_size = number()?,
        "constants" => program.constant_size = number()?,
        "float_controls_execution_mode" => float_controls(program, value.trim())?,
        key if HEAD.contains(&key) => {}
        key => return unsupported(format!("{key}:{value}")),
    }
    Ok(())
}

/// Three bits for each behaviour, those of floats of 16, 32 and 64 bits: denormals kept or flushed; signs of zeros, infinities and NaNs kept;
/// rounded to the nearest even, or toward zero.
fn float_controls(program: &mut Program<'_>, text: &str) -> Result<()> {
    let bits = text.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let bits = bits.ok_or(NirCause::Expected("bits"))?;
    for (at, mode) in program.float_modes.iter_mut().enumerate() {
        let has = |behaviour: usize| bits >> (3 * behaviour + at) & 1 != 0;
        mode.flush = match (has(0), has(1)) {
            // The driver keeps those of 32 bits then, and flushes others.
            (true, true) => Some(at != 1),
            (false, false) => None,
            (_, flushed) => Some(flushed),
        };
        mode.preserve = has(2) || has(3) || has(4);
        mode.round = if has(6) { Round::Zero } else { Round::NearestEven };
    }
    Ok(())
}

/// Buffers: access flags, type and name, then `(location, driver location, binding)`. Of textures the shape counts.
fn declaration<'a>(program: &mut Program<'a>, mut cursor: Cursor<'a>) -> Result<()> {
    let uniform = match cursor.word() {
        "ssbo" => false,
        "ubo" => true,
        "uniform" => {
            let words = cursor.rest().split(|c: char| !c.is_ascii_alphanumeric());
            if let Some(shape) = words.into_iter().find_map(TextureShape::of_type)
                && !program.textures.contains(&shape)
            {
                program.textures.push(shape);
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    let rest = cursor.rest();
    let binding = rest.rsplit_once('(').and_then(|(words, numbers)| {
        let binding = numbers.trim_end_matches(')').rsplit(',').next()?;
        Some((words, binding.trim().parse().ok()?))
    });
    let Some((words, binding)) = binding else {
        return Err(NirCause::Expected("(location, driver location, binding)"));
    };
    program.decls.push(Decl { uniform, words: words.trim(), binding });
    Ok(())
}
