//! Parts of programs that are compiled separately and concatenated: the code of a shader follows that of a prolog, and the code of an epilog that of a shader.
//!
//! A part that another follows does not end the program. Nothing is pending where it stops, and what the next one reads is in the registers that both know
//! ([`ColourOutput::register`]). A driver concatenates the words of parts, and gives a wave as many registers as the part with the greatest demand needs.

use crate::abi::{Args, Argument, ColourOutput, Interface, PixelProlog};
use crate::compile::{CompileError, Compiled, Compiler, Options};
use unwedge_shader::ir::{
    AmdInput, AmdRegisters, Builder, FIRST_LOCATION_SLOT, Op, Payload, Shader, SlotAccess, SlotDir, Stage,
    Type,
};

/// Compiles the prolog of a vertex shader that was compiled with [`prolog`](crate::graphics::GraphicsOptions::prolog), and has these arguments: it loads attributes
/// in the formats of the options, and leaves the other registers as they are. `float_mode` is the shader's.
///
/// # Errors
///
/// What is not compiled.
pub fn compile_vertex_prolog(
    main: &Args,
    float_mode: u8,
    options: &Options,
) -> Result<Compiled, CompileError> {
    let mut options = options.clone();
    options.graphics.prolog = false;
    let is_attribute = |argument| matches!(argument, Argument::Attribute(_));
    let mut args = main.without(is_attribute);
    let fetched = main.iter().copied().filter(|location| is_attribute(location.argument)).collect();
    args.interface =
        Interface { hardware: main.interface.hardware, prolog: true, fetched, ..Interface::default() };
    let shader = load_attributes(&args.interface);
    part(&shader, args, float_mode, &options)
}

/// Compiles the prolog of a pixel shader that was compiled with [`prolog`](crate::graphics::GraphicsOptions::prolog) and has these arguments: it gives the shader what the state says in place of what the hardware gives. Its own arguments say which inputs
/// the hardware has to give (`SPI_PS_INPUT_ENA`); scalar registers are those of the shader. `float_mode` is the shader's.
///
/// # Errors
///
/// What is not compiled.
pub fn compile_pixel_prolog(
    main: &Args,
    float_mode: u8,
    state: PixelProlog,
    options: &Options,
) -> Result<Compiled, CompileError> {
    let mut options = options.clone();
    (options.graphics.prolog, options.graphics.epilog) = (false, false);
    let mut shader = Shader::with_entry(Stage::Fragment, "prolog");
    let func = shader.entry_mut();
    let body = func.body();
    Builder::at_end(func, body).return_(&[]);
    part(&shader, Args::pixel_prolog(main, state), float_mode, &options)
}

/// A vertex shader that stores the attributes which it loads.
fn load_attributes(interface: &Interface) -> Shader {
    let mut shader = Shader::with_entry(Stage::Vertex, "prolog");
    let func = shader.entry_mut();
    let body = func.body();
    for fetched in &interface.fetched {
        let Argument::Attribute(location) = fetched.argument else { continue };
        let mut b = Builder::at_end(func, body);
        let slot = FIRST_LOCATION_SLOT.wrapping_add(location as u16);
        let (access, offset) = (SlotAccess::of(SlotDir::Output, slot), b.u32(0));
        let input = Payload::Slot(SlotAccess { dir: SlotDir::Input, ..access });
        let value = b.value(Op::LoadSlot, input, &[offset], Type { lanes: 4, ..Type::B32 });
        b.inst(Op::StoreSlot, Payload::Slot(access), &[value, offset], &[]);
    }
    Builder::at_end(func, body).return_(&[]);
    shader
}

fn part(shader: &Shader, args: Args, float_mode: u8, options: &Options) -> Result<Compiled, CompileError> {
    Compiler::new().compile_parts(&[shader], args, float_mode, options)
}

/// Compiles the epilog of a pixel shader that was compiled with [`epilog`](crate::graphics::GraphicsOptions::epilog): it converts colours to the formats of the options, and exports them,
/// after the depth. `interface` and `float_mode` are the shader's.
///
/// # Errors
///
/// What is not compiled.
pub fn compile_pixel_epilog(
    interface: &Interface,
    float_mode: u8,
    options: &Options,
) -> Result<Compiled, CompileError> {
    let mut options = options.clone();
    // The code of the shader comes before it, as that of a prolog would.
    (options.graphics.prolog, options.graphics.epilog) = (true, false);
    let shader = export_colours(interface);
    part(&shader, Args::epilog(interface), float_mode, &options)
}

/// A fragment shader that stores what is in the registers of colours, and in those of the depth.
fn export_colours(main: &Interface) -> Shader {
    let mut shader = Shader::with_entry(Stage::Fragment, "epilog");
    let func = shader.entry_mut();
    let body = func.body();
    let mut store = |first: u16, access: SlotAccess| {
        let mut b = Builder::at_end(func, body);
        let registers = Payload::Register(AmdInput::of(AmdRegisters { vector: true, first }));
        let value = b.value(Op::AmdRegister, registers, &[], Type::B32);
        let offset = b.u32(0);
        b.inst(Op::StoreSlot, Payload::Slot(access), &[value, offset], &[]);
    };
    for (number, colour) in main.colours.iter().enumerate() {
        for component in (0..4).filter(|component| colour.components >> component & 1 != 0) {
            let slot = FIRST_LOCATION_SLOT.wrapping_add(colour.location);
            let access =
                SlotAccess { component, index: colour.index, ..SlotAccess::of(SlotDir::Output, slot) };
            store(ColourOutput::register(number, component), access);
        }
    }
    for output in &main.depth_outputs {
        let slot = output.builtin().slots().start;
        store(output.register(main.colours.len()), SlotAccess::of(SlotDir::Output, slot));
    }
    Builder::at_end(func, body).return_(&[]);
    shader
}
